// Precision: f64
//
// Random features as estimates of exact attention: the squared error of the output falls as one
// over the number of projections, for each map; orthogonal rows are better than independent ones.
#include "attention/linear.h"
#include "features/draw.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { N = 48, d = 8, DRAWS = 200, MOST = 512 };

static rfa_real q[N * d], k[N * d], v[N * d], mask[N];

// exact [N][d]: with kernel exp(-|y_q - y_k|^2 / 2) of unit rows, or exp(y_q . y_k) of free ones.
static void exact_attention(double *exact, bool unit_norm, double sigma)
{
    for (int t = 0; t < N; t++) {
        double den = 0;
        memset(exact + t * d, 0, d * sizeof *exact);
        for (int i = 0; i < N; i++) {
            double qq = 0, kk = 0, qk = 0;
            for (int j = 0; j < d; j++) {
                qq += (double)(q[t * d + j] * q[t * d + j]);
                kk += (double)(k[i * d + j] * k[i * d + j]);
                qk += (double)(q[t * d + j] * k[i * d + j]);
            }
            const double scale = unit_norm ? (sqrt(qq) + 1e-3) * (sqrt(kk) + 1e-3) : sqrt(d);
            const double w = exp(sigma * sigma * qk / scale); // unit norms: a constant factor apart
            den += w;
            for (int j = 0; j < d; j++) {
                exact[t * d + j] += w * (double)v[i * d + j];
            }
        }
        for (int j = 0; j < d; j++) {
            exact[t * d + j] /= den;
        }
    }
}

// Mean squared error over DRAWS draws, and its standard error.
static double
mean_error(double *deviation, rfa_map_kind kind, rfa_rows_kind rows, ptrdiff_t D, uint32_t seed)
{
    static rfa_real w[MOST * d], squares[MOST], sigma[d], out[N * d], den[N];
    static double draw_work[2 * d * d + 64], exact[N * d];
    const bool unit = kind == RFA_MAP_GAUSSIAN;
    const double width = unit ? 0.8 : 0.3; // positive features have their law for short rows only
    for (int j = 0; j < d; j++) {
        sigma[j] = (rfa_real)width;
    }
    exact_attention(exact, unit, width);
    rfa_feature_map map = {.kind = kind,
                           .unit_norm = unit,
                           .width = d,
                           .projections = D,
                           .w = w,
                           .sigma = sigma,
                           .w_squares = squares,
                           .a = -0.02};
    const ptrdiff_t size = rfa_linear_state_size(&map);
    double *state = test_doubles(size), sum = 0, square = 0;
    rfa_real *total = test_reals(size), *work = test_reals(rfa_linear_work(&map, N));
    check(rfa_draw_work(d) <= 2 * d * d + 64);
    for (int n = 0; n < DRAWS; n++) {
        const rfa_rng stream = rfa_rng_stream(seed, RFA_RNG_TEST, (uint32_t)n, 1);
        const rfa_head head = {
            .q = q, .k = k, .v = v, .ld = d, .rows = N, .mask = mask, .map = &map};
        const rfa_reading reading = {out, d, den, NULL};
        double error = 0;
        rfa_draw_rows(w, rows, &stream, D, d, draw_work);
        for (ptrdiff_t f = 0; f < D; f++) {
            squares[f] = 0;
            for (int j = 0; j < d; j++) {
                squares[f] += w[f * d + j] * w[f * d + j];
            }
        }
        rfa_linear_state(state, &head, work);
        for (ptrdiff_t i = 0; i < size; i++) {
            total[i] = (rfa_real)state[i];
        }
        rfa_linear_read(&reading, &head, total, work);
        for (int i = 0; i < N * d; i++) {
            error += ((double)out[i] - exact[i]) * ((double)out[i] - exact[i]) / (N * d);
        }
        sum += error;
        square += error * error;
    }
    rfa_free(state);
    rfa_free(total);
    rfa_free(work);
    *deviation = sqrt((square / DRAWS - sum * sum / DRAWS / DRAWS) / DRAWS);
    return sum / DRAWS;
}

static void errors_fall_as_one_over_projections(void **state)
{
    (void)state;
    static const rfa_map_kind kinds[] = {RFA_MAP_GAUSSIAN, RFA_MAP_POSITIVE, RFA_MAP_OPRF};
    test_fill(q, N * d, 1, 1);
    test_fill(k, N * d, 2, 1);
    test_fill(v, N * d, 3, 1);
    for (int t = 0; t < N; t++) {
        mask[t] = 1;
    }
    for (int i = 0; i < 3; i++) {
        double few_error, many_error, coupled_error;
        const double few = mean_error(&few_error, kinds[i], RFA_ROWS_IID, 32, 11);
        const double many = mean_error(&many_error, kinds[i], RFA_ROWS_IID, MOST, 12);
        const double coupled = mean_error(&coupled_error, kinds[i], RFA_ROWS_ORTHOGONAL, 32, 13);
        const double ratio = few / many,
                     slack = 4 * ratio * hypot(few_error / few, many_error / many);
        print_message(
            "%s: 16 times the projections, %.1f times less (slack %.1f); orthogonal %.2f\n",
            rfa_map_name(kinds[i]), ratio, slack, coupled / few);
        // A ratio of estimates has a bias of second order, which few projections still show.
        check(fabs(ratio - 16) <= slack + 2);
        check(slack < 6);
        // Orthogonal rows help sines and cosines most; the others by less than these draws show.
        check(i > 0 || coupled + 3 * coupled_error < few - 3 * few_error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_fall_as_one_over_projections)};
    return test_main(tests);
}
