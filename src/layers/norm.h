// Layer normalisation (Ba, Kiros, Hinton 2016) over the E numbers of a row.
#ifndef RFA_LAYERS_NORM_H
#define RFA_LAYERS_NORM_H

#include "tensor/shapes.h"

#define RFA_NORM_EPSILON 1e-5 // added to the variance

// y [rows][E] = (x - mean) rstd scale + shift; stats [rows][2] = mean, rstd, saved. Local.
void rfa_norm_forward(rfa_real *y,
                      rfa_real *stats,
                      const rfa_real *x,
                      const rfa_real *scale,
                      const rfa_real *shift,
                      ptrdiff_t rows,
                      ptrdiff_t width);

// The forward again from saved stats, the same bits.
void rfa_norm_apply(rfa_real *y,
                    const rfa_real *stats,
                    const rfa_real *x,
                    const rfa_real *scale,
                    const rfa_real *shift,
                    ptrdiff_t rows,
                    ptrdiff_t width);

// dx [rows][E] is added to (the row is also on the residual path); dscale, dshift [E] overwritten.
// Local.
void rfa_norm_backward(rfa_real *dx,
                       rfa_real *dscale,
                       rfa_real *dshift,
                       const rfa_real *dy,
                       const rfa_real *stats,
                       const rfa_real *x,
                       const rfa_real *scale,
                       ptrdiff_t rows,
                       ptrdiff_t width);

#endif
