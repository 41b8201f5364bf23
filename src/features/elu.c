#include "features/map_impl.h"

#include "tensor/vmath.h"

static void forward(rfa_real *restrict phi,
                    rfa_real *divided,
                    const rfa_real *restrict x,
                    ptrdiff_t ld,
                    const rfa_real *restrict factor,
                    const rfa_feature_map *map,
                    ptrdiff_t rows)
{
    const ptrdiff_t d = map->width;
    (void)divided;
    for (ptrdiff_t t = 0; t < rows; t++) {
        rfa_real *restrict to = phi + t * d;
        const rfa_real *restrict row = x + t * ld;
#pragma omp simd
        for (ptrdiff_t i = 0; i < d; i++) {
            to[i] = row[i] > 0 ? 0 : row[i];
        }
        rfa_vexp(to, to, d);
#pragma omp simd
        for (ptrdiff_t i = 0; i < d; i++) {
            to[i] = (row[i] > 0 ? row[i] + 1 : to[i]) * factor[t];
        }
    }
}

// The slope is exp(x) = phi below 1, and 1 above.
static void
backward(rfa_real *restrict dphi, const rfa_real *restrict phi, const rfa_feature_map *map)
{
    const ptrdiff_t d = map->width;
#pragma omp simd
    for (ptrdiff_t i = 0; i < d; i++) {
        dphi[i] *= phi[i] < 1 ? phi[i] : 1;
    }
}

const rfa_map_parts rfa_map_elu = {
    .name = "elu",
    .features = 0,
    .floor = 1e-20,
    .forward = forward,
    .backward = backward,
};
