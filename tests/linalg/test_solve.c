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
    double s[N];
    check_status(rfa_linalg_singular_values(s, &da), RFA_ERR_NUMERIC);
    check_status(rfa_linalg_orthonormal(&da), RFA_ERR_NUMERIC);
    check_status(rfa_linalg_leading_values(s, 2, &da, 1), RFA_ERR_NUMERIC);
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

// Singular values chosen, vectors by Householder reflections: a = (I - 2 u u^T) diag(s) (I - 2 w
// w^T).
static double *with_values(const double *s, ptrdiff_t m, ptrdiff_t n)
{
    double *u = normals(m, 6), *w = normals(n, 7), *a = test_doubles(m * n), uu = 0, ww = 0;
    const ptrdiff_t least = m < n ? m : n;
    for (ptrdiff_t i = 0; i < m; i++) {
        uu += u[i] * u[i];
    }
    for (ptrdiff_t j = 0; j < n; j++) {
        ww += w[j] * w[j];
    }
    for (ptrdiff_t i = 0; i < m; i++) {
        for (ptrdiff_t j = 0; j < n; j++) {
            for (ptrdiff_t l = 0; l < least; l++) {
                a[i * n + j] +=
                    ((i == l) - 2 * u[i] * u[l] / uu) * s[l] * ((j == l) - 2 * w[l] * w[j] / ww);
            }
        }
    }
    rfa_free(u);
    rfa_free(w);
    return a;
}

static void values_of(ptrdiff_t m, ptrdiff_t n, ptrdiff_t block)
{
    enum { MOST = 128, LEADING = 12 };
    const ptrdiff_t least = m < n ? m : n;
    double s[MOST], got[MOST], leading[LEADING];
    for (ptrdiff_t l = 0; l < least; l++) {
        s[l] = 3 * pow(0.6, (double)l);
    }
    rfa_linalg_grid grid;
    check_ok(rfa_linalg_grid_create(&grid, &test_world, least, block));
    double *a = with_values(s, m, n);
    rfa_matrix da = dealt(&grid, m, n, a);
    const ptrdiff_t some = least < LEADING ? least : LEADING;
    check_ok(rfa_linalg_leading_values(leading, some, &da, 9));
    check_ok(rfa_linalg_singular_values(got, &da));
    const double bound = 10 * DBL_EPSILON * (double)(m + n) * s[0];
    check_close("singular values", got, s, least, bound);
    // The range finder misses what its last column misses, to the power of 2 POWERS + 1.
    const double missed =
        least > LEADING + RFA_RANGE_OVERSAMPLING
            ? 10 * s[0] *
                  pow(s[LEADING + RFA_RANGE_OVERSAMPLING] / s[some - 1], 2 * RFA_RANGE_POWERS + 1)
            : 0;
    check_close("leading values", leading, s, some, bound + missed);
    rfa_matrix_destroy(&da);
    rfa_free(a);
    rfa_linalg_grid_destroy(&grid);
}

static void values(void **state)
{
    (void)state;
    values_of(64, 64, 4);
    values_of(70, 33, 8);
    values_of(33, 70, 8);
    values_of(33, 33, 32); // where PDSYEVD's and PDGESVD's tiny edges are: one process
    values_of(10, 10, 32);
    values_of(1, 1, 64);
}

static void basis(void **state)
{
    (void)state;
    enum { M = 61, N = 18 };
    rfa_linalg_grid grid;
    check_ok(rfa_linalg_grid_create(&grid, &test_world, M, 4));
    double *a = normals(M * N, 8), zero[N * N], unit[N * N];
    rfa_matrix q = dealt(&grid, M, N, a), original = dealt(&grid, M, N, a), p, back;
    check_ok(rfa_linalg_orthonormal(&q));
    check_ok(rfa_matrix_create(&p, &grid, N, N));
    check_ok(rfa_matrix_create(&back, &grid, M, N));
    rfa_matrix_gemm(true, false, 1, &q, &q, 0, &p);
    check_ok(rfa_matrix_get(&p, unit));
    for (int i = 0; i < N * N; i++) {
        zero[i] = i / N == i % N;
    }
    check_close("Q^T Q", unit, zero, N * N, 10 * DBL_EPSILON * M);
    rfa_matrix_gemm(true, false, 1, &q, &original, 0, &p);
    rfa_matrix_gemm(false, false, 1, &q, &p, 0, &back);
    double *got = test_doubles(M * N);
    check_ok(rfa_matrix_get(&back, got));
    check_close("Q Q^T A", got, a, M * N, 100 * DBL_EPSILON * M);
    rfa_matrix_destroy(&q);
    rfa_matrix_destroy(&original);
    rfa_matrix_destroy(&p);
    rfa_matrix_destroy(&back);
    rfa_free(got);
    rfa_free(a);
    rfa_linalg_grid_destroy(&grid);
}

static void workspaces(void **state)
{
    (void)state;
    int size = 0;
    check_ok(rfa_linalg_workspace(&size, 16777217));
    check(size > 16777217 + 16777);
    check_status(rfa_linalg_workspace(&size, 2147483000), RFA_ERR_USAGE);
    check_status(rfa_linalg_workspace(&size, NAN), RFA_ERR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products), cmocka_unit_test(solutions), cmocka_unit_test(refusals),
        cmocka_unit_test(values),   cmocka_unit_test(basis),     cmocka_unit_test(workspaces),
    };
    return test_main(tests);
}
