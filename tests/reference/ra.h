// Randomised attention of one head as its definition reads, for given draws: double, O(S N^2).
#ifndef TESTS_REFERENCE_RA_H
#define TESTS_REFERENCE_RA_H

#include <stdbool.h>
#include <stddef.h>

// q, k, v [tokens][d]; index [draws][tokens] and noise [draws][tokens][d] of unit variance; noise
// NULL: the form without noise, of one draw.
typedef struct {
    ptrdiff_t tokens, d, draws;
    bool causal;
    const double *q, *k, *v, *noise;
    const int *index;
} ref_ra;

void ref_ra_forward(double *out, const ref_ra *x);

// cdf [tokens] of the index of query n.
void ref_ra_distribution(double *cdf, const ref_ra *x, ptrdiff_t n);

// The largest sums of absolute terms behind a score and behind an element of each result, of
// gradients of sum(dout o out) with noise: what a rounding error is measured in.
typedef struct {
    double score, out, dq, dk, dv;
} ref_ra_sizes;

ref_ra_sizes ref_ra_magnitudes(const double *dout, const ref_ra *x);

#endif
