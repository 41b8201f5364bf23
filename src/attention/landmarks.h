// Landmarks: means of the tokens of an example over contiguous pieces. n tokens and C pieces: the
// first (floor(n / C) + 1) C - n pieces have floor(n / C) tokens, the rest one more; empty pieces
// are dropped, so that short examples have each token as a landmark ("adaptive-1d" pooling of Zheng
// et al. 2022). A segment sums its own tokens; the sums of all are divided once. Local kernels.
#ifndef RFA_ATTENTION_LANDMARKS_H
#define RFA_ATTENTION_LANDMARKS_H

#include "tensor/shapes.h"

// Pieces that are not empty: the lesser of n and C.
static inline ptrdiff_t rfa_landmark_count(ptrdiff_t n, ptrdiff_t C)
{
    return n < C ? n : C;
}

// First token of piece c in [0, pieces], with pieces = rfa_landmark_count of n tokens.
ptrdiff_t rfa_landmark_begin(ptrdiff_t n, ptrdiff_t pieces, ptrdiff_t c);

// The tokens of a segment, [begin, begin + tokens) of an example of n.
typedef struct {
    ptrdiff_t begin, tokens;
    ptrdiff_t n, pieces;
} rfa_landmark_span;

// sums [pieces][ld_sums] (double) = sums of x [tokens][ld] by piece, over width columns; 0 for
// pieces that have no token here.
void rfa_landmark_sums(double *sums,
                       ptrdiff_t ld_sums,
                       const rfa_real *x,
                       ptrdiff_t ld,
                       ptrdiff_t width,
                       rfa_landmark_span span);

// Sums over all n tokens become means, in place.
void rfa_landmark_means(
    double *sums, ptrdiff_t ld_sums, ptrdiff_t width, ptrdiff_t n, ptrdiff_t pieces);

// dx [tokens][ld] of the same x accumulates dmeans [pieces][ld_means] over the sizes of pieces.
void rfa_landmark_backward(rfa_real *dx,
                           ptrdiff_t ld,
                           const rfa_real *dmeans,
                           ptrdiff_t ld_means,
                           ptrdiff_t width,
                           rfa_landmark_span span);

#endif
