#include "support/support.h"
#include "tensor/gemm.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static void test_starts(void **state)
{
    (void)state;
    check(rfa_gemm_start());
}

typedef struct {
    rfa_transpose op_a, op_b;
    ptrdiff_t m, n, k;
    double alpha, beta;
} product;

// c [m][ldc] against plain loops in double; columns beyond n keep what they held.
static void check_product(const product *p)
{
    const ptrdiff_t lda = (p->op_a == RFA_T ? p->m : p->k) + 3;
    const ptrdiff_t ldb = (p->op_b == RFA_T ? p->k : p->n) + 1, ldc = p->n + 2;
    const ptrdiff_t rows_a = p->op_a == RFA_T ? p->k : p->m;
    const ptrdiff_t rows_b = p->op_b == RFA_T ? p->n : p->k;
    rfa_real *a = test_reals(rows_a * lda + 1), *b = test_reals(rows_b * ldb + 1);
    rfa_real *c = test_reals(p->m * ldc);
    double *want = test_doubles(p->m * ldc);
    test_fill(a, rows_a * lda, 1, 1);
    test_fill(b, rows_b * ldb, 2, 1);
    test_fill(c, p->m * ldc, 3, 1);
    double size = 0;
    for (ptrdiff_t i = 0; i < p->m; i++) {
        for (ptrdiff_t j = 0; j < ldc; j++) {
            const double held = (double)c[i * ldc + j];
            double sum = 0, terms = 0;
            for (ptrdiff_t l = 0; j < p->n && l < p->k; l++) {
                const double term = (double)(p->op_a == RFA_T ? a[l * lda + i] : a[i * lda + l]) *
                                    (double)(p->op_b == RFA_T ? b[j * ldb + l] : b[l * ldb + j]);
                sum += term;
                terms += fabs(term);
            }
            want[i * ldc + j] = j < p->n ? p->alpha * sum + p->beta * held : held;
            size = fmax(size, fabs(p->alpha) * terms + fabs(p->beta * held));
            if (p->beta == 0 && j < p->n) {
                c[i * ldc + j] = (rfa_real)NAN; // beta = 0 overwrites, whatever was there
            }
        }
    }
    rfa_gemm(p->op_a, p->op_b, p->m, p->n, p->k, (rfa_real)p->alpha, a, lda, b, ldb,
             (rfa_real)p->beta, c, ldc);
    if (p->op_a == RFA_N && p->op_b == RFA_T && p->beta == 0) {
        rfa_real *other = test_reals(p->m * ldc), *scratch = test_reals(p->n * p->k + 1);
        rfa_gemm_nt(p->m, p->n, p->k, (rfa_real)p->alpha, a, lda, b, ldb,
                    rfa_gemm_transpose(scratch, b, ldb, p->n, p->k, p->m), other, ldc);
        for (ptrdiff_t i = 0; i < p->m; i++) {
            memcpy(other + i * ldc + p->n, c + i * ldc + p->n, 2 * sizeof *c);
        }
        check_close("nt", other, want, p->m * ldc, (2 + (double)p->k / 8) * test_eps() * size);
        rfa_free(other);
        rfa_free(scratch);
    }
    check_close("product", c, want, p->m * ldc, (2 + (double)p->k / 8) * test_eps() * size);
    rfa_free(a);
    rfa_free(b);
    rfa_free(c);
    rfa_free(want);
}

static void test_products(void **state)
{
    (void)state;
    static const ptrdiff_t shapes[][3] = {{2, 2, 1},      {16, 16, 32}, {3, 5, 7},
                                          {144, 32, 131}, {32, 144, 1}, {17, 130, 65},
                                          {64, 2, 300},   {2, 64, 0},   {208, 130, 65}};
    static const double scales[][2] = {{1, 0}, {0.5, 1}, {-2, 0.25}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (int ops = 0; ops < 4; ops++) {
            for (int x = 0; x < 3; x++) {
                check_product(&(product){ops & 1 ? RFA_T : RFA_N, ops & 2 ? RFA_T : RFA_N,
                                         shapes[s][0], shapes[s][1], shapes[s][2], scales[x][0],
                                         scales[x][1]});
            }
        }
    }
}

// What all rooms build on: bits follow from shape and values, not from where the arrays lie.
static void test_bits_do_not_depend_on_place(void **state)
{
    (void)state;
    enum { MOST = 160, SPACE = MOST * (MOST + 20) + 16 };
    static const ptrdiff_t shapes[][3] = {{2, 2, 5},      {16, 32, 16},   {16, 2, 100},
                                          {144, 32, 131}, {144, 144, 32}, {33, 17, 150},
                                          {160, 144, 100}};
    rfa_real *dense_a = test_reals(SPACE), *dense_b = test_reals(SPACE), *first = test_reals(SPACE);
    rfa_real *a = test_reals(SPACE), *b = test_reals(SPACE), *c = test_reals(SPACE);
    test_fill(dense_a, SPACE, 1, 1);
    test_fill(dense_b, SPACE, 2, 1);
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const ptrdiff_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
        for (int ops = 0; ops < 4; ops++) {
            const rfa_transpose op_a = ops & 1 ? RFA_T : RFA_N, op_b = ops & 2 ? RFA_T : RFA_N;
            const ptrdiff_t columns_a = op_a == RFA_T ? m : k, rows_a = op_a == RFA_T ? k : m;
            const ptrdiff_t columns_b = op_b == RFA_T ? k : n, rows_b = op_b == RFA_T ? n : k;
            rfa_gemm(op_a, op_b, m, n, k, 1, dense_a, columns_a, dense_b, columns_b, 0, first, n);
            for (ptrdiff_t move = 1; move <= 13; move += 3) {
                const ptrdiff_t lda = columns_a + move, ldb = columns_b + 2 * (move % 5);
                const ptrdiff_t ldc = n + move % 4;
                for (ptrdiff_t i = 0; i < SPACE; i++) {
                    a[i] = b[i] = (rfa_real)1e30; // neighbours
                }
                for (ptrdiff_t i = 0; i < rows_a; i++) {
                    memcpy(a + move + i * lda, dense_a + i * columns_a,
                           (size_t)columns_a * sizeof *a);
                }
                for (ptrdiff_t i = 0; i < rows_b; i++) {
                    memcpy(b + move + i * ldb, dense_b + i * columns_b,
                           (size_t)columns_b * sizeof *b);
                }
                rfa_gemm(op_a, op_b, m, n, k, 1, a + move, lda, b + move, ldb, 0, c + move, ldc);
                bool same = true;
                for (ptrdiff_t i = 0; i < m; i++) {
                    same = same &&
                           memcmp(c + move + i * ldc, first + i * n, (size_t)n * sizeof *c) == 0;
                }
                check(same);
            }
        }
    }
    rfa_real *all[] = {dense_a, dense_b, first, a, b, c};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

static void test_flops_are_counted(void **state)
{
    (void)state;
    enum { M = 6, N = 4, K = 10, CALLS = 1000 };
    rfa_real a[M * K] = {0}, b[K * N] = {0};
    const int64_t before = rfa_gemm_flops();
#pragma omp parallel for num_threads(4)
    for (int call = 0; call < CALLS; call++) {
        rfa_real c[M * N];
        rfa_gemm(RFA_N, RFA_N, M, N, K, 1, a, K, b, N, 0, c, N);
    }
    check(rfa_gemm_flops() - before == INT64_C(2) * M * N * K * CALLS);
    const double ceiling = rfa_gemm_ceiling(64);
    check(ceiling > 1e7 && ceiling < 1e13);
    check(rfa_gemm_flops() - before == INT64_C(2) * M * N * K * CALLS); // a measurement is no work
}

static void test_library_names_itself(void **state)
{
    (void)state;
    // "OpenBLAS 0.3.21 Haswell"
    const char *text = rfa_gemm_library(), *kernel = strrchr(text, ' ');
    check(strncmp(text, "OpenBLAS ", 9) == 0 && isdigit((unsigned char)text[9]));
    check(kernel > text + 9 && kernel[1]);
    check(rfa_gemm_library() == text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_bits_do_not_depend_on_place),
        cmocka_unit_test(test_flops_are_counted),
        cmocka_unit_test(test_library_names_itself),
    };
    return test_main(tests);
}
