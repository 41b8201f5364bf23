// Ranks: 1 2 3 4
// Precision: f32
//
// Ridge regression from exact sums: a planted rule, a dense solution by elimination, and the same
// bits in any order and on any number of ranks.
#include "probe/ridge.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { E = 12, K = 3, N = 200, SETS = 2 };

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

// Set 1 has another offset and scale, and a column that is constant.
static void example(double x[SETS * E], int *label, int i)
{
    uint64_t state = (uint64_t)i * 977 + 5;
    for (int j = 0; j < E; j++) {
        x[j] = noise(&state);
        x[E + j] = j == 3 ? 7 : 100 + 30 * (j + 1) * x[j];
    }
    *label = x[0] > 0.3 ? 2 : x[0] < -0.3 ? 0 : 1;
}

// Example i goes to rank i mod ranks, or the other way round and in falling order.
static void fit(rfa_ridge *ridge, bool reversed)
{
    double x[SETS * E], first[8 * SETS * E];
    int label = 0;
    check_ok(rfa_ridge_create(ridge, SETS, E, K));
    for (int i = 0; i < 8; i++) {
        example(first + i * SETS * E, &label, i);
    }
    rfa_ridge_start(ridge, first, 8);
    for (int at = 0; at < N; at++) {
        const int i = reversed ? N - 1 - at : at;
        if (i % test_world.size ==
            (reversed ? test_world.size - 1 - test_world.rank : test_world.rank)) {
            example(x, &label, i);
            rfa_ridge_add(ridge, x, label);
        }
    }
    check_ok(rfa_ridge_reduce(ridge, &test_world));
}

// Gauss-Jordan with pivots, a [E][E + K].
static void eliminate(double a[E][E + K])
{
    for (int c = 0; c < E; c++) {
        int p = c;
        for (int i = c; i < E; i++) {
            p = fabs(a[i][c]) > fabs(a[p][c]) ? i : p;
        }
        for (int j = 0; j < E + K; j++) {
            const double swap = a[c][j];
            a[c][j] = a[p][j];
            a[p][j] = swap;
        }
        for (int i = 0; i < E; i++) {
            const double factor = i == c ? 0 : a[i][c] / a[c][c];
            for (int j = 0; j < E + K; j++) {
                a[i][j] -= factor * a[c][j];
            }
        }
    }
    for (int i = 0; i < E; i++) {
        for (int j = E; j < E + K; j++) {
            a[i][j] /= a[i][i];
        }
    }
}

// The definition, from all examples in two passes.
static void reference(double weight[K * E], double bias[K], int set, double penalty)
{
    double mean[E] = {0}, deviation[E] = {0}, share[K] = {0}, a[E][E + K], x[SETS * E];
    int label = 0;
    for (int i = 0; i < N; i++) {
        example(x, &label, i);
        share[label] += 1.0 / N;
        for (int j = 0; j < E; j++) {
            mean[j] += x[set * E + j] / N;
        }
    }
    for (int i = 0; i < N; i++) {
        example(x, &label, i);
        for (int j = 0; j < E; j++) {
            deviation[j] += (x[set * E + j] - mean[j]) * (x[set * E + j] - mean[j]) / N;
        }
    }
    memset(a, 0, sizeof a);
    for (int i = 0; i < N; i++) {
        double z[E];
        example(x, &label, i);
        for (int j = 0; j < E; j++) {
            z[j] = deviation[j] > 1e-9 ? (x[set * E + j] - mean[j]) / sqrt(deviation[j]) : 0;
        }
        for (int j = 0; j < E; j++) {
            for (int l = 0; l < E; l++) {
                a[j][l] += z[j] * z[l] / N;
            }
            for (int k = 0; k < K; k++) {
                a[j][E + k] += z[j] * ((label == k) - share[k]) / N;
            }
        }
    }
    for (int j = 0; j < E; j++) {
        a[j][j] += penalty;
    }
    eliminate(a);
    for (int k = 0; k < K; k++) {
        bias[k] = share[k];
        for (int j = 0; j < E; j++) {
            weight[k * E + j] = deviation[j] > 1e-9 ? a[j][E + k] / sqrt(deviation[j]) : 0;
            bias[k] -= weight[k * E + j] * mean[j];
        }
    }
}

// Conditions are below 1 / penalty; the exact sums resolve 2^-52 of the largest column's square,
// 12^2 times that of the smallest.
static void solution_is_the_dense_one(void **unused)
{
    (void)unused;
    rfa_linalg_grid grid;
    rfa_ridge ridge;
    fit(&ridge, false);
    check_ok(rfa_linalg_grid_create(&grid, &test_world, E, 0));
    for (int set = 0; set < SETS; set++) {
        const double penalties[] = {1e-3, 0.1, 10};
        for (int p = 0; p < 3; p++) {
            double w[K * E], b[K], want_w[K * E], want_b[K];
            check_ok(rfa_ridge_solve(&(rfa_readout){w, b}, &ridge, set, penalties[p], &grid));
            reference(want_w, want_b, set, penalties[p]);
            const double tolerance = N * E * 144 * 0x1p-52 / penalties[p];
            for (int i = 0; i < K * E; i++) {
                check(fabs(w[i] - want_w[i]) <= tolerance);
            }
            for (int k = 0; k < K; k++) {
                check(fabs(b[k] - want_b[k]) <= tolerance * 500 * E);
            }
            check(set == 0 || w[3] == 0); // a constant column
        }
    }
    rfa_linalg_grid_destroy(&grid);
    rfa_ridge_destroy(&ridge);
}

static void planted_rule_is_found(void **unused)
{
    (void)unused;
    rfa_ridge ridge;
    rfa_linalg_grid grid;
    double w[2 * E] = {0}, b[2] = {0}, x[E], first[E];
    uint64_t state = 3;
    check_ok(rfa_ridge_create(&ridge, 1, E, 2));
    for (int i = 0; i < 4 * N; i++) {
        for (int j = 0; j < E; j++) {
            x[j] = noise(&state);
        }
        x[5] += x[5] > 0 ? 2 : -2; // the classes lie apart
        if (i == 0) {
            memcpy(first, x, sizeof x);
            rfa_ridge_start(&ridge, first, 1);
        }
        if (i % test_world.size == test_world.rank && i < 2 * N) {
            rfa_ridge_add(&ridge, x, x[5] > 0);
        }
        if (i == 2 * N) {
            check_ok(rfa_ridge_reduce(&ridge, &test_world));
            check_ok(rfa_linalg_grid_create(&grid, &test_world, E, 0));
            check_ok(rfa_ridge_solve(&(rfa_readout){w, b}, &ridge, 0, 1e-3, &grid));
        }
        if (i >= 2 * N) {
            check(rfa_readout_class(&(rfa_readout){w, b}, x, E, 2) == (x[5] > 0));
        }
    }
    rfa_linalg_grid_destroy(&grid);
    rfa_ridge_destroy(&ridge);
}

static void order_and_ranks_leave_no_trace(void **unused)
{
    (void)unused;
    rfa_ridge one, other;
    rfa_linalg_grid grid;
    double w[2][K * E] = {{0}}, b[2][K] = {{0}};
    fit(&one, false);
    fit(&other, true);
    check_ok(rfa_linalg_grid_create(&grid, &test_world, E, 0));
    check_ok(rfa_ridge_solve(&(rfa_readout){w[0], b[0]}, &one, 1, 1e-2, &grid));
    check_ok(rfa_ridge_solve(&(rfa_readout){w[1], b[1]}, &other, 1, 1e-2, &grid));
    int moved = 0; // a constant feature has no weight
    for (int i = 0; i < K * E; i++) {
        check(w[0][i] == w[1][i] && b[0][i % K] == b[1][i % K]);
        moved += w[0][i] != 0;
    }
    check(moved > K * E / 2);
    rfa_linalg_grid_destroy(&grid);
    rfa_ridge_destroy(&one);
    rfa_ridge_destroy(&other);
}

static void what_is_out_of_range_is_told(void **unused)
{
    (void)unused;
    for (int bad = 0; bad < 2; bad++) {
        rfa_ridge ridge;
        double x[SETS * E];
        int label = 0;
        fit(&ridge, false);
        example(x, &label, 0);
        x[4] = bad ? NAN : 1e3;
        if (test_world.rank == test_world.size - 1) {
            rfa_ridge_add(&ridge, x, label);
        }
        check_status(rfa_ridge_reduce(&ridge, &test_world), RFA_ERR_NUMERIC);
        rfa_ridge_destroy(&ridge);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(solution_is_the_dense_one),
        cmocka_unit_test(planted_rule_is_found),
        cmocka_unit_test(order_and_ranks_leave_no_trace),
        cmocka_unit_test(what_is_out_of_range_is_told),
    };
    return test_main(tests);
}
