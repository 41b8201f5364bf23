// One head of EVA cut into segments, and its parts run over them as a layer runs them.
#ifndef TESTS_ATTENTION_EVA_CASE_H
#define TESTS_ATTENTION_EVA_CASE_H

#include "attention/eva.h"
#include "exchange/element.h"
#include "exchange/halo.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { GUARD = 32, SLACK = 40 };

// One head of one example. Arrays of tokens [len + SLACK][d] end with NAN, those of chunks [C][d].
typedef struct {
    ptrdiff_t len;
    int segments;
    rfa_eva eva;
    rfa_real *q, *k, *v, *dout, *k_bar, *beta, *bias, *w, *dbeta; // given
    rfa_real *out, *lse, *dq, *beta_lse;
    double *dk, *dv, *dk_bar, *dsummary_v, *dw;
    rfa_real *work;
    ptrdiff_t work_size;
} sample;

static inline rfa_real *tokens_create(ptrdiff_t len, ptrdiff_t d, uint32_t seed)
{
    rfa_real *x = test_reals((len + SLACK) * d);
    test_fill(x, len * d, seed, 1);
    for (ptrdiff_t i = len * d; i < (len + SLACK) * d; i++) {
        x[i] = (rfa_real)NAN;
    }
    return x;
}

static inline sample sample_create(ptrdiff_t len, int segments, rfa_eva eva)
{
    sample x = {.len = len, .segments = segments, .eva = eva};
    const ptrdiff_t d = eva.d, C = eva.chunks;
    rfa_real **tokens[] = {&x.q, &x.k, &x.v, &x.dout};
    for (uint32_t i = 0; i < 4; i++) {
        *tokens[i] = tokens_create(len, d, 20 + i);
    }
    rfa_real **chunks[] = {&x.k_bar, &x.beta, &x.w, &x.dbeta};
    for (uint32_t i = 0; i < 4; i++) {
        *chunks[i] = test_reals(C * d);
        test_fill(*chunks[i], C * d, 30 + i, 1);
    }
    x.bias = test_reals(C);
    test_fill(x.bias, C, 40, 1);
    x.out = test_reals(len * d);
    x.dq = test_reals(len * d);
    x.lse = test_reals(len);
    x.beta_lse = test_reals(C);
    x.dk = test_doubles(len * d);
    x.dv = test_doubles(len * d);
    x.dk_bar = test_doubles(C * d);
    x.dsummary_v = test_doubles(C * d);
    x.dw = test_doubles(C * d);
    ptrdiff_t most = 0;
    for (int g = 0; g < segments; g++) {
        const ptrdiff_t n =
            rfa_segment_begin(len, segments, g + 1) - rfa_segment_begin(len, segments, g);
        most = n > most ? n : most;
    }
    x.work_size = rfa_eva_work(most, len, &eva);
    x.work = test_reals(x.work_size + GUARD);
    for (ptrdiff_t i = 0; i < x.work_size + GUARD; i++) {
        x.work[i] = i < x.work_size ? (rfa_real)NAN : 123;
    }
    return x;
}

static inline void sample_destroy(sample *x)
{
    for (int i = 0; i < GUARD; i++) {
        check(x->work[x->work_size + i] == 123);
    }
    void *all[] = {x->q,  x->k,     x->v,      x->dout,       x->k_bar,    x->beta, x->bias,
                   x->w,  x->out,   x->lse,    x->dq,         x->beta_lse, x->dk,   x->dv,
                   x->dw, x->dbeta, x->dk_bar, x->dsummary_v, x->work};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

// Segment g with the rows that it reaches, in arrays of their own; so its gradient of them.
typedef struct {
    rfa_eva_head head;
    rfa_real *halo; // [rows][2 d]
    double *dhalo;
} segment;

static inline segment segment_create(const sample *x, int g)
{
    const ptrdiff_t d = x->eva.d;
    const rfa_halo halo = {&x->len, 1, x->segments, x->eva.window, !x->eva.causal};
    const rfa_halo_reach reach = rfa_halo_reach_of(&halo, 0, g);
    const ptrdiff_t begin = rfa_segment_begin(x->len, x->segments, g);
    const ptrdiff_t tokens = rfa_segment_begin(x->len, x->segments, g + 1) - begin;
    const ptrdiff_t rows = reach.end - reach.begin - tokens;
    segment s = {.halo = test_reals((rows + 1) * 2 * d), .dhalo = test_doubles((rows + 1) * 2 * d)};
    for (ptrdiff_t t = 0; t < rows; t++) {
        const ptrdiff_t at = reach.begin + t < begin ? reach.begin + t : reach.begin + t + tokens;
        memcpy(s.halo + t * 2 * d, x->k + at * d, (size_t)d * sizeof *s.halo);
        memcpy(s.halo + t * 2 * d + d, x->v + at * d, (size_t)d * sizeof *s.halo);
    }
    s.head = (rfa_eva_head){.q = x->q + begin * d,
                            .k = x->k + begin * d,
                            .v = x->v + begin * d,
                            .ld = d,
                            .halo_k = s.halo,
                            .halo_v = s.halo + d,
                            .ld_halo = 2 * d,
                            .begin = begin,
                            .tokens = tokens,
                            .length = x->len,
                            .reach_begin = reach.begin,
                            .reach_end = reach.end,
                            .read = tokens};
    return s;
}

static inline void segment_destroy(segment *s)
{
    rfa_free(s->halo);
    rfa_free(s->dhalo);
}

static inline rfa_eva_summary summary_of(const sample *x)
{
    return (rfa_eva_summary){.k = x->k_bar, .v = x->beta, .ld = x->eva.d, .bias = x->bias};
}

static inline void run_read(sample *x)
{
    const rfa_eva_summary summary = summary_of(x);
    for (int g = 0; g < x->segments; g++) {
        segment s = segment_create(x, g);
        rfa_eva_read(x->out + s.head.begin * x->eva.d, x->eva.d, x->lse + s.head.begin, &s.head,
                     &summary, &x->eva, x->work);
        segment_destroy(&s);
    }
}

static inline void run_read_backward(sample *x)
{
    const rfa_eva_summary summary = summary_of(x);
    const ptrdiff_t d = x->eva.d, C = x->eva.chunks;
    double *dk = test_doubles(x->len * d), *dv = test_doubles(x->len * d);
    double *dchunk = test_doubles(C * 2 * d);
    memset(x->dk, 0, (size_t)(x->len * d) * sizeof *dk);
    memset(x->dv, 0, (size_t)(x->len * d) * sizeof *dv);
    memset(x->dk_bar, 0, (size_t)(C * d) * sizeof *dk);
    memset(x->dsummary_v, 0, (size_t)(C * d) * sizeof *dk);
    for (int g = 0; g < x->segments; g++) {
        segment s = segment_create(x, g);
        const ptrdiff_t begin = s.head.begin, tokens = s.head.tokens;
        const rfa_eva_gradient gradient = {.k = dk,
                                           .v = dv,
                                           .ld = d,
                                           .halo_k = s.dhalo,
                                           .halo_v = s.dhalo + d,
                                           .ld_halo = 2 * d,
                                           .chunk_k = dchunk,
                                           .chunk_v = dchunk + d,
                                           .ld_chunk = 2 * d};
        rfa_eva_read_backward(x->dq + begin * d, d, &gradient, x->dout + begin * d,
                              x->out + begin * d, d, x->lse + begin, &s.head, &summary, &x->eva,
                              x->work);
        for (ptrdiff_t i = 0; i < tokens * d; i++) {
            x->dk[begin * d + i] += dk[i];
            x->dv[begin * d + i] += dv[i];
        }
        for (ptrdiff_t t = 0; t < s.head.reach_end - s.head.reach_begin - tokens; t++) {
            const ptrdiff_t at = s.head.reach_begin + t;
            const ptrdiff_t to = at < begin ? at : at + tokens;
            for (ptrdiff_t j = 0; j < d; j++) {
                x->dk[to * d + j] += s.dhalo[t * 2 * d + j];
                x->dv[to * d + j] += s.dhalo[t * 2 * d + d + j];
            }
        }
        for (ptrdiff_t i = 0; i < C * d; i++) {
            x->dk_bar[i] += dchunk[i / d * 2 * d + i % d];
            x->dsummary_v[i] += dchunk[i / d * 2 * d + d + i % d];
        }
        segment_destroy(&s);
    }
    rfa_free(dk);
    rfa_free(dv);
    rfa_free(dchunk);
}

// beta of w, segment by segment.
static inline void run_values(sample *x)
{
    const ptrdiff_t size = x->eva.chunks * rfa_eva_unit(x->eva.d);
    double *total = test_doubles(size), *part = test_doubles(size);
    rfa_element_clear(total, x->eva.chunks, rfa_eva_unit(x->eva.d));
    for (int g = 0; g < x->segments; g++) {
        segment s = segment_create(x, g);
        rfa_eva_values(part, &s.head, x->w, x->eva.d, &x->eva, x->work);
        rfa_element_combine(total, total, part, x->eva.chunks, rfa_eva_unit(x->eva.d));
        segment_destroy(&s);
    }
    rfa_eva_close(x->beta, x->eva.d, x->beta_lse, total, &x->eva);
    rfa_free(total);
    rfa_free(part);
}

static inline void run_values_backward(sample *x)
{
    const ptrdiff_t d = x->eva.d, C = x->eva.chunks;
    double *dw = test_doubles(C * d);
    memset(x->dk, 0, (size_t)(x->len * d) * sizeof *dw);
    memset(x->dv, 0, (size_t)(x->len * d) * sizeof *dw);
    memset(x->dw, 0, (size_t)(C * d) * sizeof *dw);
    for (int g = 0; g < x->segments; g++) {
        segment s = segment_create(x, g);
        const rfa_eva_gradient gradient = {
            .k = x->dk + s.head.begin * d, .v = x->dv + s.head.begin * d, .ld = d};
        rfa_eva_values_backward(&gradient, dw, x->dbeta, x->beta, x->w, d, x->beta_lse, &s.head,
                                &x->eva, x->work);
        for (ptrdiff_t i = 0; i < C * d; i++) {
            x->dw[i] += dw[i];
        }
        segment_destroy(&s);
    }
    rfa_free(dw);
}

#endif
