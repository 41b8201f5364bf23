#include "layers/linear.h"

#include "base/profile.h"
#include "tensor/gemm.h"

#include <string.h>

void rfa_linear_forward(rfa_real *y,
                        const rfa_real *x,
                        const rfa_real *w,
                        const rfa_real *b,
                        ptrdiff_t rows,
                        ptrdiff_t in,
                        ptrdiff_t out)
{
    rfa_linear_forward_into(y, out, x, w, b, rows, in, out);
}

void rfa_linear_forward_into(rfa_real *y,
                             ptrdiff_t ld,
                             const rfa_real *x,
                             const rfa_real *w,
                             const rfa_real *b,
                             ptrdiff_t rows,
                             ptrdiff_t in,
                             ptrdiff_t out)
{
    RFA_PROFILE(RFA_PHASE_PRODUCTS);
    for (ptrdiff_t t = 0; t < rows; t++) {
        memcpy(y + t * ld, b, (size_t)out * sizeof *y);
    }
    rfa_gemm(RFA_N, RFA_T, rows, out, in, 1, x, in, w, in, 1, y, ld);
}

void rfa_linear_backward_input(rfa_real *dx,
                               const rfa_real *dy,
                               const rfa_real *w,
                               ptrdiff_t rows,
                               ptrdiff_t in,
                               ptrdiff_t out)
{
    RFA_PROFILE(RFA_PHASE_PRODUCTS);
    rfa_gemm(RFA_N, RFA_N, rows, in, out, 1, dy, out, w, in, 0, dx, in);
}

void rfa_linear_backward_weight(rfa_real *dw,
                                rfa_real *db,
                                const rfa_real *dy,
                                const rfa_real *x,
                                ptrdiff_t rows,
                                ptrdiff_t in,
                                ptrdiff_t out)
{
    RFA_PROFILE(RFA_PHASE_PRODUCTS);
    rfa_gemm(RFA_T, RFA_N, out, in, rows, 1, dy, out, x, in, 0, dw, in);
    memset(db, 0, (size_t)out * sizeof *db);
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *restrict row = dy + t * out;
#pragma omp simd
        for (ptrdiff_t j = 0; j < out; j++) {
            db[j] += row[j];
        }
    }
}
