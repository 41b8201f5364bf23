// lara and eva without noise (attention/lara.h, attention/eva.h).
#include "bench/truth.h"

#include "attention/eva.h"
#include "attention/landmarks.h"
#include "layers/norm.h"

#include <math.h>
#include <string.h>

// y [d] = norm(W x + b) of x [d].
static void
apply_map(double *y, const double *x, const rfa_landmark_map *map, ptrdiff_t d, double *exponent)
{
    double mean = 0, variance = 0;
    for (ptrdiff_t i = 0; i < d; i++) {
        double size = fabs((double)map->b[i]);
        y[i] = (double)map->b[i];
        for (ptrdiff_t j = 0; j < d; j++) {
            y[i] += (double)map->w[i * d + j] * x[j];
            size += fabs((double)map->w[i * d + j] * x[j]);
        }
        mean += y[i] / (double)d;
        *exponent = fmax(*exponent, size);
    }
    for (ptrdiff_t i = 0; i < d; i++) {
        variance += (y[i] - mean) * (y[i] - mean) / (double)d;
    }
    for (ptrdiff_t i = 0; i < d; i++) {
        y[i] = (y[i] - mean) / sqrt(variance + RFA_NORM_EPSILON) * (double)map->scale[i] +
               (double)map->shift[i];
    }
}

// Tokens [begin, end) of piece c.
static ptrdiff_t piece_begin(const rfa_truth *truth, const rfa_eva *eva, ptrdiff_t c)
{
    if (truth->options->kind == RFA_ATTENTION_LARA) {
        return rfa_landmark_begin(truth->n, truth->C, c);
    }
    return c * eva->chunk < truth->n ? c * eva->chunk : truth->n;
}

// Means of the pieces of x [n][d]: lara's of mapped tokens, eva's mapped means of tokens.
static void means(
    double *out, rfa_truth *truth, const rfa_eva *eva, const double *x, const rfa_landmark_map *map)
{
    const ptrdiff_t d = truth->d;
    const bool lara = truth->options->kind == RFA_ATTENTION_LARA;
    double y[RFA_BENCH_HEAD];
    for (ptrdiff_t c = 0; c < truth->C; c++) {
        const ptrdiff_t begin = piece_begin(truth, eva, c), end = piece_begin(truth, eva, c + 1);
        double *mean = out + c * d;
        memset(mean, 0, (size_t)d * sizeof *mean);
        for (ptrdiff_t t = begin; t < end; t++) {
            if (lara && map->w) {
                apply_map(y, x + t * d, map, d, &truth->exponent);
            } else {
                memcpy(y, x + t * d, (size_t)d * sizeof *y);
            }
            for (ptrdiff_t j = 0; j < d; j++) {
                mean[j] += y[j] / (double)(end - begin);
            }
        }
        if (!lara && map->w) {
            apply_map(y, mean, map, d, &truth->exponent);
            memcpy(mean, y, (size_t)d * sizeof *y);
        }
    }
}

// scale w . x - scale |x|^2 / 2
static double log_xi(rfa_truth *truth, const double *x, const double *w, double scale)
{
    double size = 0, square = 0;
    const double dot = rfa_truth_dot(w, x, truth->d, &size);
    const double half = rfa_truth_dot(x, x, truth->d, &square) / 2;
    truth->exponent = fmax(truth->exponent, scale * (size + square / 2));
    return scale * (dot - half);
}

static rfa_eva eva_of(const rfa_truth *truth)
{
    const rfa_attention_options *o = truth->options;
    return rfa_eva_cut(o->longest, o->landmarks, o->window, truth->d, o->causal);
}

// Coordinates of lara are not tempered here: scale is 1 / sqrt(d) in their products.
void rfa_truth_landmarks_prepare(rfa_truth *truth)
{
    const rfa_attention_options *o = truth->options;
    const bool lara = o->kind == RFA_ATTENTION_LARA;
    rfa_eva eva = {0};
    const ptrdiff_t d = truth->d;
    const double scale = 1 / sqrt((double)d);
    if (!lara) {
        eva = eva_of(truth);
    }
    truth->C = lara ? rfa_landmark_count(truth->n, o->landmarks) : rfa_eva_count(&eva, truth->n);
    means(truth->q_mean, truth, &eva, truth->q, &truth->map_q);
    means(truth->k_mean, truth, &eva, truth->k, &truth->map_k);
    for (ptrdiff_t i = 0; i < truth->C * d; i++) {
        truth->w[i] = (truth->q_mean[i] + truth->k_mean[i]) * (lara || o->causal ? 1 : 0.5);
    }
    for (ptrdiff_t c = 0; c < truth->C; c++) {
        const double *w = truth->w + c * d;
        const ptrdiff_t begin = lara ? 0 : piece_begin(truth, &eva, c);
        const ptrdiff_t end = lara ? truth->n : piece_begin(truth, &eva, c + 1);
        double most = -INFINITY, sum = 0, pool = 0;
        for (ptrdiff_t m = begin; m < end; m++) {
            truth->row[m] = log_xi(truth, truth->k + m * d, w, scale);
            most = fmax(most, truth->row[m]);
        }
        for (ptrdiff_t m = begin; m < end; m++) {
            sum += exp(truth->row[m] - most);
        }
        rfa_truth_average(truth->f + c * d, truth->row + begin, NULL, truth->v + begin * d,
                          end - begin, d);
        const double own = log_xi(truth, w, w, scale); // the landmark's own density at its sample
        for (ptrdiff_t e = 0; lara && e < truth->C; e++) {
            pool += exp(log_xi(truth, truth->w + e * d, w, scale) - own);
        }
        truth->own[c] = lara ? 1 / pool : 0; // balance heuristic
        truth->lse[c] = lara ? most + log(sum) - own : 0;
    }
}

void rfa_truth_lara_row(double *out, rfa_truth *truth, ptrdiff_t t)
{
    const rfa_attention_options *o = truth->options;
    const ptrdiff_t d = truth->d, C = truth->C;
    const double scale = 1 / sqrt((double)d), *q = truth->q + t * d;
    double *logits = truth->row, *alpha = truth->row + C, most = -INFINITY, sum = 0, size = 0;
    for (ptrdiff_t c = 0; c < C; c++) {
        logits[c] = scale * rfa_truth_dot(q, truth->q_mean + c * d, d, &size);
        truth->exponent = fmax(truth->exponent, scale * size);
        most = fmax(most, logits[c]);
    }
    for (ptrdiff_t c = 0; c < C; c++) {
        sum += exp(logits[c] - most);
    }
    double terms = 0, all = 0;
    for (ptrdiff_t c = 0; c < C; c++) {
        const double share = exp(logits[c] - most) / sum, mean = 1 / (double)C;
        const double *w = truth->w + c * d;
        alpha[c] = truth->own[c];
        logits[c] = scale * rfa_truth_dot(q, w, d, &size) + truth->lse[c];
        if (o->weights == RFA_WEIGHTS_SPECIFIC) {
            alpha[c] = fmax(truth->own[c] + o->specificity * (share - mean), 1e-8);
            const double part = exp(logits[c] - logits[0]);
            terms += (truth->own[c] + o->specificity * (share + mean)) * part;
            all += alpha[c] * part;
        } else if (o->weights == RFA_WEIGHTS_BIASED) {
            alpha[c] *= exp(scale * rfa_truth_dot(q, w, d, &size));
        }
    }
    truth->spread = fmax(truth->spread, all > 0 ? terms / all : 1);
    rfa_truth_average(out, logits, alpha, truth->f, C, d);
}

void rfa_truth_eva_row(double *out, rfa_truth *truth, ptrdiff_t t)
{
    const rfa_attention_options *o = truth->options;
    const rfa_eva eva = eva_of(truth);
    const ptrdiff_t d = truth->d, window = t / eva.window, last = (window + 1) * eva.window;
    const ptrdiff_t end = o->causal ? t + 1 : last < truth->n ? last : truth->n;
    const double scale = 1 / sqrt((double)d), *q = truth->q + t * d;
    double most = -INFINITY, sum = 0, size = 0, *logits = truth->row;
    ptrdiff_t n = 0;
    memset(out, 0, (size_t)d * sizeof *out);
    for (int pass = 0; pass < 2; pass++) { // logits, then the average
        n = 0;
        for (ptrdiff_t m = window * eva.window; m < end; m++, n++) {
            if (pass == 0) {
                logits[n] = scale * rfa_truth_dot(q, truth->k + m * d, d, &size);
                truth->exponent = fmax(truth->exponent, scale * size);
                most = fmax(most, logits[n]);
            } else {
                const double w = exp(logits[n] - most);
                sum += w;
                for (ptrdiff_t j = 0; j < d; j++) {
                    out[j] += w * truth->v[m * d + j];
                }
            }
        }
        for (ptrdiff_t c = 0; c < truth->C; c++) {
            const ptrdiff_t of = c * eva.chunk / eva.window;
            if (of == window || (of > window && o->causal)) {
                continue;
            }
            if (pass == 0) {
                logits[n] = scale * rfa_truth_dot(q, truth->k_mean + c * d, d, &size);
                if (!o->landmark_map) {
                    logits[n] += log((double)rfa_eva_tokens(&eva, truth->n, c));
                }
                most = fmax(most, logits[n]);
            } else {
                const double w = exp(logits[n] - most);
                sum += w;
                for (ptrdiff_t j = 0; j < d; j++) {
                    out[j] += w * truth->f[c * d + j];
                }
            }
            n++;
        }
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] /= sum;
    }
}
