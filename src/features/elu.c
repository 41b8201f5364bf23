#include "features/map_impl.h"

#include "tensor/vmath.h"

static rfa_real forward(rfa_real *restrict phi,
                        const rfa_real *restrict x,
                        rfa_real factor,
                        const rfa_feature_map *map)
{
    const ptrdiff_t d = map->width;
#pragma omp simd
    for (ptrdiff_t i = 0; i < d; i++) {
        phi[i] = x[i] > 0 ? 0 : x[i];
    }
    rfa_vexp(phi, phi, d);
#pragma omp simd
    for (ptrdiff_t i = 0; i < d; i++) {
        phi[i] = (x[i] > 0 ? x[i] + 1 : phi[i]) * factor;
    }
    return 0;
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
