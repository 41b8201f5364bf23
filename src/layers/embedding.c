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

void rfa_sinusoids(rfa_real *out, ptrdiff_t length, ptrdiff_t width)
{
    for (ptrdiff_t t = 0; t < length; t++) {
        for (ptrdiff_t j = 0; j < width; j += 2) {
            const double angle = (double)t * pow(10000.0, -(double)j / (double)width);
            out[t * width + j] = (rfa_real)sin(angle);
            if (j + 1 < width) {
                out[t * width + j + 1] = (rfa_real)cos(angle);
            }
        }
    }
}
