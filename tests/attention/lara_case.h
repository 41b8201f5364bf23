// One head of one example, cut into segments that lie in memory as the model lays them, and run
// through all parts of attention/lara.h as the attention layer does.
#ifndef TESTS_ATTENTION_LARA_CASE_H
#define TESTS_ATTENTION_LARA_CASE_H

#include "attention/landmarks.h"
#include "attention/lara.h"
#include "exchange/partition.h"
#include "reference/lara.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    ptrdiff_t tokens, d, pieces, draws;
    int segments;
    rfa_weights_kind weights;
    double specificity;
    bool antithetic, noise, centred; // centred: all landmarks are 0
    uint32_t stream;                 // which noise
    double scale;                    // of q and k
    double boost;                    // times that for the keys of the last segment
    double garbage;                  // what masked rows hold; small: no key is far from it
} lara_case;

// Token-major [tokens][d].
typedef struct {
    rfa_real *q, *k, *v, *dout;
    rfa_real *out, *dq, *dk, *dv; // results
} lara_values;

static inline lara_case lara_case_of(ptrdiff_t tokens, ptrdiff_t pieces, rfa_weights_kind weights)
{
    return (lara_case){.tokens = tokens,
                       .d = 6,
                       .pieces = pieces,
                       .draws = 1,
                       .segments = 3,
                       .weights = weights,
                       .specificity = 1,
                       .noise = true,
                       .scale = 1,
                       .boost = 1,
                       .garbage = 0.5};
}

static inline lara_values lara_values_create(const lara_case *at, uint32_t seed)
{
    const ptrdiff_t n = at->tokens * at->d;
    const lara_values x = {test_reals(n), test_reals(n), test_reals(n), test_reals(n),
                           test_reals(n), test_reals(n), test_reals(n), test_reals(n)};
    test_fill(x.q, n, seed, at->scale);
    test_fill(x.k, n, seed + 1, at->scale);
    test_fill(x.v, n, seed + 2, 1);
    test_fill(x.dout, n, seed + 3, 1);
    for (ptrdiff_t t = rfa_segment_begin(at->tokens, at->segments, at->segments - 1);
         t < at->tokens; t++) {
        for (ptrdiff_t i = 0; i < at->d; i++) {
            x.k[t * at->d + i] *= (rfa_real)at->boost;
        }
    }
    return x;
}

static inline void lara_values_destroy(lara_values *x)
{
    rfa_real *all[] = {x->q, x->k, x->v, x->dout, x->out, x->dq, x->dk, x->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

static inline rfa_lara lara_of(const lara_case *at)
{
    return (rfa_lara){.weights = at->weights,
                      .specificity = at->specificity,
                      .d = at->d,
                      .landmarks = rfa_landmark_count(at->tokens, at->pieces),
                      .draws = at->draws,
                      .antithetic = at->antithetic};
}

static inline rfa_lara_noise lara_noise_of(const lara_case *at)
{
    return (rfa_lara_noise){rfa_rng_stream(5, RFA_RNG_TEST, at->stream, 9), 1000};
}

// The case as the reference wants it; arrays are owned by it.
typedef struct {
    ref_lara problem;
    double *q, *k, *v, *noise, *zeros, *dout, *out;
} lara_truth;

static inline double *widened(const rfa_real *x, ptrdiff_t n)
{
    double *y = test_doubles(n);
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] = (double)x[i];
    }
    return y;
}

static inline lara_truth lara_truth_create(const lara_values *x, const lara_case *at)
{
    const rfa_lara lara = lara_of(at);
    const ptrdiff_t n = at->tokens * at->d, size = lara.landmarks * at->d;
    const rfa_lara_noise noise = lara_noise_of(at);
    lara_truth truth = {.q = widened(x->q, n),
                        .k = widened(x->k, n),
                        .v = widened(x->v, n),
                        .dout = widened(x->dout, n),
                        .noise = test_doubles(at->draws * size),
                        .zeros = test_doubles(size),
                        .out = test_doubles(n)};
    double *eps = test_doubles(at->draws * size);
    rfa_rng_normals_at(eps, &noise.stream, noise.first, at->draws * size);
    for (ptrdiff_t s = 0; s < at->draws; s++) {
        for (ptrdiff_t i = 0; i < size; i++) {
            const double drawn =
                at->antithetic ? (s % 2 ? -1 : 1) * eps[s / 2 * size + i] : eps[s * size + i];
            truth.noise[s * size + i] = at->noise ? drawn : 0;
        }
    }
    rfa_free(eps);
    truth.problem = (ref_lara){.tokens = at->tokens,
                               .d = at->d,
                               .pieces = at->pieces,
                               .draws = at->draws,
                               .weights = at->weights,
                               .specificity = at->specificity,
                               .q = truth.q,
                               .k = truth.k,
                               .v = truth.v,
                               .noise = truth.noise,
                               .q_means = at->centred ? truth.zeros : NULL,
                               .k_means = at->centred ? truth.zeros : NULL};
    return truth;
}

static inline void lara_truth_destroy(lara_truth *truth)
{
    double *all[] = {truth->q,     truth->k,    truth->v,  truth->noise,
                     truth->zeros, truth->dout, truth->out};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

// Segments and what they send.
typedef struct {
    rfa_leaf leaf[64];
    ptrdiff_t rows;
    rfa_real *qkv, *dqkv, *mask, *out, *dout; // [rows][3 d], [rows], [rows][d]
} lara_memory;

static inline void lara_copy(lara_memory *at,
                             rfa_real *packed,
                             rfa_real *tokens,
                             int segments,
                             ptrdiff_t ld,
                             ptrdiff_t d,
                             bool pack)
{
    for (int g = 0; g < segments; g++) {
        for (ptrdiff_t t = 0; t < at->leaf[g].tokens; t++) {
            rfa_real *there = packed + (at->leaf[g].row0 + t) * ld;
            rfa_real *here = tokens + (at->leaf[g].begin + t) * d;
            memcpy(pack ? there : here, pack ? here : there, (size_t)d * sizeof *here);
        }
    }
}

static inline lara_memory lara_memory_create(const lara_values *x, const lara_case *at)
{
    const ptrdiff_t d = at->d;
    lara_memory m = {.rows = 0};
    m.rows = rfa_leaves_fill(m.leaf, &at->tokens, 1, at->segments, 1, 0);
    m.qkv = test_reals(m.rows * 3 * d);
    m.dqkv = test_reals(m.rows * 3 * d);
    m.mask = test_reals(m.rows);
    m.out = test_reals(m.rows * d);
    m.dout = test_reals(m.rows * d);
    for (ptrdiff_t i = 0; i < m.rows * 3 * d; i++) {
        m.qkv[i] = (rfa_real)at->garbage;
        m.dqkv[i] = (rfa_real)at->garbage;
        m.out[i / 3] = m.dout[i / 3] = (rfa_real)at->garbage;
    }
    for (int g = 0; g < at->segments; g++) {
        for (ptrdiff_t t = 0; t < m.leaf[g].tokens; t++) {
            m.mask[m.leaf[g].row0 + t] = 1;
        }
    }
    lara_copy(&m, m.qkv, x->q, at->segments, 3 * d, d, true);
    lara_copy(&m, m.qkv + d, x->k, at->segments, 3 * d, d, true);
    lara_copy(&m, m.qkv + 2 * d, x->v, at->segments, 3 * d, d, true);
    lara_copy(&m, m.dout, x->dout, at->segments, d, d, true);
    return m;
}

static inline void lara_memory_destroy(lara_memory *m)
{
    rfa_real *all[] = {m->qkv, m->dqkv, m->mask, m->out, m->dout};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

static inline rfa_head lara_head(const lara_memory *m, const lara_case *at, int g)
{
    const rfa_real *q = m->qkv + m->leaf[g].row0 * 3 * at->d;
    return (rfa_head){.q = q,
                      .k = q + at->d,
                      .v = q + 2 * at->d,
                      .ld = 3 * at->d,
                      .rows = m->leaf[g].rows,
                      .mask = m->mask + m->leaf[g].row0};
}

static inline rfa_landmark_span lara_span(const lara_memory *m, const lara_case *at, int g)
{
    return (rfa_landmark_span){.begin = m->leaf[g].begin,
                               .tokens = m->leaf[g].tokens,
                               .n = at->tokens,
                               .pieces = rfa_landmark_count(at->tokens, at->pieces)};
}

static inline void add_doubles(double *sum, const double *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        sum[i] += x[i];
    }
}

// What exp(m) (S, z) of count elements add up to, relative to the greater m.
static inline void add_elements(double *sum, const double *x, ptrdiff_t count, ptrdiff_t unit)
{
    for (ptrdiff_t e = 0; e < count * unit; e += unit) {
        const double m = fmax(sum[e], x[e]);
        const double a = sum[e] == m ? 1 : exp(sum[e] - m), b = x[e] == m ? 1 : exp(x[e] - m);
        for (ptrdiff_t i = 2; i < unit; i++) {
            sum[e + i] = a * sum[e + i] + b * x[e + i];
        }
        sum[e] = m;
    }
}

// Forward and backward; checks that masked rows of all results are 0.
static inline void lara_run(lara_values *x, const lara_case *at)
{
    const rfa_lara lara = lara_of(at);
    const ptrdiff_t d = at->d, C = lara.landmarks, J = rfa_lara_count(&lara);
    const ptrdiff_t unit = rfa_lara_unit(d), n_sums = rfa_lara_sums_size(&lara);
    const rfa_lara_noise noise = lara_noise_of(at);
    lara_memory m = lara_memory_create(x, at);
    double *means = test_doubles(C * 2 * d), *part = test_doubles(n_sums + J * unit + C * 2 * d);
    double *elements = test_doubles(J * unit), *sums = test_doubles(n_sums);
    double *dw = test_doubles(J * d);
    rfa_real *samples_at = test_reals(rfa_lara_samples_size(&lara));
    rfa_real *adjoint_at = test_reals(rfa_lara_adjoint_size(&lara));
    rfa_real *work = test_reals(rfa_lara_work(&lara, m.rows)), *dmeans = test_reals(C * 2 * d);
    const rfa_lara_samples samples = rfa_lara_samples_at(samples_at, &lara);
    const rfa_lara_adjoint adjoint = rfa_lara_adjoint_at(adjoint_at, &lara);

    for (int g = 0; g < at->segments; g++) {
        rfa_landmark_sums(part, 2 * d, lara_head(&m, at, g).q, 3 * d, 2 * d, lara_span(&m, at, g));
        add_doubles(means, part, C * 2 * d);
    }
    rfa_landmark_means(means, 2 * d, 2 * d, at->tokens, C);
    if (at->centred) {
        memset(means, 0, (size_t)(C * 2 * d) * sizeof *means);
    }
    rfa_lara_propose(&samples, &lara, means, means + d, 2 * d, at->noise ? &noise : NULL, work);
    for (ptrdiff_t j = 0; j < J; j++) {
        elements[j * unit] = -INFINITY;
    }
    for (int g = 0; g < at->segments; g++) {
        const rfa_head head = lara_head(&m, at, g);
        rfa_lara_keys(part, &samples, &lara, &head, work);
        add_elements(elements, part, J, unit);
    }
    rfa_lara_collect(&samples, &lara, elements);
    for (int g = 0; g < at->segments; g++) {
        const rfa_head head = lara_head(&m, at, g);
        rfa_lara_read(m.out + m.leaf[g].row0 * d, d, &samples, &lara, &head, work);
    }
    for (int g = 0; g < at->segments; g++) {
        const rfa_head head = lara_head(&m, at, g);
        const ptrdiff_t row0 = m.leaf[g].row0;
        rfa_lara_read_backward(m.dqkv + row0 * 3 * d, 3 * d, part, m.dout + row0 * d,
                               m.out + row0 * d, d, &samples, &lara, &head, work);
        add_doubles(sums, part, n_sums);
    }
    rfa_lara_samples_backward(&adjoint, sums, &samples, &lara, work);
    for (int g = 0; g < at->segments; g++) {
        const rfa_head head = lara_head(&m, at, g);
        rfa_real *dk = m.dqkv + m.leaf[g].row0 * 3 * d + d;
        rfa_lara_keys_backward(dk, dk + d, 3 * d, part, &adjoint, &samples, &lara, &head, work);
        add_doubles(dw, part, J * d);
    }
    rfa_lara_propose_backward(dmeans, dmeans + d, 2 * d, dw, &adjoint, &lara);
    for (int g = 0; g < at->segments && !at->centred; g++) {
        rfa_landmark_backward(m.dqkv + m.leaf[g].row0 * 3 * d, 3 * d, dmeans, 2 * d, 2 * d,
                              lara_span(&m, at, g));
    }
    bool padding_is_zero = true;
    for (ptrdiff_t row = 0; row < m.rows; row++) {
        for (ptrdiff_t i = 0; i < 3 * d && m.mask[row] == 0; i++) {
            padding_is_zero =
                padding_is_zero && m.dqkv[row * 3 * d + i] == 0 && m.out[row * d + i / 3] == 0;
        }
    }
    check(padding_is_zero);
    lara_copy(&m, m.out, x->out, at->segments, d, d, false);
    lara_copy(&m, m.dqkv, x->dq, at->segments, 3 * d, d, false);
    lara_copy(&m, m.dqkv + d, x->dk, at->segments, 3 * d, d, false);
    lara_copy(&m, m.dqkv + 2 * d, x->dv, at->segments, 3 * d, d, false);
    void *all[] = {means, part, elements, sums, dw, samples_at, adjoint_at, work, dmeans};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
    lara_memory_destroy(&m);
}

#endif
