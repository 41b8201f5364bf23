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
    affine(hidden, weights->w1, weights->b1, pooled, weights->width, weights->hidden);
    for (ptrdiff_t i = 0; i < weights->hidden; i++) {
        hidden[i] = hidden[i] <= 0 ? 0 : hidden[i]; // NaN stays
    }
    affine(logits, weights->w2, weights->b2, hidden, weights->hidden, weights->classes);
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
                       rfa_real *dw1,
                       rfa_real *db1,
                       rfa_real *dw2,
                       rfa_real *db2,
                       const rfa_real *dlogits,
                       const rfa_real *hidden,
                       const rfa_real *pooled,
                       const rfa_head_weights *weights)
{
    RFA_PROFILE(RFA_PHASE_HEAD);
    // db1 holds the gradient of hidden until affine_backward writes the same values back to it.
    affine_backward(db1, dw2, db2, dlogits, hidden, weights->w2, weights->hidden, weights->classes);
    for (ptrdiff_t i = 0; i < weights->hidden; i++) {
        db1[i] = hidden[i] <= 0 ? 0 : db1[i];
    }
    affine_backward(dpooled, dw1, db1, db1, pooled, weights->w1, weights->width, weights->hidden);
}

int rfa_argmax(const rfa_real *logits, ptrdiff_t classes)
{
    int best = 0;
    for (ptrdiff_t c = 1; c < classes; c++) {
        best = logits[c] > logits[best] ? (int)c : best;
    }
    return best;
}
