#include "layers/head.h"

#include "base/profile.h"

#include <math.h>
#include <string.h>

// y = W x + b, w [out][in]
static void affine(rfa_real *y,
                   const rfa_real *w,
                   const rfa_real *b,
                   const rfa_real *x,
                   ptrdiff_t in,
                   ptrdiff_t out)
{
    for (ptrdiff_t i = 0; i < out; i++) {
        rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t j = 0; j < in; j++) {
            sum += w[i * in + j] * x[j];
        }
        y[i] = sum + b[i];
    }
}

// dx = W^T dy, dw = dy x^T, db = dy
static void affine_backward(rfa_real *dx,
                            rfa_real *dw,
                            rfa_real *db,
                            const rfa_real *dy,
                            const rfa_real *x,
                            const rfa_real *w,
                            ptrdiff_t in,
                            ptrdiff_t out)
{
    memset(dx, 0, (size_t)in * sizeof *dx);
    memmove(db, dy, (size_t)out * sizeof *db); // the two may be one
    for (ptrdiff_t i = 0; i < out; i++) {
#pragma omp simd
        for (ptrdiff_t j = 0; j < in; j++) {
            dx[j] += dy[i] * w[i * in + j];
            dw[i * in + j] = dy[i] * x[j];
        }
    }
}

void rfa_head_forward(rfa_real *logits,
                      rfa_real *hidden,
                      const rfa_real *pooled,
                      const rfa_head_weights *weights)
{
    RFA_PROFILE(RFA_PHASE_HEAD);
    const rfa_real *x = pooled;
    for (int l = 0; l < weights->layers; l++) {
        const bool last = l + 1 == weights->layers;
        rfa_real *y = last ? logits : hidden;
        const ptrdiff_t n = weights->size[l + 1];
        affine(y, weights->w[l], weights->b[l], x, weights->size[l], n);
        for (ptrdiff_t i = 0; i < n && !last; i++) {
            y[i] = y[i] <= 0 ? 0 : y[i]; // NaN stays
        }
        x = y;
        hidden += last ? 0 : n;
    }
}

double rfa_cross_entropy(
    rfa_real *dlogits, const rfa_real *logits, ptrdiff_t classes, int label, double scale)
{
    double top = -INFINITY, sum = 0;
    for (ptrdiff_t c = 0; c < classes; c++) {
        top = fmax(top, (double)logits[c]);
    }
    for (ptrdiff_t c = 0; c < classes; c++) {
        sum += exp((double)logits[c] - top);
    }
    for (ptrdiff_t c = 0; dlogits && c < classes; c++) {
        const double p = exp((double)logits[c] - top) / sum;
        dlogits[c] = (rfa_real)(scale * (p - (c == label)));
    }
    return log(sum) + top - (double)logits[label];
}

void rfa_head_backward(rfa_real *dpooled,
                       const rfa_head_gradients *to,
                       const rfa_real *dlogits,
                       const rfa_real *hidden,
                       const rfa_real *pooled,
                       const rfa_head_weights *weights)
{
    RFA_PROFILE(RFA_PHASE_HEAD);
    const rfa_real *dy = dlogits;
    for (int l = weights->layers - 1; l >= 0; l--) {
        const rfa_real *x = l == 0 ? pooled : l == 1 ? hidden : hidden + weights->size[1];
        // to->b[l - 1] holds the gradient of x until affine_backward writes the same values to it.
        rfa_real *dx = l == 0 ? dpooled : to->b[l - 1];
        affine_backward(dx, to->w[l], to->b[l], dy, x, weights->w[l], weights->size[l],
                        weights->size[l + 1]);
        for (ptrdiff_t i = 0; i < weights->size[l] && l > 0; i++) {
            dx[i] = x[i] <= 0 ? 0 : dx[i];
        }
        dy = dx;
    }
}

void rfa_match_forward(
    rfa_real *joined, const rfa_real *a, const rfa_real *b, ptrdiff_t width, rfa_match_kind kind)
{
    for (ptrdiff_t i = 0; i < width; i++) {
        joined[i] = a[i];
        joined[width + i] = b[i];
        if (kind == RFA_MATCH_NLI) {
            joined[2 * width + i] = a[i] * b[i];
            joined[3 * width + i] = a[i] - b[i];
        }
    }
}

void rfa_match_backward(rfa_real *da,
                        rfa_real *db,
                        const rfa_real *djoined,
                        const rfa_real *a,
                        const rfa_real *b,
                        ptrdiff_t width,
                        rfa_match_kind kind)
{
    for (ptrdiff_t i = 0; i < width; i++) {
        da[i] = djoined[i];
        db[i] = djoined[width + i];
        if (kind == RFA_MATCH_NLI) {
            da[i] += djoined[2 * width + i] * b[i] + djoined[3 * width + i];
            db[i] += djoined[2 * width + i] * a[i] - djoined[3 * width + i];
        }
    }
}

int rfa_argmax(const rfa_real *logits, ptrdiff_t classes)
{
    int best = 0;
    for (ptrdiff_t c = 1; c < classes; c++) {
        best = logits[c] > logits[best] ? (int)c : best;
    }
    return best;
}
