#include "features/map_impl.h"

#include "tensor/vmath.h"

static rfa_real
forward(rfa_real *phi, const rfa_real *product, rfa_real factor, const rfa_feature_map *map)
{
    const ptrdiff_t D = map->projections;
    rfa_vsin_cos(phi, phi + D, product, D);
#pragma omp simd
    for (ptrdiff_t i = 0; i < 2 * D; i++) {
        phi[i] *= factor;
    }
    return 0;
}

// cos o dsin - sin o dcos, in place of dsin.
static void backward(rfa_real *dphi, const rfa_real *phi, const rfa_feature_map *map)
{
    const ptrdiff_t D = map->projections;
    const rfa_real *restrict s = phi, *restrict c = phi + D;
    rfa_real *restrict ds = dphi;
    const rfa_real *restrict dc = dphi + D;
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        ds[i] = c[i] * ds[i] - s[i] * dc[i];
    }
}

const rfa_map_parts rfa_map_gaussian = {
    .name = "gaussian",
    .features = 2,
    .floor = 0.16,
    .square_free = 1,
    .forward = forward,
    .backward = backward,
};
