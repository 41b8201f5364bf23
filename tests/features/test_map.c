#include "features/map.h"

#include "features/pool.h"
#include "reference/differences.h"
#include "reference/linear.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { ROWS = 17, FOREIGN = 3 };

// A map and rows of x, and the same numbers in double.
typedef struct {
    ptrdiff_t d, D, ld;
    rfa_real *x, *w, *sigma, *work; // [ROWS][ld], [D][d], [d]
    double *x_wide, *w_wide, *sigma_wide;
    rfa_feature_map map;
} world;

static world world_create(ptrdiff_t d, ptrdiff_t D, double scale)
{
    world a = {.d = d, .D = D, .ld = d + FOREIGN};
    a.map = (rfa_feature_map){.width = d, .projections = D};
    a.x = test_reals(ROWS * a.ld);
    a.w = test_reals(D * d);
    a.sigma = test_reals(d);
    a.work = test_reals(rfa_feature_work(&a.map, ROWS));
    a.x_wide = test_doubles(ROWS * a.ld);
    a.w_wide = test_doubles(D * d);
    a.sigma_wide = test_doubles(d);
    test_fill(a.x, ROWS * a.ld, 1, scale);
    test_fill(a.w, D * d, 2, 1);
    test_fill(a.sigma, d, 3, 0.7);
    memset(a.x + a.ld, 0, (size_t)d * sizeof *a.x); // row 1 is 0
    for (ptrdiff_t i = 0; i < ROWS * a.ld; i++) {
        a.x_wide[i] = (double)a.x[i];
    }
    for (ptrdiff_t i = 0; i < D * d; i++) {
        a.w_wide[i] = (double)a.w[i];
    }
    for (ptrdiff_t i = 0; i < d; i++) {
        a.sigma_wide[i] = (double)a.sigma[i];
    }
    a.map.w = a.w;
    a.map.sigma = a.sigma;
    return a;
}

static void world_destroy(world *a)
{
    rfa_free(a->x);
    rfa_free(a->w);
    rfa_free(a->sigma);
    rfa_free(a->work);
    rfa_free(a->x_wide);
    rfa_free(a->w_wide);
    rfa_free(a->sigma_wide);
}

// Largest sum of absolute terms of an angle, plus 1 for the sine: in units of D^(-1/2), what an
// error of phi is measured in.
static double angle_size(const world *a)
{
    double most = 0;
    for (ptrdiff_t r = 0; r < a->D; r++) {
        double sum = 0;
        for (ptrdiff_t c = 0; c < a->d; c++) {
            sum += pow(a->w_wide[r * a->d + c] * a->sigma_wide[c], 2);
        }
        most = fmax(most, sqrt(sum)); // |u| < 1
    }
    return 1 + most;
}

static const struct {
    ptrdiff_t d, D;
    double scale; // of x
} shapes[] = {{2, 2, 1}, {4, 8, 1}, {16, 64, 8}, {32, 24, 12}, {7, 5, 1e-4}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void features_are_the_definition(void **state)
{
    (void)state;
    for (int i = 0; i < SHAPES; i++) {
        world a = world_create(shapes[i].d, shapes[i].D, shapes[i].scale);
        const ptrdiff_t F = rfa_feature_count(&a.map);
        check(F == 2 * a.D);
        rfa_real *phi = test_reals(ROWS * F);
        double *want = test_doubles(ROWS * F);
        for (ptrdiff_t t = 0; t < ROWS; t++) {
            ref_features(want + t * F, a.x_wide + t * a.ld, a.w_wide, a.sigma_wide, a.d, a.D);
        }
        rfa_features_forward(phi, a.x, a.ld, NULL, &a.map, ROWS, a.work);
        check_close("phi", phi, want, ROWS * F,
                    4 * test_eps() * angle_size(&a) / sqrt((double)a.D));
        for (ptrdiff_t t = 0; t < ROWS; t++) { // |phi| = 1
            double square = 0;
            for (ptrdiff_t f = 0; f < F; f++) {
                square += pow((double)phi[t * F + f], 2);
            }
            check(fabs(square - 1) <= 8 * test_eps());
        }
        rfa_free(phi);
        rfa_free(want);
        world_destroy(&a);
    }
}

static void masked_rows_are_exactly_zero_and_others_keep_their_bits(void **state)
{
    (void)state;
    world a = world_create(16, 8, 1);
    const ptrdiff_t F = rfa_feature_count(&a.map);
    rfa_real *bare = test_reals(ROWS * F), *masked = test_reals(ROWS * F), *mask = test_reals(ROWS);
    for (ptrdiff_t t = 0; t < ROWS; t++) {
        mask[t] = t % 3 != 0;
    }
    rfa_features_forward(bare, a.x, a.ld, NULL, &a.map, ROWS, a.work);
    rfa_features_forward(masked, a.x, a.ld, mask, &a.map, ROWS, a.work);
    for (ptrdiff_t i = 0; i < ROWS * F; i++) {
        check(masked[i] == (mask[i / F] != 0 ? bare[i] : 0));
    }
    rfa_free(bare);
    rfa_free(masked);
    rfa_free(mask);
    world_destroy(&a);
}

// sum(c o phi) of the definition.
typedef struct {
    const world *a;
    const double *c; // [ROWS][F]
    double *phi;     // [F]
} loss_context;

static double loss(const void *context)
{
    const loss_context *at = context;
    const world *a = at->a;
    const ptrdiff_t F = 2 * a->D;
    double sum = 0;
    for (ptrdiff_t t = 0; t < ROWS; t++) {
        ref_features(at->phi, a->x_wide + t * a->ld, a->w_wide, a->sigma_wide, a->d, a->D);
        for (ptrdiff_t f = 0; f < F; f++) {
            sum += at->c[t * F + f] * at->phi[f];
        }
    }
    return sum;
}

static void backward_is_the_derivative(void **state)
{
    (void)state;
    static const double before = 3, untouched = 123;
    for (int i = 0; i < 4; i++) { // not the tiny rows: there u bends within any usable step
        world a = world_create(shapes[i].d, shapes[i].D, shapes[i].scale);
        const ptrdiff_t F = rfa_feature_count(&a.map), ld = a.d + 1;
        rfa_real *phi = test_reals(ROWS * F), *dphi = test_reals(ROWS * F);
        rfa_real *dx = test_reals(ROWS * ld), *dsigma = test_reals(a.d);
        double *c = test_doubles(ROWS * F), *phi_wide = test_doubles(F);
        double *dx_wide = test_doubles(ROWS * a.ld), *dsigma_wide = test_doubles(a.d);
        test_fill(dphi, ROWS * F, 4, 1);
        for (ptrdiff_t e = 0; e < ROWS * F; e++) {
            c[e] = (double)dphi[e];
        }
        for (ptrdiff_t e = 0; e < ROWS * ld; e++) {
            dx[e] = (rfa_real)untouched;
        }
        for (ptrdiff_t e = 0; e < a.d; e++) {
            dsigma[e] = (rfa_real)before;
        }
        rfa_features_forward(phi, a.x, a.ld, NULL, &a.map, ROWS, a.work);
        rfa_features_backward(dx, ld, dsigma, dphi, phi, a.x, a.ld, &a.map, ROWS, a.work);

        const loss_context context = {&a, c, phi_wide};
        const double step = 1e-3 * shapes[i].scale;
        ref_differences(dsigma_wide, a.sigma_wide, a.d, 1e-3, loss, &context);
        for (ptrdiff_t t = 0; t < ROWS; t++) {
            if (t != 1) { // the row of zeros has its own test
                ref_differences(dx_wide + t * a.ld, a.x_wide + t * a.ld, a.d, step, loss, &context);
            }
        }
        // Adjoints of the angles are about |c| / sqrt(D) times sqrt(D) of them, each with |w| and
        // sigma; the differences are good to about 1e-10 of that.
        const double size = sqrt(2.0 * (double)a.D) * angle_size(&a);
        const double unit = 8 * test_eps() + 1e-10;
        for (ptrdiff_t t = 0; t < ROWS; t++) {
            double norm = 0;
            for (ptrdiff_t e = 0; e < a.d; e++) {
                norm += pow(a.x_wide[t * a.ld + e], 2);
            }
            if (t != 1) {
                check_close("dx", dx + t * ld, dx_wide + t * a.ld, a.d,
                            unit * size / (sqrt(norm) + 1e-3));
            }
            check(dx[t * ld + a.d] == (rfa_real)untouched);
        }
        for (ptrdiff_t e = 0; e < a.d; e++) {
            dsigma_wide[e] += before;
        }
        check_close("dsigma", dsigma, dsigma_wide, a.d, unit * (before + ROWS * size));
        rfa_free(phi);
        rfa_free(dphi);
        rfa_free(dx);
        rfa_free(dsigma);
        rfa_free(c);
        rfa_free(phi_wide);
        rfa_free(dx_wide);
        rfa_free(dsigma_wide);
        world_destroy(&a);
    }
}

// At x = 0: u = x / eps to first order, sin' = 1 and cos' = 0, so
// dx_c = sum_r dphi_r w_rc sigma_c / (sqrt(D) eps).
static void a_row_of_zeros_is_smooth(void **state)
{
    (void)state;
    world a = world_create(4, 8, 1);
    const ptrdiff_t F = rfa_feature_count(&a.map), d = a.d, D = a.D;
    rfa_real *phi = test_reals(ROWS * F), *dphi = test_reals(ROWS * F);
    rfa_real *dx = test_reals(ROWS * d), *dsigma = test_reals(d);
    double *want = test_doubles(d), *want_phi = test_doubles(F);
    memset(a.x, 0, (size_t)(ROWS * a.ld) * sizeof *a.x);
    test_fill(dphi, ROWS * F, 5, 1);
    for (ptrdiff_t c = 0; c < d; c++) {
        for (ptrdiff_t r = 0; r < D; r++) {
            want[c] += (double)dphi[F + r] * a.w_wide[r * d + c] * a.sigma_wide[c] /
                       sqrt((double)D) / 1e-3;
        }
    }
    for (ptrdiff_t r = 0; r < D; r++) {
        want_phi[D + r] = 1 / sqrt((double)D);
    }
    rfa_features_forward(phi, a.x, a.ld, NULL, &a.map, ROWS, a.work);
    check_close("phi", phi + F, want_phi, F, test_eps());
    rfa_features_backward(dx, d, dsigma, dphi, phi, a.x, a.ld, &a.map, ROWS, a.work);
    check_close("dx", dx + d, want, d, 8 * test_eps() * sqrt((double)D) * angle_size(&a) / 1e-3);
    for (ptrdiff_t c = 0; c < d; c++) {
        check(dsigma[c] == 0);
    }
    rfa_free(phi);
    rfa_free(dphi);
    rfa_free(dx);
    rfa_free(dsigma);
    rfa_free(want);
    rfa_free(want_phi);
    world_destroy(&a);
}

// cos(delta), delta ~ N(0, s^2), has the mean exp(-s^2 / 2) and the variance (1 - exp(-s^2))^2 / 2.
// Over n = M D = 65,536 projections the mean of phi(x) . phi(y) is within 5 standard errors, which
// a right map misses once in 1.7 million pairs. An isotropic sigma of the same mean square would
// miss it for most pairs.
static void kernels_are_unbiased(void **state)
{
    (void)state;
    enum { d = 8, D = 64, M = 1024, F = 2 * D, N = 8 };
    rfa_pool pool;
    check_ok(rfa_pool_create(&pool, 11, M, D, d));
    rfa_real x[N * d], sigma[d];
    double u[N * d], mean_square = 0, kernel[N * N] = {0};
    test_fill(x, N * d, 6, 2);
    for (int c = 0; c < d; c++) {
        sigma[c] = (rfa_real)(0.25 * (c + 1));
        mean_square += (double)sigma[c] * (double)sigma[c] / d;
    }
    for (int t = 0; t < N; t++) {
        double norm = 0;
        for (int c = 0; c < d; c++) {
            norm += (double)x[t * d + c] * (double)x[t * d + c];
        }
        for (int c = 0; c < d; c++) {
            u[t * d + c] = (double)x[t * d + c] / (sqrt(norm) + 1e-3);
        }
    }
    rfa_feature_map map = {.width = d, .projections = D, .sigma = sigma};
    rfa_real *phi = test_reals(N * F), *work = test_reals(rfa_feature_work(&map, N));
    for (int m = 0; m < M; m++) {
        map.w = rfa_pool_matrix(&pool, m);
        rfa_features_forward(phi, x, d, NULL, &map, N, work);
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < i; j++) {
                for (int f = 0; f < F; f++) {
                    kernel[i * N + j] += (double)phi[i * F + f] * (double)phi[j * F + f] / M;
                }
            }
        }
    }
    int isotropic_misses = 0;
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            double square = 0, isotropic = 0;
            for (int c = 0; c < d; c++) {
                const double gap = u[i * d + c] - u[j * d + c];
                square += pow((double)sigma[c] * gap, 2);
                isotropic += mean_square * gap * gap;
            }
            const double error = (1 - exp(-square)) / sqrt(2.0 * M * D);
            check(fabs(kernel[i * N + j] - exp(-square / 2)) <= 5 * error + 8 * test_eps());
            isotropic_misses += fabs(kernel[i * N + j] - exp(-isotropic / 2)) > 5 * error;
        }
    }
    check(isotropic_misses > N * (N - 1) / 4);
    rfa_free(phi);
    rfa_free(work);
    rfa_pool_destroy(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_the_definition),
        cmocka_unit_test(masked_rows_are_exactly_zero_and_others_keep_their_bits),
        cmocka_unit_test(backward_is_the_derivative),
        cmocka_unit_test(a_row_of_zeros_is_smooth),
        cmocka_unit_test(kernels_are_unbiased),
    };
    return test_main(tests);
}
