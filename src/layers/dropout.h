// Dropout whose mask is a function of (seed, step, example, place, position, channel) alone.
#ifndef RFA_LAYERS_DROPOUT_H
#define RFA_LAYERS_DROPOUT_H

#include "rng/rng.h"
#include "tensor/shapes.h"

// x [rows][width] of absolute positions begin, begin + 1, ...: each number is kept with probability
// 1 - p and scaled by 1 / (1 - p), else zeroed. Linear and diagonal: the same call is its backward.
// width is a multiple of 8; p is taken in steps of 2^-16; p = 0 does nothing. also (may be NULL) is
// a second array under the same mask. About 0.3 ns a number. Local.
void rfa_dropout(rfa_real *x,
                 rfa_real *also,
                 ptrdiff_t rows,
                 ptrdiff_t width,
                 ptrdiff_t begin,
                 const rfa_rng *stream,
                 double p);

#endif
