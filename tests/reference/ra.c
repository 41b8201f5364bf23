#include "reference/ra.h"

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

static ptrdiff_t seen(const ref_ra *x, ptrdiff_t n)
{
    return x->causal ? n + 1 : x->tokens;
}

// Numbers become their softmax.
static void softmax(double *x, ptrdiff_t n)
{
    double most = -INFINITY, sum = 0;
    for (ptrdiff_t m = 0; m < n; m++) {
        most = fmax(most, x[m]);
    }
    for (ptrdiff_t m = 0; m < n; m++) {
        x[m] = exp(x[m] - most);
        sum += x[m];
    }
    for (ptrdiff_t m = 0; m < n; m++) {
        x[m] /= sum;
    }
}

static void proposal(double *pi, const ref_ra *x, ptrdiff_t n)
{
    for (ptrdiff_t m = 0; m < seen(x, n); m++) {
        pi[m] = dot(x->q + n * x->d, x->k + m * x->d, x->d) / sqrt((double)x->d);
    }
    softmax(pi, seen(x, n));
}

void ref_ra_distribution(double *cdf, const ref_ra *x, ptrdiff_t n)
{
    proposal(cdf, x, n);
    for (ptrdiff_t m = 1; m < x->tokens; m++) {
        cdf[m] = m < seen(x, n) ? cdf[m - 1] + cdf[m] : cdf[m - 1];
    }
}

// w [d] in units of q and k; pi [tokens] is scratch.
static void direction(double *w, double *pi, const ref_ra *x, ptrdiff_t s, ptrdiff_t n)
{
    const ptrdiff_t d = x->d;
    proposal(pi, x, n);
    for (ptrdiff_t c = 0; c < d; c++) {
        w[c] = x->q[n * d + c];
        if (x->noise) {
            w[c] += x->k[x->index[s * x->tokens + n] * d + c] +
                    pow((double)d, 0.25) * x->noise[(s * x->tokens + n) * d + c];
        } else {
            for (ptrdiff_t m = 0; m < seen(x, n); m++) {
                w[c] += pi[m] * x->k[m * d + c];
            }
        }
    }
}

// Weights of f(w).
static void weights_of(double *weights, const double *w, const ref_ra *x, ptrdiff_t n)
{
    for (ptrdiff_t m = 0; m < seen(x, n); m++) {
        const double *key = x->k + m * x->d;
        weights[m] = (dot(w, key, x->d) - dot(key, key, x->d) / 2) / sqrt((double)x->d);
    }
    softmax(weights, seen(x, n));
}

void ref_ra_forward(double *out, const ref_ra *x)
{
    const ptrdiff_t d = x->d;
    double *weights = calloc((size_t)x->tokens, sizeof *weights);
    double *w = calloc((size_t)d, sizeof *w);
    for (ptrdiff_t n = 0; n < x->tokens; n++) {
        for (ptrdiff_t c = 0; c < d; c++) {
            out[n * d + c] = 0;
        }
        for (ptrdiff_t s = 0; s < x->draws; s++) {
            direction(w, weights, x, s, n);
            weights_of(weights, w, x, n);
            for (ptrdiff_t m = 0; m < seen(x, n); m++) {
                for (ptrdiff_t c = 0; c < d; c++) {
                    out[n * d + c] += weights[m] * x->v[m * d + c] / (double)x->draws;
                }
            }
        }
    }
    free(weights);
    free(w);
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

ref_ra_sizes ref_ra_magnitudes(const double *dout, const ref_ra *x)
{
    const ptrdiff_t d = x->d, N = x->tokens;
    const double root = sqrt((double)d);
    ref_ra_sizes size = {0};
    double *weights = calloc((size_t)N, sizeof *weights), *w = calloc((size_t)d, sizeof *w);
    double *dweights = calloc((size_t)N, sizeof *dweights), *dw = calloc((size_t)d, sizeof *dw);
    double *dk = calloc((size_t)(N * d), sizeof *dk), *dv = calloc((size_t)(N * d), sizeof *dv);
    for (ptrdiff_t n = 0; n < N; n++) {
        double *dq = calloc((size_t)d, sizeof *dq);
        for (ptrdiff_t s = 0; s < x->draws; s++) {
            direction(w, weights, x, s, n);
            weights_of(weights, w, x, n);
            double mean = 0;
            for (ptrdiff_t m = 0; m < seen(x, n); m++) {
                const double *key = x->k + m * d;
                const double score =
                    (dot_of_magnitudes(w, key, d) + dot_of_magnitudes(key, key, d) / 2) / root;
                size.score = fmax(size.score, score);
                dweights[m] = dot_of_magnitudes(dout + n * d, x->v + m * d, d) / (double)x->draws;
                mean += weights[m] * dweights[m];
            }
            for (ptrdiff_t c = 0; c < d; c++) {
                double out = 0;
                dw[c] = 0;
                for (ptrdiff_t m = 0; m < seen(x, n); m++) {
                    const double dscore = weights[m] * (dweights[m] + mean) / root;
                    const double key = fabs(x->k[m * d + c]);
                    out += weights[m] * fabs(x->v[m * d + c]);
                    dw[c] += dscore * key;
                    dk[m * d + c] += dscore * (fabs(w[c]) + key);
                    dv[m * d + c] += weights[m] * fabs(dout[n * d + c]) / (double)x->draws;
                }
                size.out = fmax(size.out, out);
                dq[c] += dw[c];
                dk[x->index[s * N + n] * d + c] += dw[c];
            }
        }
        size.dq = fmax(size.dq, largest(dq, d));
        free(dq);
    }
    size.dk = largest(dk, N * d);
    size.dv = largest(dv, N * d);
    free(weights);
    free(w);
    free(dweights);
    free(dw);
    free(dk);
    free(dv);
    return size;
}
