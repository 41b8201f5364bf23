#include "layers/embedding.h"

#include "base/profile.h"

#include <math.h>
#include <string.h>

void rfa_embedding_forward(rfa_real *x,
                           const uint16_t *ids,
                           const rfa_real *tokens,
                           const rfa_real *positions,
                           ptrdiff_t begin,
                           ptrdiff_t count,
                           ptrdiff_t rows,
                           ptrdiff_t width)
{
    RFA_PROFILE(RFA_PHASE_EMBEDDING);
    for (ptrdiff_t t = 0; t < count; t++) {
        const rfa_real *restrict token = tokens + ids[t] * width;
        rfa_real *restrict row = x + t * width;
        if (positions) {
            const rfa_real *restrict position = positions + (begin + t) * width;
            for (ptrdiff_t j = 0; j < width; j++) {
                row[j] = token[j] + position[j];
            }
        } else {
            memcpy(row, token, (size_t)width * sizeof *row);
        }
    }
    memset(x + count * width, 0, (size_t)((rows - count) * width) * sizeof *x);
}

void rfa_embedding_backward(rfa_real *dtokens,
                            const rfa_real *dx,
                            const uint16_t *ids,
                            ptrdiff_t count,
                            ptrdiff_t vocabulary,
                            ptrdiff_t width)
{
    RFA_PROFILE(RFA_PHASE_EMBEDDING);
    memset(dtokens, 0, (size_t)(vocabulary * width) * sizeof *dtokens);
    for (ptrdiff_t t = 0; t < count; t++) {
        rfa_real *restrict row = dtokens + ids[t] * width;
        for (ptrdiff_t j = 0; j < width; j++) {
            row[j] += dx[t * width + j];
        }
    }
}

ptrdiff_t rfa_sinusoids_size(ptrdiff_t length, ptrdiff_t width)
{
    return (RFA_SINUSOID_BLOCK + (length + RFA_SINUSOID_BLOCK - 1) / RFA_SINUSOID_BLOCK) * width;
}

static void fill_row(double *row, double position, ptrdiff_t width)
{
    for (ptrdiff_t j = 0; j < width; j += 2) {
        const double angle = position * pow(10000.0, -(double)j / (double)width);
        row[j] = sin(angle);
        row[j + 1] = cos(angle);
    }
}

void rfa_sinusoids_fill(double *table, ptrdiff_t length, ptrdiff_t width)
{
    const ptrdiff_t rows = rfa_sinusoids_size(length, width) / width;
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t block = r - RFA_SINUSOID_BLOCK;
        fill_row(table + r * width, (double)(block < 0 ? r : block * RFA_SINUSOID_BLOCK), width);
    }
}

// sin(a + b) and cos(a + b), a the angle of the block, b that of the place in it.
void rfa_sinusoids_add(rfa_real *restrict x,
                       const double *restrict table,
                       ptrdiff_t begin,
                       ptrdiff_t count,
                       ptrdiff_t width)
{
    RFA_PROFILE(RFA_PHASE_EMBEDDING);
    for (ptrdiff_t t = 0; t < count; t++) {
        const ptrdiff_t block = (begin + t) / RFA_SINUSOID_BLOCK;
        const double *restrict low = table + (begin + t) % RFA_SINUSOID_BLOCK * width;
        const double *restrict high = table + (RFA_SINUSOID_BLOCK + block) * width;
        for (ptrdiff_t j = 0; j < width; j += 2) {
            x[t * width + j] += (rfa_real)(high[j] * low[j + 1] + high[j + 1] * low[j]);
            x[t * width + j + 1] += (rfa_real)(high[j + 1] * low[j + 1] - high[j] * low[j]);
        }
    }
}
