// What learned landmarks are means of: y = norm(x W^T + b) of each head's part of a token, with one
// W [d][d] for all heads ("adaptive-1d" proposals of Zheng et al. 2022).
#ifndef RFA_LAYERS_LANDMARK_MAP_H
#define RFA_LAYERS_LANDMARK_MAP_H

#include "tensor/shapes.h"

typedef struct {
    const rfa_real *w, *b, *scale, *shift; // [d][d], [d], [d], [d]
} rfa_landmark_map;

typedef struct {
    rfa_real *w, *b, *scale, *shift; // accumulate
} rfa_landmark_map_gradient;

// Elements of work for up to rows rows of heads d numbers.
ptrdiff_t rfa_landmark_map_work(ptrdiff_t rows, ptrdiff_t heads, ptrdiff_t d);

// y [rows][heads d] of x [rows][ld]. 2 rows heads d^2 flops. Local.
void rfa_landmark_map_forward(rfa_real *y,
                              const rfa_real *x,
                              ptrdiff_t ld,
                              const rfa_landmark_map *map,
                              ptrdiff_t rows,
                              ptrdiff_t heads,
                              ptrdiff_t d,
                              rfa_real *work);

// dx [rows][ld_dx] accumulates; dy [rows][heads d] is used up. 6 rows heads d^2 flops. Local.
void rfa_landmark_map_backward(rfa_real *dx,
                               ptrdiff_t ld_dx,
                               const rfa_landmark_map_gradient *gradient,
                               rfa_real *dy,
                               const rfa_real *x,
                               ptrdiff_t ld,
                               const rfa_landmark_map *map,
                               ptrdiff_t rows,
                               ptrdiff_t heads,
                               ptrdiff_t d,
                               rfa_real *work);

#endif
