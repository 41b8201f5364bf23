#include "features/map_impl.h"

#include "base/profile.h"
#include "tensor/fetch.h"
#include "tensor/gemm.h"
#include "tensor/vmath.h"

#include <string.h>

static const rfa_map_parts *const maps[] = {
    [RFA_MAP_GAUSSIAN] = &rfa_map_gaussian, [RFA_MAP_ARCCOS] = &rfa_map_arccos,
    [RFA_MAP_POSITIVE] = &rfa_map_positive, [RFA_MAP_OPRF] = &rfa_map_oprf,
    [RFA_MAP_ELU] = &rfa_map_elu,
};

static const rfa_real norm_epsilon = (rfa_real)1e-3; // of the authors' code

const char *rfa_map_name(rfa_map_kind kind)
{
    return maps[kind]->name;
}

ptrdiff_t rfa_feature_count(const rfa_feature_map *map)
{
    const ptrdiff_t features = maps[map->kind]->features;
    return features ? features * map->projections : map->width;
}

static int weight_square(const rfa_feature_map *map)
{
    const rfa_map_parts *parts = maps[map->kind];
    return map->unit_norm ? parts->square_unit : parts->square_free;
}

bool rfa_feature_is_weighted(const rfa_feature_map *map)
{
    return weight_square(map) != 0;
}

double rfa_feature_floor(const rfa_feature_map *map)
{
    return maps[map->kind]->floor;
}

rfa_feature_map rfa_feature_prepare(const rfa_feature_map *map, rfa_real *transpose, ptrdiff_t rows)
{
    const ptrdiff_t d = map->width, D = map->projections;
    rfa_feature_map prepared = *map;
    if (maps[map->kind]->features > 0) {
        prepared.w_t = rfa_gemm_transpose(transpose, map->w, d, D, d, rows);
    }
    return prepared;
}

// Forward: y and the products; backward: adjoints of y, y, and those of the log-weights.
ptrdiff_t rfa_feature_work(const rfa_feature_map *map, ptrdiff_t rows)
{
    const ptrdiff_t d = map->width, D = map->projections;
    return rows * (d + (D > d + 1 ? D : d + 1));
}

static rfa_real dot(const rfa_real *x, const rfa_real *y, ptrdiff_t n)
{
    rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) {
        sum += x[j] * y[j];
    }
    return sum;
}

static rfa_real row_norm(const rfa_real *x, ptrdiff_t d)
{
    return rfa_sqrt(dot(x, x, d));
}

static rfa_real free_scale(ptrdiff_t d)
{
    return 1 / rfa_sqrt(rfa_sqrt((rfa_real)d)); // d^(-1/4)
}

enum { FETCH_AHEAD = 16 }; // rows

// y [rows][d] of x [rows][ld].
static void scale_rows(rfa_real *restrict y,
                       const rfa_real *restrict x,
                       ptrdiff_t ld,
                       const rfa_feature_map *map,
                       ptrdiff_t rows)
{
    const ptrdiff_t d = map->width;
    const rfa_real *restrict sigma = map->sigma;
    for (ptrdiff_t t = 0; t < rows; t++) {
        if (t + FETCH_AHEAD < rows) {
            rfa_fetch(x + (t + FETCH_AHEAD) * ld, d);
        }
        const rfa_real inverse =
            map->unit_norm ? 1 / (row_norm(x + t * ld, d) + norm_epsilon) : free_scale(d);
        if (sigma) {
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                y[t * d + j] = x[t * ld + j] * inverse * sigma[j];
            }
        } else {
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                y[t * d + j] = x[t * ld + j] * inverse;
            }
        }
    }
}

enum { BLOCK = 16 }; // rows whose features are made in one call

void rfa_features_forward(rfa_real *phi,
                          rfa_real *log_weight,
                          const rfa_real *x,
                          ptrdiff_t ld,
                          const rfa_real *mask,
                          const rfa_feature_map *map,
                          ptrdiff_t rows,
                          ptrdiff_t next,
                          rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_FEATURES);
    const rfa_map_parts *parts = maps[map->kind];
    const ptrdiff_t d = map->width, D = map->projections, F = rfa_feature_count(map);
    const bool is_projected = parts->features > 0;
    const rfa_real scale = is_projected ? 1 / rfa_sqrt((rfa_real)D) : 1;
    const rfa_real half = (rfa_real)0.5 * (rfa_real)weight_square(map);
    rfa_real *y = work, *product = work + rows * d;
    if (is_projected) {
        scale_rows(y, x, ld, map, rows);
        rfa_gemm_nt(rows, D, d, 1, y, d, map->w, d, map->w_t, product, D);
    }
    for (ptrdiff_t first = 0; first < rows; first += BLOCK) {
        const ptrdiff_t n = rows - first < BLOCK ? rows - first : BLOCK;
        rfa_real factor[BLOCK], divided[BLOCK] = {0};
        for (ptrdiff_t t = 0; t < n; t++) {
            factor[t] = mask ? mask[first + t] * scale : scale;
            if (next != 0) {
                rfa_fetch(x + next + (first + t) * ld, d);
            }
        }
        parts->forward(phi + first * F, divided,
                       is_projected ? product + first * D : x + first * ld, is_projected ? D : ld,
                       factor, map, n);
        for (ptrdiff_t t = first; log_weight && t < first + n; t++) {
            const rfa_real square = half != 0 ? half * dot(y + t * d, y + t * d, d) : 0;
            log_weight[t] =
                mask && mask[t] == 0 ? (rfa_real)-INFINITY : divided[t - first] + square;
        }
    }
}

// With u = x / r, r = |x| + eps:  dx = (du - u (u . du) r / |x|) / r.
static void unit_norm_backward(rfa_real *restrict dx,
                               const rfa_real *restrict du,
                               const rfa_real *restrict x,
                               rfa_real norm,
                               ptrdiff_t d)
{
    const rfa_real r = norm + norm_epsilon, inverse = 1 / r;
    rfa_real dot = 0;
#pragma omp simd reduction(+ : dot)
    for (ptrdiff_t j = 0; j < d; j++) {
        dot += x[j] * du[j];
    }
    const rfa_real along = norm > 0 ? dot * inverse / norm : 0;
#pragma omp simd
    for (ptrdiff_t j = 0; j < d; j++) {
        dx[j] = (du[j] - x[j] * along) * inverse;
    }
}

// dx and dsigma (NULL: not wanted) from dy, which is used up.
static void scale_row_backward(rfa_real *restrict dx,
                               rfa_real *restrict dsigma,
                               rfa_real *restrict dy,
                               const rfa_real *restrict x,
                               const rfa_feature_map *map)
{
    const ptrdiff_t d = map->width;
    const rfa_real *restrict sigma = map->sigma;
    const rfa_real norm = map->unit_norm ? row_norm(x, d) : 0;
    const rfa_real inverse = map->unit_norm ? 1 / (norm + norm_epsilon) : free_scale(d);
    if (dsigma) {
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            dsigma[j] += dy[j] * x[j] * inverse;
        }
    }
    if (sigma) {
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            dy[j] *= sigma[j];
        }
    }
    if (map->unit_norm) {
        unit_norm_backward(dx, dy, x, norm, d);
    } else {
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            dx[j] = dy[j] * inverse;
        }
    }
}

void rfa_features_backward(rfa_real *dx,
                           ptrdiff_t ld_dx,
                           const rfa_map_gradient *gradient,
                           rfa_real *dphi,
                           const rfa_real *phi,
                           bool is_key,
                           const rfa_real *x,
                           ptrdiff_t ld,
                           const rfa_feature_map *map,
                           ptrdiff_t rows,
                           rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_FEATURES);
    const rfa_map_parts *parts = maps[map->kind];
    const ptrdiff_t d = map->width, D = map->projections, F = rfa_feature_count(map);
    const bool is_weighted = is_key && rfa_feature_is_weighted(map);
    rfa_real *dy = work, *y = work + rows * d, *dweight = y + rows * d;
    for (ptrdiff_t t = 0; t < rows; t++) {
        if (is_weighted) {
            dweight[t] = dot(phi + t * F, dphi + t * F, F);
        }
        rfa_fetch_to_write(dx + t * ld_dx, d);
        parts->backward(dphi + t * F, phi + t * F, map);
    }
    if (parts->features == 0) {
        for (ptrdiff_t t = 0; t < rows; t++) {
            memcpy(dx + t * ld_dx, dphi + t * F, (size_t)d * sizeof *dx);
        }
        return;
    }
    rfa_gemm(RFA_N, RFA_N, rows, d, D, 1, dphi, F, map->w, d, 0, dy, d);
    if (is_weighted || gradient->w) {
        scale_rows(y, x, ld, map, rows);
    }
    if (gradient->w) {
        rfa_gemm(RFA_T, RFA_N, D, d, rows, 1, dphi, F, y, d, 1, gradient->w, d);
        if (parts->w_backward) {
            parts->w_backward(gradient->w, dphi, F, map, rows);
        }
    }
    for (ptrdiff_t t = 0; t < rows; t++) {
        rfa_real *restrict row = dy + t * d;
        if (is_weighted) { // of |y|^2 / 2; what else is in the weight is no function of x
            const rfa_real factor = dweight[t] * (rfa_real)weight_square(map);
            const rfa_real *restrict y_row = y + t * d;
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                row[j] += factor * y_row[j];
            }
        }
        scale_row_backward(dx + t * ld_dx, gradient->sigma, row, x + t * ld, map);
    }
}

// square += sum |y|^2, sum [d] += sum y.
static void add_statistics(double *restrict square,
                           double *restrict sum,
                           const rfa_real *y,
                           const rfa_real *mask,
                           ptrdiff_t rows,
                           ptrdiff_t d)
{
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *restrict row = y + t * d;
        double of_row = 0;
        if (mask && mask[t] == 0) {
            continue;
        }
#pragma omp simd reduction(+ : of_row)
        for (ptrdiff_t j = 0; j < d; j++) {
            of_row += (double)row[j] * (double)row[j];
        }
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            sum[j] += (double)row[j];
        }
        *square += of_row;
    }
}

void rfa_oprf_statistics(double *sums,
                         const rfa_real *q,
                         const rfa_real *k,
                         ptrdiff_t ld,
                         const rfa_real *mask,
                         const rfa_feature_map *map,
                         ptrdiff_t rows,
                         rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_FEATURES);
    const ptrdiff_t d = map->width;
    memset(sums, 0, (size_t)rfa_oprf_statistics_size(d) * sizeof *sums);
    scale_rows(work, q, ld, map, rows);
    add_statistics(sums, sums + 2, work, mask, rows, d);
    scale_rows(work, k, ld, map, rows);
    add_statistics(sums + 1, sums + 2 + d, work, mask, rows, d);
}

// rho is written without its difference of near numbers, which would lose small m.
double rfa_oprf_a(const double *sums, int64_t n, ptrdiff_t d)
{
    if (n <= 0) {
        return 0;
    }
    const double tokens = (double)n, width = (double)d;
    double between = 0;
    for (ptrdiff_t j = 0; j < d; j++) {
        between += sums[2 + j] / tokens * (sums[2 + d + j] / tokens);
    }
    const double mean = (sums[0] + sums[1]) / tokens + 2 * between;
    const double m = mean < 0 ? 0 : mean; // by rounding
    const double sum = 2 * m + width;
    const double rho = 2 * width / (sqrt(sum * sum + 8 * width * m) + sum);
    return (1 - 1 / rho) / 8;
}
