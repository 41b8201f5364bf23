#include "layers/embedding.h"
#include "layers/gelu.h"
#include "layers/linear.h"
#include "layers/norm.h"
#include "layers/pair.h"
#include "reference/differences.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

// What the references below compute with: sizes, inputs, weights c of their loss, a scratch y.
typedef struct {
    ptrdiff_t rows, in, out;
    const double *x, *w, *b, *c;
    double *y;
} setting;

static void ref_affine(const setting *at)
{
    for (ptrdiff_t t = 0; t < at->rows; t++) {
        for (ptrdiff_t i = 0; i < at->out; i++) {
            at->y[t * at->out + i] =
                at->b[i] + weighted(at->w + i * at->in, at->x + t * at->in, at->in);
        }
    }
}

static double affine_loss(const void *context)
{
    const setting *at = context;
    ref_affine(at);
    return weighted(at->c, at->y, at->rows * at->out);
}

static void linear_layer(void **state)
{
    (void)state;
    static const ptrdiff_t shapes[][3] = {{2, 2, 2}, {16, 5, 7}, {32, 24, 40}};
    for (int s = 0; s < 3; s++) {
        const ptrdiff_t rows = shapes[s][0], in = shapes[s][1], out = shapes[s][2];
        pair x = pair_create(rows * in, 1, 1), w = pair_create(out * in, 2, 1);
        pair b = pair_create(out, 3, 1), dy = pair_create(rows * out, 4, 1);
        pair y = pair_create(rows * out, 5, 1), dx = pair_create(rows * in, 6, 1);
        pair dw = pair_create(out * in, 7, 1), db = pair_create(out, 8, 1); // overwritten
        const setting at = {rows, in, out, x.wide, w.wide, b.wide, dy.wide, y.wide};
        // Sums of n products of normal numbers are about sqrt(n) large, and round like it.
        const double unit = 4 * test_eps();
        ref_affine(&at);
        rfa_linear_forward(y.x, x.x, w.x, b.x, rows, in, out);
        check_close("y", y.x, y.wide, rows * out, unit * (1 + 4 * sqrt((double)in)));
        ref_differences(dx.wide, x.wide, rows * in, step, affine_loss, &at);
        rfa_linear_backward_input(dx.x, dy.x, w.x, rows, in, out);
        const double noise = differences * sqrt((double)(rows * in * out)); // of the loss
        check_close("dx", dx.x, dx.wide, rows * in, unit * 4 * sqrt((double)out) + noise);
        ref_differences(dw.wide, w.wide, out * in, step, affine_loss, &at);
        ref_differences(db.wide, b.wide, out, step, affine_loss, &at);
        rfa_linear_backward_weight(dw.x, db.x, dy.x, x.x, rows, in, out);
        check_close("dw", dw.x, dw.wide, out * in, unit * 4 * sqrt((double)rows) + noise);
        check_close("db", db.x, db.wide, out, unit * 4 * sqrt((double)rows) + noise);
        pair *all[] = {&x, &w, &b, &dy, &y, &dx, &dw, &db};
        for (int i = 0; i < 8; i++) {
            pair_destroy(all[i]);
        }
    }
}

// w and b are scale and shift here.
static void ref_norm(const setting *at)
{
    for (ptrdiff_t t = 0; t < at->rows; t++) {
        const double *row = at->x + t * at->in;
        double mean = 0, variance = 0;
        for (ptrdiff_t j = 0; j < at->in; j++) {
            mean += row[j] / (double)at->in;
        }
        for (ptrdiff_t j = 0; j < at->in; j++) {
            variance += (row[j] - mean) * (row[j] - mean) / (double)at->in;
        }
        for (ptrdiff_t j = 0; j < at->in; j++) {
            at->y[t * at->in + j] =
                (row[j] - mean) / sqrt(variance + RFA_NORM_EPSILON) * at->w[j] + at->b[j];
        }
    }
}

static double norm_loss(const void *context)
{
    const setting *at = context;
    ref_norm(at);
    return weighted(at->c, at->y, at->rows * at->in);
}

static void layer_norm(void **state)
{
    (void)state;
    static const ptrdiff_t widths[] = {8, 33, 64};
    for (int s = 0; s < 3; s++) {
        const ptrdiff_t rows = 7, width = widths[s], n = rows * width;
        pair x = pair_create(n, 10, 2), scale = pair_create(width, 11, 1);
        pair shift = pair_create(width, 12, 1), dy = pair_create(n, 13, 1);
        pair y = pair_create(n, 14, 1), dx = pair_create(n, 15, 1);
        pair dscale = pair_create(width, 16, 1), dshift = pair_create(width, 17, 1);
        rfa_real *stats = test_reals(2 * rows), *again = test_reals(n), *before = test_reals(n);
        double *gradient = test_doubles(n);
        for (ptrdiff_t j = 0; j < width; j++) { // a row far from 0
            x.x[width + j] += 100;
            x.wide[width + j] = (double)x.x[width + j];
        }
        const setting at = {rows, width, width, x.wide, scale.wide, shift.wide, dy.wide, y.wide};
        const double unit = 16 * test_eps();
        ref_norm(&at);
        rfa_norm_forward(y.x, stats, x.x, scale.x, shift.x, rows, width);
        check_close("y", y.x, y.wide, n, unit * 100); // the far row cancels 100
        check_close("y of the first row", y.x, y.wide, width, unit);
        rfa_norm_apply(again, stats, x.x, scale.x, shift.x, rows, width);
        check(same_bits(again, y.x, n));
        ref_differences(gradient, x.wide, n, step, norm_loss, &at);
        memcpy(before, dx.x, (size_t)n * sizeof *before);
        for (ptrdiff_t i = 0; i < n; i++) {
            dx.wide[i] = (double)before[i] + gradient[i]; // dx is added to
        }
        rfa_norm_backward(dx.x, dscale.x, dshift.x, dy.x, stats, x.x, scale.x, rows, width);
        const double noise = differences * sqrt((double)n);
        check_close("dx", dx.x, dx.wide, n, unit * 100 + noise);
        check_close("dx of the first row", dx.x, dx.wide, width, unit + noise);
        ref_differences(dscale.wide, scale.wide, width, step, norm_loss, &at);
        ref_differences(dshift.wide, shift.wide, width, step, norm_loss, &at);
        check_close("dscale", dscale.x, dscale.wide, width, unit * 100 + noise);
        check_close("dshift", dshift.x, dshift.wide, width, unit + noise);
        rfa_free(stats);
        rfa_free(again);
        rfa_free(before);
        rfa_free(gradient);
        pair *all[] = {&x, &scale, &shift, &dy, &y, &dx, &dscale, &dshift};
        for (int i = 0; i < 8; i++) {
            pair_destroy(all[i]);
        }
    }
}

static void norm_of_equal_numbers_is_the_shift(void **state)
{
    (void)state;
    enum { WIDTH = 32 };
    rfa_real x[WIDTH], y[WIDTH], dx[WIDTH] = {0}, dscale[WIDTH], dshift[WIDTH], stats[2];
    rfa_real scale[WIDTH], shift[WIDTH];
    test_fill(scale, WIDTH, 18, 1);
    test_fill(shift, WIDTH, 19, 1);
    for (int j = 0; j < WIDTH; j++) {
        x[j] = 3;
    }
    rfa_norm_forward(y, stats, x, scale, shift, 1, WIDTH);
    check(same_bits(y, shift, WIDTH));
    rfa_norm_backward(dx, dscale, dshift, scale, stats, x, scale, 1, WIDTH);
    for (int j = 0; j < WIDTH; j++) {
        check(isfinite(dx[j]) && dscale[j] == 0 && dshift[j] == scale[j]);
    }
}

static double ref_gelu(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

static double gelu_loss(const void *context)
{
    return ref_gelu(*(const double *)context);
}

static void gelu(void **state)
{
    (void)state;
    enum { N = 16 * 100 }; // three blocks and a part
    rfa_real x[N], y[N], again[N], slope[N];
    double want[N], want_slope[N];
    for (int i = 0; i < N; i++) {
        x[i] = (rfa_real)(i * 0.0125 - 10); // from -10 to 10
        double wide = (double)x[i];
        want[i] = ref_gelu(wide);
        ref_differences(&want_slope[i], &wide, 1, step, gelu_loss, &wide);
    }
    rfa_gelu_forward(y, x, N);
    rfa_gelu_slope(again, slope, x, N);
    check(same_bits(y, again, N));
    for (int i = 0; i < N; i++) {
        const double erf_form = 0.5 * (double)x[i] * (1 + erf((double)x[i] * M_SQRT1_2));
        check(fabs((double)y[i] - erf_form) < 5e-4);
        // The exponent's rounding, up to |x|^3 / 14 + 2 |x| units, where the gate isn't 0 or 1.
        const double unit = test_eps() * (1 + fabs((double)x[i]));
        check_close("gelu", y + i, want + i, 1, 4 * unit);
        check_close("slope", slope + i, want_slope + i, 1, 8 * unit + differences);
    }
    check(y[N / 2] == 0 && fabs((double)slope[N / 2] - 0.5) <= test_eps());
}

static void embedding(void **state)
{
    (void)state;
    enum { ROWS = 16, COUNT = 11, V = 5, E = 6, BEGIN = 32, LENGTH = BEGIN + ROWS };
    static const uint16_t ids[ROWS] = {4, 0, 2, 2, 4, 1, 0, 2, 4, 4, 0}; // 3 never comes
    rfa_real tokens[V * E], positions[LENGTH * E], x[ROWS * E], dx[ROWS * E], dtokens[V * E];
    double want[ROWS * E] = {0}, want_tokens[V * E] = {0};
    test_fill(tokens, V * E, 20, 1);
    test_fill(positions, LENGTH * E, 21, 1);
    for (int with = 0; with < 2; with++) {
        test_fill(x, ROWS * E, 22, 1); // overwritten, padding too
        rfa_embedding_forward(x, ids, tokens, with ? positions : NULL, BEGIN, COUNT, ROWS, E);
        for (int i = 0; i < COUNT * E; i++) {
            want[i] = (double)tokens[ids[i / E] * E + i % E] +
                      (with ? (double)positions[BEGIN * E + i] : 0);
        }
        check_close("embedding", x, want, ROWS * E, with ? 4 * test_eps() : 0);
    }
    test_fill(dx, ROWS * E, 23, 1);
    test_fill(dtokens, V * E, 24, 1);
    rfa_embedding_backward(dtokens, dx, ids, COUNT, V, E);
    for (int i = 0; i < COUNT * E; i++) {
        want_tokens[ids[i / E] * E + i % E] += (double)dx[i];
    }
    check_close("dtokens", dtokens, want_tokens, V * E, 8 * test_eps());
}

static void sinusoids(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 26, COUNT = 3, E = 8 };
    double *table = test_doubles(rfa_sinusoids_size(LENGTH, E));
    rfa_sinusoids_fill(table, LENGTH, E);
    static const ptrdiff_t begins[] = {0, 5, RFA_SINUSOID_BLOCK - 2, 1000000, LENGTH - COUNT};
    for (size_t b = 0; b < sizeof begins / sizeof *begins; b++) {
        rfa_real x[COUNT * E];
        for (int i = 0; i < COUNT * E; i++) {
            x[i] = 1;
        }
        rfa_sinusoids_add(x, table, begins[b], COUNT, E);
        for (int t = 0; t < COUNT; t++) {
            for (int j = 0; j < E; j++) { // eq. of section 3.5: pos / 10000^(2 i / E)
                const double position = (double)(begins[b] + t);
                const double angle = position / pow(10000, (double)(j - j % 2) / E);
                const double want = 1 + (j % 2 ? cos(angle) : sin(angle));
                // The angle itself is rounded, in both.
                check(fabs((double)x[t * E + j] - want) <= 2 * test_eps() + 4e-16 * (1 + angle));
            }
        }
    }
    rfa_free(table);
}

// Results of a row are bits of that row alone, however rows are split into calls.
static void rows_do_not_see_their_call(void **state)
{
    (void)state;
    enum { ROWS = 80, E = 48, N = ROWS * E, V = 9 };
    rfa_real *x = test_reals(N), *whole = test_reals(N), *parts = test_reals(N);
    rfa_real scale[E], shift[E], unused[E], tokens[V * E], stats[2 * ROWS];
    rfa_real *slope = test_reals(N), *part_slope = test_reals(N), *dy = test_reals(N);
    uint16_t ids[ROWS];
    test_fill(x, N, 50, 2);
    test_fill(dy, N, 51, 1);
    test_fill(scale, E, 52, 1);
    test_fill(shift, E, 53, 1);
    test_fill(tokens, V * E, 54, 1);
    for (int t = 0; t < ROWS; t++) {
        ids[t] = (uint16_t)(t * 7 % V);
    }
    for (ptrdiff_t rows = 1; rows <= ROWS; rows *= 2) { // 1, ..., 64: the last call is shorter
        rfa_norm_forward(whole, stats, x, scale, shift, ROWS, E);
        for (ptrdiff_t t = 0; t < ROWS; t += rows) {
            const ptrdiff_t n = t + rows < ROWS ? rows : ROWS - t;
            rfa_norm_forward(parts + t * E, stats + 2 * t, x + t * E, scale, shift, n, E);
        }
        check(same_bits(whole, parts, N));
        memset(whole, 0, N * sizeof *whole);
        memset(parts, 0, N * sizeof *parts);
        rfa_norm_backward(whole, unused, unused, dy, stats, x, scale, ROWS, E);
        for (ptrdiff_t t = 0; t < ROWS; t += rows) {
            const ptrdiff_t n = t + rows < ROWS ? rows : ROWS - t;
            rfa_norm_backward(parts + t * E, unused, unused, dy + t * E, stats + 2 * t, x + t * E,
                              scale, n, E);
        }
        check(same_bits(whole, parts, N));
        rfa_gelu_slope(whole, slope, x, N);
        for (ptrdiff_t t = 0; t < ROWS; t += rows) {
            const ptrdiff_t n = t + rows < ROWS ? rows : ROWS - t;
            rfa_gelu_slope(parts + t * E, part_slope + t * E, x + t * E, n * E);
        }
        check(same_bits(whole, parts, N) && same_bits(slope, part_slope, N));
        rfa_embedding_forward(whole, ids, tokens, x, 0, ROWS, ROWS, E);
        for (ptrdiff_t t = 0; t < ROWS; t += rows) {
            const ptrdiff_t n = t + rows < ROWS ? rows : ROWS - t;
            rfa_embedding_forward(parts + t * E, ids + t, tokens, x, t, n, n, E);
        }
        check(same_bits(whole, parts, N));
    }
    rfa_real *all[] = {x, whole, parts, slope, part_slope, dy};
    for (int i = 0; i < 6; i++) {
        rfa_free(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layer),
        cmocka_unit_test(layer_norm),
        cmocka_unit_test(norm_of_equal_numbers_is_the_shift),
        cmocka_unit_test(gelu),
        cmocka_unit_test(embedding),
        cmocka_unit_test(sinusoids),
        cmocka_unit_test(rows_do_not_see_their_call),
    };
    return test_main(tests);
}
