#include "attention/landmarks.h"

#include <string.h>

ptrdiff_t rfa_landmark_begin(ptrdiff_t n, ptrdiff_t pieces, ptrdiff_t c)
{
    const ptrdiff_t size = n / pieces, small = pieces * (size + 1) - n;
    return c * size + (c > small ? c - small : 0);
}

// The piece that holds token t.
static ptrdiff_t piece_at(ptrdiff_t n, ptrdiff_t pieces, ptrdiff_t t)
{
    const ptrdiff_t size = n / pieces, small = pieces * (size + 1) - n;
    return t < small * size ? t / size : small + (t - small * size) / (size + 1);
}

// Where piece c ends in the rows of a span.
static ptrdiff_t end_row(const rfa_landmark_span *span, ptrdiff_t c)
{
    const ptrdiff_t end = rfa_landmark_begin(span->n, span->pieces, c + 1) - span->begin;
    return end < span->tokens ? end : span->tokens;
}

void rfa_landmark_sums(double *sums,
                       ptrdiff_t ld_sums,
                       const rfa_real *x,
                       ptrdiff_t ld,
                       ptrdiff_t width,
                       rfa_landmark_span span)
{
    for (ptrdiff_t c = 0; c < span.pieces; c++) {
        memset(sums + c * ld_sums, 0, (size_t)width * sizeof *sums);
    }
    for (ptrdiff_t t = 0; t < span.tokens;) {
        const ptrdiff_t c = piece_at(span.n, span.pieces, span.begin + t);
        double *restrict sum = sums + c * ld_sums;
        for (const ptrdiff_t end = end_row(&span, c); t < end; t++) {
            const rfa_real *restrict row = x + t * ld;
#pragma omp simd
            for (ptrdiff_t i = 0; i < width; i++) {
                sum[i] += (double)row[i];
            }
        }
    }
}

void rfa_landmark_means(
    double *sums, ptrdiff_t ld_sums, ptrdiff_t width, ptrdiff_t n, ptrdiff_t pieces)
{
    for (ptrdiff_t c = 0; c < pieces; c++) {
        const ptrdiff_t size =
            rfa_landmark_begin(n, pieces, c + 1) - rfa_landmark_begin(n, pieces, c);
        for (ptrdiff_t i = 0; i < width; i++) {
            sums[c * ld_sums + i] /= (double)size;
        }
    }
}

void rfa_landmark_backward(rfa_real *dx,
                           ptrdiff_t ld,
                           const rfa_real *dmeans,
                           ptrdiff_t ld_means,
                           ptrdiff_t width,
                           rfa_landmark_span span)
{
    for (ptrdiff_t t = 0; t < span.tokens;) {
        const ptrdiff_t c = piece_at(span.n, span.pieces, span.begin + t);
        const ptrdiff_t size = rfa_landmark_begin(span.n, span.pieces, c + 1) -
                               rfa_landmark_begin(span.n, span.pieces, c);
        const rfa_real *restrict mean = dmeans + c * ld_means;
        for (const ptrdiff_t end = end_row(&span, c); t < end; t++) {
            rfa_real *restrict row = dx + t * ld;
#pragma omp simd
            for (ptrdiff_t i = 0; i < width; i++) {
                row[i] += mean[i] / (rfa_real)size;
            }
        }
    }
}
