// Randomised attention: gathers keys and values of one example after the other, as softmax does.
#include "attention/ra.h"

#include "base/profile.h"
#include "layers/attention_softmax.h"

#include <omp.h>
#include <string.h>

// What a layer keeps: arrays of attention/ra.h for each head.
typedef struct {
    rfa_real *read; // [S][rows][E]; saved->out with one draw
    rfa_real *lse;  // [H][S][rows]
    int32_t *index; // [H][S][rows]
} ra_saved;

static void ra_carve_saved(rfa_attention_saved *saved,
                           rfa_arena *arena,
                           const rfa_attention *attention,
                           const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t S = o->draws, size = o->heads * S * plan->rows;
    ra_saved *own = rfa_carve(arena, 1, sizeof *own);
    const ra_saved arrays = {
        .read = S == 1 ? saved->out : rfa_carve(arena, S * plan->rows * o->width, sizeof(rfa_real)),
        .lse = rfa_carve(arena, size, sizeof(rfa_real)),
        .index = rfa_carve(arena, size, sizeof(int32_t)),
    };
    if (own) {
        *own = arrays;
    }
    saved->own = own;
}

static rfa_ra head_of(const rfa_attention *attention,
                      const rfa_attention_saved *saved,
                      int64_t example,
                      ptrdiff_t h)
{
    const rfa_attention_options *o = &attention->options;
    const int64_t place = (example * RFA_MOST_LAYERS + saved->layer) * RFA_MOST_HEADS + h;
    return (rfa_ra){
        .d = rfa_head_width(o),
        .draws = o->draws,
        .causal = o->causal,
        .noise = attention->training,
        .stream = rfa_rng_stream(o->seed, RFA_RNG_RA, (uint32_t)attention->step, (uint32_t)place),
    };
}

static rfa_ra_saved saved_of(const rfa_attention *attention,
                             const rfa_attention_saved *saved,
                             const rfa_plan *plan,
                             ptrdiff_t h)
{
    const ra_saved *own = saved->own;
    const ptrdiff_t at = h * attention->options.draws * plan->rows;
    return (rfa_ra_saved){
        .read = own->read + h * rfa_head_width(&attention->options),
        .lse = own->lse + at,
        .index = own->index + at,
        .ld = attention->options.width,
        .rows = plan->rows,
    };
}

static rfa_softmax_keys keys_of(const rfa_attention *attention, ptrdiff_t h)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_gathered *own = attention->scratch;
    const rfa_real *k = own->kv + h * rfa_head_width(o);
    return (rfa_softmax_keys){
        .k = k,
        .v = k + o->width,
        .ld_k = 2 * o->width,
        .ld_v = 2 * o->width,
        .blocks = own->blocks,
        .n = o->segments,
    };
}

static ptrdiff_t ra_work(const rfa_attention *attention, const rfa_plan *plan)
{
    const rfa_ra ra = {.d = rfa_head_width(&attention->options)};
    return rfa_ra_work(plan->longest_leaf, plan->longest_leaf, plan->longest_example, &ra);
}

static rfa_status ra_exchange(rfa_attention *attention,
                              rfa_attention_saved *saved,
                              const rfa_plan *plan,
                              int round,
                              rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, d = rfa_head_width(o);
    const int tasks = plan->own * (int)o->heads;
    (void)round;
    for (int e = 0; e < plan->examples; e++) {
        RFA_TRY(rfa_gathered_fetch(attention, saved, plan, e));
#pragma omp parallel for schedule(dynamic)
        for (int task = 0; task < tasks; task++) {
            RFA_PROFILE(RFA_PHASE_ATTENTION);
            const rfa_softmax_block queries =
                rfa_gathered_queries(saved, &plan->leaves[e * plan->own + task / o->heads]);
            const ptrdiff_t h = task % o->heads;
            const rfa_ra ra = head_of(attention, saved, plan->first + e, h);
            const rfa_ra_saved own = saved_of(attention, saved, plan, h);
            const rfa_softmax_keys keys = keys_of(attention, h);
            rfa_ra_forward(saved->out + h * d, &own, saved->qkv + h * d, 3 * E, &queries, &keys,
                           &ra, works[omp_get_thread_num()]);
        }
    }
    return RFA_OK;
}

static rfa_status ra_exchange_backward(const rfa_attention_gradient *gradient,
                                       rfa_attention *attention,
                                       const rfa_attention_saved *saved,
                                       const rfa_plan *plan,
                                       int round,
                                       rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, H = o->heads, d = rfa_head_width(o);
    const int tasks = plan->own * (int)H;
    (void)round;
    for (int e = 0; e < plan->examples; e++) {
        RFA_TRY(rfa_gathered_fetch(attention, saved, plan, e));
        const rfa_gathered *gathered = attention->scratch;
        const ptrdiff_t size = rfa_gathered_rows(attention) * 2 * d;
#pragma omp parallel for schedule(dynamic)
        for (int task = 0; task < tasks; task++) {
            RFA_PROFILE(RFA_PHASE_ATTENTION);
            const rfa_softmax_block queries =
                rfa_gathered_queries(saved, &plan->leaves[e * plan->own + task / H]);
            const ptrdiff_t h = task % H;
            const rfa_ra ra = head_of(attention, saved, plan->first + e, h);
            const rfa_ra_saved own = saved_of(attention, saved, plan, h);
            const rfa_softmax_keys keys = keys_of(attention, h);
            double *dkv = gathered->dkv + task * size;
            const rfa_softmax_gradient dkeys = {.k = dkv, .v = dkv + d, .ld = 2 * d};
            memset(dkv, 0, (size_t)size * sizeof *dkv);
            rfa_ra_backward(gradient->dqkv + h * d, 3 * E, &dkeys, gradient->dout + h * d, &own,
                            saved->qkv + h * d, 3 * E, &queries, &keys, &ra,
                            works[omp_get_thread_num()]);
        }
        RFA_TRY(rfa_gathered_return(gradient->dqkv, attention, plan, e));
    }
    return RFA_OK;
}

// With S draws, a pair of tokens: 2 E for the weights of the draw, 4 S E for the reads; backward 10
// S E.
static double
ra_flops(const rfa_attention_options *options, ptrdiff_t n, ptrdiff_t read, bool backward)
{
    const double all = (double)read * (double)n, pairs = options->causal ? all / 2 : all;
    const double S = (double)options->draws;
    return (backward ? 10 * S : 2 + 4 * S) * (double)options->width * pairs;
}

const rfa_mechanism rfa_mechanism_ra = {
    .carve = rfa_gathered_carve,
    .carve_saved = ra_carve_saved,
    .work = ra_work,
    .exchange = ra_exchange,
    .exchange_backward = ra_exchange_backward,
    .flops = ra_flops,
};
