#include "bench/truth.h"

#include "base/mem.h"

#include <math.h>

static bool is_linear(const rfa_attention_options *o)
{
    return o->kind == RFA_ATTENTION_RFA || o->kind == RFA_ATTENTION_ELU ||
           o->kind == RFA_ATTENTION_PERFORMER;
}

rfa_status
rfa_truth_create(rfa_truth *truth, const rfa_attention_options *options, ptrdiff_t n, ptrdiff_t h)
{
    const ptrdiff_t d = options->width / options->heads, E = options->width;
    *truth = (rfa_truth){.options = options, .n = n, .d = d, .width = E, .h = h};
    const rfa_feature_map map = {
        .kind = options->map, .width = d, .projections = options->projections};
    const ptrdiff_t F = is_linear(options) ? rfa_feature_count(&map) : 0;
    const ptrdiff_t C = n; // at most
    const bool landmarks =
        options->kind == RFA_ATTENTION_LARA || options->kind == RFA_ATTENTION_EVA;
    const struct {
        double **array;
        ptrdiff_t size;
    } arrays[] = {
        {&truth->q, n * d},
        {&truth->k, n * d},
        {&truth->v, n * d},
        {&truth->x, options->gate == RFA_GATE_LEARNED ? n * E : 0},
        {&truth->phi, n * F},
        {&truth->weight, n},
        {&truth->decay, n + 1},
        {&truth->q_mean, landmarks ? C * d : 0},
        {&truth->k_mean, landmarks ? C * d : 0},
        {&truth->w, landmarks ? C * d : 0},
        {&truth->f, landmarks ? C * d : 0},
        {&truth->own, landmarks ? C : 0},
        {&truth->lse, landmarks ? C : 0},
        {&truth->row, n + F + 2 * C + 2 * d},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        RFA_TRY(rfa_alloc(arrays[i].array, arrays[i].size, sizeof(double), "reference"));
    }
    return RFA_OK;
}

void rfa_truth_destroy(rfa_truth *truth)
{
    double *const arrays[] = {truth->q,      truth->k,     truth->v,   truth->x,  truth->phi,
                              truth->weight, truth->decay, truth->w,   truth->f,  truth->q_mean,
                              truth->k_mean, truth->own,   truth->lse, truth->row};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        rfa_free(arrays[i]);
    }
    *truth = (rfa_truth){0};
}

double rfa_truth_dot(const double *a, const double *b, ptrdiff_t n, double *magnitude)
{
    double sum = 0, size = 0;
#pragma omp simd reduction(+ : sum, size)
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
        size += fabs(a[i] * b[i]);
    }
    *magnitude = size;
    return sum;
}

void rfa_truth_average(double *out,
                       double *logits,
                       const double *factors,
                       const double *rows,
                       ptrdiff_t n,
                       ptrdiff_t d)
{
    double most = -INFINITY, sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, logits[i]);
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] = 0;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const double w = exp(logits[i] - most) * (factors ? factors[i] : 1);
        sum += w;
        for (ptrdiff_t j = 0; j < d; j++) {
            out[j] += w * rows[i * d + j];
        }
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] /= sum;
    }
}

// Scores of one query, or of another vector, with the keys that token t sees.
static ptrdiff_t scores(double *logits, rfa_truth *truth, const double *q, ptrdiff_t t, bool norms)
{
    const ptrdiff_t d = truth->d, n = truth->options->causal ? t + 1 : truth->n;
    const double scale = 1 / sqrt((double)d);
    for (ptrdiff_t m = 0; m < n; m++) {
        const double *key = truth->k + m * d;
        double size = 0, square = 0;
        logits[m] = scale * rfa_truth_dot(q, key, d, &size);
        if (norms) {
            logits[m] -= scale / 2 * rfa_truth_dot(key, key, d, &square);
        }
        truth->exponent = fmax(truth->exponent, scale * (size + square / 2));
    }
    return n;
}

// Attention by the query itself: exact; and by q and the mean of keys that it sees, which is ra's
// direction without noise.
static void softmax_row(double *out, rfa_truth *truth, ptrdiff_t t)
{
    const ptrdiff_t d = truth->d, n = scores(truth->row, truth, truth->q + t * d, t, false);
    rfa_truth_average(out, truth->row, NULL, truth->v, n, d);
}

static void ra_row(double *out, rfa_truth *truth, ptrdiff_t t)
{
    const ptrdiff_t d = truth->d, n = scores(truth->row, truth, truth->q + t * d, t, false);
    double *w = truth->row + truth->n;
    rfa_truth_average(w, truth->row, NULL, truth->k, n, d);
    for (ptrdiff_t j = 0; j < d; j++) {
        w[j] += truth->q[t * d + j];
    }
    scores(truth->row, truth, w, t, true);
    rfa_truth_average(out, truth->row, NULL, truth->v, n, d);
}

void rfa_truth_prepare(rfa_truth *truth)
{
    truth->spread = fmax(truth->spread, 1);
    switch (truth->options->kind) {
    case RFA_ATTENTION_RFA:
    case RFA_ATTENTION_ELU:
    case RFA_ATTENTION_PERFORMER: rfa_truth_linear_prepare(truth); break;
    case RFA_ATTENTION_LARA:
    case RFA_ATTENTION_EVA: rfa_truth_landmarks_prepare(truth); break;
    case RFA_ATTENTION_SOFTMAX:
    case RFA_ATTENTION_RA: break;
    }
}

void rfa_truth_row(double *out, rfa_truth *truth, ptrdiff_t t)
{
    switch (truth->options->kind) {
    case RFA_ATTENTION_RFA:
    case RFA_ATTENTION_ELU:
    case RFA_ATTENTION_PERFORMER: rfa_truth_linear_row(out, truth, t); break;
    case RFA_ATTENTION_SOFTMAX: softmax_row(out, truth, t); break;
    case RFA_ATTENTION_RA: ra_row(out, truth, t); break;
    case RFA_ATTENTION_LARA: rfa_truth_lara_row(out, truth, t); break;
    case RFA_ATTENTION_EVA: rfa_truth_eva_row(out, truth, t); break;
    }
}

// A score or a feature's argument: d + 2 roundings of its terms. A product of features: F. Then
// sums of at most 256 terms in a chunk, and of the chunks in double or with their own rounding. All
// of it counts in numerator and denominator, the latter divided by a sum that is smaller than its
// terms. Kinds that average twice have it twice.
double rfa_truth_bound(const rfa_truth *truth)
{
    const rfa_attention_options *o = truth->options;
    const double unit = ldexp(1, -24), d = (double)truth->d, chunk = 256;
    const double F = is_linear(o) ? 2 * (double)o->projections : 0;
    const double passes = is_linear(o) || o->kind == RFA_ATTENTION_SOFTMAX ? 1 : 2;
    const double terms = (d + 2) * truth->exponent + F + chunk + (double)truth->n / chunk;
    return 2 * passes * unit * terms * truth->spread;
}
