// Feature maps: phi with phi(q) . phi(k) an estimate of a kernel, as used by linear attention. All
// maps have this one shape, F features of R rows, so attention/linear.c is written once over them.
//
// Gaussian (Peng et al., "Random feature attention", ICLR 2021, eqs. 4 and 8): with u = x / (|x| +
// 1e-3),
//   phi(x) = D^(-1/2) [sin(W (sigma o u)), cos(W (sigma o u))],  F = 2 D,
// rows of W from N(0, I) and sigma learned, one number per dimension: the kernel is
// exp(-|sigma o (u_q - u_k)|^2 / 2).
#ifndef RFA_FEATURES_MAP_H
#define RFA_FEATURES_MAP_H

#include "tensor/shapes.h"

typedef struct {
    ptrdiff_t width, projections; // d and D
    const rfa_real *w;            // [D][d] borrowed
    const rfa_real *sigma;        // [d] borrowed
} rfa_feature_map;

static inline ptrdiff_t rfa_feature_count(const rfa_feature_map *map)
{
    return 2 * map->projections;
}

// Elements of work that the calls below need for up to rows rows.
ptrdiff_t rfa_feature_work(const rfa_feature_map *map, ptrdiff_t rows);

// phi [rows][F] of x [rows][ld]. A row with mask[t] == 0 gets phi = 0 (zeroing x would not do:
// phi(0) is not 0); mask may be NULL. Costs 2 rows d D flops and rows D sines and cosines. Local.
void rfa_features_forward(rfa_real *phi,
                          const rfa_real *x,
                          ptrdiff_t ld,
                          const rfa_real *mask,
                          const rfa_feature_map *map,
                          ptrdiff_t rows,
                          rfa_real *work);

// dx [rows][ld_dx] overwritten, dsigma [d] accumulates; dphi [rows][F] is used up. phi as the
// forward gave it. Local.
void rfa_features_backward(rfa_real *dx,
                           ptrdiff_t ld_dx,
                           rfa_real *dsigma,
                           rfa_real *dphi,
                           const rfa_real *phi,
                           const rfa_real *x,
                           ptrdiff_t ld,
                           const rfa_feature_map *map,
                           ptrdiff_t rows,
                           rfa_real *work);

#endif
