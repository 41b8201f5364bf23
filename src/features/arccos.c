#include "features/map_impl.h"

#include "tensor/vmath.h"

static void forward(rfa_real *restrict phi,
                    rfa_real *divided,
                    const rfa_real *restrict product,
                    ptrdiff_t ld,
                    const rfa_real *restrict factor,
                    const rfa_feature_map *map,
                    ptrdiff_t rows)
{
    const ptrdiff_t D = map->projections;
    (void)divided;
    for (ptrdiff_t t = 0; t < rows; t++) {
#pragma omp simd
        for (ptrdiff_t i = 0; i < D; i++) {
            phi[t * D + i] = (product[t * ld + i] > 0 ? product[t * ld + i] : 0) * factor[t];
        }
    }
}

static void
backward(rfa_real *restrict dphi, const rfa_real *restrict phi, const rfa_feature_map *map)
{
    const ptrdiff_t D = map->projections;
    const rfa_real scale = 1 / rfa_sqrt((rfa_real)D);
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        dphi[i] = phi[i] > 0 ? dphi[i] * scale : 0;
    }
}

const rfa_map_parts rfa_map_arccos = {
    .name = "arccos",
    .features = 1,
    .floor = 1e-6,
    .forward = forward,
    .backward = backward,
};
