#include "reference/softmax.h"

#include <math.h>
#include <stdlib.h>

static double dot(const double *a, const double *b, ptrdiff_t d)
{
    double sum = 0;
    for (ptrdiff_t c = 0; c < d; c++) {
        sum += a[c] * b[c];
    }
    return sum;
}

// weights [tokens] of query i, 0 for keys that it doesn't see; returns its log-sum-exp.
static double weights_of(double *weights, const ref_softmax *x, ptrdiff_t i)
{
    const ptrdiff_t seen = x->causal ? i + 1 : x->tokens;
    double most = -INFINITY, sum = 0;
    for (ptrdiff_t j = 0; j < seen; j++) {
        weights[j] = dot(x->q + i * x->d, x->k + j * x->d, x->d) / sqrt((double)x->d);
        most = fmax(most, weights[j]);
    }
    for (ptrdiff_t j = 0; j < seen; j++) {
        sum += exp(weights[j] - most);
    }
    for (ptrdiff_t j = 0; j < x->tokens; j++) {
        weights[j] = j < seen ? exp(weights[j] - most) / sum : 0;
    }
    return most + log(sum);
}

void ref_softmax_forward(double *out, double *lse, const ref_softmax *x)
{
    double *weights = calloc((size_t)x->tokens, sizeof *weights);
    for (ptrdiff_t i = 0; i < x->tokens; i++) {
        lse[i] = weights_of(weights, x, i);
        for (ptrdiff_t c = 0; c < x->d; c++) {
            out[i * x->d + c] = 0;
            for (ptrdiff_t j = 0; j < x->tokens; j++) {
                out[i * x->d + c] += weights[j] * x->v[j * x->d + c];
            }
        }
    }
    free(weights);
}

void ref_softmax_backward(
    double *dq, double *dk, double *dv, const double *dout, const ref_softmax *x)
{
    const ptrdiff_t d = x->d;
    double *weights = calloc((size_t)x->tokens, sizeof *weights);
    double *dweights = calloc((size_t)x->tokens, sizeof *dweights);
    for (ptrdiff_t e = 0; e < x->tokens * d; e++) {
        dq[e] = dk[e] = dv[e] = 0;
    }
    for (ptrdiff_t i = 0; i < x->tokens; i++) {
        weights_of(weights, x, i);
        double mean = 0;
        for (ptrdiff_t j = 0; j < x->tokens; j++) {
            dweights[j] = dot(dout + i * d, x->v + j * d, d);
            mean += weights[j] * dweights[j];
        }
        for (ptrdiff_t j = 0; j < x->tokens; j++) {
            const double dscore = weights[j] * (dweights[j] - mean) / sqrt((double)d);
            for (ptrdiff_t c = 0; c < d; c++) {
                dq[i * d + c] += dscore * x->k[j * d + c];
                dk[j * d + c] += dscore * x->q[i * d + c];
                dv[j * d + c] += weights[j] * dout[i * d + c];
            }
        }
    }
    free(weights);
    free(dweights);
}

static double dot_of_magnitudes(const double *a, const double *b, ptrdiff_t d)
{
    double sum = 0;
    for (ptrdiff_t c = 0; c < d; c++) {
        sum += fabs(a[c] * b[c]);
    }
    return sum;
}

static double largest(const double *x, ptrdiff_t n)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    return most;
}

ref_softmax_sizes ref_softmax_magnitudes(const double *dout, const ref_softmax *x)
{
    const ptrdiff_t d = x->d, n = x->tokens;
    ref_softmax_sizes size = {0};
    double *weights = calloc((size_t)n, sizeof *weights);
    double *dweights = calloc((size_t)n, sizeof *dweights);
    double *dk = calloc((size_t)(n * d), sizeof *dk), *dv = calloc((size_t)(n * d), sizeof *dv);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *q_row = x->q + i * d, *dout_row = dout + i * d;
        weights_of(weights, x, i);
        double mean = 0;
        for (ptrdiff_t j = 0; j < n; j++) {
            const double score = dot_of_magnitudes(q_row, x->k + j * d, d) / sqrt((double)d);
            size.score = fmax(size.score, score);
            dweights[j] = dot_of_magnitudes(dout_row, x->v + j * d, d);
            mean += weights[j] * dweights[j];
        }
        for (ptrdiff_t c = 0; c < d; c++) {
            double out = 0, dq = 0;
            for (ptrdiff_t j = 0; j < n; j++) {
                const double dscore = weights[j] * (dweights[j] + mean) / sqrt((double)d);
                out += weights[j] * fabs(x->v[j * d + c]);
                dq += dscore * fabs(x->k[j * d + c]);
                dk[j * d + c] += dscore * fabs(q_row[c]);
                dv[j * d + c] += weights[j] * fabs(dout_row[c]);
            }
            size.out = fmax(size.out, out);
            size.dq = fmax(size.dq, dq);
        }
    }
    size.dk = largest(dk, n * d);
    size.dv = largest(dv, n * d);
    free(weights);
    free(dweights);
    free(dk);
    free(dv);
    return size;
}
