// Products of n x n matrices on every thread of every rank at once.
#include "base/mem.h"
#include "bench/measure.h"
#include "rng/rng.h"
#include "tensor/gemm.h"

#include <math.h>
#include <omp.h>

enum { MOST_SIZES = 16 };

typedef struct {
    ptrdiff_t n;
    rfa_real *matrices; // [threads][3][n][n] a, b, c
} gemm_case;

static rfa_status run(void *context, rfa_lap *laps)
{
    const gemm_case *g = context;
    const ptrdiff_t n = g->n;
    const rfa_lap start = rfa_lap_start();
#pragma omp parallel
    {
        rfa_real *a = g->matrices + omp_get_thread_num() * 3 * n * n;
        rfa_gemm(RFA_N, RFA_N, n, n, n, 1, a, n, a + n * n, n, 0, a + 2 * n * n, n);
    }
    rfa_lap_add(&laps[0], start);
    return RFA_OK;
}

// Rows 0, 1 and the last of each product against sums in double. Of n terms of at most 1: n + 1
// roundings of a partial sum, which is at most the sum of magnitudes.
static void check(const gemm_case *g, int threads, double *error, double *tolerance)
{
    const ptrdiff_t n = g->n, rows[] = {0, 1, n - 1};
    *error = *tolerance = 0;
    for (ptrdiff_t t = 0; t < threads; t++) {
        const rfa_real *a = g->matrices + t * 3 * n * n, *b = a + n * n, *c = b + n * n;
        for (int r = 0; r < 3; r++) {
            for (ptrdiff_t j = 0; j < n; j++) {
                double sum = 0, size = 0;
                for (ptrdiff_t l = 0; l < n; l++) {
                    const double term = (double)a[rows[r] * n + l] * (double)b[l * n + j];
                    sum += term;
                    size += fabs(term);
                }
                const double gap = fabs((double)c[rows[r] * n + j] - sum);
                *error = gap <= *error ? *error : gap; // takes NaN
                *tolerance = fmax(*tolerance, size);
            }
        }
    }
    *tolerance *= (double)(n + 1) * ldexp(1, -24);
}

static rfa_status measure_size(rfa_bench *bench, ptrdiff_t n)
{
    const double flops = 2 * (double)n * (double)n * (double)n;
    const double all = (double)bench->threads * bench->world->size;
    gemm_case g = {.n = n};
    rfa_bench_result result = rfa_bench_result_of(bench, "gemm", "", 0);
    double error = 0, tolerance = 0;
    rfa_bench_begin(bench);
    const ptrdiff_t elements = bench->threads * 3 * n * n;
    rfa_status status =
        rfa_agree(bench->world, rfa_alloc(&g.matrices, elements, sizeof *g.matrices, "gemm"));
    if (status == RFA_OK) {
        rfa_rng_reader reader = rfa_rng_reader_at(rfa_rng_stream(1, RFA_RNG_BENCH, 0, 0));
        for (ptrdiff_t i = 0; i < elements; i++) {
            g.matrices[i] = (rfa_real)(2 * rfa_rng_uniform(&reader) - 1);
        }
        rfa_lap lap = {0};
        status = run(&g, &lap);
        rfa_bench_spoil(bench, "gemm", g.matrices + 2 * n * n);
        check(&g, bench->threads, &error, &tolerance);
        rfa_bench_parameter_add(&result, "n", n);
        result.flops = flops * all;
        result.bytes = 3 * (double)n * (double)n * sizeof(rfa_real) * all;
        status = rfa_agree(bench->world, status);
    }
    if (status == RFA_OK) {
        status = rfa_bench_check(bench, &result, error, tolerance);
    }
    if (status == RFA_OK) {
        status = rfa_bench_measure(bench, &result, 1, run, &g);
    }
    rfa_free(g.matrices);
    return status;
}

rfa_status rfa_bench_gemm(rfa_bench *bench)
{
    ptrdiff_t sizes[MOST_SIZES];
    int count = 0;
    RFA_TRY(rfa_bench_numbers(sizes, &count, MOST_SIZES, "sizes", bench->config->bench.sizes, 2,
                              16384));
    for (int i = 0; i < count; i++) {
        RFA_TRY(measure_size(bench, sizes[i]));
    }
    return RFA_OK;
}
