// Linear attention over any feature map, with decay, as its quadratic form reads: double, one
// weight a pair of tokens, no states and no scales.
//   out_t = sum_i W_ti kappa_ti v_i / sum_i W_ti kappa_ti,  W_ti = exp(input_i + sum of decay_j
//   over i < j <= t), kappa_ti = psi(q_t) . psi(k_i) with the log-weight of the key inside psi.
#ifndef TESTS_REFERENCE_WEIGHTED_H
#define TESTS_REFERENCE_WEIGHTED_H

#include "reference/features.h"

// q, k, v [tokens][d]; decay, input [tokens] or NULL. reverse: i >= t, decay_j over t <= j < i.
typedef struct {
    ptrdiff_t tokens;
    ref_map map;
    bool causal, reverse;
    const double *q, *k, *v, *decay, *input;
} ref_weighted;

// out [tokens][d]. Returns the largest ratio of sum |W kappa| to |sum W kappa| of a token: by how
// much rounding errors are amplified.
double ref_weighted_forward(double *out, const ref_weighted *x);

#endif
