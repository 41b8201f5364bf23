// y = x W^T + b over rows.
#ifndef RFA_LAYERS_LINEAR_H
#define RFA_LAYERS_LINEAR_H

#include "tensor/shapes.h"

// y [rows][out], x [rows][in], w [out][in], b [out]. 2 rows in out flops. Local.
void rfa_linear_forward(rfa_real *y,
                        const rfa_real *x,
                        const rfa_real *w,
                        const rfa_real *b,
                        ptrdiff_t rows,
                        ptrdiff_t in,
                        ptrdiff_t out);

// The same for y in rows of ld >= out.
void rfa_linear_forward_into(rfa_real *y,
                             ptrdiff_t ld,
                             const rfa_real *x,
                             const rfa_real *w,
                             const rfa_real *b,
                             ptrdiff_t rows,
                             ptrdiff_t in,
                             ptrdiff_t out);

// dx [rows][in] overwritten. 2 rows in out flops. Local.
void rfa_linear_backward_input(rfa_real *dx,
                               const rfa_real *dy,
                               const rfa_real *w,
                               ptrdiff_t rows,
                               ptrdiff_t in,
                               ptrdiff_t out);

// dw [out][in], db [out] overwritten: one leaf's, which the caller adds to exact sums. 2 rows in
// out flops.
void rfa_linear_backward_weight(rfa_real *dw,
                                rfa_real *db,
                                const rfa_real *dy,
                                const rfa_real *x,
                                ptrdiff_t rows,
                                ptrdiff_t in,
                                ptrdiff_t out);

#endif
