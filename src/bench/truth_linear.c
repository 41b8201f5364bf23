// Linear attention as pairs: phi(q_t) . phi(k_i) times the weight of key i at t
// (attention/linear.h, features/map.h).
#include "bench/truth.h"

#include <math.h>

static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

double
rfa_truth_features(double *phi, double *exponent, const rfa_feature_map *map, const double *x)
{
    const ptrdiff_t d = map->width, D = map->projections;
    double y[RFA_BENCH_HEAD], ignored = 0, square = 0, most = -INFINITY;
    if (map->kind == RFA_MAP_ELU) {
        for (ptrdiff_t j = 0; j < d; j++) {
            phi[j] = x[j] > 0 ? x[j] + 1 : exp(x[j]);
        }
        return 0;
    }
    const double norm = sqrt(rfa_truth_dot(x, x, d, &ignored));
    const double factor = map->unit_norm ? 1 / (norm + 1e-3) : pow((double)d, -0.25);
    for (ptrdiff_t j = 0; j < d; j++) {
        y[j] = factor * x[j] * (map->sigma ? (double)map->sigma[j] : 1);
        square += y[j] * y[j];
    }
    for (ptrdiff_t f = 0; f < D; f++) {
        double product = 0, size = 0;
        for (ptrdiff_t j = 0; j < d; j++) {
            const double term = (double)map->w[f * d + j] * y[j];
            product += term;
            size += fabs(term);
        }
        if (map->kind == RFA_MAP_OPRF) {
            const double own = map->a * (double)map->w_squares[f];
            product = own + sqrt(1 - 4 * map->a) * product;
            size = fabs(own) + sqrt(1 - 4 * map->a) * size;
        }
        phi[f] = product;
        most = fmax(most, product);
        *exponent = fmax(*exponent, size + square / 2);
    }
    const double scale = 1 / sqrt((double)D);
    for (ptrdiff_t f = 0; f < D; f++) {
        const double product = phi[f];
        switch (map->kind) {
        case RFA_MAP_GAUSSIAN:
            phi[f] = scale * sin(product);
            phi[D + f] = scale * cos(product);
            break;
        case RFA_MAP_ARCCOS: phi[f] = scale * fmax(product, 0); break;
        case RFA_MAP_POSITIVE:
        case RFA_MAP_OPRF: phi[f] = scale * exp(product - most); break;
        case RFA_MAP_ELU: break;
        }
    }
    switch (map->kind) {
    case RFA_MAP_GAUSSIAN: return map->unit_norm ? 0 : square / 2;
    case RFA_MAP_POSITIVE:
    case RFA_MAP_OPRF: return most - square / 2;
    case RFA_MAP_ARCCOS:
    case RFA_MAP_ELU: break;
    }
    return 0;
}

// log g and log (1 - g) of token t.
static void gate(double *decay, double *input, const rfa_truth *truth, ptrdiff_t t)
{
    const rfa_attention_options *o = truth->options;
    *decay = *input = 0;
    if (o->gate == RFA_GATE_DECAY) { // 1 - 2^(-5 - i), i the head's number in its direction
        const ptrdiff_t half = (o->heads + 1) / 2;
        const bool second = o->direction == RFA_BOTH && truth->h >= half;
        *decay = log1p(-ldexp(1, (int)(-5 - (second ? truth->h - half : truth->h))));
    } else if (o->gate == RFA_GATE_LEARNED) {
        double sum = truth->gate_bias;
        for (ptrdiff_t j = 0; j < truth->width; j++) {
            sum += truth->x[t * truth->width + j] * (double)truth->gate_weight[j];
        }
        *decay = -softplus(-sum);
        *input = -softplus(sum);
    }
}

void rfa_truth_linear_prepare(rfa_truth *truth)
{
    const ptrdiff_t F = rfa_feature_count(&truth->map);
    truth->decay[0] = 0;
    for (ptrdiff_t t = 0; t < truth->n; t++) {
        double decay = 0, input = 0;
        gate(&decay, &input, truth, t);
        truth->weight[t] = rfa_truth_features(truth->phi + t * F, &truth->exponent, &truth->map,
                                              truth->k + t * truth->d) +
                           input;
        truth->decay[t + 1] = truth->decay[t] + decay;
    }
}

void rfa_truth_linear_row(double *out, rfa_truth *truth, ptrdiff_t t)
{
    const ptrdiff_t d = truth->d, F = rfa_feature_count(&truth->map);
    const bool causal = truth->options->causal;
    const ptrdiff_t first = causal && truth->reverse ? t : 0;
    const ptrdiff_t end = causal && !truth->reverse ? t + 1 : truth->n;
    double *weight = truth->row, *phi = truth->row + truth->n, most = -INFINITY;
    double den = 0, terms = 0;
    rfa_truth_features(phi, &truth->exponent, &truth->map, truth->q + t * d);
    for (ptrdiff_t i = first; i < end; i++) { // decays of tokens behind the key, up to the reader
        const double *sums = truth->decay;
        const double passed = truth->reverse ? sums[i] - sums[t] : sums[t + 1] - sums[i + 1];
        weight[i] = truth->weight[i] + passed;
        most = fmax(most, weight[i]);
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] = 0;
    }
    for (ptrdiff_t i = first; i < end; i++) {
        double size = 0;
        const double factor = exp(weight[i] - most);
        const double w = factor * rfa_truth_dot(phi, truth->phi + i * F, F, &size);
        den += w;
        terms += factor * size;
        for (ptrdiff_t j = 0; j < d; j++) {
            out[j] += w * truth->v[i * d + j];
        }
    }
    den = fmax(den, rfa_feature_floor(&truth->map));
    truth->spread = fmax(truth->spread, terms / den);
    for (ptrdiff_t j = 0; j < d; j++) {
        out[j] /= den;
    }
}
