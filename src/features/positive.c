// positive and oprf: exponentials, divided by the greatest of their row.
#include "features/map_impl.h"

#include "tensor/vmath.h"

static void positive_forward(rfa_real *phi,
                             rfa_real *divided,
                             const rfa_real *product,
                             ptrdiff_t ld,
                             const rfa_real *factor,
                             const rfa_feature_map *map,
                             ptrdiff_t rows)
{
    const ptrdiff_t D = map->projections;
    for (ptrdiff_t t = 0; t < rows; t++) {
        divided[t] = rfa_vmax(product + t * ld, D);
        rfa_vexp_scaled(phi + t * D, product + t * ld, divided[t], factor[t], D);
    }
}

// The maximum takes part in no derivative: a key's log-weight gives it back, a quotient of a query
// doesn't have it.
static void
positive_backward(rfa_real *restrict dphi, const rfa_real *restrict phi, const rfa_feature_map *map)
{
    const ptrdiff_t D = map->projections;
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        dphi[i] *= phi[i];
    }
}

// Of the products in the exponents.
static rfa_real slope(const rfa_feature_map *map)
{
    return (rfa_real)sqrt(1 - 4 * map->a);
}

static void oprf_forward(rfa_real *restrict phi,
                         rfa_real *divided,
                         const rfa_real *restrict product,
                         ptrdiff_t ld,
                         const rfa_real *factor,
                         const rfa_feature_map *map,
                         ptrdiff_t rows)
{
    const ptrdiff_t D = map->projections;
    const rfa_real a = (rfa_real)map->a, c = slope(map);
    const rfa_real *restrict squares = map->w_squares;
    for (ptrdiff_t t = 0; t < rows; t++) {
        rfa_real *restrict to = phi + t * D;
#pragma omp simd
        for (ptrdiff_t i = 0; i < D; i++) {
            to[i] = a * squares[i] + c * product[t * ld + i];
        }
        divided[t] = rfa_vmax(to, D);
        rfa_vexp_scaled(to, to, divided[t], factor[t], D);
    }
}

static void
oprf_backward(rfa_real *restrict dphi, const rfa_real *restrict phi, const rfa_feature_map *map)
{
    const ptrdiff_t D = map->projections;
    const rfa_real c = slope(map);
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        dphi[i] *= phi[i] * c;
    }
}

// Of a |w_f|^2, whose adjoint is the sum over rows of dproduct / c.
static void oprf_w_backward(rfa_real *dw,
                            const rfa_real *dproduct,
                            ptrdiff_t ld,
                            const rfa_feature_map *map,
                            ptrdiff_t rows)
{
    enum { TILE = 16 }; // columns that are summed side by side
    const ptrdiff_t d = map->width, D = map->projections;
    const double factor = 2 * map->a / sqrt(1 - 4 * map->a);
    for (ptrdiff_t first = 0; first < D; first += TILE) {
        const ptrdiff_t n = D - first < TILE ? D - first : TILE;
        double sums[TILE] = {0};
        for (ptrdiff_t t = 0; t < rows; t++) {
#pragma omp simd
            for (ptrdiff_t i = 0; i < n; i++) {
                sums[i] += dproduct[t * ld + first + i];
            }
        }
        for (ptrdiff_t i = 0; i < n; i++) {
            const rfa_real scale = (rfa_real)(factor * sums[i]);
            const rfa_real *restrict row = map->w + (first + i) * d;
            rfa_real *restrict to = dw + (first + i) * d;
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                to[j] += scale * row[j];
            }
        }
    }
}

const rfa_map_parts rfa_map_positive = {
    .name = "positive",
    .features = 1,
    .floor = 1e-20,
    .square_free = -1,
    .square_unit = -1,
    .forward = positive_forward,
    .backward = positive_backward,
};

const rfa_map_parts rfa_map_oprf = {
    .name = "oprf",
    .features = 1,
    .floor = 1e-20,
    .square_free = -1,
    .square_unit = -1,
    .forward = oprf_forward,
    .backward = oprf_backward,
    .w_backward = oprf_w_backward,
};
