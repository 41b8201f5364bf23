#include "features/map_impl.h"

#include "tensor/vmath.h"

static void forward(rfa_real *phi,
                    rfa_real *divided,
                    const rfa_real *product,
                    ptrdiff_t ld,
                    const rfa_real *factor,
                    const rfa_feature_map *map,
                    ptrdiff_t rows)
{
    const ptrdiff_t D = map->projections;
    (void)divided, (void)ld;
    rfa_vsin_cos_rows(phi, phi + D, 2 * D, product, factor, rows, D);
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
