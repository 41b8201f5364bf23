// A feature map of each kind and size, with rows and parameters, for its tests.
#ifndef TESTS_FEATURES_MAP_CASE_H
#define TESTS_FEATURES_MAP_CASE_H

#include "features/map.h"
#include "reference/features.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { FOREIGN = 3, ZERO_ROW = 1 };

static const struct {
    ptrdiff_t d, D, rows;
    double scale; // of x
} shapes[] = {{2, 2, 17, 1},    {4, 8, 16, 1},    {16, 64, 17, 8},
              {32, 24, 17, 12}, {7, 5, 17, 1e-3}, {5, 13, 1, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes, MAPS = RFA_MAP_ELU + 1 };

// A map and rows of x (one of them 0), the same numbers in double, and what rounding errors are
// measured in.
typedef struct {
    ptrdiff_t d, D, F, rows, ld;
    double scale;
    bool is_weighted;
    rfa_real *x, *w, *sigma, *squares, *work; // [rows][ld], [D][d], [d], [D]
    double *x_wide, *w_wide, *sigma_wide;
    rfa_feature_map map;
    ref_map truth;
    double exponent; // the largest sum of absolute terms of a product, an exponent or a log-weight
    double steepest; // |d phi / d product|
    double largest;  // |phi|
    double w_row;    // |w_f|
} world;

static double length(const double *x, ptrdiff_t n)
{
    double square = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        square += x[i] * x[i];
    }
    return sqrt(square);
}

static void widen(double *to, const rfa_real *from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = (double)from[i];
    }
}

static double scaled_length(const world *a, ptrdiff_t row)
{
    double y[64];
    ref_map_scaled(y, a->x_wide + row * a->ld, &a->truth);
    return length(y, a->d);
}

static void measure(world *a)
{
    const bool is_exponential = a->map.kind == RFA_MAP_POSITIVE || a->map.kind == RFA_MAP_OPRF;
    const double slope = a->map.kind == RFA_MAP_OPRF ? sqrt(1 - 4 * a->map.a) : 1;
    double y = 0, x = 0;
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        y = fmax(y, scaled_length(a, t));
        x = fmax(x, length(a->x_wide + t * a->ld, a->d));
    }
    for (ptrdiff_t f = 0; f < a->D; f++) {
        a->w_row = fmax(a->w_row, length(a->w_wide + f * a->d, a->d));
    }
    a->exponent = slope * a->w_row * y + (a->is_weighted ? y * y / 2 : 0) +
                  (a->map.kind == RFA_MAP_OPRF ? fabs(a->map.a) * a->w_row * a->w_row : 0);
    a->steepest = slope / sqrt((double)a->D);
    a->largest = 1 / sqrt((double)a->D);
    if (a->map.kind == RFA_MAP_ARCCOS) {
        a->largest *= a->exponent;
    } else if (a->map.kind == RFA_MAP_ELU) {
        a->exponent = x;
        a->steepest = 1;
        a->largest = 1 + x;
    }
    if (is_exponential) {
        a->steepest *= a->largest * sqrt((double)a->D);
    }
}

static double true_a(const world *a)
{
    double square = 0, mean[64] = {0};
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        double y[64];
        ref_map_scaled(y, a->x_wide + t * a->ld, &a->truth);
        square += 2 * pow(length(y, a->d), 2) / (double)a->rows;
        for (ptrdiff_t j = 0; j < a->d; j++) {
            mean[j] += y[j] / (double)a->rows;
        }
    }
    const double m = square + 2 * pow(length(mean, a->d), 2), d = (double)a->d;
    const double rho = (sqrt(pow(2 * m + d, 2) + 8 * d * m) - 2 * m - d) / (4 * m);
    return m > 1e-3 ? (1 - 1 / rho) / 8 : 0; // the difference above loses small m
}

// variant: which of free and unit norm, with and without sigma.
static world world_create(int kind, int variant, int shape)
{
    world a = {.d = shapes[shape].d,
               .D = shapes[shape].D,
               .rows = shapes[shape].rows,
               .scale = shapes[shape].scale,
               .ld = shapes[shape].d + FOREIGN};
    a.x = test_reals(a.rows * a.ld);
    a.w = test_reals(a.D * a.d);
    a.sigma = test_reals(a.d);
    a.squares = test_reals(a.D);
    a.x_wide = test_doubles(a.rows * a.ld);
    a.w_wide = test_doubles(a.D * a.d);
    a.sigma_wide = test_doubles(a.d);
    test_fill(a.x, a.rows * a.ld, 1, a.scale);
    test_fill(a.w, a.D * a.d, 2, 1);
    test_fill(a.sigma, a.d, 3, 0.7);
    for (ptrdiff_t j = 0; variant < 2 && j < a.d; j++) {
        a.sigma[j] = 1;
    }
    if (a.rows > ZERO_ROW) {
        memset(a.x + ZERO_ROW * a.ld, 0, (size_t)a.d * sizeof *a.x);
    }
    widen(a.x_wide, a.x, a.rows * a.ld);
    widen(a.w_wide, a.w, a.D * a.d);
    widen(a.sigma_wide, a.sigma, a.d);
    for (ptrdiff_t f = 0; f < a.D; f++) {
        a.squares[f] = (rfa_real)pow(length(a.w_wide + f * a.d, a.d), 2);
    }
    a.truth = (ref_map){.kind = (rfa_map_kind)kind,
                        .unit_norm = variant % 2,
                        .d = a.d,
                        .D = a.D,
                        .w = a.w_wide,
                        .sigma = a.sigma_wide};
    a.truth.a = kind == RFA_MAP_OPRF ? true_a(&a) : 0;
    a.map = (rfa_feature_map){.kind = (rfa_map_kind)kind,
                              .unit_norm = variant % 2,
                              .width = a.d,
                              .projections = a.D,
                              .w = kind == RFA_MAP_ELU ? NULL : a.w,
                              .sigma = variant < 2 ? NULL : a.sigma,
                              .w_squares = kind == RFA_MAP_OPRF ? a.squares : NULL,
                              .a = a.truth.a};
    a.F = rfa_feature_count(&a.map);
    a.is_weighted = rfa_feature_is_weighted(&a.map);
    a.work = test_reals(rfa_feature_work(&a.map, a.rows));
    measure(&a);
    return a;
}

static void world_destroy(world *a)
{
    rfa_free(a->x);
    rfa_free(a->w);
    rfa_free(a->sigma);
    rfa_free(a->squares);
    rfa_free(a->work);
    rfa_free(a->x_wide);
    rfa_free(a->w_wide);
    rfa_free(a->sigma_wide);
}

#endif
