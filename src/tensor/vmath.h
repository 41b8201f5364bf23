// Elementary functions over arrays. In float they are polynomials written as plain loops that
// compilers vectorise; each element's bits follow from its own value alone, whatever its place in
// the array, n, the vector width or the compiler (the multiply-adds are explicit). In double they
// are libm's, for tests. Local, allocate nothing.
//
// Measured, ns an element: AVX2 exp 0.26, sin and cos together 0.45; libmvec 0.41 and 0.84, whose
// vectors and scalar tails differ by bits. Processors with AVX-512 take 0.20 and 0.37.
#ifndef RFA_TENSOR_VMATH_H
#define RFA_TENSOR_VMATH_H

#include "tensor/shapes.h"

#include <math.h>

// The correctly rounded square root.
static inline rfa_real rfa_sqrt(rfa_real x)
{
#ifdef RFA_DOUBLE
    return sqrt(x);
#else
    return sqrtf(x);
#endif
}

// y[i] = exp(x[i]), y = x allowed. Error below 1.1 ulp; results under the smallest normal number
// are 0 in float; NaN stays NaN.
void rfa_vexp(rfa_real *y, const rfa_real *x, ptrdiff_t n);

// y[i] = exp(x[i] - shift) factor, y = x allowed.
void rfa_vexp_scaled(rfa_real *y, const rfa_real *x, rfa_real shift, rfa_real factor, ptrdiff_t n);

// y[i] = exp(x[i] - shift), y = x allowed; returns the sum of y[0..n), added in an order that
// follows from n alone.
rfa_real rfa_vexp_sum(rfa_real *y, const rfa_real *x, rfa_real shift, ptrdiff_t n);

// s[i] = sin(x[i]), c[i] = cos(x[i]); the three arrays don't overlap. Error below 1.6 ulp, also of
// large arguments (which are slow beyond 2^16); NaN of infinities.
void rfa_vsin_cos(rfa_real *s, rfa_real *c, const rfa_real *x, ptrdiff_t n);

// The same of the rows of x [rows][n], times a factor [rows]; s and c [rows][ld].
void rfa_vsin_cos_rows(rfa_real *s,
                       rfa_real *c,
                       ptrdiff_t ld,
                       const rfa_real *x,
                       const rfa_real *factor,
                       ptrdiff_t rows,
                       ptrdiff_t n);

// The greatest of x[0..n) that is no NaN; -infinity when there is none.
rfa_real rfa_vmax(const rfa_real *x, ptrdiff_t n);

#endif
