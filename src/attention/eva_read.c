// The read-out of eva: exact softmax attention to the window's keys and to summaries of chunks.
#include "attention/eva.h"

#include "attention/softmax_impl.h"

#include <string.h>

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

// Keys and values of one call of the softmax kernel: rows [0, C) are summaries, those from near on
// the window's; queries of the window beside them. In a backward also their gradients.
typedef struct {
    ptrdiff_t near;
    rfa_real *kv, *bias;               // [near + window][2 d], [near + window]
    rfa_real *q, *out, *dout, *dq;     // [queries][d]
    rfa_real *lse;                     // [queries]
    double *dkv;                       // as kv
    rfa_real *rest;                    // of the kernel
    ptrdiff_t window_rows, query_rows; // room
} desk;

static desk sizes_of(ptrdiff_t rows, ptrdiff_t longest, const rfa_eva *eva)
{
    return (desk){
        .near = rfa_padded(eva->chunks) + RFA_ROWS, // a block of chunks is read in whole RFA_ROWS
        .window_rows = rfa_padded(least(eva->window, longest)),
        .query_rows = rfa_padded(least(eva->window, rows)),
    };
}

static desk lay_out(rfa_real *work, const rfa_eva_head *head, const rfa_eva *eva)
{
    const ptrdiff_t d = eva->d;
    desk x = sizes_of(head->tokens, head->length, eva);
    const ptrdiff_t keys = x.near + x.window_rows;
    x.kv = take(&work, keys * 2 * d);
    x.bias = take(&work, keys);
    x.q = take(&work, x.query_rows * d);
    x.out = take(&work, x.query_rows * d);
    x.dout = take(&work, x.query_rows * d);
    x.dq = take(&work, x.query_rows * d);
    x.lse = take(&work, x.query_rows);
    x.dkv = take_doubles(&work, keys * 2 * d);
    x.rest = work;
    return x;
}

ptrdiff_t rfa_eva_work(ptrdiff_t max_rows, ptrdiff_t longest, const rfa_eva *eva)
{
    const desk x = sizes_of(max_rows, longest, eva);
    const ptrdiff_t d = eva->d, keys = x.near + x.window_rows;
    const ptrdiff_t read = taken(keys * 2 * d) + taken(keys) + 4 * taken(x.query_rows * d) +
                           taken(x.query_rows) + taken(keys * 2 * d * DOUBLE) +
                           rfa_softmax_work_size(keys, d);
    return read > rfa_padded(max_rows) ? read : rfa_padded(max_rows);
}

static void copy_rows(
    rfa_real *to, ptrdiff_t ld_to, const rfa_real *from, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t d)
{
    for (ptrdiff_t t = 0; t < n; t++) {
        memcpy(to + t * ld_to, from + t * ld, (size_t)d * sizeof *to);
    }
}

static void lay_summaries(const desk *x, const rfa_eva_summary *summary, const rfa_eva *eva)
{
    const ptrdiff_t d = eva->d;
    copy_rows(x->kv, 2 * d, summary->k, summary->ld, eva->chunks, d);
    copy_rows(x->kv + d, 2 * d, summary->v, summary->ld, eva->chunks, d);
    if (summary->bias) {
        memcpy(x->bias, summary->bias, (size_t)eva->chunks * sizeof *x->bias);
        memset(x->bias + x->near, 0, (size_t)x->window_rows * sizeof *x->bias);
    }
}

// One window: its queries here, [q_from, q_to) of the example, and its keys, [begin, end).
typedef struct {
    ptrdiff_t begin, end, q_from, q_to;
    rfa_softmax_block queries, blocks[3]; // the window, the chunks before, the chunks after
    int n;
} window;

// Window by window of the queries that are read; false behind the last one. Begins with the number
// of the first one.
static bool next_window(
    window *x, ptrdiff_t *number, const desk *at, const rfa_eva_head *head, const rfa_eva *eva)
{
    const ptrdiff_t w = eva->window, own_end = head->begin + head->tokens;
    x->begin = (*number)++ * w;
    x->end = least(x->begin + w, eva->causal ? own_end : head->length);
    x->q_from = x->begin > head->begin ? x->begin : head->begin;
    x->q_to = least(x->begin + w, head->begin + head->read);
    if (x->q_from >= x->q_to) {
        return false;
    }
    const ptrdiff_t count = rfa_eva_count(eva, head->length);
    const ptrdiff_t first = x->begin / eva->chunk,
                    after = least((x->begin + w) / eva->chunk, count);
    const ptrdiff_t queries = x->q_to - x->q_from, keys = x->end - x->begin;
    const ptrdiff_t past = 0; // chunk c stands at c or later, before the window that sees it
    x->queries = (rfa_softmax_block){0, rfa_padded(queries), queries, x->q_from};
    x->blocks[0] = (rfa_softmax_block){at->near, rfa_padded(keys), keys, x->begin};
    x->n = 1;
    if (first > 0) {
        x->blocks[x->n++] = (rfa_softmax_block){0, rfa_padded(first), first, past};
    }
    if (!eva->causal && after < count) {
        x->blocks[x->n++] =
            (rfa_softmax_block){after, rfa_padded(count - after), count - after, past};
    }
    return true;
}

// Rows [from, to) of the example that the segment, the halo before it or the halo behind it holds.
typedef struct {
    ptrdiff_t from, to, row; // row in its array
    bool halo;
} stretch;

static void stretches_of(stretch part[3], const window *x, const rfa_eva_head *head)
{
    const ptrdiff_t own_end = head->begin + head->tokens;
    part[0] = (stretch){x->begin, least(x->end, head->begin), x->begin - head->reach_begin, true};
    part[1].from = x->begin > head->begin ? x->begin : head->begin;
    part[1].to = least(x->end, own_end);
    part[1].row = part[1].from - head->begin;
    part[1].halo = false;
    part[2].from = own_end;
    part[2].to = x->end;
    part[2].row = head->begin - head->reach_begin;
    part[2].halo = true;
}

static void lay_window(const desk *at, const window *x, const rfa_eva_head *head, ptrdiff_t d)
{
    stretch part[3];
    stretches_of(part, x, head);
    for (int i = 0; i < 3; i++) {
        const ptrdiff_t n = part[i].to - part[i].from;
        const ptrdiff_t ld = part[i].halo ? head->ld_halo : head->ld, row = part[i].row * ld;
        rfa_real *to = at->kv + (at->near + part[i].from - x->begin) * 2 * d;
        if (n > 0) {
            copy_rows(to, 2 * d, (part[i].halo ? head->halo_k : head->k) + row, ld, n, d);
            copy_rows(to + d, 2 * d, (part[i].halo ? head->halo_v : head->v) + row, ld, n, d);
        }
    }
    copy_rows(at->q, d, head->q + (x->q_from - head->begin) * head->ld, head->ld,
              x->q_to - x->q_from, d);
}

static rfa_softmax_keys
keys_of(const desk *at, const window *x, const rfa_eva_summary *summary, ptrdiff_t d)
{
    return (rfa_softmax_keys){.k = at->kv,
                              .v = at->kv + d,
                              .ld_k = 2 * d,
                              .ld_v = 2 * d,
                              .bias = summary->bias ? at->bias : NULL,
                              .blocks = x->blocks,
                              .n = x->n};
}

void rfa_eva_read(rfa_real *out,
                  ptrdiff_t ld_out,
                  rfa_real *lse,
                  const rfa_eva_head *head,
                  const rfa_eva_summary *summary,
                  const rfa_eva *eva,
                  rfa_real *work)
{
    const ptrdiff_t d = eva->d;
    const desk at = lay_out(work, head, eva);
    ptrdiff_t number = head->begin / eva->window;
    lay_summaries(&at, summary, eva);
    for (window x; next_window(&x, &number, &at, head, eva);) {
        const ptrdiff_t row = x.q_from - head->begin, n = x.q_to - x.q_from;
        const rfa_softmax_keys keys = keys_of(&at, &x, summary, d);
        lay_window(&at, &x, head, d);
        rfa_softmax_read(at.out, d, at.lse, at.q, d, &x.queries, &keys, d, eva->causal, at.rest);
        copy_rows(out + row * ld_out, ld_out, at.out, d, n, d);
        memcpy(lse + row, at.lse, (size_t)n * sizeof *lse);
    }
}

static void clear_rows(double *x, ptrdiff_t ld, ptrdiff_t n, ptrdiff_t d)
{
    for (ptrdiff_t t = 0; t < n; t++) {
        memset(x + t * ld, 0, (size_t)d * sizeof *x);
    }
}

// Gradients of the window's keys go to where the keys came from: no other window has them.
static void return_window(const rfa_eva_gradient *gradient,
                          const desk *at,
                          const window *x,
                          const rfa_eva_head *head,
                          ptrdiff_t d)
{
    stretch part[3];
    stretches_of(part, x, head);
    for (int i = 0; i < 3; i++) {
        const ptrdiff_t ld = part[i].halo ? gradient->ld_halo : gradient->ld;
        double *dk = part[i].halo ? gradient->halo_k : gradient->k;
        double *dv = part[i].halo ? gradient->halo_v : gradient->v;
        for (ptrdiff_t t = 0; t < part[i].to - part[i].from; t++) {
            const double *from = at->dkv + (at->near + part[i].from - x->begin + t) * 2 * d;
            memcpy(dk + (part[i].row + t) * ld, from, (size_t)d * sizeof *dk);
            memcpy(dv + (part[i].row + t) * ld, from + d, (size_t)d * sizeof *dv);
        }
    }
}

void rfa_eva_read_backward(rfa_real *dq,
                           ptrdiff_t ld_dq,
                           const rfa_eva_gradient *gradient,
                           const rfa_real *dout,
                           const rfa_real *out,
                           ptrdiff_t ld_out,
                           const rfa_real *lse,
                           const rfa_eva_head *head,
                           const rfa_eva_summary *summary,
                           const rfa_eva *eva,
                           rfa_real *work)
{
    const ptrdiff_t d = eva->d;
    const ptrdiff_t halo = head->reach_end - head->reach_begin - head->tokens;
    const desk at = lay_out(work, head, eva);
    const rfa_softmax_gradient dkeys = {.k = at.dkv, .v = at.dkv + d, .ld = 2 * d};
    ptrdiff_t number = head->begin / eva->window;
    lay_summaries(&at, summary, eva);
    clear_rows(gradient->k, gradient->ld, head->tokens, d);
    clear_rows(gradient->v, gradient->ld, head->tokens, d);
    clear_rows(gradient->halo_k, gradient->ld_halo, halo, d);
    clear_rows(gradient->halo_v, gradient->ld_halo, halo, d);
    clear_rows(at.dkv, 2 * d, eva->chunks, 2 * d);
    for (window x; next_window(&x, &number, &at, head, eva);) {
        const ptrdiff_t row = x.q_from - head->begin, n = x.q_to - x.q_from;
        const rfa_softmax_keys keys = keys_of(&at, &x, summary, d);
        lay_window(&at, &x, head, d);
        copy_rows(at.out, d, out + row * ld_out, ld_out, n, d);
        copy_rows(at.dout, d, dout + row * ld_out, ld_out, n, d);
        memcpy(at.lse, lse + row, (size_t)n * sizeof *lse);
        clear_rows(at.dkv + at.near * 2 * d, 2 * d, x.end - x.begin, 2 * d);
        rfa_softmax_read_backward(at.dq, d, &dkeys, at.dout, d, at.out, d, at.lse, at.q, d,
                                  &x.queries, &keys, d, eva->causal, at.rest);
        copy_rows(dq + row * ld_dq, ld_dq, at.dq, d, n, d);
        return_window(gradient, &at, &x, head, d);
    }
    for (ptrdiff_t c = 0; c < eva->chunks; c++) {
        memcpy(gradient->chunk_k + c * gradient->ld_chunk, at.dkv + c * 2 * d,
               (size_t)d * sizeof *at.dkv);
        memcpy(gradient->chunk_v + c * gradient->ld_chunk, at.dkv + c * 2 * d + d,
               (size_t)d * sizeof *at.dkv);
    }
}
