// Ranks: 1 2 3 4 6
// Precision: f64
// Products and solutions against plain loops; hostile input is refused on all ranks alike.
#include "linalg/solve.h"
#include "rng/rng.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

// The same on every rank.
static double *normals(ptrdiff_t n, uint32_t seed)
{
    double *out = test_doubles(n);
    const rfa_rng stream = rfa_rng_stream(seed, RFA_RNG_TEST, 0, 0);
    rfa_rng_normals(out, &stream, n);
    return out;
}

static rfa_matrix dealt(const rfa_linalg_grid *grid, ptrdiff_t m, ptrdiff_t n, const double *all)
{
    rfa_matrix matrix;
    check_ok(rfa_matrix_create(&matrix, grid, m, n));
    rfa_matrix_put(&matrix, all);
    return matrix;
}

static void product(ptrdiff_t m, ptrdiff_t n, ptrdiff_t k, bool ta, bool tb, ptrdiff_t block)
{
    rfa_linalg_grid grid;
    check_ok(rfa_linalg_grid_create(&grid, &test_world, 1000, block));
    double *a = normals(m * k, 1), *b = normals(k * n, 2), *c = normals(m * n, 3);
    rfa_matrix da = dealt(&grid, ta ? k : m, ta ? m : k, a);
    rfa_matrix db = dealt(&grid, tb ? n : k, tb ? k : n, b), dc = dealt(&grid, m, n, c);
    rfa_matrix_gemm(ta, tb, 0.5, &da, &db, -2, &dc);
    double *got = test_doubles(m * n);
    check_ok(rfa_matrix_get(&dc, got));
    for (ptrdiff_t i = 0; i < m; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            double sum = 0, most = 0;
            for (ptrdiff_t l = 0; l < k; l++) {
                const double term =
                    (ta ? a[l * m + i] : a[i * k + l]) * (tb ? b[j * k + l] : b[l * n + j]);
                sum += term;
                most += fabs(term);
            }
            const double want = 0.5 * sum - 2 * c[i * n + j];
            const double bound = DBL_EPSILON * (double)(k + 2) * (most + 2 * fabs(c[i * n + j]));
            check(fabs(got[i * n + j] - want) <= bound);
        }
    }
    rfa_matrix_destroy(&da);
    rfa_matrix_destroy(&db);
    rfa_matrix_destroy(&dc);
    rfa_free(a);
    rfa_free(b);
    rfa_free(c);
    rfa_free(got);
    rfa_linalg_grid_destroy(&grid);
}

static void products(void **state)
{
    (void)state;
    product(13, 9, 21, false, false, 4);
    product(13, 9, 21, false, true, 4);
    product(17, 5, 3, true, false, 2);
    product(5, 6, 7, true, true, 64); // one block, on a grid of all
    product(1, 1, 1, false, false, 1);
}

// a = g g^T + n I has the condition of some tens; x is known before b.
static void solution(ptrdiff_t n, ptrdiff_t columns, ptrdiff_t block)
{
    rfa_linalg_grid grid;
    check_ok(rfa_linalg_grid_create(&grid, &test_world, n, block));
    double *g = normals(n * n, 4), *x = normals(n * columns, 5);
    double *a = test_doubles(n * n), *b = test_doubles(n * columns);
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            a[i * n + j] = i == j ? (double)n : 0;
            for (ptrdiff_t l = 0; l < n; l++) {
                a[i * n + j] += g[i * n + l] * g[j * n + l];
            }
        }
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < columns; j++) {
            for (ptrdiff_t l = 0; l < n; l++) {
                b[i * columns + j] += a[i * n + l] * x[l * columns + j];
            }
        }
        for (ptrdiff_t j = i + 1; j < n; j++) {
            a[i * n + j] = 1e300; // is not read
        }
    }
    rfa_matrix da = dealt(&grid, n, n, a), db = dealt(&grid, n, columns, b);
    check_ok(rfa_linalg_posv(&da, &db));
    double *got = test_doubles(n * columns);
    check_ok(rfa_matrix_get(&db, got));
    // Backward stable: n eps cond, cond <= 1 + |g|^2 / n <= 1 + 4.5 (Gaussian g), terms of b alike.
    check_close("x", got, x, n * columns, 10 * DBL_EPSILON * (double)(n * n));
    rfa_matrix_destroy(&da);
    rfa_matrix_destroy(&db);
    rfa_free(g);
    rfa_free(x);
    rfa_free(a);
    rfa_free(b);
    rfa_free(got);
    rfa_linalg_grid_destroy(&grid);
}

static void solutions(void **state)
{
    (void)state;
    solution(50, 7, 4);
    solution(33, 1, 4);
    solution(40, 3, 64); // small: one process, the others rejoin
    solution(1, 1, 64);
}

static void refusals(void **state)
{
    (void)state;
    enum { N = 24 };
    rfa_linalg_grid grid;
    check_ok(rfa_linalg_grid_create(&grid, &test_world, N, 4));
    double a[N * N] = {0}, b[N] = {0};
    for (int i = 0; i < N; i++) {
        a[i * N + i] = i == 20 ? -1 : 2;
    }
    rfa_matrix da = dealt(&grid, N, N, a), db = dealt(&grid, N, 1, b);
    check_status(rfa_linalg_posv(&da, &db), RFA_ERR_NUMERIC);
    check(strstr(rfa_error_text(), "from order 21 on") != NULL);
    a[20 * N + 20] = 2;
    rfa_matrix_put(&da, a);
    check_ok(rfa_linalg_posv(&da, &db));
    a[N * N - 1] = NAN; // on one process only
    rfa_matrix_put(&da, a);
    check_status(rfa_linalg_posv(&da, &db), RFA_ERR_NUMERIC);
    check(strstr(rfa_error_text(), "NaN") != NULL);
    rfa_matrix_destroy(&da);

    // More than 32 bits count: refused before anything is allocated, by all.
    const ptrdiff_t huge = 46341 * (ptrdiff_t)grid.columns;
    check(rfa_matrix_most_elements(&grid, huge, huge) > INT32_MAX);
    check_status(rfa_matrix_create(&da, &grid, huge, huge), RFA_ERR_USAGE);
    check_status(rfa_matrix_create(&da, &grid, (ptrdiff_t)1 << 31, 1), RFA_ERR_USAGE);
    rfa_matrix_destroy(&da);
    rfa_matrix_destroy(&db);
    rfa_linalg_grid_destroy(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(solutions),
        cmocka_unit_test(refusals),
    };
    return test_main(tests);
}
