#include "features/pool.h"

#include "support/support.h"

#include <math.h>
#include <string.h>

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void matrices_follow_from_the_seed(void **state)
{
    (void)state;
    enum { D = 8, d = 4, SIZE = D * d };
    rfa_pool a, again, more, other;
    check_ok(rfa_pool_create(&a, RFA_ROWS_IID, 7, 6, D, d));
    check_ok(rfa_pool_create(&again, RFA_ROWS_IID, 7, 6, D, d));
    check_ok(rfa_pool_create(&more, RFA_ROWS_IID, 7, 9, D, d));
    check_ok(rfa_pool_create(&other, RFA_ROWS_IID, 8, 6, D, d));
    check(same_bits(a.w, again.w, 6 * SIZE));
    check(same_bits(a.w, more.w, 6 * SIZE)); // a matrix doesn't depend on how many there are
    for (int m = 0; m < 6; m++) {
        check(rfa_pool_matrix(&a, m) == a.w + m * SIZE);
        for (int n = 0; n < 9; n++) {
            check(n == m || !same_bits(rfa_pool_matrix(&a, m), rfa_pool_matrix(&more, n), SIZE));
            check(n >= 6 || !same_bits(rfa_pool_matrix(&a, m), rfa_pool_matrix(&other, n), SIZE));
        }
    }
    rfa_pool_destroy(&a);
    rfa_pool_destroy(&a); // idempotent
    rfa_pool_destroy(&again);
    rfa_pool_destroy(&more);
    rfa_pool_destroy(&other);
}

// Moments of N(0, 1): 0, 1, 0, 3, whose estimates vary by 1, 2, 15, 96 over n; each is held to 5
// standard errors (once in 1.7 million). So are the products of neighbours in a row, in a column
// and in the next matrix: mean 0, variance 1.
static void entries_are_independent_standard_normals(void **state)
{
    (void)state;
    enum { M = 64, D = 64, d = 16, n = M * D * d };
    static const double mean[4] = {0, 1, 0, 3}, variance[4] = {1, 2, 15, 96};
    rfa_pool pool;
    check_ok(rfa_pool_create(&pool, RFA_ROWS_IID, 1, M, D, d));
    for (int p = 1; p <= 4; p++) {
        double sum = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            sum += pow((double)pool.w[i], p);
        }
        check(fabs(sum / n - mean[p - 1]) <= 5 * sqrt(variance[p - 1] / n));
    }
    static const ptrdiff_t lags[] = {1, d, D * d};
    for (int l = 0; l < 3; l++) {
        double sum = 0;
        for (ptrdiff_t i = 0; i + lags[l] < n; i++) {
            sum += (double)pool.w[i] * (double)pool.w[i + lags[l]];
        }
        check(fabs(sum / (double)(n - lags[l])) <= 5 / sqrt((double)(n - lags[l])));
    }
    rfa_pool_destroy(&pool);
}

static bool is_distinct(const int *index, int n, int matrices)
{
    for (int i = 0; i < n; i++) {
        if (index[i] < 0 || index[i] >= matrices) {
            return false;
        }
        for (int j = 0; j < i; j++) {
            if (index[i] == index[j]) {
                return false;
            }
        }
    }
    return true;
}

static void picks_are_distinct_and_follow_from_seed_and_step(void **state)
{
    (void)state;
    enum { M = 50, n = 12, STEPS = 300 };
    rfa_pool pool, again, other;
    check_ok(rfa_pool_create(&pool, RFA_ROWS_IID, 3, M, 2, 2));
    check_ok(rfa_pool_create(&again, RFA_ROWS_IID, 3, M, 2, 2));
    check_ok(rfa_pool_create(&other, RFA_ROWS_IID, 4, M, 2, 2));
    int index[n], same[n], shorter[n], next[n], elsewhere[n], alike = 0;
    for (int64_t step = STEPS; step > 0; step--) {
        rfa_pool_pick(index, n, &pool, step);
        rfa_pool_pick(next, n, &pool, step + 1);
        rfa_pool_pick(same, n, &again, step);
        rfa_pool_pick(elsewhere, n, &other, step);
        rfa_pool_pick(shorter, n / 2, &pool, step);
        check(is_distinct(index, n, M));
        check(memcmp(index, same, sizeof index) == 0);
        check(memcmp(index, next, sizeof index) != 0);
        check(memcmp(index, elsewhere, sizeof index) != 0);
        check(memcmp(index, shorter, sizeof index / 2) == 0);
        for (int i = 0; i < n; i++) {
            alike += index[i] == next[i];
        }
    }
    // STEPS n / M = 72 are alike by chance, with a standard deviation of 8.4.
    check(alike > 72 - 5 * 8.4 && alike < 72 + 5 * 8.4);
    rfa_pool_destroy(&pool);
    rfa_pool_destroy(&again);
    rfa_pool_destroy(&other);
}

static void the_whole_pool_can_be_picked(void **state)
{
    (void)state;
    for (int M = 1; M <= 65; M += 16) {
        rfa_pool pool;
        int index[65];
        check_ok(rfa_pool_create(&pool, RFA_ROWS_IID, 5, M, 2, 2));
        for (int64_t step = 1; step <= 20; step++) {
            rfa_pool_pick(index, M, &pool, step);
            check(is_distinct(index, M, M));
        }
        rfa_pool_destroy(&pool);
    }
}

// Chi-square of counts against their common mean, for 31 degrees of freedom: below 9.7 or above
// 69.3 once in 10,000 each (Wilson and Hilferty).
static void check_uniform(const int *counts, int cells, double mean, double correction)
{
    assert_int_equal(cells, 32);
    double chi = 0;
    for (int i = 0; i < cells; i++) {
        chi += pow(counts[i] - mean, 2) / mean;
    }
    chi *= correction;
    if (!(chi > 9.7 && chi < 69.3)) {
        print_error("chi-square %g\n", chi);
    }
    check(chi > 9.7 && chi < 69.3);
}

static void picks_are_uniform_in_the_long_run(void **state)
{
    (void)state;
    enum { M = 32, n = 8, STEPS = 16000 };
    rfa_pool pool;
    check_ok(rfa_pool_create(&pool, RFA_ROWS_IID, 6, M, 2, 2));
    int any[M] = {0}, first[M] = {0}, last[M] = {0}, gap[M] = {0};
    for (int64_t step = 1; step <= STEPS; step++) {
        int index[n];
        rfa_pool_pick(index, n, &pool, step);
        for (int i = 0; i < n; i++) {
            any[index[i]]++;
        }
        first[index[0]]++;
        last[index[n - 1]]++;
        gap[(index[1] - index[0] + M) % M]++;
    }
    // Drawn without replacement, counts vary less than independent ones, by (M - n) / (M - 1).
    check_uniform(any, M, (double)STEPS * n / M, (M - 1.0) / (M - n));
    check_uniform(first, M, (double)STEPS / M, 1);
    check_uniform(last, M, (double)STEPS / M, 1);
    check(gap[0] == 0);
    gap[0] = STEPS / (M - 1); // the other 31 are alike: 30 degrees of freedom
    check_uniform(gap, M, (double)STEPS / (M - 1), 1);
    rfa_pool_destroy(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_follow_from_the_seed),
        cmocka_unit_test(entries_are_independent_standard_normals),
        cmocka_unit_test(picks_are_distinct_and_follow_from_seed_and_step),
        cmocka_unit_test(the_whole_pool_can_be_picked),
        cmocka_unit_test(picks_are_uniform_in_the_long_run),
    };
    return test_main(tests);
}
