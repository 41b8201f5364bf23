// GELU in its tanh form (Hendrycks and Gimpel 2016): x s(2 c (x + 0.044715 x^3)), c = sqrt(2 / pi),
// s the logistic function; within 5e-4 of the form with erf.
#ifndef RFA_LAYERS_GELU_H
#define RFA_LAYERS_GELU_H

#include "tensor/shapes.h"

// y[i] = gelu(x[i]), n a multiple of RFA_ROWS. Local.
void rfa_gelu_forward(rfa_real *y, const rfa_real *x, ptrdiff_t n);

// The forward again, the same bits, with slope[i] = gelu'(x[i]) from the same exponentials. Local.
void rfa_gelu_slope(rfa_real *y, rfa_real *slope, const rfa_real *x, ptrdiff_t n);

#endif
