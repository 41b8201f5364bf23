#include "reference/lara.h"

#include <math.h>
#include <stdlib.h>

// Landmarks, centres and samples, tempered.
typedef struct {
    ptrdiff_t C, J;
    double temper;
    double *q_mean, *mu, *w; // [C][d], [C][d], [J][d]
} proposals;

ptrdiff_t ref_lara_landmarks(const ref_lara *x)
{
    return x->tokens < x->pieces ? x->tokens : x->pieces;
}

// Mean of column i over the tokens of piece c.
static double piece_mean(const ref_lara *x, const double *rows, ptrdiff_t c, ptrdiff_t i)
{
    const ptrdiff_t C = ref_lara_landmarks(x), small = x->tokens / C;
    ptrdiff_t begin = 0, size = 0;
    for (ptrdiff_t piece = 0; piece <= c; piece++) {
        begin += size;
        size = piece < (small + 1) * C - x->tokens ? small : small + 1;
    }
    double sum = 0;
    for (ptrdiff_t t = begin; t < begin + size; t++) {
        sum += rows[t * x->d + i];
    }
    return sum / (double)size;
}

static proposals propose(const ref_lara *x)
{
    const ptrdiff_t C = ref_lara_landmarks(x), J = C * x->draws, d = x->d;
    const proposals p = {.C = C,
                         .J = J,
                         .temper = pow((double)d, -0.25),
                         .q_mean = calloc((size_t)(C * d), sizeof(double)),
                         .mu = calloc((size_t)(C * d), sizeof(double)),
                         .w = calloc((size_t)(J * d), sizeof(double))};
    for (ptrdiff_t c = 0; c < C; c++) {
        for (ptrdiff_t i = 0; i < d; i++) {
            const double q = x->q_means ? x->q_means[c * d + i] : piece_mean(x, x->q, c, i);
            const double k = x->k_means ? x->k_means[c * d + i] : piece_mean(x, x->k, c, i);
            p.q_mean[c * d + i] = p.temper * q;
            p.mu[c * d + i] = p.temper * (q + k);
        }
    }
    for (ptrdiff_t j = 0; j < J; j++) {
        for (ptrdiff_t i = 0; i < d; i++) {
            p.w[j * d + i] = p.mu[j % C * d + i] + x->noise[j * d + i];
        }
    }
    return p;
}

static void release(proposals *p)
{
    free(p->q_mean);
    free(p->mu);
    free(p->w);
}

// scale x . y, and in magnitude the sum of |scale x_i y_i|.
static double
product(const double *x, const double *y, ptrdiff_t d, double scale, double *magnitude)
{
    double sum = 0;
    *magnitude = 0;
    for (ptrdiff_t i = 0; i < d; i++) {
        sum += scale * x[i] * y[i];
        *magnitude += fabs(scale * x[i] * y[i]);
    }
    return sum;
}

// log xi(scale x, w)
static double log_xi(const double *x, double scale, const double *w, ptrdiff_t d, double *magnitude)
{
    double dot_size = 0, square_size = 0;
    const double dot = product(x, w, d, scale, &dot_size);
    const double square = product(x, x, d, scale * scale, &square_size);
    *magnitude = fmax(*magnitude, dot_size + square_size / 2);
    return dot - square / 2;
}

// f_j and the log of its denominator.
static double
values_of(double *f, const ref_lara *x, const proposals *p, ptrdiff_t j, double *magnitude)
{
    const ptrdiff_t d = x->d;
    double most = -INFINITY, z = 0;
    for (ptrdiff_t m = 0; m < x->tokens; m++) {
        most = fmax(most, log_xi(x->k + m * d, p->temper, p->w + j * d, d, magnitude));
    }
    for (ptrdiff_t i = 0; i < d; i++) {
        f[i] = 0;
    }
    for (ptrdiff_t m = 0; m < x->tokens; m++) {
        const double xi = exp(log_xi(x->k + m * d, p->temper, p->w + j * d, d, magnitude) - most);
        z += xi;
        for (ptrdiff_t i = 0; i < d; i++) {
            f[i] += xi * x->v[m * d + i];
        }
    }
    for (ptrdiff_t i = 0; i < d; i++) {
        f[i] /= z;
    }
    return most + log(z);
}

// The parts of log w_nj: alpha, its terms' sum of magnitudes, and the logarithm of the rest.
typedef struct {
    double alpha, terms, rest;
    int clamped;
} parts;

static parts parts_of(
    const ref_lara *x, const proposals *p, ptrdiff_t n, ptrdiff_t j, double lse, double *magnitude)
{
    const ptrdiff_t d = x->d, own = j % p->C;
    const double *q = x->q + n * d, *w = p->w + j * d;
    const double own_density = log_xi(p->mu + own * d, 1, w, d, magnitude);
    double balance = 0, all = 0, score_size = 0, share = 0;
    const double own_score = product(q, p->q_mean + own * d, d, p->temper, &score_size);
    for (ptrdiff_t c = 0; c < p->C; c++) {
        balance += exp(log_xi(p->mu + c * d, 1, w, d, magnitude) - own_density);
        share += exp(product(q, p->q_mean + c * d, d, p->temper, &score_size) - own_score);
        all = fmax(all, score_size);
    }
    balance = 1 / balance;
    parts it = {.alpha = balance, .terms = balance};
    if (x->weights == RFA_WEIGHTS_SPECIFIC) {
        const double mean = 1 / (double)p->C;
        *magnitude = fmax(*magnitude, all);
        it.alpha = balance + x->specificity * (1 / share - mean);
        it.terms = balance + x->specificity * (1 / share + mean);
        it.clamped = it.alpha < 1e-8;
        it.alpha = fmax(it.alpha, 1e-8);
    } else if (x->weights == RFA_WEIGHTS_BIASED) {
        it.alpha *= exp(product(q, p->mu + own * d, d, p->temper, &score_size));
        it.terms = it.alpha;
        *magnitude = fmax(*magnitude, score_size);
    }
    it.rest = log_xi(q, p->temper, w, d, magnitude) + lse - own_density;
    return it;
}

static ref_lara_sizes run(double *out, const ref_lara *x)
{
    proposals p = propose(x);
    const ptrdiff_t d = x->d;
    double *f = calloc((size_t)(p.J * (d + 4)), sizeof *f), *lse = f + p.J * d;
    double *alpha = lse + p.J, *terms = alpha + p.J, *rest = terms + p.J;
    ref_lara_sizes size = {0};
    for (ptrdiff_t j = 0; j < p.J; j++) {
        lse[j] = values_of(f + j * d, x, &p, j, &size.exponent);
    }
    for (ptrdiff_t n = 0; n < x->tokens; n++) {
        double most = -INFINITY, sum = 0, all_terms = 0;
        for (ptrdiff_t j = 0; j < p.J; j++) {
            const parts part = parts_of(x, &p, n, j, lse[j], &size.exponent);
            alpha[j] = part.alpha;
            terms[j] = part.terms;
            rest[j] = part.rest;
            most = fmax(most, part.rest);
            size.clamped += part.clamped;
        }
        for (ptrdiff_t i = 0; i < d; i++) {
            out[n * d + i] = 0;
        }
        for (ptrdiff_t j = 0; j < p.J; j++) {
            const double factor = exp(rest[j] - most);
            sum += alpha[j] * factor;
            all_terms += terms[j] * factor;
            for (ptrdiff_t i = 0; i < d; i++) {
                out[n * d + i] += alpha[j] * factor * f[j * d + i];
            }
        }
        for (ptrdiff_t i = 0; i < d; i++) {
            out[n * d + i] /= sum;
        }
        size.spread = fmax(size.spread, all_terms / sum);
    }
    free(f);
    release(&p);
    return size;
}

void ref_lara_forward(double *out, const ref_lara *x)
{
    run(out, x);
}

ref_lara_sizes ref_lara_magnitudes(const ref_lara *x)
{
    double *out = calloc((size_t)(x->tokens * x->d), sizeof *out);
    const ref_lara_sizes size = run(out, x);
    free(out);
    return size;
}
