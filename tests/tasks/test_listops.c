// Precision: f32
// ListOps against a plain recursive generator and evaluator, hand cases, and the statistics of an
// independent simulation of 12,000 kept trees.
#include "support/support.h"

#include "rng/rng.h"
#include "tasks/fingerprint.h"
#include "tasks/listops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 2000, LONG = 1 << 20 };

// The generator as its definition reads: a recursive tree of any length, judged at its end.
typedef struct {
    rfa_rng_reader random;
    uint16_t *ids; // [LONG]
    int length;
    int operators_below; // depth of the deepest operator
} plain;

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int plain_node(plain *p, const rfa_listops_options *o, int depth)
{
    double r = 1;
    if (depth < o->max_depth) {
        r = rfa_rng_uniform(&p->random);
    }
    if (r > o->p_op) {
        const int digit = (int)rfa_rng_below(&p->random, 10);
        p->ids[p->length++] = (uint16_t)(1 + digit);
        return digit;
    }
    const int arguments = 2 + (int)rfa_rng_below(&p->random, (uint32_t)o->max_args - 1);
    const int place = p->length++;
    int values[64] = {0}, sum = 0;
    p->operators_below = depth > p->operators_below ? depth : p->operators_below;
    for (int a = 0; a < arguments; a++) {
        values[a] = plain_node(p, o, depth + 1);
        sum += values[a];
    }
    const int operator= 11 +(int) rfa_rng_below(&p->random, 4);
    p->ids[place] = (uint16_t) operator;
    p->ids[p->length++] = 15;
    qsort(values, (size_t)arguments, sizeof values[0], by_value);
    switch (operator) {
    case 11: return values[0];
    case 12: return values[arguments - 1];
    case 13: return (values[(arguments - 1) / 2] + values[arguments / 2]) / 2;
    default: return sum % 10;
    }
}

static void trees_equal_the_plain_generator(void **state)
{
    (void)state;
    rfa_listops_options cases[] = {rfa_listops_defaults(), rfa_listops_defaults(),
                                   rfa_listops_defaults()};
    cases[1].seed = 0x123456789abcdef0u;
    cases[1].min_length = 0;
    cases[1].max_length = 60;
    cases[1].max_depth = 4;
    cases[1].max_args = 5;
    cases[1].p_op = 0.5;
    cases[2].min_length = 20;
    cases[2].max_depth = 2;
    cases[2].max_args = 40;
    uint16_t *ids = NULL, *plain_ids = NULL;
    check_ok(rfa_alloc(&ids, LENGTH, sizeof *ids, "test"));
    check_ok(rfa_alloc(&plain_ids, LONG, sizeof *plain_ids, "test"));
    for (int i = 0; i < 3; i++) {
        const rfa_listops_options *o = &cases[i];
        int kept = 0, wrong = 0;
        check_ok(rfa_listops_check(o));
        for (int c = 0; c < 12000; c++) {
            // High halves of the number count too.
            const uint64_t candidate = (uint64_t)c + (c % 2 ? (uint64_t)c << 32 : 0);
            plain p = {.random = rfa_rng_reader_at(rfa_rng_stream(o->seed, RFA_RNG_LISTOPS,
                                                                  (uint32_t)candidate,
                                                                  (uint32_t)(candidate >> 32))),
                       .ids = plain_ids};
            const int value = plain_node(&p, o, 1);
            const bool keep = p.length > o->min_length && p.length < o->max_length;
            int label = -1;
            const ptrdiff_t length = rfa_listops_tree(ids, &label, o, candidate);
            wrong += length != (keep ? p.length : 0);
            if (keep && length == p.length) {
                kept++;
                wrong += label != value || memcmp(ids, plain_ids, (size_t)length * 2) != 0;
            }
        }
        check(wrong == 0);
        check(kept > 500);
    }
    rfa_free(plain_ids);
    rfa_free(ids);
}

// A candidate is a function of its number: order and blocks don't matter.
static void trees_do_not_depend_on_order(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    const rfa_listops_options o = rfa_listops_defaults();
    static uint16_t ids[LENGTH];
    static rfa_fingerprint forward[COUNT];
    int label, differ = 0, kept = 0, equal = 0;
    for (int c = 0; c < COUNT; c++) {
        forward[c] = rfa_fingerprint_ids(ids, rfa_listops_tree(ids, &label, &o, (uint64_t)c));
    }
    for (int c = COUNT - 1; c >= 0; c--) {
        const ptrdiff_t length = rfa_listops_tree(ids, &label, &o, (uint64_t)c);
        const rfa_fingerprint f = rfa_fingerprint_ids(ids, length);
        differ += f.high != forward[c].high || f.low != forward[c].low;
        kept += length > 0;
    }
    rfa_listops_options other = o;
    other.seed = 2;
    for (int c = 0; c < COUNT; c++) {
        const ptrdiff_t length = rfa_listops_tree(ids, &label, &other, (uint64_t)c);
        const rfa_fingerprint f = rfa_fingerprint_ids(ids, length);
        equal += length > 0 && f.high == forward[c].high && f.low == forward[c].low;
    }
    check(differ == 0 && kept > 150 && equal == 0);
}

// Bounds: five standard errors of the difference between this sample and the reference's 12,000.
static void statistics_are_those_of_the_task(void **state)
{
    (void)state;
    enum { KEPT = 3000, REFERENCE = 12000 };
    static const double labels[10] = {.173, .087, .081, .082, .090, .088, .076, .070, .086, .169};
    const rfa_listops_options o = rfa_listops_defaults();
    static uint16_t ids[LENGTH];
    double sum = 0, counts[10] = {0}, by_root[4][10] = {{0}}, symbols[16] = {0};
    int candidates = 0, outside = 0, too_deep = 0, deep = 0;
    for (int kept = 0; kept < KEPT; candidates++) {
        int label;
        const ptrdiff_t length = rfa_listops_tree(ids, &label, &o, (uint64_t)candidates);
        if (length == 0) {
            continue;
        }
        kept++;
        outside += length <= 500 || length >= 2000;
        sum += (double)length;
        counts[label]++;
        by_root[ids[0] - RFA_LISTOPS_MIN][label]++;
        int depth = 0, deepest = 0;
        for (ptrdiff_t t = 0; t < length; t++) {
            symbols[ids[t]]++;
            depth += ids[t] >= RFA_LISTOPS_MIN && ids[t] <= RFA_LISTOPS_SM;
            deepest = depth > deepest ? depth : deepest;
            depth -= ids[t] == RFA_LISTOPS_CLOSE;
        }
        too_deep += deepest > 9;
        deep += deepest == 9;
    }
    const double both = 1.0 / KEPT + 1.0 / REFERENCE, share = (double)KEPT / candidates;
    check(outside == 0);
    check(too_deep == 0 && deep > KEPT * 99 / 100);
    check(fabs(share - 0.083) < 5 * sqrt(0.083 * 0.917 / candidates) + 0.0005);
    check(fabs(sum / KEPT - 1034) < 5 * 400 * sqrt(both));
    double majority = 0, root = 0;
    for (int c = 0; c < 10; c++) {
        const double p = labels[c];
        check(fabs(counts[c] / KEPT - p) < 5 * sqrt(p * (1 - p) * both) + 0.0005);
        majority = counts[c] > majority ? counts[c] : majority;
    }
    for (int operator= 0; operator<4; operator++) {
        double most = 0;
        for (int c = 0; c < 10; c++) {
            most = by_root[operator][c] > most ? by_root[operator][c] : most;
        }
        root += most;
    }
    check(fabs(majority / KEPT - 0.171) < 5 * sqrt(0.171 * 0.829 * both));
    check(fabs(root / KEPT - 0.363) < 5 * sqrt(0.363 * 0.637 * both));
    // Digits and operators are drawn uniformly, whatever is kept.
    double digits = 0, operators = 0;
    for (int id = 1; id < 15; id++) {
        *(id <= 10 ? &digits : &operators) += symbols[id];
    }
    for (int id = 1; id < 15; id++) {
        const double p = id <= 10 ? 0.1 : 0.25, n = id <= 10 ? digits : operators;
        check(fabs(symbols[id] / n - p) < 5 * sqrt(p * (1 - p) / n));
    }
    check(symbols[RFA_LISTOPS_PAD] == 0);
    check(symbols[RFA_LISTOPS_CLOSE] == operators);
}

static int value_of(const char *text)
{
    uint16_t ids[256];
    ptrdiff_t length;
    int value = -1;
    check_ok(rfa_listops_encode(ids, &length, 256, text));
    check_ok(rfa_listops_evaluate(&value, ids, length));
    return value;
}

// P5: an even number of arguments has the floor of the mean of the two in the middle as its median.
static void values_follow_the_rules(void **state)
{
    (void)state;
    check(value_of("7") == 7);
    check(value_of("[MED 1 2 ]") == 1);
    check(value_of("[MED 0 9 ]") == 4);
    check(value_of("[MED 9 0 ]") == 4);
    check(value_of("[MED 2 ]") == 2);
    check(value_of("[MED 5 1 9 ]") == 5);
    check(value_of("[MED 3 3 8 9 ]") == 5);
    check(value_of("[MED 9 9 9 9 0 0 ]") == 9);
    check(value_of("[MIN 4 2 9 ]") == 2);
    check(value_of("[MAX 4 2 9 0 ]") == 9);
    check(value_of("[SM 9 9 9 ]") == 7);
    check(value_of("[SM 5 5 ]") == 0);
    check(value_of("[MAX [MIN 4 7 ] [SM 9 2 [MED 1 8 ] ] 3 ]") == 5);
    check(value_of("( ( ( [MAX 4 ) 7 ) ] )") == 7);
    check(value_of("[SM 1 [MIN 3 4 X 2 X") == 6);
    check(value_of("  [MIN   3  4 ]  ") == 3);
}

static void check_refused(const char *text, const char *why)
{
    uint16_t ids[64];
    ptrdiff_t length;
    int value;
    rfa_status status = rfa_listops_encode(ids, &length, 8, text);
    if (status == RFA_OK) {
        status = rfa_listops_evaluate(&value, ids, length);
    }
    if (status != RFA_ERR_IO || !strstr(rfa_error_text(), why)) {
        print_error("'%s': status %d: %s\n", text, status, rfa_error_text());
    }
    check(status == RFA_ERR_IO && strstr(rfa_error_text(), why));
}

static void damaged_expressions_are_refused(void **state)
{
    (void)state;
    check_refused("", "empty");
    check_refused("( )", "empty");
    check_refused("[MAX 1 2", "1 operator is not closed");
    check_refused("[MAX 1 [MIN 2", "2 operators are not closed");
    check_refused("[MAX 1 ] ]", "token 4 follows the end");
    check_refused("]", "token 1 closes");
    check_refused("1 2", "token 2 follows the end");
    check_refused("[MAX ]", "token 2: an operator without arguments");
    check_refused("[AVG 1 ]", "unknown token '[AVG' after token 0");
    check_refused("[MAX 1 10 ]", "unknown token '10' after token 2");
    check_refused("[MAX 1 <pad> ]", "unknown token '<pad>'");
    check_refused("[max 1 ]", "unknown token");
    check_refused("( [MAX 1 ]", "1 '(' without ')'");
    check_refused("[MAX 1 ] )", "')' without '('");
    check_refused("[MAX 1 2 3 4 5 6 7 8 ]", "more than 8 tokens");
    const uint16_t bad[2][3] = {{11, 0, 15}, {11, 16, 15}};
    int value;
    check_status(rfa_listops_evaluate(&value, bad[0], 3), RFA_ERR_IO);
    check_status(rfa_listops_evaluate(&value, bad[1], 3), RFA_ERR_IO);
    // Nesting: 1000 operators are read, 1001 are not.
    uint16_t *deep = NULL;
    check_ok(rfa_alloc(&deep, 2003, sizeof *deep, "test"));
    for (int levels = 1000; levels <= 1001; levels++) {
        for (int i = 0; i < levels; i++) {
            deep[i] = RFA_LISTOPS_SM;
            deep[levels + 1 + i] = RFA_LISTOPS_CLOSE;
        }
        deep[levels] = RFA_LISTOPS_DIGIT + 3;
        check_status(rfa_listops_evaluate(&value, deep, 2 * levels + 1),
                     levels == 1000 ? RFA_OK : RFA_ERR_IO);
        check(levels > 1000 || value == 3);
    }
    rfa_free(deep);
}

// P4: no bracket is lost. Trees to text and back, and their values by the evaluator.
static void text_round_trip(void **state)
{
    (void)state;
    const rfa_listops_options o = rfa_listops_defaults();
    static uint16_t ids[LENGTH], back[LENGTH];
    static char text[5 * LENGTH + 1];
    int wrong = 0, kept = 0;
    for (int c = 0; c < 4000; c++) {
        int label, value = -1;
        ptrdiff_t n;
        const ptrdiff_t length = rfa_listops_tree(ids, &label, &o, (uint64_t)c);
        if (length == 0) {
            continue;
        }
        kept++;
        rfa_listops_decode(text, ids, length);
        wrong += rfa_listops_encode(back, &n, LENGTH, text) != RFA_OK || n != length ||
                 memcmp(ids, back, (size_t)length * 2) != 0;
        wrong += rfa_listops_evaluate(&value, back, n) != RFA_OK || value != label;
    }
    check(wrong == 0 && kept > 200);
    // Two trees that differ in the place of one bracket only.
    ptrdiff_t n, m;
    check_ok(rfa_listops_encode(ids, &n, LENGTH, "[SM 1 [SM 2 3 ] 4 ]"));
    check_ok(rfa_listops_encode(back, &m, LENGTH, "[SM 1 [SM 2 3 4 ] ]"));
    check(n == m && memcmp(ids, back, (size_t)n * 2) != 0);
    for (int id = 1; id < RFA_LISTOPS_VOCABULARY; id++) {
        check_ok(rfa_listops_encode(ids, &n, 1, rfa_listops_symbols[id]));
        check(n == 1 && ids[0] == id);
    }
}

static void options_are_checked(void **state)
{
    (void)state;
    const rfa_listops_options good = rfa_listops_defaults();
    check_ok(rfa_listops_check(&good));
    rfa_listops_options bad[12];
    for (int i = 0; i < 12; i++) {
        bad[i] = good;
    }
    bad[0].max_depth = 1;
    bad[1].max_depth = 65;
    bad[2].max_args = 1;
    bad[3].max_args = 1000;
    bad[4].p_op = 0;
    bad[5].p_op = 1.01;
    bad[6].p_op = NAN;
    bad[7].max_length = 501; // nothing lies strictly between 500 and 501
    bad[8].min_length = -1;
    bad[9].max_length = (int64_t)1 << 40;
    bad[10].max_depth = 3; // at most 122 tokens
    bad[11].min_length = 2000;
    for (int i = 0; i < 12; i++) {
        check_status(rfa_listops_check(&bad[i]), RFA_ERR_USAGE);
        check(strstr(rfa_error_text(), "--") != NULL);
    }
    rfa_listops_options narrow = good;
    narrow.max_depth = 2;
    narrow.min_length = 11;
    narrow.max_length = 13;
    check_ok(rfa_listops_check(&narrow)); // 2 + 10 tokens
    narrow.min_length = 12;
    narrow.max_length = 14;
    check_status(rfa_listops_check(&narrow), RFA_ERR_USAGE);
}

static void fingerprints_tell_examples_apart(void **state)
{
    (void)state;
    // Published value of FNV-1a with 128 bits for "foobar", and the empty text.
    const uint16_t foobar[3] = {'f' | 'o' << 8, 'o' | 'b' << 8, 'a' | 'r' << 8};
    rfa_fingerprint f = rfa_fingerprint_ids(foobar, 3);
    check(f.high == 0x343e1662793c64bfu && f.low == 0x6f0d3597ba446f18u);
    f = rfa_fingerprint_ids(foobar, 0);
    check(f.high == 0x6c62272e07bb0142u && f.low == 0x62b821756295c58du);

    enum { COUNT = 100000 };
    rfa_fingerprints *set = NULL;
    check_ok(rfa_fingerprints_create(&set));
    int wrong = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            const uint16_t ids[3] = {(uint16_t)(i % 16), (uint16_t)(i / 16 % 16),
                                     (uint16_t)(i / 256)};
            int64_t former;
            const rfa_status status =
                rfa_fingerprints_add(set, rfa_fingerprint_ids(ids, 3), i + round, &former);
            wrong += status != RFA_OK || former != (round == 0 ? -1 : i);
        }
    }
    check(wrong == 0 && rfa_fingerprints_count(set) == COUNT);
    rfa_fingerprints_destroy(&set);
    rfa_fingerprints_destroy(&set);
    check(set == NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_equal_the_plain_generator),
        cmocka_unit_test(trees_do_not_depend_on_order),
        cmocka_unit_test(statistics_are_those_of_the_task),
        cmocka_unit_test(values_follow_the_rules),
        cmocka_unit_test(damaged_expressions_are_refused),
        cmocka_unit_test(text_round_trip),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(fingerprints_tell_examples_apart),
    };
    return test_main(tests);
}
