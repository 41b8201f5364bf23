// One head of one example, cut into segments that lie in memory as the model lays them, and run
// through all parts of attention/linear.h as the attention layer does.
#ifndef TESTS_ATTENTION_LINEAR_CASE_H
#define TESTS_ATTENTION_LINEAR_CASE_H

#include "attention/linear.h"
#include "exchange/partition.h"
#include "reference/linear.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SEGMENTS = 32, FOREIGN = 3, GUARD = 64 };

typedef struct {
    ptrdiff_t tokens, d, D;
    int segments;
    bool causal;
    ptrdiff_t left, right; // masked rows before and after the tokens of every segment
    double scale;          // of q and k
    double boost;          // times that for the keys of the last segment
    double sigma;          // largest element
    double garbage;        // what masked rows hold
} linear_case;

// Token-major [tokens][d], den [tokens], w [D][d], sigma and dsigma [d].
typedef struct {
    rfa_real *q, *k, *v, *dout, *w, *sigma;
    rfa_real *out, *den, *dq, *dk, *dv, *dsigma; // results
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
    for (ptrdiff_t c = 0; c < at->d; c++) { // from half to the whole, in floats
        x.sigma[c] = (rfa_real)(float)(at->sigma * (0.5 + 0.5 * (double)(c + 1) / (double)at->d));
    }
    return x;
}

static inline void values_destroy(linear_values *x)
{
    rfa_real *all[] = {x->q,   x->k,   x->v,  x->dout, x->w,  x->sigma,
                       x->out, x->den, x->dq, x->dk,   x->dv, x->dsigma};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
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

// sums[g] = sum of states before (or after) g; sums[segments] = the total.
static inline void
accumulate(double *sums, const double *states, ptrdiff_t size, int segments, bool after)
{
    double *running = sums + segments * size;
    memset(running, 0, (size_t)size * sizeof *running);
    for (int i = 0; i < segments; i++) {
        const int g = after ? segments - 1 - i : i;
        memcpy(sums + g * size, running, (size_t)size * sizeof *running);
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

// Forward, and backward when asked for, of all segments.
static inline void case_run(linear_values *x, const linear_case *at, bool backward)
{
    segment segments[MOST_SEGMENTS];
    const int G = at->segments;
    ptrdiff_t longest;
    const ptrdiff_t rows = cut(segments, &longest, at), d = at->d;
    const ptrdiff_t ld = 3 * d + FOREIGN, ld_out = d + FOREIGN;
    const rfa_feature_map map = {.width = d, .projections = at->D, .w = x->w, .sigma = x->sigma};
    const ptrdiff_t size = rfa_linear_state_size(&map);
    rfa_real *qkv = filled(rows * ld, at->garbage), *dqkv = filled(rows * ld, untouched);
    rfa_real *dout = filled(rows * ld_out, at->garbage), *out = filled(rows * ld_out, untouched);
    rfa_real *den = test_reals(rows), *mask = test_reals(rows), *total = test_reals(size);
    double *states = test_doubles(G * size), *sums = test_doubles((G + 1) * size);
    workspace work = {NULL, rfa_linear_work(&map, longest)};
    work.numbers = filled(work.size + GUARD, untouched);
    rfa_head heads[MOST_SEGMENTS];
    for (int g = 0; g < G; g++) {
        rfa_real *row = qkv + segments[g].row0 * ld;
        heads[g] =
            (rfa_head){row, row + d, row + 2 * d, ld, segments[g].rows, mask + segments[g].row0};
        for (ptrdiff_t t = 0; t < segments[g].tokens; t++) {
            mask[segments[g].row0 + at->left + t] = 1;
        }
    }
    move_rows(qkv, ld, x->q, d, segments, at, true);
    move_rows(qkv + d, ld, x->k, d, segments, at, true);
    move_rows(qkv + 2 * d, ld, x->v, d, segments, at, true);
    move_rows(dout, ld_out, x->dout, d, segments, at, true);

    for (int g = 0; g < G; g++) {
        rfa_linear_state(states + g * size, &heads[g], &map, fresh(&work));
    }
    accumulate(sums, states, size, G, false);
    narrow(total, sums + G * size, size);
    x->guards = 0;
    for (int g = 0; g < G; g++) {
        rfa_real *o = out + segments[g].row0 * ld_out, *n = den + segments[g].row0;
        x->guards +=
            at->causal
                ? rfa_causal_read(o, ld_out, n, &heads[g], &map, sums + g * size, fresh(&work))
                : rfa_linear_read(o, ld_out, n, &heads[g], &map, total, fresh(&work));
    }
    check(is_clean(out, ld_out, d, mask, rows));
    move_rows(out, ld_out, x->out, d, segments, at, false);
    move_rows(den, 1, x->den, 1, segments, at, false);

    double *adjoints = test_doubles(G * size), *after = test_doubles((G + 1) * size);
    memset(x->dsigma, 0, (size_t)d * sizeof *x->dsigma);
    for (int g = 0; backward && g < G; g++) {
        const ptrdiff_t row = segments[g].row0;
        rfa_linear_read_backward(at->causal ? NULL : dqkv + row * ld, ld, adjoints + g * size,
                                 x->dsigma, dout + row * ld_out, out + row * ld_out, ld_out,
                                 den + row, &heads[g], &map, at->causal ? NULL : total,
                                 fresh(&work));
    }
    accumulate(after, adjoints, size, G, true);
    narrow(total, after + G * size, size);
    for (int g = 0; backward && g < G; g++) {
        const ptrdiff_t row = segments[g].row0;
        rfa_real *dq = dqkv + row * ld;
        if (at->causal) {
            rfa_causal_backward(dq, dq + d, dq + 2 * d, ld, x->dsigma, dout + row * ld_out,
                                out + row * ld_out, ld_out, den + row, &heads[g], &map,
                                sums + g * size, after + g * size, fresh(&work));
        } else {
            rfa_linear_state_backward(dq + d, dq + 2 * d, ld, x->dsigma, &heads[g], &map, total,
                                      fresh(&work));
        }
    }
    fresh(&work);
    if (backward) {
        check(is_clean(dqkv, ld, 3 * d, mask, rows));
        move_rows(dqkv, ld, x->dq, d, segments, at, false);
        move_rows(dqkv + d, ld, x->dk, d, segments, at, false);
        move_rows(dqkv + 2 * d, ld, x->dv, d, segments, at, false);
    }
    rfa_real *reals[] = {qkv, dqkv, dout, out, den, mask, total, work.numbers};
    double *doubles[] = {states, sums, adjoints, after};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        rfa_free(reals[i]);
    }
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        rfa_free(doubles[i]);
    }
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
                                 .floor = (double)(rfa_real)RFA_LINEAR_FLOOR,
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
