#include "reference/eva.h"

#include <math.h>
#include <stdlib.h>

static ptrdiff_t chunks_of(const ref_eva *x)
{
    return (x->tokens + x->chunk - 1) / x->chunk;
}

static double dot(const double *a, const double *b, ptrdiff_t d)
{
    double sum = 0;
    for (ptrdiff_t c = 0; c < d; c++) {
        sum += a[c] * b[c];
    }
    return sum;
}

// out [d] = softmax of logits applied to the n rows; logits of -infinity don't count.
static void
average(double *out, double *logits, const double *const *rows, ptrdiff_t n, ptrdiff_t d)
{
    double most = -INFINITY, sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, logits[i]);
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] = 0;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += exp(logits[i] - most);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        for (ptrdiff_t j = 0; j < d; j++) {
            out[j] += exp(logits[i] - most) / sum * rows[i][j];
        }
    }
}

void ref_eva_means(double *means, const double *x, const ref_eva *eva)
{
    const ptrdiff_t d = eva->d;
    for (ptrdiff_t c = 0; c < chunks_of(eva); c++) {
        for (ptrdiff_t j = 0; j < d; j++) {
            ptrdiff_t count = 0;
            means[c * d + j] = 0;
            for (ptrdiff_t t = c * eva->chunk; t < (c + 1) * eva->chunk && t < eva->tokens; t++) {
                means[c * d + j] += x[t * d + j];
                count++;
            }
            means[c * d + j] /= (double)count;
        }
    }
}

void ref_eva_directions(double *w, const double *q_bar, const double *k_bar, const ref_eva *eva)
{
    for (ptrdiff_t i = 0; i < chunks_of(eva) * eva->d; i++) {
        w[i] = (q_bar[i] + k_bar[i]) / (eva->causal ? 1 : 2);
        if (eva->noise) { // of unit variance where vectors are scaled by d^(-1/4)
            w[i] += pow((double)eva->d, 0.25) * eva->noise[i];
        }
    }
}

void ref_eva_values(double *beta, const double *w, const ref_eva *eva)
{
    const ptrdiff_t d = eva->d;
    double *logits = calloc((size_t)eva->tokens, sizeof *logits);
    const double **rows = calloc((size_t)eva->tokens, sizeof *rows);
    for (ptrdiff_t c = 0; c < chunks_of(eva); c++) {
        ptrdiff_t n = 0;
        for (ptrdiff_t t = c * eva->chunk; t < (c + 1) * eva->chunk && t < eva->tokens; t++) {
            const double *key = eva->k + t * d;
            logits[n] = (dot(w + c * d, key, d) - dot(key, key, d) / 2) / sqrt((double)d);
            rows[n++] = eva->v + t * d;
        }
        average(beta + c * d, logits, rows, n, d);
    }
    free(logits);
    free(rows);
}

void ref_eva_read(
    double *out, const double *k_bar, const double *beta, const double *bias, const ref_eva *eva)
{
    const ptrdiff_t d = eva->d, most = eva->tokens + chunks_of(eva);
    double *logits = calloc((size_t)most, sizeof *logits);
    const double **rows = calloc((size_t)most, sizeof *rows);
    for (ptrdiff_t t = 0; t < eva->tokens; t++) {
        const ptrdiff_t window = t / eva->window;
        ptrdiff_t n = 0;
        for (ptrdiff_t m = 0; m < eva->tokens; m++) {
            if (m / eva->window == window && (!eva->causal || m <= t)) {
                logits[n] = dot(eva->q + t * d, eva->k + m * d, d) / sqrt((double)d);
                rows[n++] = eva->v + m * d;
            }
        }
        for (ptrdiff_t c = 0; c < chunks_of(eva); c++) {
            const ptrdiff_t of_chunk = c * eva->chunk / eva->window;
            if (of_chunk < window || (of_chunk > window && !eva->causal)) {
                logits[n] =
                    dot(eva->q + t * d, k_bar + c * d, d) / sqrt((double)d) + (bias ? bias[c] : 0);
                rows[n++] = beta + c * d;
            }
        }
        average(out + t * d, logits, rows, n, d);
    }
    free(logits);
    free(rows);
}

void ref_eva_forward(double *out, const ref_eva *eva)
{
    const ptrdiff_t C = chunks_of(eva), n = C * eva->d;
    double *q_bar = calloc((size_t)n, sizeof *q_bar), *k_bar = calloc((size_t)n, sizeof *k_bar);
    double *w = calloc((size_t)n, sizeof *w), *beta = calloc((size_t)n, sizeof *beta);
    double *bias = calloc((size_t)C, sizeof *bias);
    ref_eva_means(q_bar, eva->q, eva);
    ref_eva_means(k_bar, eva->k, eva);
    ref_eva_directions(w, q_bar, k_bar, eva);
    ref_eva_values(beta, w, eva);
    for (ptrdiff_t c = 0; c < C; c++) {
        const ptrdiff_t left = eva->tokens - c * eva->chunk;
        bias[c] = log((double)(left < eva->chunk ? left : eva->chunk));
    }
    ref_eva_read(out, k_bar, beta, bias, eva);
    free(q_bar);
    free(k_bar);
    free(w);
    free(beta);
    free(bias);
}
