// One head of one example, cut into segments that lie in memory as the model lays them, and run
// through all parts of attention/linear.h as the attention layer does.
#ifndef TESTS_ATTENTION_LINEAR_CASE_H
#define TESTS_ATTENTION_LINEAR_CASE_H

#include "attention/linear.h"
#include "exchange/element.h"
#include "exchange/partition.h"
#include "reference/linear.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SEGMENTS = 32, FOREIGN = 3, GUARD = 64 };

#define FLOOR 0.16   // of gaussian features
#define OPRF_A -0.05 // of oprf features

typedef struct {
    ptrdiff_t tokens, d, D;
    int segments;
    bool causal, reverse, gated; // gated: by the decay and input of linear_values
    rfa_map_kind kind;
    bool free_norm;
    ptrdiff_t left, right; // masked rows before and after the tokens of every segment
    double scale;          // of q and k
    double boost;          // times that for the keys of the last segment
    double sigma;          // largest element
    double garbage;        // what masked rows hold
} linear_case;

// Token-major [tokens][d], den [tokens], w [D][d], sigma and dsigma [d].
typedef struct {
    rfa_real *q, *k, *v, *dout, *w, *sigma;
    rfa_real *decay, *input;                     // [tokens] of gates
    rfa_real *squares;                           // [D] |w|^2
    rfa_real *out, *den, *dq, *dk, *dv, *dsigma; // results
    rfa_real *ddecay, *dinput;
    int64_t guards;
} linear_values;

static inline linear_case
case_of(ptrdiff_t tokens, ptrdiff_t d, ptrdiff_t D, int segments, bool causal)
{
    return (linear_case){.tokens = tokens,
                         .d = d,
                         .D = D,
                         .segments = segments,
                         .causal = causal,
                         .scale = 1,
                         .boost = 1,
                         .sigma = 1,
                         .kind = RFA_MAP_GAUSSIAN,
                         .garbage = 1e3};
}

static inline linear_values values_create(const linear_case *at, uint32_t seed)
{
    const ptrdiff_t n = at->tokens * at->d;
    linear_values x = {.q = test_reals(n),
                       .k = test_reals(n),
                       .v = test_reals(n),
                       .dout = test_reals(n),
                       .w = test_reals(at->D * at->d),
                       .sigma = test_reals(at->d),
                       .squares = test_reals(at->D),
                       .decay = test_reals(at->tokens),
                       .input = test_reals(at->tokens),
                       .ddecay = test_reals(at->tokens),
                       .dinput = test_reals(at->tokens),
                       .out = test_reals(n),
                       .den = test_reals(at->tokens),
                       .dq = test_reals(n),
                       .dk = test_reals(n),
                       .dv = test_reals(n),
                       .dsigma = test_reals(at->d)};
    test_fill(x.q, n, seed, at->scale);
    test_fill(x.k, n, seed + 1, at->scale);
    test_fill(x.v, n, seed + 2, 1);
    test_fill(x.dout, n, seed + 3, 1);
    test_fill(x.w, at->D * at->d, seed + 4, 1);
    const ptrdiff_t last = rfa_segment_begin(at->tokens, at->segments, at->segments - 1);
    for (ptrdiff_t i = last * at->d; i < n; i++) {
        x.k[i] *= (rfa_real)at->boost;
    }
    for (ptrdiff_t i = 0; i < at->D * at->d; i++) {
        x.squares[i / at->d] += x.w[i] * x.w[i];
    }
    for (ptrdiff_t t = 0; t < at->tokens; t++) { // gates between a half and nearly 1
        const double g = 0.5 + 0.49 * fabs(sin(1.7 * (double)t + seed));
        x.decay[t] = (rfa_real)(float)log(g);
        x.input[t] = (rfa_real)(float)log(1 - g);
    }
    for (ptrdiff_t c = 0; c < at->d; c++) { // from half to the whole, in floats
        x.sigma[c] = (rfa_real)(float)(at->sigma * (0.5 + 0.5 * (double)(c + 1) / (double)at->d));
    }
    return x;
}

static inline void values_destroy(linear_values *x)
{
    rfa_real *all[] = {x->q,   x->k,   x->v,  x->dout, x->w,  x->sigma,  x->decay,  x->input,
                       x->out, x->den, x->dq, x->dk,   x->dv, x->dsigma, x->ddecay, x->dinput};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
    rfa_free(x->squares);
    *x = (linear_values){0};
}

// Where a segment lies.
typedef struct {
    ptrdiff_t row0, rows, begin, tokens;
} segment;

static inline ptrdiff_t cut(segment *segments, ptrdiff_t *longest, const linear_case *at)
{
    ptrdiff_t row = 0;
    *longest = 0;
    for (int g = 0; g < at->segments; g++) {
        const ptrdiff_t begin = rfa_segment_begin(at->tokens, at->segments, g);
        const ptrdiff_t tokens = rfa_segment_begin(at->tokens, at->segments, g + 1) - begin;
        const ptrdiff_t rows = rfa_padded(at->left + tokens + at->right);
        segments[g] = (segment){row, rows, begin, tokens};
        *longest = rows > *longest ? rows : *longest;
        row += rows;
    }
    return row;
}

// Copies between token-major [tokens][width] and packed rows of ld numbers.
static inline void move_rows(rfa_real *packed,
                             ptrdiff_t ld,
                             rfa_real *tokens,
                             ptrdiff_t width,
                             const segment *segments,
                             const linear_case *at,
                             bool pack)
{
    for (int g = 0; g < at->segments; g++) {
        for (ptrdiff_t t = 0; t < segments[g].tokens; t++) {
            rfa_real *there = packed + (segments[g].row0 + at->left + t) * ld;
            rfa_real *here = tokens + (segments[g].begin + t) * width;
            memcpy(pack ? there : here, pack ? here : there, (size_t)width * sizeof *here);
        }
    }
}

static const double untouched = 123; // what nobody may write to

static inline rfa_real *filled(ptrdiff_t n, double value)
{
    rfa_real *x = test_reals(n);
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] = (rfa_real)value;
    }
    return x;
}

// Masked rows hold exactly 0 in [0, width), and columns from width on were never written.
static inline bool is_clean(
    const rfa_real *packed, ptrdiff_t ld, ptrdiff_t width, const rfa_real *mask, ptrdiff_t rows)
{
    for (ptrdiff_t t = 0; t < rows; t++) {
        for (ptrdiff_t c = 0; c < ld; c++) {
            const rfa_real number = packed[t * ld + c];
            if (c < width ? mask[t] == 0 && number != 0 : number != (rfa_real)untouched) {
                return false;
            }
        }
    }
    return true;
}

// A workspace of exactly the promised size: NaN before every call, guarded behind.
typedef struct {
    rfa_real *numbers;
    ptrdiff_t size;
} workspace;

static inline rfa_real *fresh(workspace *work)
{
    for (ptrdiff_t i = 0; i < work->size + GUARD; i++) {
        const bool inside = i < work->size;
        check(inside || work->numbers[i] == (rfa_real)untouched);
        work->numbers[i] = inside ? (rfa_real)NAN : (rfa_real)untouched;
    }
    return work->numbers;
}

// sums[g] = what the states before (or after) g add up to; sums[segments] = the total. unit: of
// scaled elements, 1 for plain sums.
static inline void accumulate(
    double *sums, const double *states, ptrdiff_t size, ptrdiff_t unit, int segments, bool after)
{
    double *running = sums + segments * size;
    memset(running, 0, (size_t)size * sizeof *running);
    if (unit > 1) {
        rfa_element_clear(running, size / unit, unit);
    }
    for (int i = 0; i < segments; i++) {
        const int g = after ? segments - 1 - i : i;
        memcpy(sums + g * size, running, (size_t)size * sizeof *running);
        if (unit > 1) {
            rfa_element_combine(running, running, states + g * size, size / unit, unit);
            continue;
        }
        for (ptrdiff_t e = 0; e < size; e++) {
            running[e] += states[g * size + e];
        }
    }
}

static inline void narrow(rfa_real *to, const double *from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = (rfa_real)from[i];
    }
}

static inline rfa_feature_map case_map(const linear_values *x, const linear_case *at)
{
    return (rfa_feature_map){.kind = at->kind,
                             .unit_norm = !at->free_norm,
                             .width = at->d,
                             .projections = at->kind == RFA_MAP_ELU ? 0 : at->D,
                             .w = x->w,
                             .sigma = x->sigma,
                             .w_squares = x->squares,
                             .a = OPRF_A};
}

// Everything in memory as the model lays it out.
typedef struct {
    rfa_real *qkv, *dqkv, *dout, *out, *den, *mask, *total, *decay, *input, *ddecay, *dinput;
    double *scale, *states, *sums, *adjoints, *after;
} layout;

static inline void layout_destroy(layout *m)
{
    rfa_real *reals[] = {m->qkv,   m->dqkv,  m->dout,  m->out,    m->den,   m->mask,
                         m->total, m->decay, m->input, m->ddecay, m->dinput};
    double *doubles[] = {m->scale, m->states, m->sums, m->adjoints, m->after};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        rfa_free(reals[i]);
    }
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        rfa_free(doubles[i]);
    }
}

// Forward, and backward when asked for, of all segments.
static inline void case_run(linear_values *x, const linear_case *at, bool backward)
{
    segment segments[MOST_SEGMENTS];
    const int G = at->segments;
    ptrdiff_t longest;
    const ptrdiff_t rows = cut(segments, &longest, at), d = at->d;
    const ptrdiff_t ld = 3 * d + FOREIGN, ld_out = d + FOREIGN;
    const rfa_feature_map map = case_map(x, at);
    const ptrdiff_t size = rfa_linear_state_size(&map);
    layout m = {.qkv = filled(rows * ld, at->garbage),
                .dqkv = filled(rows * ld, untouched),
                .dout = filled(rows * ld_out, at->garbage),
                .out = filled(rows * ld_out, untouched),
                .den = test_reals(rows),
                .mask = test_reals(rows),
                .total = test_reals(size),
                .decay = test_reals(rows), // 0 in padding
                .input = filled(rows, at->garbage),
                .ddecay = test_reals(rows),
                .dinput = test_reals(rows),
                .scale = test_doubles(rows),
                .states = test_doubles(G * size),
                .sums = test_doubles((G + 1) * size),
                .adjoints = test_doubles(G * size),
                .after = test_doubles((G + 1) * size)};
    workspace work = {NULL, rfa_linear_work(&map, longest)};
    work.numbers = filled(work.size + GUARD, untouched);
    move_rows(m.qkv, ld, x->q, d, segments, at, true);
    move_rows(m.qkv + d, ld, x->k, d, segments, at, true);
    move_rows(m.qkv + 2 * d, ld, x->v, d, segments, at, true);
    move_rows(m.dout, ld_out, x->dout, d, segments, at, true);
    move_rows(m.decay, 1, x->decay, 1, segments, at, true);
    move_rows(m.input, 1, x->input, 1, segments, at, true);
    rfa_head heads[MOST_SEGMENTS];
    rfa_reading readings[MOST_SEGMENTS];
    for (int g = 0; g < G; g++) {
        const ptrdiff_t row0 = segments[g].row0;
        rfa_real *row = m.qkv + row0 * ld;
        heads[g] = (rfa_head){.q = row,
                              .k = row + d,
                              .v = row + 2 * d,
                              .ld = ld,
                              .rows = segments[g].rows,
                              .mask = m.mask + row0,
                              .map = &map,
                              .decay = at->gated ? m.decay + row0 : NULL,
                              .input = at->gated ? m.input + row0 : NULL,
                              .reverse = at->reverse};
        readings[g] = (rfa_reading){m.out + row0 * ld_out, ld_out, m.den + row0, m.scale + row0};
        for (ptrdiff_t t = 0; t < segments[g].tokens; t++) {
            m.mask[row0 + at->left + t] = 1;
        }
    }
    const bool weighted = rfa_head_is_weighted(&heads[0]);

    for (int g = 0; g < G; g++) {
        rfa_linear_state(m.states + g * size, &heads[g], fresh(&work));
    }
    accumulate(m.sums, m.states, size, weighted ? size : 1, G, at->reverse);
    narrow(m.total, m.sums + G * size, size);
    const rfa_real scale = m.total[0];
    x->guards = 0;
    for (int g = 0; g < G; g++) {
        x->guards += at->causal
                         ? rfa_causal_read(&readings[g], &heads[g], m.sums + g * size, fresh(&work))
                         : rfa_linear_read(&readings[g], &heads[g], m.total, fresh(&work));
    }
    check(is_clean(m.out, ld_out, d, m.mask, rows));
    move_rows(m.out, ld_out, x->out, d, segments, at, false);
    move_rows(m.den, 1, x->den, 1, segments, at, false);

    memset(x->dsigma, 0, (size_t)d * sizeof *x->dsigma);
    rfa_head_gradient gradients[MOST_SEGMENTS];
    for (int g = 0; g < G; g++) {
        const ptrdiff_t row0 = segments[g].row0;
        rfa_real *dq = m.dqkv + row0 * ld;
        gradients[g] = (rfa_head_gradient){.q = dq,
                                           .k = dq + d,
                                           .v = dq + 2 * d,
                                           .ld = ld,
                                           .decay = at->gated ? m.ddecay + row0 : NULL,
                                           .input = at->gated ? m.dinput + row0 : NULL,
                                           .map = {.sigma = x->dsigma}};
    }
    for (int g = 0; backward && g < G; g++) {
        const rfa_real *dout = m.dout + segments[g].row0 * ld_out;
        double *adjoint = m.adjoints + g * size;
        if (at->causal) {
            rfa_causal_adjoint(adjoint, dout, &readings[g], &heads[g], fresh(&work));
        } else {
            rfa_linear_read_backward(&gradients[g], adjoint, dout, &readings[g], &heads[g], m.total,
                                     fresh(&work));
        }
    }
    accumulate(m.after, m.adjoints, size, weighted && at->causal ? size : 1, G, !at->reverse);
    narrow(m.total, m.after + G * size, size);
    for (int g = 0; backward && g < G; g++) {
        if (at->causal) {
            rfa_causal_backward(&gradients[g], m.dout + segments[g].row0 * ld_out, &readings[g],
                                &heads[g], m.sums + g * size, m.after + g * size, fresh(&work));
        } else {
            rfa_linear_state_backward(&gradients[g], &heads[g], scale, m.total, fresh(&work));
        }
    }
    fresh(&work);
    if (backward) {
        check(is_clean(m.dqkv, ld, 3 * d, m.mask, rows));
        move_rows(m.dqkv, ld, x->dq, d, segments, at, false);
        move_rows(m.dqkv + d, ld, x->dk, d, segments, at, false);
        move_rows(m.dqkv + 2 * d, ld, x->dv, d, segments, at, false);
        move_rows(m.ddecay, 1, x->ddecay, 1, segments, at, false);
        move_rows(m.dinput, 1, x->dinput, 1, segments, at, false);
    }
    rfa_free(work.numbers);
    layout_destroy(&m);
}

// The same numbers in double, for the reference.
typedef struct {
    ref_linear problem;
    double *q, *k, *v, *dout, *w, *sigma;
    double *out, *den;
    ref_linear_gradient gradient;
} linear_truth;

static inline double *widened(const rfa_real *x, ptrdiff_t n)
{
    double *y = test_doubles(n);
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] = (double)x[i];
    }
    return y;
}

static inline linear_truth truth_create(const linear_values *x, const linear_case *at)
{
    const ptrdiff_t n = at->tokens * at->d;
    linear_truth truth = {
        .q = widened(x->q, n),
        .k = widened(x->k, n),
        .v = widened(x->v, n),
        .dout = widened(x->dout, n),
        .w = widened(x->w, at->D * at->d),
        .sigma = widened(x->sigma, at->d),
        .out = test_doubles(n),
        .den = test_doubles(at->tokens),
        .gradient = {test_doubles(n), test_doubles(n), test_doubles(n), test_doubles(at->d)}};
    truth.problem = (ref_linear){.tokens = at->tokens,
                                 .d = at->d,
                                 .D = at->D,
                                 .causal = at->causal,
                                 .floor = (double)(rfa_real)FLOOR,
                                 .q = truth.q,
                                 .k = truth.k,
                                 .v = truth.v,
                                 .w = truth.w,
                                 .sigma = truth.sigma};
    return truth;
}

static inline void truth_destroy(linear_truth *truth)
{
    double *all[] = {truth->q,          truth->k,          truth->v,
                     truth->dout,       truth->w,          truth->sigma,
                     truth->out,        truth->den,        truth->gradient.q,
                     truth->gradient.k, truth->gradient.v, truth->gradient.sigma};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

// Rounding units that a result may be off, of ref_linear_magnitudes; angles are as large as sigma.
// At most a thirteenth of it was seen.
static inline double case_unit(const linear_case *at)
{
    return 4 * test_eps() * (1 + at->sigma);
}

// Holds the results of case_run against the truth.
static inline void case_check(const char *what,
                              const linear_values *x,
                              const linear_case *at,
                              const linear_truth *truth,
                              const ref_linear_sizes *size)
{
    const ptrdiff_t n = at->tokens * at->d;
    const double unit = case_unit(at);
    char text[160];
#define HOLD(name, got, want, count, bound)                                                        \
    do {                                                                                           \
        snprintf(text, sizeof text, "%s %s: %td tokens, d %td, D %td, %d segments%s", what, name,  \
                 at->tokens, at->d, at->D, at->segments, at->causal ? ", causal" : "");            \
        check_close(text, got, want, count, unit *(bound));                                        \
    } while (0)
    HOLD("out", x->out, truth->out, n, size->out);
    HOLD("dq", x->dq, truth->gradient.q, n, size->q);
    HOLD("dk", x->dk, truth->gradient.k, n, size->k);
    HOLD("dv", x->dv, truth->gradient.v, n, size->v);
    HOLD("dsigma", x->dsigma, truth->gradient.sigma, at->d, size->sigma);
#undef HOLD
}

#endif
