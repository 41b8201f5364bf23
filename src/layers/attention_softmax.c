#include "layers/attention_softmax.h"

#include "base/profile.h"

#include <omp.h>
#include <string.h>

void rfa_gathered_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_plan *source = plan->source ? plan->source : plan;
    const ptrdiff_t longest = source->longest_example, d = rfa_head_width(o);
    rfa_gathered *own = rfa_carve(arena, 1, sizeof *own);
    const rfa_gathered arrays = {
        .kv = rfa_carve(arena, longest * 2 * o->width, sizeof(rfa_real)),
        .dkv = rfa_carve(arena, plan->own * o->heads * longest * 2 * d, sizeof(double)),
        .counts = rfa_carve(arena, attention->sequence->size, sizeof(ptrdiff_t)),
        .blocks = rfa_carve(arena, o->segments, sizeof(rfa_softmax_block)),
    };
    if (own) {
        *own = arrays;
    }
    attention->scratch = own;
}

// The segments of one example: rows in the gathered array, and the rows that each rank brings.
static void lay_out(const rfa_attention *attention, const rfa_plan *plan, int example)
{
    const rfa_gathered *own = attention->scratch;
    const int G = attention->options.segments, P = attention->sequence->size;
    ptrdiff_t row = 0;
    for (int p = 0; p < P; p++) {
        own->counts[p] = 0;
        for (int g = rfa_part_begin(G, P, p); g < rfa_part_begin(G, P, p + 1); g++) {
            const ptrdiff_t length = plan->lengths[example];
            const ptrdiff_t begin = rfa_segment_begin(length, G, g);
            const ptrdiff_t tokens = rfa_segment_begin(length, G, g + 1) - begin;
            own->blocks[g] = (rfa_softmax_block){
                .row0 = row, .rows = rfa_padded(tokens), .tokens = tokens, .begin = begin};
            row += own->blocks[g].rows;
            own->counts[p] += own->blocks[g].rows;
        }
    }
}

ptrdiff_t rfa_gathered_rows(const rfa_attention *attention)
{
    const rfa_gathered *own = attention->scratch;
    const rfa_softmax_block *last = &own->blocks[attention->options.segments - 1];
    return last->row0 + last->rows;
}

rfa_status rfa_gathered_fetch(rfa_attention *attention,
                              const rfa_attention_saved *saved,
                              const rfa_plan *plan,
                              int example)
{
    const rfa_gathered *own = attention->scratch;
    const ptrdiff_t E = attention->options.width;
    lay_out(attention, plan, example);
    for (int o = 0; o < plan->own; o++) {
        const rfa_leaf *leaf = &plan->leaves[example * plan->own + o];
        for (ptrdiff_t t = 0; t < leaf->rows; t++) {
            memcpy(own->kv + (own->blocks[leaf->segment].row0 + t) * 2 * E,
                   saved->qkv + (leaf->row0 + t) * 3 * E + E, (size_t)(2 * E) * sizeof(rfa_real));
        }
    }
    return rfa_gather_rows(own->kv, own->counts, 2 * E, attention->sequence,
                           &attention->gather_cost);
}

rfa_softmax_block rfa_gathered_queries(const rfa_attention_saved *saved, const rfa_leaf *leaf)
{
    const ptrdiff_t rows = rfa_attention_read_rows(saved, leaf);
    return (rfa_softmax_block){.row0 = leaf->row0,
                               .rows = rows,
                               .tokens = leaf->tokens < rows ? leaf->tokens : rows,
                               .begin = leaf->begin};
}

// The contributions of all query segments are folded in the tree's order.
rfa_status
rfa_gathered_return(rfa_real *dqkv, rfa_attention *attention, const rfa_plan *plan, int example)
{
    const rfa_gathered *own = attention->scratch;
    const ptrdiff_t E = attention->options.width, H = attention->options.heads;
    const ptrdiff_t d = rfa_head_width(&attention->options);
    const ptrdiff_t size = rfa_gathered_rows(attention) * 2 * d;
    RFA_TRY(rfa_exchange_run(attention->exchange, RFA_TOTAL, own->dkv, H * size));
    for (int o = 0; o < plan->own; o++) {
        const rfa_leaf *leaf = &plan->leaves[example * plan->own + o];
        const ptrdiff_t first = own->blocks[leaf->segment].row0;
        for (ptrdiff_t h = 0; h < H; h++) {
            const double *sum = own->dkv + h * size + first * 2 * d;
            rfa_real *dk = dqkv + leaf->row0 * 3 * E + E + h * d;
            for (ptrdiff_t t = 0; t < leaf->rows; t++) {
                for (ptrdiff_t j = 0; j < d; j++) {
                    dk[t * 3 * E + j] = (rfa_real)sum[t * 2 * d + j];
                    dk[t * 3 * E + E + j] = (rfa_real)sum[t * 2 * d + d + j];
                }
            }
        }
    }
    return RFA_OK;
}

static ptrdiff_t softmax_work(const rfa_attention *attention, const rfa_plan *plan)
{
    return rfa_softmax_work_size(plan->longest_leaf, rfa_head_width(&attention->options));
}

// Keys and values of head h of the gathered example.
static rfa_softmax_keys
head_keys(const rfa_gathered *own, const rfa_attention_options *options, ptrdiff_t h)
{
    const ptrdiff_t E = options->width;
    const rfa_real *k = own->kv + h * rfa_head_width(options);
    return (rfa_softmax_keys){.k = k,
                              .v = k + E,
                              .ld_k = 2 * E,
                              .ld_v = 2 * E,
                              .blocks = own->blocks,
                              .n = options->segments};
}

static rfa_status softmax_exchange(rfa_attention *attention,
                                   rfa_attention_saved *saved,
                                   const rfa_plan *plan,
                                   int round,
                                   rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, d = rfa_head_width(o);
    const int tasks = plan->own * (int)o->heads;
    const rfa_plan *source = plan->source ? plan->source : plan;
    (void)round;
    for (int e = 0; e < plan->examples; e++) {
        RFA_TRY(rfa_gathered_fetch(attention, saved, source, e));
        const rfa_gathered *own = attention->scratch;
#pragma omp parallel for schedule(dynamic)
        for (int task = 0; task < tasks; task++) {
            RFA_PROFILE(RFA_PHASE_ATTENTION);
            const rfa_softmax_block queries =
                rfa_gathered_queries(saved, &plan->leaves[e * plan->own + task / o->heads]);
            const ptrdiff_t h = task % o->heads;
            const rfa_softmax_keys keys = head_keys(own, o, h);
            rfa_softmax_read(saved->out + h * d, E, saved->den + h * plan->rows, saved->qkv + h * d,
                             3 * E, &queries, &keys, d, o->causal, works[omp_get_thread_num()]);
        }
    }
    return RFA_OK;
}

static rfa_status softmax_exchange_backward(const rfa_attention_gradient *gradient,
                                            rfa_attention *attention,
                                            const rfa_attention_saved *saved,
                                            const rfa_plan *plan,
                                            int round,
                                            rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, H = o->heads, d = rfa_head_width(o);
    const int tasks = plan->own * (int)H;
    const rfa_plan *source = plan->source ? plan->source : plan;
    (void)round;
    for (int e = 0; e < plan->examples; e++) {
        RFA_TRY(rfa_gathered_fetch(attention, saved, source, e));
        const rfa_gathered *own = attention->scratch;
        const ptrdiff_t size = rfa_gathered_rows(attention) * 2 * d;
#pragma omp parallel for schedule(dynamic)
        for (int task = 0; task < tasks; task++) {
            RFA_PROFILE(RFA_PHASE_ATTENTION);
            const rfa_softmax_block queries =
                rfa_gathered_queries(saved, &plan->leaves[e * plan->own + task / H]);
            const ptrdiff_t h = task % H;
            const rfa_softmax_keys keys = head_keys(own, o, h);
            double *dkv = own->dkv + task * size;
            const rfa_softmax_gradient dkeys = {.k = dkv, .v = dkv + d, .ld = 2 * d};
            memset(dkv, 0, (size_t)size * sizeof *dkv);
            rfa_softmax_read_backward(gradient->dqkv + h * d, 3 * E, &dkeys, gradient->dout + h * d,
                                      E, saved->out + h * d, E, saved->den + h * plan->rows,
                                      saved->qkv + h * d, 3 * E, &queries, &keys, d, o->causal,
                                      works[omp_get_thread_num()]);
        }
        RFA_TRY(rfa_gathered_return(gradient->dqkv, attention, source, e));
    }
    return RFA_OK;
}

static double
softmax_flops(const rfa_attention_options *options, ptrdiff_t n, ptrdiff_t read, bool backward)
{
    const double pairs = (double)read * (double)n;
    return (backward ? 10 : 4) * (double)options->width * (options->causal ? pairs / 2 : pairs);
}

const rfa_mechanism rfa_mechanism_softmax = {
    .carve = rfa_gathered_carve,
    .work = softmax_work,
    .exchange = softmax_exchange,
    .exchange_backward = softmax_exchange_backward,
    .flops = softmax_flops,
};
