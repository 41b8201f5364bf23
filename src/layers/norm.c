#include "layers/norm.h"

#include "base/profile.h"
#include "tensor/vmath.h"

#include <string.h>

void rfa_norm_forward(rfa_real *y,
                      rfa_real *stats,
                      const rfa_real *x,
                      const rfa_real *scale,
                      const rfa_real *shift,
                      ptrdiff_t rows,
                      ptrdiff_t width)
{
    RFA_PROFILE(RFA_PHASE_NORM);
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *restrict row = x + t * width;
        rfa_real sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t j = 0; j < width; j++) {
            sum += row[j];
        }
        const rfa_real mean = sum / (rfa_real)width;
#pragma omp simd reduction(+ : squares)
        for (ptrdiff_t j = 0; j < width; j++) {
            squares += (row[j] - mean) * (row[j] - mean);
        }
        stats[2 * t] = mean;
        stats[2 * t + 1] = 1 / rfa_sqrt(squares / (rfa_real)width + (rfa_real)RFA_NORM_EPSILON);
    }
    rfa_norm_apply(y, stats, x, scale, shift, rows, width);
}

void rfa_norm_apply(rfa_real *y,
                    const rfa_real *stats,
                    const rfa_real *x,
                    const rfa_real *scale,
                    const rfa_real *shift,
                    ptrdiff_t rows,
                    ptrdiff_t width)
{
    RFA_PROFILE(RFA_PHASE_NORM);
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *restrict row = x + t * width;
        rfa_real *restrict out = y + t * width;
        const rfa_real mean = stats[2 * t], rstd = stats[2 * t + 1];
#pragma omp simd
        for (ptrdiff_t j = 0; j < width; j++) {
            out[j] = (row[j] - mean) * rstd * scale[j] + shift[j];
        }
    }
}

void rfa_norm_backward(rfa_real *dx,
                       rfa_real *dscale,
                       rfa_real *dshift,
                       const rfa_real *dy,
                       const rfa_real *stats,
                       const rfa_real *x,
                       const rfa_real *scale,
                       ptrdiff_t rows,
                       ptrdiff_t width)
{
    RFA_PROFILE(RFA_PHASE_NORM);
    memset(dscale, 0, (size_t)width * sizeof *dscale);
    memset(dshift, 0, (size_t)width * sizeof *dshift);
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *restrict row = x + t * width, *restrict d = dy + t * width;
        rfa_real *restrict out = dx + t * width;
        const rfa_real mean = stats[2 * t], rstd = stats[2 * t + 1];
        rfa_real sum = 0, along = 0; // of d scale, and of d scale xhat
#pragma omp simd reduction(+ : sum, along)
        for (ptrdiff_t j = 0; j < width; j++) {
            const rfa_real xhat = (row[j] - mean) * rstd, g = d[j] * scale[j];
            dscale[j] += d[j] * xhat;
            dshift[j] += d[j];
            sum += g;
            along += g * xhat;
        }
        sum /= (rfa_real)width;
        along /= (rfa_real)width;
#pragma omp simd
        for (ptrdiff_t j = 0; j < width; j++) {
            const rfa_real xhat = (row[j] - mean) * rstd;
            out[j] += (d[j] * scale[j] - sum - xhat * along) * rstd;
        }
    }
}
