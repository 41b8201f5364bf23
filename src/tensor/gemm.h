// Matrix products: one BLAS thread, fixed shapes, counted flops.
#ifndef RFA_TENSOR_GEMM_H
#define RFA_TENSOR_GEMM_H

#include "tensor/shapes.h"

#include <stdbool.h>

typedef enum { RFA_N, RFA_T } rfa_transpose;

// c [m][n] = alpha op(a) op(b) + beta c, with op(a) [m][k] and op(b) [k][n], row-major, leading
// dimensions in elements. Costs 2 m n k flops. m, n >= 2 (a row or column alone takes another
// path in BLAS, whose bits depend on alignment). Safe from several threads at once. Local.
void rfa_gemm(rfa_transpose op_a,
              rfa_transpose op_b,
              ptrdiff_t m,
              ptrdiff_t n,
              ptrdiff_t k,
              rfa_real alpha,
              const rfa_real *a,
              ptrdiff_t lda,
              const rfa_real *b,
              ptrdiff_t ldb,
              rfa_real beta,
              rfa_real *c,
              ptrdiff_t ldc);

// c [m][n] = alpha a b^T, with b [n][k] and transpose [k][n] either b^T or NULL, which is slower on
// some processors. Otherwise as rfa_gemm.
void rfa_gemm_nt(ptrdiff_t m,
                 ptrdiff_t n,
                 ptrdiff_t k,
                 rfa_real alpha,
                 const rfa_real *a,
                 ptrdiff_t lda,
                 const rfa_real *b,
                 ptrdiff_t ldb,
                 const rfa_real *transpose,
                 rfa_real *c,
                 ptrdiff_t ldc);

// The transpose that rfa_gemm_nt takes for up to m rows, in to [k][n]; NULL where it gains nothing.
const rfa_real *rfa_gemm_transpose(
    rfa_real *to, const rfa_real *b, ptrdiff_t ldb, ptrdiff_t n, ptrdiff_t k, ptrdiff_t m);

// Flops of all rfa_gemm calls of this process so far (all threads).
int64_t rfa_gemm_flops(void);

// Sets BLAS to one thread and checks odd shapes, k = 0 and a NaN-filled c against plain loops.
// Returns false when BLAS computes wrong products. Local.
bool rfa_gemm_start(void);

// "OpenBLAS 0.3.21 Haswell": the library, its version and the kernel that it chose at run time.
const char *rfa_gemm_library(void);

// Rate of an n x n x n product on this core, in flops/s: best of a few calls.
double rfa_gemm_ceiling(ptrdiff_t n);

#endif
