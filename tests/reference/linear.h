// Random feature attention of one head as its definition reads: double, explicit features, an
// N x N kernel matrix, no states and no chunks.
#ifndef TESTS_REFERENCE_LINEAR_H
#define TESTS_REFERENCE_LINEAR_H

#include <stdbool.h>
#include <stddef.h>

// q, k, v [tokens][d]; w [D][d]; sigma [d].
typedef struct {
    ptrdiff_t tokens, d, D;
    bool causal;
    double floor; // of denominators
    const double *q, *k, *v, *w, *sigma;
} ref_linear;

// phi [2 D] = D^(-1/2) [sin(W (sigma o u)), cos(W (sigma o u))], u = x / (|x| + 1e-3).
void ref_features(
    double *phi, const double *x, const double *w, const double *sigma, ptrdiff_t d, ptrdiff_t D);

// out [tokens][d], den [tokens] (clamped); returns how many denominators were clamped.
ptrdiff_t ref_linear_forward(double *out, double *den, const ref_linear *x);

typedef struct {
    double *q, *k, *v; // [tokens][d]
    double *sigma;     // [d]
} ref_linear_gradient;

// Gradients of sum(dout o out), by the kernel's own derivative: with delta_r = w_r . (sigma o (u_i
// - u_j)), the kernel is mean_r cos(delta_r), so no adjoint of a feature or of a state appears.
void ref_linear_backward(ref_linear_gradient *gradient, const double *dout, const ref_linear *x);

// The largest sums of absolute terms behind an element of each result, conditioning of the
// quotient included: what a rounding error is measured in.
typedef struct {
    double out, q, k, v, sigma;
} ref_linear_sizes;

ref_linear_sizes ref_linear_magnitudes(const double *dout, const ref_linear *x);

#endif
