// What a of optimal positive features follows from.
#include "features/map.h"

#include "reference/features.h"
#include "support/support.h"

#include <math.h>

enum { ROWS = 17, MOST_D = 16, FOREIGN = 2 };

// Mean |y_q + y_k|^2 over all pairs of rows with mask 1, pair by pair.
static double mean_square(const double y[2][ROWS][MOST_D], const rfa_real *mask, ptrdiff_t d)
{
    double sum = 0, pairs = 0;
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < ROWS; j++) {
            if (!mask || (mask[i] != 0 && mask[j] != 0)) {
                for (ptrdiff_t c = 0; c < d; c++) {
                    sum += pow(y[0][i][c] + y[1][j][c], 2);
                }
                pairs++;
            }
        }
    }
    return sum / pairs;
}

// The a of least variance at m = |x + y|^2 ends the slope of log((1 - 4 a)^d (1 - 8 a)^(-d / 2)) +
// 2 m (1 - 4 a) / (1 - 8 a), which is 16 d a / ((1 - 4 a) (1 - 8 a)) + 8 m / (1 - 8 a)^2.
static bool is_least(double a, double m, double d)
{
    const double up = 8 * m / pow(1 - 8 * a, 2);
    const double down = -16 * d * a / ((1 - 4 * a) * (1 - 8 * a));
    return a <= 0 && fabs(up - down) <= 64 * 0x1p-52 * (up + down) * (1 + d / m);
}

static void a_is_that_of_least_variance(void **state)
{
    (void)state;
    static const double squares[] = {1e-6, 1e-3, 1, 10, 1e3, 1e6};
    static const ptrdiff_t widths[] = {1, 7, 16};
    for (int i = 0; i < 6; i++) {
        for (int w = 0; w < 3; w++) {
            double sums[2 + 2 * MOST_D] = {3 * squares[i], 2 * squares[i]};
            check(is_least(rfa_oprf_a(sums, 5, widths[w]), squares[i], (double)widths[w]));
        }
    }
    double sums[2 + 2 * MOST_D] = {0};
    check(rfa_oprf_a(sums, 5, 8) == 0);
    check(rfa_oprf_a(sums, 0, 8) == 0);
    sums[0] = sums[1] = 8; // q = -k: m is 0, whatever rounding makes of it
    for (int j = 0; j < 8; j++) {
        sums[2 + j] = 1 + 1e-16 * j;
        sums[10 + j] = -sums[2 + j];
    }
    check(fabs(rfa_oprf_a(sums, 1, 8)) < 1e-15 && rfa_oprf_a(sums, 1, 8) <= 0);
    sums[0] = NAN;
    check(isnan(rfa_oprf_a(sums, 1, 8)));
}

static void statistics_are_those_of_the_tokens(void **state)
{
    (void)state;
    static const ptrdiff_t widths[] = {1, 5, 16};
    for (int variant = 0; variant < 24; variant++) {
        const ptrdiff_t d = widths[variant / 8], ld = d + FOREIGN;
        const bool is_masked = variant & 4;
        rfa_real q[ROWS * (MOST_D + FOREIGN)], k[ROWS * (MOST_D + FOREIGN)];
        rfa_real sigma[MOST_D], mask[ROWS], work[256 * (MOST_D + 2)];
        double sigma_wide[MOST_D], sums[2 + 2 * MOST_D], want[2 + 2 * MOST_D] = {0};
        double y[2][ROWS][MOST_D] = {0}, size = 0;
        rfa_feature_map map = {
            .kind = RFA_MAP_OPRF, .unit_norm = variant & 1, .width = d, .projections = 3};
        ref_map truth = {.kind = RFA_MAP_OPRF, .unit_norm = variant & 1, .d = d, .D = 3};
        test_fill(q, ROWS * ld, 1, 2);
        test_fill(k, ROWS * ld, 2, 2);
        test_fill(sigma, d, 3, 1);
        int64_t tokens = 0;
        for (int t = 0; t < ROWS; t++) {
            mask[t] = !is_masked || t % 4 != 1;
            tokens += mask[t] != 0;
        }
        for (ptrdiff_t j = 0; j < d; j++) {
            sigma_wide[j] = (double)sigma[j];
        }
        if (variant & 2) {
            map.sigma = sigma;
            truth.sigma = sigma_wide;
        }
        for (int side = 0; side < 2; side++) {
            for (int t = 0; t < ROWS; t++) {
                double x[MOST_D];
                for (ptrdiff_t j = 0; j < d; j++) {
                    x[j] = (double)(side ? k : q)[t * ld + j];
                }
                ref_map_scaled(y[side][t], x, &truth);
                for (ptrdiff_t j = 0; j < d && mask[t] != 0; j++) {
                    want[side] += y[side][t][j] * y[side][t][j];
                    want[2 + side * d + j] += y[side][t][j];
                    size += fabs(y[side][t][j]) + y[side][t][j] * y[side][t][j];
                }
            }
        }
        check(rfa_oprf_statistics_size(d) == 2 + 2 * d);
        check(rfa_feature_work(&map, ROWS) <= (ptrdiff_t)(sizeof work / sizeof *work));
        for (int i = 0; i < 2 + 2 * MOST_D; i++) {
            sums[i] = 7; // overwritten
        }
        rfa_oprf_statistics(sums, q, k, ld, is_masked ? mask : NULL, &map, ROWS, work);
        for (ptrdiff_t i = 0; i < 2 + 2 * d; i++) {
            check(fabs(sums[i] - want[i]) <= 4 * test_eps() * size);
        }
        const double m = mean_square(y, mask, d), n = (double)d;
        const double rho = (sqrt(pow(2 * m + n, 2) + 8 * n * m) - 2 * m - n) / (4 * m);
        check(fabs(rfa_oprf_a(want, tokens, d) - (1 - 1 / rho) / 8) <= 1e-12 * (1 + m / n));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_is_that_of_least_variance),
        cmocka_unit_test(statistics_are_those_of_the_tokens),
    };
    return test_main(tests);
}
