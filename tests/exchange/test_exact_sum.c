// Ranks: 1 2 3 4
#include "support/support.h"

#include "exchange/exact_sum.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { TERMS = 999, SIZE = 67 };

// A number that depends on (term, i) only, of a magnitude between 2^-40 and 2^13.
static rfa_real term(int t, int i)
{
    uint64_t z = (uint64_t)t * 1000003U + (uint64_t)i + 1;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    const double mantissa = (double)(int32_t)(uint32_t)z * 0x1p-31;
    return (rfa_real)ldexp(mantissa, (int)(z >> 32) % 54 - 40);
}

static void create(rfa_exact_sum *sum, ptrdiff_t size)
{
    check_ok(rfa_exact_sum_create(sum, size, "test sum"));
    check(rfa_exact_sum_is_good(sum));
}

static void add(rfa_exact_sum *sum, int t)
{
    rfa_real x[SIZE];
    for (int i = 0; i < SIZE; i++) {
        x[i] = term(t, i);
    }
    // In two calls, so that an offset counts.
    const ptrdiff_t cut = t % SIZE;
    rfa_exact_sum_add(sum, 0, x, cut);
    rfa_exact_sum_add(sum, cut, x + cut, SIZE - cut);
}

// The whole sum i in units of 2^-51, unrounded: high and low together, however they share it.
static __int128 units(const rfa_exact_sum *sum, ptrdiff_t i)
{
    return (__int128)(sum->high[i] * 0x1p18) * ((int64_t)1 << 33) + sum->low[i];
}

// Equal sums, and equal bits of their values (which are never -0).
static bool same(const rfa_exact_sum *a, const rfa_exact_sum *b)
{
    bool equal = a->low[a->size] == b->low[b->size];
    for (ptrdiff_t i = 0; i < a->size; i++) {
        const double x = rfa_exact_sum_value(a, i), y = rfa_exact_sum_value(b, i);
        equal &= units(a, i) == units(b, i) && x == y && signbit(x) == signbit(y);
    }
    return equal;
}

// high is zero where it is not marked as used: clearing and reducing rely on it.
static bool is_tidy(const rfa_exact_sum *sum)
{
    bool tidy = true;
    for (ptrdiff_t i = 0; i < sum->size; i++) {
        tidy &= sum->used[i / RFA_EXACT_BLOCK] || sum->high[i] == 0;
    }
    return tidy;
}

// All terms on this rank, in order.
static void reference(rfa_exact_sum *sum)
{
    create(sum, SIZE);
    for (int t = 0; t < TERMS; t++) {
        add(sum, t);
    }
}

static void any_order_and_split_give_equal_bits(void **state)
{
    (void)state;
    rfa_exact_sum want, sum;
    reference(&want);
    create(&sum, SIZE);
    static const int strides[] = {1, 998, 7, 500, 355}; // coprime to TERMS: permutations
    bool plain_sums_differ = false;
    for (int s = 0; s < 5; s++) {
        rfa_exact_sum_clear(&sum);
        double plain = 0, ordered = 0;
        for (int k = 0; k < TERMS; k++) {
            const int t = (int)((int64_t)k * strides[s] % TERMS);
            plain += (double)term(t, 5);
            ordered += (double)term(k, 5);
            if (k % test_world.size == test_world.rank) {
                add(&sum, t);
            }
        }
        plain_sums_differ |= plain != ordered;
        rfa_exact_sum_reduce(&sum, &test_world);
        check(same(&sum, &want));
        check(rfa_exact_sum_is_good(&sum));
    }
    // Blocks of very different sizes: rank 0 has almost all.
    rfa_exact_sum_clear(&sum);
    for (int t = 0; t < TERMS; t++) {
        if ((t < test_world.size ? t : 0) == test_world.rank) {
            add(&sum, t);
        }
    }
    rfa_exact_sum_reduce(&sum, &test_world);
    check(same(&sum, &want));
    check(plain_sums_differ); // else these terms would prove nothing
    rfa_exact_sum_destroy(&sum);
    rfa_exact_sum_destroy(&want);
}

static void value_is_near_the_rational_sum(void **state)
{
    (void)state;
    rfa_exact_sum sum;
    reference(&sum);
    for (int i = 0; i < SIZE; i++) {
        __float128 exact = 0; // 113 bits hold 2^-93 to 2^23
        for (int t = 0; t < TERMS; t++) {
            exact += (__float128)term(t, i);
        }
        const double value = rfa_exact_sum_value(&sum, i);
        const __float128 gap = exact - (__float128)value;
        const double bound = TERMS * 0x1p-52 + fabs(value) * 0x1p-53;
        check((double)(gap < 0 ? -gap : gap) <= bound);
    }
    rfa_exact_sum_destroy(&sum);
}

static void small_values_keep_their_digits(void **state)
{
    (void)state;
    rfa_exact_sum sum;
    create(&sum, 3);
    const double x[3] = {1e-12, -3.7e-9, 0x1p-53};
    for (int t = 0; t < 1000; t++) {
        rfa_exact_sum_add_double(&sum, 0, x, 3);
    }
    check(fabs(rfa_exact_sum_value(&sum, 0) - 1e-9) <= 1000 * 0x1p-52);
    check(fabs(rfa_exact_sum_value(&sum, 1) + 3.7e-6) <= 1000 * 0x1p-52);
    check(rfa_exact_sum_value(&sum, 2) == 0); // below the resolution
    check(rfa_exact_sum_is_good(&sum));
    rfa_exact_sum_destroy(&sum);
}

// 2^20 terms of the largest magnitude: the sums still are exact.
static void full_range_is_exact(void **state)
{
    (void)state;
    const double x = 0x1p14 - 0x1p-20;
    rfa_exact_sum sum;
    create(&sum, 1);
    for (int t = 0; t < 1 << 20; t++) {
        rfa_exact_sum_add_double(&sum, 0, &x, 1);
    }
    check(rfa_exact_sum_is_good(&sum));
    check(rfa_exact_sum_value(&sum, 0) == 0x1p34 - 1);
    rfa_exact_sum_destroy(&sum);
}

static void out_of_range_is_seen_by_all(void **state)
{
    (void)state;
    static const double bad[] = {0x1p14, -0x1p14, 1e30, NAN, -NAN, INFINITY, -INFINITY};
    rfa_exact_sum sum;
    create(&sum, SIZE);
    for (int k = 0; k < 7; k++) {
        for (int where = 0; where < SIZE; where += 11) {
            rfa_exact_sum_clear(&sum);
            rfa_real x[SIZE];
            double y[SIZE];
            memset(x, 0, sizeof x);
            memset(y, 0, sizeof y);
            if (test_world.rank == k % test_world.size) {
                x[where] = (rfa_real)bad[k];
                y[where] = bad[k];
            }
            if (k % 2) {
                rfa_exact_sum_add(&sum, 0, x, SIZE);
            } else {
                rfa_exact_sum_add_double(&sum, 0, y, SIZE);
            }
            rfa_exact_sum_reduce(&sum, &test_world);
            check(!rfa_exact_sum_is_good(&sum));
        }
    }
    rfa_exact_sum_clear(&sum);
    check(rfa_exact_sum_is_good(&sum));
    const double edge = 0x1p14 - 0x1p-30;
    rfa_exact_sum_add_double(&sum, SIZE - 1, &edge, 1);
    check(rfa_exact_sum_is_good(&sum));
    rfa_exact_sum_destroy(&sum);
}

static void merge_adds_exactly(void **state)
{
    (void)state;
    rfa_exact_sum want, even, odd;
    reference(&want);
    create(&even, SIZE);
    create(&odd, SIZE);
    for (int t = 0; t < TERMS; t++) {
        add(t % 2 ? &odd : &even, t);
    }
    check(!same(&even, &want));
    rfa_exact_sum_merge(&even, &odd);
    check(same(&even, &want));
    const rfa_real huge = (rfa_real)1e9;
    rfa_exact_sum_add(&odd, 0, &huge, 1);
    rfa_exact_sum_merge(&even, &odd);
    check(!rfa_exact_sum_is_good(&even));
    rfa_exact_sum_destroy(&want);
    rfa_exact_sum_destroy(&even);
    rfa_exact_sum_destroy(&odd);
    rfa_exact_sum_destroy(&odd);
}

// A sum of several blocks, the last one cut off, of which the ranks use the high parts of others:
// like a sum of all terms on one rank. A block of small terms has none.
static void blocks_of_small_and_large_terms(void **state)
{
    (void)state;
    enum { B = RFA_EXACT_BLOCK, LONG = 5 * B + 7, ADDS = 40 };
    rfa_real *x = test_reals(LONG);
    rfa_exact_sum want, sum, other;
    create(&want, LONG);
    create(&sum, LONG);
    create(&other, LONG);
    for (int large = 0; large < 64; large += 9) { // which blocks have a large term, of one rank
        rfa_exact_sum_clear(&want);
        rfa_exact_sum_clear(&sum);
        rfa_exact_sum_clear(&other);
        for (int t = 0; t < ADDS; t++) {
            for (int i = 0; i < LONG; i++) {
                x[i] = term(t, i) * (rfa_real)0x1p-14; // below 1/2
            }
            for (int b = 0; b <= LONG / B; b++) {
                if (large >> b & 1 && t == 3 * b) {
                    x[b * B + 5] = (rfa_real)(b % 2 ? 0.5 : 1234.5678);
                }
            }
            rfa_exact_sum_add(&want, 0, x, LONG);
            if (t % test_world.size == test_world.rank) { // across borders of blocks, two threads
                const ptrdiff_t cut = (ptrdiff_t)t * 131 % LONG;
                rfa_exact_sum_add(t % 8 < 4 ? &sum : &other, 0, x, cut);
                rfa_exact_sum_add(t % 8 < 4 ? &sum : &other, cut, x + cut, LONG - cut);
            }
        }
        rfa_exact_sum_merge(&sum, &other);
        check(is_tidy(&sum));
        rfa_exact_sum_reduce(&sum, &test_world);
        check(is_tidy(&sum) && is_tidy(&want));
        check(same(&sum, &want));
        for (int b = 0; b <= LONG / B; b++) {
            check(sum.used[b] == (large >> b & 1) && want.used[b] == sum.used[b]);
        }
        rfa_exact_sum_values(x, &sum);
        bool rounded_once = true;
        for (int i = 0; i < LONG; i++) {
            const double exact = (double)units(&sum, i) * 0x1p-51;
            rounded_once &= rfa_exact_sum_value(&sum, i) == exact && x[i] == (rfa_real)exact;
        }
        check(rounded_once);
    }
    rfa_free(x);
    rfa_exact_sum_destroy(&want);
    rfa_exact_sum_destroy(&sum);
    rfa_exact_sum_destroy(&other);
}

// Terms that low takes alone, so many that it has to hand them on: once they are 2^62 units, or as
// many as the ranks could not add. 2^-52, a tie, rounds to even like 3 * 2^-52.
static void many_small_terms(void **state)
{
    (void)state;
    enum { MANY = 1 << 20 };
    const double x[4] = {0.5 - 0x1p-51, -0.5 + 0x1p-51, 0x1p-52, 3 * 0x1p-52};
    rfa_exact_sum sum, other;
    create(&sum, 4);
    create(&other, 4);
    for (int t = 0; t < 2040; t++) {
        rfa_exact_sum_add_double(&sum, 0, x, 4);
        rfa_exact_sum_add_double(&other, 0, x, 4);
    }
    check(!sum.used[0] && sum.low[0] == 2040 * (((int64_t)1 << 50) - 1));
    rfa_exact_sum_merge(&sum, &other);
    for (int t = 4080; t < MANY; t++) {
        rfa_exact_sum_add_double(&sum, 0, x, 4);
    }
    check(rfa_exact_sum_is_good(&sum) && sum.used[0]);
    const double P = test_world.size;
    rfa_exact_sum_reduce(&sum, &test_world);
    check(rfa_exact_sum_value(&sum, 0) == P * (0x1p19 - 0x1p-31));
    check(rfa_exact_sum_value(&sum, 1) == -P * (0x1p19 - 0x1p-31));
    check(rfa_exact_sum_value(&sum, 2) == 0);
    check(rfa_exact_sum_value(&sum, 3) == P * 0x1p-30);
    rfa_exact_sum_destroy(&sum);
    rfa_exact_sum_destroy(&other);
}

// Each rank's low is within its limit, their sum would not be.
static void ranks_together_pass_the_limit(void **state)
{
    (void)state;
    const double x = 0.5 - 0x1p-30;
    rfa_exact_sum sum;
    create(&sum, 1);
    for (int t = 0; t < 2047; t++) {
        rfa_exact_sum_add_double(&sum, 0, &x, 1);
    }
    check(!sum.used[0]);
    for (int again = 1; again < 4; again++) { // a reduced sum is a term like others
        rfa_exact_sum_reduce(&sum, &test_world);
        check(rfa_exact_sum_value(&sum, 0) == pow(test_world.size, again) * 2047 * x);
    }
    rfa_exact_sum_destroy(&sum);
}

static void empty_and_impossible_sizes(void **state)
{
    (void)state;
    rfa_exact_sum sum;
    create(&sum, 0);
    rfa_exact_sum_add_double(&sum, 0, NULL, 0);
    rfa_exact_sum_reduce(&sum, &test_world);
    check(rfa_exact_sum_is_good(&sum));
    rfa_exact_sum_destroy(&sum);
    check_status(rfa_exact_sum_create(&sum, PTRDIFF_MAX / 4, "test sum"), RFA_ERR_MEMORY);
    check(strstr(rfa_error_text(), "test sum") != NULL);
    rfa_exact_sum_destroy(&sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_and_split_give_equal_bits),
        cmocka_unit_test(value_is_near_the_rational_sum),
        cmocka_unit_test(small_values_keep_their_digits),
        cmocka_unit_test(full_range_is_exact),
        cmocka_unit_test(out_of_range_is_seen_by_all),
        cmocka_unit_test(merge_adds_exactly),
        cmocka_unit_test(blocks_of_small_and_large_terms),
        cmocka_unit_test(many_small_terms),
        cmocka_unit_test(ranks_together_pass_the_limit),
        cmocka_unit_test(empty_and_impossible_sizes),
    };
    return test_main(tests);
}
