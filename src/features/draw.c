#include "features/draw.h"

#include <math.h>
#include <stdbool.h>

ptrdiff_t rfa_draw_work(ptrdiff_t d)
{
    return d * (d + 2); // a block, a number a row, and a row
}

static double dot(const double *x, const double *y, ptrdiff_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++) {
        sum += x[j] * y[j];
    }
    return sum;
}

// Gram-Schmidt of normal rows, in place. It leaves no freedom of sign, so they become
// Haar-distributed. Their lengths before it are independent of each other and of all directions,
// which are all that it reads of a row.
static void orthonormalise(double *rows, double *lengths, ptrdiff_t n, ptrdiff_t d)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        double *restrict row = rows + i * d;
        lengths[i] = sqrt(dot(row, row, d));
        for (ptrdiff_t k = 0; k < i; k++) {
            const double *restrict earlier = rows + k * d;
            const double along = dot(row, earlier, d);
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                row[j] -= along * earlier[j];
            }
        }
        const double inverse = 1 / sqrt(dot(row, row, d));
        for (ptrdiff_t j = 0; j < d; j++) {
            row[j] *= inverse;
        }
    }
}

// The axes less their mean, in unit length, are the corners of a simplex: so are orthonormal rows.
static void simplex_of(double *rows, double *mean, ptrdiff_t d)
{
    const double scale = 1 / sqrt(1 - 1 / (double)d);
    for (ptrdiff_t j = 0; j < d; j++) {
        mean[j] = 0;
        for (ptrdiff_t i = 0; i < d; i++) {
            mean[j] += rows[i * d + j] / (double)d;
        }
    }
    for (ptrdiff_t i = 0; i < d; i++) {
        for (ptrdiff_t j = 0; j < d; j++) {
            rows[i * d + j] = (rows[i * d + j] - mean[j]) * scale;
        }
    }
}

void rfa_draw_rows(rfa_real *w,
                   rfa_rows_kind kind,
                   const rfa_rng *stream,
                   ptrdiff_t projections,
                   ptrdiff_t width,
                   double *work)
{
    const ptrdiff_t d = width;
    double *rows = work, *lengths = rows + d * d, *mean = lengths + d;
    for (ptrdiff_t first = 0; first < projections; first += d) {
        const ptrdiff_t n = projections - first < d ? projections - first : d;
        const bool is_simplex = kind == RFA_ROWS_SIMPLEX && d > 1; // one corner has no other
        const ptrdiff_t drawn = is_simplex ? d : n;
        rfa_rng_normals_at(rows, stream, (uint64_t)(first * d), drawn * d);
        if (kind != RFA_ROWS_IID) {
            orthonormalise(rows, lengths, drawn, d);
        }
        if (is_simplex) {
            simplex_of(rows, mean, d);
        }
        for (ptrdiff_t i = 0; i < n; i++) {
            const double length = kind == RFA_ROWS_IID ? 1 : lengths[i];
            for (ptrdiff_t j = 0; j < d; j++) {
                w[(first + i) * d + j] = (rfa_real)(rows[i * d + j] * length);
            }
        }
    }
}
