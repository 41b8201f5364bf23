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

// Bins are never -0 or, in range, NaN: equal values are equal bits.
static bool same(const rfa_exact_sum *a, const rfa_exact_sum *b)
{
    bool equal = true;
    for (int i = 0; i < 2 * SIZE + 1; i++) {
        equal &= a->bins[i] == b->bins[i] && signbit(a->bins[i]) == signbit(b->bins[i]);
    }
    return equal;
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
        cmocka_unit_test(empty_and_impossible_sizes),
    };
    return test_main(tests);
}
