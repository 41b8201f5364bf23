#include "features/fastfood.h"

#include <math.h>
#include <string.h>

// The numbers of a stream: blocks of each part, then of each block of rows.
enum { SIGNS, NORMALS, LENGTHS, PERMUTATIONS };

static uint64_t place(int part, ptrdiff_t block)
{
    return (uint64_t)part << 56 | (uint64_t)block << 32;
}

static ptrdiff_t block_size(ptrdiff_t width)
{
    ptrdiff_t n = 1;
    while (n < width) {
        n *= 2;
    }
    return n;
}

static ptrdiff_t block_count(ptrdiff_t projections, ptrdiff_t n)
{
    return (projections + n - 1) / n;
}

ptrdiff_t rfa_fastfood_size(ptrdiff_t projections, ptrdiff_t width)
{
    const ptrdiff_t n = block_size(width);
    return block_count(projections, n) * 3 * n;
}

ptrdiff_t rfa_fastfood_work(ptrdiff_t projections, ptrdiff_t width)
{
    (void)projections;
    const ptrdiff_t n = block_size(width);
    return 2 * n * width + n;
}

// x [n][d] = H x, H of Sylvester's order.
static void hadamard(rfa_real *x, ptrdiff_t n, ptrdiff_t d)
{
    for (ptrdiff_t half = 1; half < n; half *= 2) {
        for (ptrdiff_t i = 0; i < n; i += 2 * half) {
            rfa_real *restrict upper = x + i * d, *restrict lower = upper + half * d;
#pragma omp simd
            for (ptrdiff_t j = 0; j < half * d; j++) {
                const rfa_real a = upper[j], b = lower[j];
                upper[j] = a + b;
                lower[j] = a - b;
            }
        }
    }
}

// A block's permutation (Fisher and Yates), in a piece of work.
static int32_t *permutation(rfa_real *work, const rfa_rng *stream, ptrdiff_t block, ptrdiff_t n)
{
    int32_t *order = (int32_t *)(void *)work;
    rfa_rng_reader reader = rfa_rng_reader_at(*stream);
    reader.index = place(PERMUTATIONS, block);
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t j = rfa_rng_below(&reader, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

static rfa_real dot(const rfa_real *x, const rfa_real *y, ptrdiff_t n)
{
    rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) {
        sum += x[j] * y[j];
    }
    return sum;
}

// inner [n][d] = P H B and outer [n][d] = H G P H B of the block with these parameters.
static void block_products(rfa_real *inner,
                           rfa_real *outer,
                           const rfa_real *parameters,
                           const int32_t *order,
                           ptrdiff_t n,
                           ptrdiff_t d)
{
    const rfa_real *g = parameters + n, *b = parameters + 2 * n;
    memset(outer, 0, (size_t)(n * d) * sizeof *outer);
    for (ptrdiff_t j = 0; j < d; j++) {
        outer[j * d + j] = b[j];
    }
    hadamard(outer, n, d);
    for (ptrdiff_t k = 0; k < n; k++) {
        memcpy(inner + k * d, outer + order[k] * d, (size_t)d * sizeof *inner);
    }
    for (ptrdiff_t k = 0; k < n; k++) {
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            outer[k * d + j] = g[k] * inner[k * d + j];
        }
    }
    hadamard(outer, n, d);
}

// The length of a vector of d normals.
static double chi(const rfa_rng *stream, uint64_t first, ptrdiff_t d)
{
    double square = 0;
    for (ptrdiff_t j = 0; j < d; j++) {
        double normal;
        rfa_rng_normals_at(&normal, stream, first + (uint64_t)j, 1);
        square += normal * normal;
    }
    return sqrt(square);
}

void rfa_fastfood_init(rfa_real *parameters,
                       const rfa_rng *stream,
                       ptrdiff_t projections,
                       ptrdiff_t width,
                       rfa_real *work)
{
    const ptrdiff_t d = width, n = block_size(d), blocks = block_count(projections, n);
    rfa_real *inner = work, *outer = work + n * d, *rest = outer + n * d;
    for (ptrdiff_t block = 0; block < blocks; block++) {
        rfa_real *s = parameters + block * 3 * n, *g = s + n, *b = g + n;
        rfa_rng_reader reader = rfa_rng_reader_at(*stream);
        reader.index = place(SIGNS, block);
        for (ptrdiff_t i = 0; i < n; i++) {
            double normal;
            rfa_rng_normals_at(&normal, stream, 2 * place(NORMALS, block) + (uint64_t)i, 1);
            g[i] = (rfa_real)normal;
            b[i] = rfa_rng_next(&reader) & 1 ? 1 : -1;
        }
        block_products(inner, outer, s, permutation(rest, stream, block, n), n, d);
        for (ptrdiff_t i = 0; i < n; i++) {
            const double length =
                chi(stream, 2 * place(LENGTHS, block) + (uint64_t)(i * d), d) * sqrt((double)n);
            double square = 0;
            for (ptrdiff_t j = 0; j < d; j++) {
                square += (double)outer[i * d + j] * (double)outer[i * d + j];
            }
            s[i] = (rfa_real)(length / sqrt(square));
        }
    }
}

void rfa_fastfood_forward(rfa_real *w,
                          const rfa_real *parameters,
                          const rfa_rng *stream,
                          ptrdiff_t projections,
                          ptrdiff_t width,
                          rfa_real *work)
{
    const ptrdiff_t d = width, n = block_size(d);
    const rfa_real scale = (rfa_real)(1 / sqrt((double)n));
    rfa_real *inner = work, *outer = work + n * d, *rest = outer + n * d;
    for (ptrdiff_t row = 0; row < projections; row += n) {
        const rfa_real *s = parameters + row * 3;
        const ptrdiff_t rows = projections - row < n ? projections - row : n;
        block_products(inner, outer, s, permutation(rest, stream, row / n, n), n, d);
        for (ptrdiff_t i = 0; i < rows; i++) {
            const rfa_real factor = scale * s[i];
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                w[(row + i) * d + j] = factor * outer[i * d + j];
            }
        }
    }
}

void rfa_fastfood_backward(rfa_real *dparameters,
                           const rfa_real *dw,
                           const rfa_real *parameters,
                           const rfa_rng *stream,
                           ptrdiff_t projections,
                           ptrdiff_t width,
                           rfa_real *work)
{
    const ptrdiff_t d = width, n = block_size(d);
    const rfa_real scale = (rfa_real)(1 / sqrt((double)n));
    rfa_real *inner = work, *outer = work + n * d, *rest = outer + n * d;
    for (ptrdiff_t row = 0; row < projections; row += n, dw += n * d) {
        const rfa_real *s = parameters + row * 3, *g = s + n;
        rfa_real *ds = dparameters + row * 3, *dg = ds + n, *db = dg + n;
        const ptrdiff_t rows = projections - row < n ? projections - row : n;
        const int32_t *order = permutation(rest, stream, row / n, n);
        block_products(inner, outer, s, order, n, d);
        for (ptrdiff_t i = 0; i < rows; i++) {
            ds[i] += scale * dot(dw + i * d, outer + i * d, d);
            const rfa_real factor = scale * s[i];
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                outer[i * d + j] = factor * dw[i * d + j];
            }
        }
        memset(outer + rows * d, 0, (size_t)((n - rows) * d) * sizeof *outer);
        hadamard(outer, n, d); // the adjoint of G P H B
        for (ptrdiff_t k = 0; k < n; k++) {
            dg[k] += dot(outer + k * d, inner + k * d, d);
        }
        for (ptrdiff_t k = 0; k < n; k++) { // inner becomes the adjoint of H B
            rfa_real *restrict to = inner + order[k] * d;
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                to[j] = g[k] * outer[k * d + j];
            }
        }
        hadamard(inner, n, d);
        for (ptrdiff_t j = 0; j < d; j++) {
            db[j] += inner[j * d + j];
        }
    }
}
