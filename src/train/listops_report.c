#include "train/listops_report.h"

#include "base/log.h"
#include "tasks/listops.h"
#include "tasks/listops_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CHUNK = 64,   // examples that a rank reads at once
    ROOTS = 5,    // a digit alone, MIN, MAX, MED, SM
    DEPTHS = 64,  // deeper ones count as the deepest
    LENGTHS = 24, // by powers of two
};

typedef struct {
    int64_t right, examples;
} part;

// Sums over ranks: nothing but int64_t.
typedef struct {
    int64_t values[ROOTS][RFA_LISTOPS_CLASSES]; // of training examples
    part majority, root, digits;                // rules
    part by_root[ROOTS], by_depth[DEPTHS], by_length[LENGTHS];
} sums;

typedef struct {
    sums sums;
    int most_frequent, value_of[ROOTS];
    const rfa_predictions *predictions; // NULL: training examples
} counting;

static void count(part *of, bool right)
{
    of->right += right;
    of->examples++;
}

static int power_of(ptrdiff_t length)
{
    int power = 0;
    while (power + 1 < LENGTHS && length >= (ptrdiff_t)2 << power) {
        power++;
    }
    return power;
}

static void take(counting *c, int64_t example, int label, const uint16_t *ids, ptrdiff_t length)
{
    const rfa_listops_facts facts = rfa_listops_look(ids, length);
    const int root = facts.depth > 0 ? 1 + facts.root - RFA_LISTOPS_MIN : 0;
    if (!c->predictions) {
        c->sums.values[root][label]++;
        return;
    }
    const bool right = c->predictions->guess[example] == label;
    const int by_root = c->value_of[root];
    count(&c->sums.majority, c->most_frequent == label);
    count(&c->sums.root, by_root == label);
    count(&c->sums.digits, (facts.by_rule < 0 ? by_root : facts.by_rule) == label);
    count(&c->sums.by_root[root], right);
    count(&c->sums.by_depth[facts.depth < DEPTHS ? facts.depth : DEPTHS - 1], right);
    count(&c->sums.by_length[power_of(length)], right);
}

// Reads this rank's share of a split's first n examples, chunk by chunk, all ranks at once.
static rfa_status
walk(counting *c, rfa_dataset *data, const char *split, int64_t n, const rfa_comm *all)
{
    const int64_t begin = n * all->rank / all->size, end = n * (all->rank + 1) / all->size;
    const int64_t most = (n + all->size - 1) / all->size;
    uint16_t *ids = NULL;
    RFA_TRY(rfa_agree(all, rfa_alloc(&ids, CHUNK * rfa_padded(rfa_dataset_longest(data)),
                                     sizeof *ids, "expressions")));
    rfa_status status = RFA_OK;
    for (int64_t at = 0; at < most && status == RFA_OK; at += CHUNK) {
        rfa_leaf leaves[CHUNK];
        int64_t example[CHUNK];
        ptrdiff_t rows = 0;
        int count = 0;
        for (int64_t i = begin + at; i < end && count < CHUNK; i++, count++) {
            const ptrdiff_t tokens = rfa_dataset_length(data, i);
            example[count] = i;
            leaves[count] = (rfa_leaf){
                .example = count, .tokens = tokens, .rows = rfa_padded(tokens), .row0 = rows};
            rows += leaves[count].rows;
        }
        status = rfa_dataset_read(data, ids, example, leaves, count);
        for (int e = 0; e < count && status == RFA_OK; e++) {
            int value = 0;
            const uint16_t *tokens = ids + leaves[e].row0;
            status = rfa_listops_evaluate(&value, tokens, leaves[e].tokens);
            if (status == RFA_OK) {
                take(c, example[e], rfa_dataset_label(data, example[e]), tokens, leaves[e].tokens);
            } else {
                status = rfa_fail_within(status, "%s: %s: example %" PRId64, rfa_dataset_path(data),
                                         split, example[e]);
            }
        }
        status = rfa_agree(all, status);
    }
    rfa_free(ids);
    return status;
}

static void add_up(sums *s, const rfa_comm *all)
{
    MPI_Allreduce(MPI_IN_PLACE, s, (int)(sizeof *s / sizeof(int64_t)), MPI_INT64_T, MPI_SUM,
                  all->comm);
}

// The most frequent class, and value of each operator.
static void learn(counting *c)
{
    int64_t labels[RFA_LISTOPS_CLASSES] = {0};
    for (int value = 0; value < RFA_LISTOPS_CLASSES; value++) {
        for (int root = 0; root < ROOTS; root++) {
            const int64_t *values = c->sums.values[root];
            labels[value] += values[value];
            c->value_of[root] =
                values[value] > values[c->value_of[root]] ? value : c->value_of[root];
        }
        c->most_frequent = labels[value] > labels[c->most_frequent] ? value : c->most_frequent;
    }
}

static void print_part(const char *name, const part *of)
{
    if (of->examples > 0) {
        rfa_print("%-36s  %.4f (%" PRId64 "/%" PRId64 ")", name,
                  (double)of->right / (double)of->examples, of->right, of->examples);
    }
}

static void print(const sums *s)
{
    char name[64];
    print_part("rule: majority class of training", &s->majority);
    print_part("rule: root operator", &s->root);
    print_part("rule: root operator and its digits", &s->digits);
    for (int root = 0; root < ROOTS; root++) {
        snprintf(name, sizeof name, "root %s",
                 root > 0 ? rfa_listops_symbols[RFA_LISTOPS_MIN + root - 1] : "a digit");
        print_part(name, &s->by_root[root]);
    }
    for (int depth = 0; depth < DEPTHS; depth++) {
        snprintf(name, sizeof name, "depth %d%s", depth, depth + 1 < DEPTHS ? "" : " and deeper");
        print_part(name, &s->by_depth[depth]);
    }
    for (int power = 0; power < LENGTHS; power++) {
        snprintf(name, sizeof name, "length %td to %td", (ptrdiff_t)1 << power,
                 ((ptrdiff_t)2 << power) - 1);
        print_part(name, &s->by_length[power]);
    }
}

bool rfa_listops_is(const rfa_dataset *data)
{
    return strcmp(rfa_dataset_task(data), "listops") == 0 && rfa_dataset_sequences(data) == 1 &&
           rfa_dataset_vocabulary(data) == RFA_LISTOPS_VOCABULARY &&
           rfa_dataset_classes(data) == RFA_LISTOPS_CLASSES;
}

rfa_status rfa_listops_report(const rfa_session *session,
                              rfa_dataset *data,
                              const char *split,
                              int64_t examples,
                              const rfa_predictions *predictions)
{
    const rfa_comm *all = &session->grid.all;
    counting c = {0};
    rfa_dataset *train = NULL;
    RFA_TRY(rfa_dataset_open(&train, all, rfa_dataset_path(data), "train"));
    const rfa_status status = walk(&c, train, "train", rfa_dataset_examples(train), all);
    rfa_dataset_close(&train);
    RFA_TRY(status);
    add_up(&c.sums, all);
    learn(&c);
    c.sums = (sums){0};
    c.predictions = predictions;
    RFA_TRY(walk(&c, data, split, examples, all));
    add_up(&c.sums, all);
    print(&c.sums);
    return RFA_OK;
}
