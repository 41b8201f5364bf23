// Ranks: 1 2 3 4 6
// The exact matrix against plain loops in double; the matrix of every kind against what its kernel
// reads, column by column and as an output; norms of differences.
#include "fidelity/exact.h"
#include "support/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { N = 100, d = 8, BLOCK = 16 };

static rfa_vectors vectors(rfa_ensemble ensemble, double norm)
{
    rfa_vectors x;
    check_ok(rfa_vectors_create(&x, N, d));
    rfa_vectors_fill(&x, ensemble, norm, 1, 2);
    return x;
}

// Weights [N][N] in double.
static double *plain_weights(const rfa_vectors *x)
{
    double *a = test_doubles((ptrdiff_t)N * N);
    for (int i = 0; i < N; i++) {
        double top = -INFINITY, sum = 0;
        for (int j = 0; j < N; j++) {
            double *w = &a[i * N + j];
            for (int c = 0; c < d; c++) {
                *w += (double)x->q[i * d + c] * (double)x->k[j * d + c] / sqrt(d);
            }
            top = *w > top ? *w : top;
        }
        for (int j = 0; j < N; j++) {
            a[i * N + j] = exp(a[i * N + j] - top);
            sum += a[i * N + j];
        }
        for (int j = 0; j < N; j++) {
            a[i * N + j] /= sum;
        }
    }
    return a;
}

static void close_to(const char *what, const double *a, const double *b, ptrdiff_t n, double bound)
{
    double worst = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double gap = fabs(a[i] - b[i]);
        worst = !(gap <= worst) ? gap : worst;
    }
    if (!(worst <= bound)) {
        print_error("%s: difference %.3g, bound %.3g\n", what, worst, bound);
    }
    check(worst <= bound);
}

static void exact_is_exact(void **state)
{
    (void)state;
    rfa_fidelity_clock clock = {{0}, {0}};
    rfa_vectors x = vectors(RFA_ENSEMBLE_SMOOTH, 4);
    double *want = plain_weights(&x), *got = test_doubles((ptrdiff_t)N * N);
    double y[N * d] = {0}, out[N * d];
    rfa_linalg_grid grid;
    rfa_matrix a;
    check_ok(rfa_linalg_grid_create(&grid, &test_world, N, BLOCK));
    check_ok(rfa_matrix_create(&a, &grid, N, N));
    check_ok(rfa_exact_weights(&a, &x, &clock));
    check_ok(rfa_matrix_get(&a, got));
    close_to("weights", got, want, (ptrdiff_t)N * N, 1e-12);
    check_ok(rfa_exact_output(out, &a, &x, &clock));
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            for (int c = 0; c < d; c++) {
                y[i * d + c] += want[i * N + j] * (double)x.v[j * d + c];
            }
        }
    }
    close_to("output", out, y, (ptrdiff_t)N * d, 1e-12);
    check(clock.flops[RFA_FIDELITY_SCORES] == 2.0 * N * N * d);
    x.k[37] = (rfa_real)NAN; // must not become a matrix of zeros and NaN
    check_status(rfa_exact_weights(&a, &x, &clock), RFA_ERR_NUMERIC);
    rfa_matrix_destroy(&a);
    rfa_linalg_grid_destroy(&grid);
    rfa_vectors_destroy(&x);
    rfa_free(want);
    rfa_free(got);
}

// B from the room's own way; by unit vectors; B v; and the norms of A - B.
static void one_kind(const char *name, ptrdiff_t features, double norm)
{
    rfa_fidelity_clock clock = {{0}, {0}};
    rfa_vectors x = vectors(RFA_ENSEMBLE_SHARED, norm);
    rfa_fidelity_kind kind;
    rfa_estimate e;
    rfa_linalg_grid grid;
    rfa_matrix a, b;
    double *got = test_doubles((ptrdiff_t)N * N), *exact = plain_weights(&x);
    double out[N * d], bv[N * d] = {0}, rows[N], frobenius = 0, most = 0, size = 0;
    int64_t clamped = -1;
    check_ok(rfa_fidelity_kind_parse(&kind, name));
    check_ok(rfa_estimate_create(&e, &kind, &x, features, 3, 1));
    check_ok(rfa_linalg_grid_create(&grid, &test_world, N, BLOCK));
    check_ok(rfa_matrix_create(&a, &grid, N, N));
    check_ok(rfa_matrix_create(&b, &grid, N, N));
    check_ok(rfa_estimate_output(out, &clamped, &e, &test_world, &clock));
    check_ok(rfa_estimate_matrix(&b, &e, &clock));
    check_ok(rfa_matrix_get(&b, got));
    check(clamped == 0);
    // Weights of a row: at most 1 in magnitude for positive kinds, sums of F terms; a rounding of
    // an exponent of up to norm^2 + |w| norm is the largest.
    const double bound = 64 * test_eps() * (norm * norm + 6 * norm + (double)features);
    double largest = 0;
    for (int j = 0; j < N; j += d) {
        const int count = N - j < d ? N - j : d;
        rfa_estimate_columns(&e, j, count);
        for (int i = 0; i < N; i++) {
            for (int c = 0; c < count; c++) {
                const double gap = fabs((double)e.out[i * d + c] - got[i * N + j + c]);
                largest = !(gap <= largest) ? gap : largest;
            }
        }
    }
    if (!(largest <= bound)) {
        print_error("%s: columns differ by %.3g, bound %.3g\n", name, largest, bound);
    }
    check(largest <= bound);
    double sum = 0, gap = 0, biggest = 0;
    for (int i = 0; i < N; i++) {
        double total = 0;
        for (int j = 0; j < N; j++) {
            const double difference = exact[i * N + j] - got[i * N + j];
            total += got[i * N + j];
            sum += exact[i * N + j] * exact[i * N + j];
            gap += difference * difference;
            biggest = fabs(difference) > biggest ? fabs(difference) : biggest;
            for (int c = 0; c < d; c++) {
                bv[i * d + c] += got[i * N + j] * (double)x.v[j * d + c];
            }
        }
        check(fabs(total - 1) <= 4 * bound);
    }
    close_to(name, out, bv, (ptrdiff_t)N * d, 16 * bound);
    check_ok(rfa_exact_weights(&a, &x, &clock));
    check_ok(rfa_matrix_compare(rows, &frobenius, &most, &size, &a, &b));
    check(fabs(size - sqrt(sum)) <= 1e-12 * size);
    check(fabs(frobenius - sqrt(gap / sum)) <= 1e-12 * (1 + frobenius));
    check(fabs(most - biggest) <= 1e-12);
    check(frobenius > 1e-3); // an estimate, after all
    rfa_matrix_destroy(&a);
    rfa_matrix_destroy(&b);
    rfa_linalg_grid_destroy(&grid);
    rfa_estimate_destroy(&e);
    rfa_vectors_destroy(&x);
    rfa_free(got);
    rfa_free(exact);
}

static void kinds(void **state)
{
    (void)state;
    one_kind("rfa+free+orthogonal", 64, 0.7);
    one_kind("rfa", 64, 0.7);
    one_kind("rfa+arccos+iid", 32, 0.7);
    one_kind("performer", 24, 1);
    one_kind("performer+simplex+oprf", 24, 1);
    one_kind("elu", 2, 1);
    one_kind("mean", 2, 1);
    one_kind("lara+balance", 12, 1);
    one_kind("lara+antithetic", 12, 1);
    one_kind("lara+biased+quiet", 12, 1);
    one_kind("eva", 12, 1);
    one_kind("eva+quiet", 7, 1);
    one_kind("ra", 2, 1);
    one_kind("ra+quiet", 2, 1);
}

static void words(void **state)
{
    (void)state;
    rfa_fidelity_kind kind;
    static const char *const wrong[] = {"",         "rfa+",     "softmax",  "elu+free",
                                        "eva+oprf", "lara+iid", "rfa++free"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        check_status(rfa_fidelity_kind_parse(&kind, wrong[i]), RFA_ERR_USAGE);
    }
    check_ok(rfa_fidelity_kind_parse(&kind, "rfa+free"));
    check(rfa_fidelity_kind_size(&kind, 64) == 32 && rfa_fidelity_kind_is_random(&kind));
    check_ok(rfa_fidelity_kind_parse(&kind, "lara+quiet"));
    check(rfa_fidelity_kind_size(&kind, 64) == 64 && !rfa_fidelity_kind_is_random(&kind));
    rfa_vectors x = vectors(RFA_ENSEMBLE_IID, 1);
    rfa_estimate e;
    check_ok(rfa_fidelity_kind_parse(&kind, "rfa"));
    check_status(rfa_estimate_create(&e, &kind, &x, 33, 1, 0), RFA_ERR_USAGE);
    check_ok(rfa_fidelity_kind_parse(&kind, "lara"));
    check_status(rfa_estimate_create(&e, &kind, &x, N + 1, 1, 0), RFA_ERR_USAGE);
    rfa_vectors_destroy(&x);
}

// Sines and cosines at large norms: both shares are seen, and the floor acts in the matrix too.
static void denominators(void **state)
{
    (void)state;
    rfa_fidelity_clock clock = {{0}, {0}};
    rfa_vectors x = vectors(RFA_ENSEMBLE_IID, 4);
    rfa_fidelity_kind kind;
    rfa_estimate e;
    int64_t clamped = 0;
    double out[N * d];
    check_ok(rfa_fidelity_kind_parse(&kind, "rfa+free"));
    check_ok(rfa_estimate_create(&e, &kind, &x, 16, 3, 1));
    double *work = test_doubles(rfa_estimate_negative_work(&e));
    const double negative = rfa_estimate_negative(&e, work);
    check_ok(rfa_estimate_output(out, &clamped, &e, &test_world, &clock));
    check(negative > 0.2 && negative < 0.8);
    check((double)clamped >= negative * N && clamped < N);
    rfa_free(work);
    rfa_estimate_destroy(&e);
    rfa_vectors_destroy(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_is_exact),
        cmocka_unit_test(kinds),
        cmocka_unit_test(words),
        cmocka_unit_test(denominators),
    };
    return test_main(tests);
}
