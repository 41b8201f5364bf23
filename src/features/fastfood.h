// Projections of the fastfood form with learned diagonals: for each block of n = d rounded up to a
// power of two, W_block = n^(-1/2) S H G P H B, cut to d columns and, in the last block, to the
// rows that are left; H is the n x n Hadamard matrix, P a fixed random permutation, S, G and B are
// learned diagonals. (Le, Sarlos, Smola, "Fastfood", ICML 2013; learned as in Yang et al., "Deep
// fried convnets", ICCV 2015.) Initially B is +-1, G is N(0, 1), and S gives rows chi(d) lengths.
//
// W is formed explicitly, once a pass: for d of a head one product is faster than the transforms.
#ifndef RFA_FEATURES_FASTFOOD_H
#define RFA_FEATURES_FASTFOOD_H

#include "rng/rng.h"
#include "tensor/shapes.h"

// Parameters of one head: [blocks][3][n] for S, G, B.
ptrdiff_t rfa_fastfood_size(ptrdiff_t projections, ptrdiff_t width);

// Elements of work for the calls below.
ptrdiff_t rfa_fastfood_work(ptrdiff_t projections, ptrdiff_t width);

// Initial parameters, a function of stream alone. Local.
void rfa_fastfood_init(rfa_real *parameters,
                       const rfa_rng *stream,
                       ptrdiff_t projections,
                       ptrdiff_t width,
                       rfa_real *work);

// w [projections][width]; the permutations are those of stream. Costs about 2 n log2 n flops a
// column and block. Local.
void rfa_fastfood_forward(rfa_real *w,
                          const rfa_real *parameters,
                          const rfa_rng *stream,
                          ptrdiff_t projections,
                          ptrdiff_t width,
                          rfa_real *work);

// dparameters accumulates, for dw [projections][width]. Local.
void rfa_fastfood_backward(rfa_real *dparameters,
                           const rfa_real *dw,
                           const rfa_real *parameters,
                           const rfa_rng *stream,
                           ptrdiff_t projections,
                           ptrdiff_t width,
                           rfa_real *work);

#endif
