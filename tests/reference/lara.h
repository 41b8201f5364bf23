// Linear randomised attention (Zheng, Wang, Kong 2022) of one head as its equations read: double,
// all pairs of tokens and samples, nothing of what segments exchange.
#ifndef TESTS_REFERENCE_LARA_H
#define TESTS_REFERENCE_LARA_H

#include "base/kinds.h"

#include <stddef.h>

// q, k, v [tokens][d].
typedef struct {
    ptrdiff_t tokens, d;
    ptrdiff_t pieces; // that the tokens are cut into; empty ones are dropped
    ptrdiff_t draws;
    rfa_weights_kind weights;
    double specificity;
    const double *q, *k, *v;
    const double *noise;   // [draws][C][d] of each sample
    const double *q_means; // [C][d] landmarks instead of the means of pieces; NULL: those
    const double *k_means;
} ref_lara;

// C.
ptrdiff_t ref_lara_landmarks(const ref_lara *x);

void ref_lara_forward(double *out, const ref_lara *x);

// What rounding errors are measured in: the greatest sum of absolute terms behind a logarithm of a
// weight; and how much alpha's cancellation amplifies the error of a weight. clamped: alphas that
// were.
typedef struct {
    double exponent, spread;
    ptrdiff_t clamped;
} ref_lara_sizes;

ref_lara_sizes ref_lara_magnitudes(const ref_lara *x);

#endif
