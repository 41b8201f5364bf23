// Exact softmax attention of one head as its definition reads: double, O(N^2), no blocks.
#ifndef TESTS_REFERENCE_SOFTMAX_H
#define TESTS_REFERENCE_SOFTMAX_H

#include <stdbool.h>
#include <stddef.h>

// All arrays [tokens][d]; lse [tokens].
typedef struct {
    ptrdiff_t tokens, d;
    bool causal;
    const double *q, *k, *v;
} ref_softmax;

void ref_softmax_forward(double *out, double *lse, const ref_softmax *x);

// Gradients of sum(dout o out).
void ref_softmax_backward(
    double *dq, double *dk, double *dv, const double *dout, const ref_softmax *x);

// The largest |s_ij|, and the largest sums of absolute terms behind an element of each result: what
// a rounding error is measured in.
typedef struct {
    double score, out, dq, dk, dv;
} ref_softmax_sizes;

ref_softmax_sizes ref_softmax_magnitudes(const double *dout, const ref_softmax *x);

#endif
