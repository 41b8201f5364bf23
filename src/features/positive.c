// positive and oprf: exponentials, divided by the greatest of their row.
#include "features/map_impl.h"

#include "tensor/vmath.h"

// phi [D] holds exponents l: phi = factor exp(l - max l). Returns max l.
static rfa_real exponentials(rfa_real *phi, rfa_real factor, ptrdiff_t D)
{
    const rfa_real most = rfa_vmax(phi, D);
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        phi[i] -= most;
    }
    rfa_vexp(phi, phi, D);
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        phi[i] *= factor;
    }
    return most;
}

static rfa_real positive_forward(rfa_real *restrict phi,
                                 const rfa_real *restrict product,
                                 rfa_real factor,
                                 const rfa_feature_map *map)
{
    const ptrdiff_t D = map->projections;
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        phi[i] = product[i];
    }
    return exponentials(phi, factor, D);
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

static rfa_real oprf_forward(rfa_real *restrict phi,
                             const rfa_real *restrict product,
                             rfa_real factor,
                             const rfa_feature_map *map)
{
    const ptrdiff_t D = map->projections;
    const rfa_real a = (rfa_real)map->a, c = slope(map);
    const rfa_real *restrict squares = map->w_squares;
#pragma omp simd
    for (ptrdiff_t i = 0; i < D; i++) {
        phi[i] = a * squares[i] + c * product[i];
    }
    return exponentials(phi, factor, D);
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
