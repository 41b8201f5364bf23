#include "features/map.h"

#include "tensor/gemm.h"
#include "tensor/vmath.h"

static const rfa_real norm_epsilon = (rfa_real)1e-3; // of the authors' code

ptrdiff_t rfa_feature_work(const rfa_feature_map *map, ptrdiff_t rows)
{
    return rows * (map->width + map->projections);
}

static rfa_real row_norm(const rfa_real *x, ptrdiff_t d)
{
    rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < d; j++) {
        sum += x[j] * x[j];
    }
    return rfa_sqrt(sum);
}

void rfa_features_forward(rfa_real *phi,
                          const rfa_real *x,
                          ptrdiff_t ld,
                          const rfa_real *mask,
                          const rfa_feature_map *map,
                          ptrdiff_t rows,
                          rfa_real *work)
{
    const ptrdiff_t d = map->width, D = map->projections;
    const rfa_real scale = 1 / rfa_sqrt((rfa_real)D);
    rfa_real *restrict scaled = work, *angle = work + rows * d;
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real inverse = 1 / (row_norm(x + t * ld, d) + norm_epsilon);
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            scaled[t * d + j] = x[t * ld + j] * inverse * map->sigma[j];
        }
    }
    rfa_gemm(RFA_N, RFA_T, rows, D, d, 1, scaled, d, map->w, d, 0, angle, D);
    for (ptrdiff_t t = 0; t < rows; t++) {
        rfa_real *restrict row = phi + t * 2 * D;
        rfa_vsin_cos(row, row + D, angle + t * D, D);
        const rfa_real factor = mask ? mask[t] * scale : scale;
#pragma omp simd
        for (ptrdiff_t i = 0; i < 2 * D; i++) {
            row[i] *= factor;
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

void rfa_features_backward(rfa_real *dx,
                           ptrdiff_t ld_dx,
                           rfa_real *dsigma,
                           rfa_real *dphi,
                           const rfa_real *phi,
                           const rfa_real *x,
                           ptrdiff_t ld,
                           const rfa_feature_map *map,
                           ptrdiff_t rows,
                           rfa_real *work)
{
    const ptrdiff_t d = map->width, D = map->projections;
    rfa_real *restrict g = work;
    // d angle = cos o dsin - sin o dcos, in place of dsin.
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *restrict s = phi + t * 2 * D, *restrict c = s + D;
        rfa_real *restrict ds = dphi + t * 2 * D;
        const rfa_real *restrict dc = dphi + t * 2 * D + D;
#pragma omp simd
        for (ptrdiff_t i = 0; i < D; i++) {
            ds[i] = c[i] * ds[i] - s[i] * dc[i];
        }
    }
    rfa_gemm(RFA_N, RFA_N, rows, d, D, 1, dphi, 2 * D, map->w, d, 0, g, d);
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real norm = row_norm(x + t * ld, d), inverse = 1 / (norm + norm_epsilon);
        rfa_real *restrict row = g + t * d;
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            dsigma[j] += row[j] * x[t * ld + j] * inverse;
            row[j] *= map->sigma[j];
        }
        unit_norm_backward(dx + t * ld_dx, row, x + t * ld, norm, d);
    }
}
