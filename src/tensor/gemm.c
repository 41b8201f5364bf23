#include "tensor/gemm.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/profile.h"

#include <cblas.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static _Atomic int64_t flops;
static bool has_small_products;

// The AVX-512 kernels of OpenBLAS multiply without packing, at up to 1.17 times the rate of large
// products, when m n k <= 10^6 and b is not transposed (sgemm_small_kernel_permit_skylakex.c); the
// others gain nothing from it.
enum { SMALL_PRODUCT = 1000000 };

// Rows of a product that one call computes: all, or as many as keep it small.
static ptrdiff_t call_rows(rfa_transpose op_b, ptrdiff_t m, ptrdiff_t n, ptrdiff_t k)
{
    if (!has_small_products || op_b == RFA_T || m % RFA_ROWS != 0 ||
        n * k > SMALL_PRODUCT / RFA_ROWS || m * n * k <= SMALL_PRODUCT) {
        return m;
    }
    const ptrdiff_t most = SMALL_PRODUCT / (n * k) / RFA_ROWS * RFA_ROWS;
    const ptrdiff_t calls = (m + most - 1) / most;
    return rfa_padded((m + calls - 1) / calls);
}

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
              ptrdiff_t ldc)
{
    const enum CBLAS_TRANSPOSE ta = op_a == RFA_T ? CblasTrans : CblasNoTrans;
    const enum CBLAS_TRANSPOSE tb = op_b == RFA_T ? CblasTrans : CblasNoTrans;
    atomic_fetch_add_explicit(&flops, 2 * m * n * k, memory_order_relaxed);
    rfa_profile_flops(2 * m * n * k);
    const ptrdiff_t rows = call_rows(op_b, m, n, k);
    for (ptrdiff_t i = 0; i < m; i += rows) {
        const int part = rfa_int(rows < m - i ? rows : m - i);
        const rfa_real *a_part = a + (op_a == RFA_T ? i : i * lda);
#ifdef RFA_DOUBLE
        cblas_dgemm(CblasRowMajor, ta, tb, part, rfa_int(n), rfa_int(k), alpha, a_part,
                    rfa_int(lda), b, rfa_int(ldb), beta, c + i * ldc, rfa_int(ldc));
#else
        cblas_sgemm(CblasRowMajor, ta, tb, part, rfa_int(n), rfa_int(k), alpha, a_part,
                    rfa_int(lda), b, rfa_int(ldb), beta, c + i * ldc, rfa_int(ldc));
#endif
    }
}

// The same kernels have a fast one for m n <= 1200 with b transposed.
static bool transpose_gains(ptrdiff_t m, ptrdiff_t n)
{
    enum { FEW = 1200 };
    return has_small_products && m * n > FEW;
}

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
                 ptrdiff_t ldc)
{
    if (transpose && transpose_gains(m, n)) {
        rfa_gemm(RFA_N, RFA_N, m, n, k, alpha, a, lda, transpose, n, 0, c, ldc);
    } else {
        rfa_gemm(RFA_N, RFA_T, m, n, k, alpha, a, lda, b, ldb, 0, c, ldc);
    }
}

const rfa_real *rfa_gemm_transpose(rfa_real *restrict to,
                                   const rfa_real *restrict b,
                                   ptrdiff_t ldb,
                                   ptrdiff_t n,
                                   ptrdiff_t k,
                                   ptrdiff_t m)
{
    enum { STRIP = 8 };
    if (!transpose_gains(m, n)) {
        return NULL;
    }
    const ptrdiff_t whole = n - n % STRIP;
    for (ptrdiff_t i = 0; i < whole; i += STRIP) {
        for (ptrdiff_t j = 0; j < k; j++) {
            for (int l = 0; l < STRIP; l++) {
                to[j * n + i + l] = b[(i + l) * ldb + j];
            }
        }
    }
    for (ptrdiff_t i = whole; i < n; i++) {
        for (ptrdiff_t j = 0; j < k; j++) {
            to[j * n + i] = b[i * ldb + j];
        }
    }
    return to;
}

int64_t rfa_gemm_flops(void)
{
    return atomic_load_explicit(&flops, memory_order_relaxed);
}

static void find_small_products(void)
{
    static const char *const cores[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    for (int i = 0; i < (int)(sizeof cores / sizeof *cores); i++) {
        has_small_products |= strcmp(openblas_get_corename(), cores[i]) == 0;
    }
}

// One product of small integers, which is exact in any order; c starts as NaN and must not survive.
static bool product_is_right(rfa_transpose op_a, rfa_transpose op_b, int m, int n, int k)
{
    enum { MOST = 40 };
    rfa_real a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];
    for (int i = 0; i < MOST * MOST; i++) {
        a[i] = (rfa_real)(i % 7 - 3);
        b[i] = (rfa_real)(i % 5 - 2);
        c[i] = (rfa_real)NAN;
    }
    rfa_gemm(op_a, op_b, m, n, k, 1, a, MOST, b, MOST, 0, c, MOST);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++) {
                sum += (double)(op_a == RFA_T ? a[l * MOST + i] : a[i * MOST + l]) *
                       (double)(op_b == RFA_T ? b[j * MOST + l] : b[l * MOST + j]);
            }
            if (!(c[i * MOST + j] == (rfa_real)sum)) {
                return false;
            }
        }
    }
    return true;
}

bool rfa_gemm_start(void)
{
    static const int shapes[][3] = {{2, 2, 1}, {3, 5, 7}, {16, 33, 17}, {31, 2, 40}, {17, 19, 0}};
    openblas_set_num_threads(1);
    find_small_products();
    for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
        for (int ops = 0; ops < 4; ops++) {
            if (!product_is_right(ops & 1 ? RFA_T : RFA_N, ops & 2 ? RFA_T : RFA_N, shapes[i][0],
                                  shapes[i][1], shapes[i][2])) {
                return false;
            }
        }
    }
    return openblas_get_num_threads() == 1;
}

const char *rfa_gemm_library(void)
{
    static char text[128];
    if (!text[0]) {
        char version[64] = "";
        if (sscanf(openblas_get_config(), "OpenBLAS %63s", version) != 1) {
            snprintf(version, sizeof version, "?");
        }
        snprintf(text, sizeof text, "OpenBLAS %s %s", version, openblas_get_corename());
    }
    return text;
}

double rfa_gemm_ceiling(ptrdiff_t n)
{
    rfa_real *block = NULL;
    if (rfa_alloc(&block, 3 * n * n, sizeof *block, "gemm ceiling") != RFA_OK) {
        return 0;
    }
    for (ptrdiff_t i = 0; i < 2 * n * n; i++) {
        block[i] = (rfa_real)(i % 11) - 5;
    }
    double best = INFINITY;
    enum { REPEATS = 6 };
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const double start = rfa_now();
        rfa_gemm(RFA_N, RFA_N, n, n, n, 1, block, n, block + n * n, n, 0, block + 2 * n * n, n);
        best = fmin(best, rfa_now() - start);
    }
    atomic_fetch_sub_explicit(&flops, REPEATS * 2 * n * n * n, memory_order_relaxed); // no work
    rfa_free(block);
    return 2.0 * (double)n * (double)n * (double)n / best;
}
