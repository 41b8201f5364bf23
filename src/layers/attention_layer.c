#include "layers/attention_impl.h"

#include "base/profile.h"

#include <string.h>

// The kinds: a new one is a row here, a file of its own, and a choice of attention.kind.
static const rfa_mechanism *const mechanisms[] = {
    [RFA_ATTENTION_RFA] = &rfa_mechanism_linear, [RFA_ATTENTION_SOFTMAX] = &rfa_mechanism_softmax,
    [RFA_ATTENTION_ELU] = &rfa_mechanism_linear, [RFA_ATTENTION_PERFORMER] = &rfa_mechanism_linear,
    [RFA_ATTENTION_LARA] = &rfa_mechanism_lara,  [RFA_ATTENTION_RA] = &rfa_mechanism_ra,
    [RFA_ATTENTION_EVA] = &rfa_mechanism_eva,
};

rfa_status rfa_attention_create(rfa_attention *attention,
                                const rfa_attention_options *options,
                                rfa_exchange *exchange,
                                const rfa_comm *sequence)
{
    *attention = (rfa_attention){
        .options = *options,
        .mechanism = mechanisms[options->kind],
        .exchange = exchange,
        .sequence = sequence,
    };
    const rfa_mechanism *mechanism = attention->mechanism;
    RFA_ASSERT(!options->causal || options->kind != RFA_ATTENTION_LARA);
    RFA_ASSERT(!options->causal || options->map != RFA_MAP_OPRF || options->direction == RFA_BOTH);
    RFA_TRY(rfa_alloc(&attention->costs, 2 * options->layers, sizeof *attention->costs,
                      "costs of the exchange"));
    if (mechanism->tensors) {
        attention->tensors = mechanism->tensors(attention->tensor, options);
        RFA_ASSERT(attention->tensors <= RFA_ATTENTION_TENSORS);
    }
    for (int i = 0; i < attention->tensors; i++) {
        rfa_attention_tensor *tensor = &attention->tensor[i];
        tensor->at = attention->parameters;
        attention->parameters += rfa_padded(tensor->rows * (tensor->columns ? tensor->columns : 1));
    }
    if (mechanism->pool_rows && mechanism->pool_rows(options)) {
        RFA_TRY(rfa_alloc(&attention->matrix, options->layers * options->heads,
                          sizeof *attention->matrix, "projections"));
        return rfa_pool_create(&attention->pool, options->rows, options->seed, options->pool,
                               options->projections, rfa_head_width(options));
    }
    return RFA_OK;
}

void rfa_attention_destroy(rfa_attention *attention)
{
    rfa_pool_destroy(&attention->pool);
    rfa_free(attention->matrix);
    rfa_free(attention->costs);
    attention->matrix = NULL;
    attention->costs = NULL;
}

rfa_status rfa_attention_init(rfa_real *values, const rfa_attention *attention, ptrdiff_t layer)
{
    const rfa_mechanism *mechanism = attention->mechanism;
    if (!mechanism->init) {
        return RFA_OK;
    }
    rfa_real *work = NULL;
    RFA_TRY(rfa_alloc(&work, mechanism->init_work(&attention->options), sizeof *work,
                      "initial values"));
    mechanism->init(values, attention, layer, work);
    rfa_free(work);
    return RFA_OK;
}

void rfa_attention_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan)
{
    attention->mechanism->carve(attention, arena, plan);
}

double *
rfa_attention_carve_carry(rfa_arena *arena, const rfa_attention *attention, const rfa_plan *plan)
{
    return attention->mechanism->carve_carry
               ? attention->mechanism->carve_carry(arena, attention, plan)
               : NULL;
}

void rfa_attention_carve_kept(rfa_attention_saved *saved,
                              rfa_arena *arena,
                              const rfa_attention *attention,
                              const rfa_plan *plan,
                              double *carry)
{
    if (attention->mechanism->carve_kept) {
        attention->mechanism->carve_kept(saved, arena, attention, plan, carry);
    }
}

void rfa_attention_carve_saved(rfa_attention_saved *saved,
                               rfa_arena *arena,
                               const rfa_attention *attention,
                               const rfa_plan *plan)
{
    const ptrdiff_t E = attention->options.width, H = attention->options.heads;
    saved->qkv = rfa_carve(arena, plan->rows * 3 * E, sizeof(rfa_real));
    saved->out = rfa_carve(arena, plan->rows * E, sizeof(rfa_real));
    saved->den = rfa_carve(arena, plan->rows * H, sizeof(rfa_real));
    if (attention->mechanism->carve_saved) {
        attention->mechanism->carve_saved(saved, arena, attention, plan);
    }
}

ptrdiff_t rfa_attention_work(const rfa_attention *attention, const rfa_plan *plan)
{
    return attention->mechanism->work(attention, plan);
}

void rfa_attention_begin(const rfa_attention *attention, rfa_attention_saved *saved, rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    if (attention->mechanism->begin) {
        attention->mechanism->begin(attention, saved, work);
    }
}

int rfa_attention_rounds(const rfa_attention *attention)
{
    return attention->mechanism->rounds ? attention->mechanism->rounds(&attention->options) : 1;
}

ptrdiff_t rfa_attention_read_rows(const rfa_attention_saved *saved, const rfa_leaf *leaf)
{
    if (!saved->first_only) {
        return leaf->rows;
    }
    return leaf->begin == 0 && leaf->tokens > 0 ? RFA_ROWS : 0;
}

void rfa_attention_local(const rfa_attention *attention,
                         rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         int round,
                         int leaf,
                         const rfa_real *x,
                         rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    if (attention->mechanism->local) {
        attention->mechanism->local(attention, saved, plan, round, leaf, x, work);
    }
}

bool rfa_attention_queries_late(const rfa_attention *attention)
{
    const rfa_mechanism *mechanism = attention->mechanism;
    return mechanism->queries_late && mechanism->queries_late(&attention->options);
}

static rfa_exchange_cost minus(rfa_exchange_cost a, rfa_exchange_cost b)
{
    return (rfa_exchange_cost){
        .seconds = a.seconds - b.seconds,
        .calls = a.calls - b.calls,
        .messages = a.messages - b.messages,
        .bytes_sent = a.bytes_sent - b.bytes_sent,
    };
}

// By all layers so far.
static rfa_exchange_cost spent(const rfa_attention *attention)
{
    const rfa_exchange_cost none = {0};
    return minus(*rfa_exchange_costs(attention->exchange), minus(none, attention->gather_cost));
}

static void count(rfa_attention *attention, ptrdiff_t layer, bool backward)
{
    RFA_ASSERT(layer < attention->options.layers);
    rfa_exchange_cost *cost = &attention->costs[2 * layer + backward];
    *cost = minus(*cost, minus(attention->spent, spent(attention)));
}

const rfa_exchange_cost *
rfa_attention_cost(const rfa_attention *attention, ptrdiff_t layer, bool backward)
{
    return &attention->costs[2 * layer + backward];
}

rfa_status rfa_attention_exchange_start(rfa_attention *attention,
                                        rfa_attention_saved *saved,
                                        const rfa_plan *plan,
                                        int round,
                                        rfa_real *const *works)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    attention->spent = spent(attention);
    return attention->mechanism->exchange(attention, saved, plan, round, works);
}

void rfa_attention_exchange_pump(rfa_attention *attention)
{
    rfa_exchange_pump(attention->exchange);
}

void rfa_attention_exchange_end(rfa_attention *attention,
                                rfa_attention_saved *saved,
                                const rfa_plan *plan,
                                int round)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    if (attention->mechanism->exchange_end) {
        attention->mechanism->exchange_end(attention, saved, plan, round);
    }
    count(attention, saved->layer, false);
}

rfa_status rfa_attention_exchange(rfa_attention *attention,
                                  rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int round,
                                  rfa_real *const *works)
{
    RFA_TRY(rfa_attention_exchange_start(attention, saved, plan, round, works));
    rfa_attention_exchange_end(attention, saved, plan, round);
    return RFA_OK;
}

int64_t rfa_attention_read(const rfa_attention *attention,
                           rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int leaf,
                           rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    return attention->mechanism->read
               ? attention->mechanism->read(attention, saved, plan, leaf, work)
               : 0;
}

void rfa_attention_read_backward(const rfa_attention_gradient *gradient,
                                 rfa_real *dparameters,
                                 const rfa_attention *attention,
                                 const rfa_attention_saved *saved,
                                 const rfa_plan *plan,
                                 int leaf,
                                 rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    const ptrdiff_t E = attention->options.width;
    const rfa_leaf *part = &plan->leaves[leaf];
    for (ptrdiff_t t = rfa_attention_read_rows(saved, part); t < part->rows; t++) {
        memset(gradient->dqkv + (part->row0 + t) * 3 * E, 0, (size_t)E * sizeof(rfa_real));
    }
    if (attention->mechanism->read_backward) {
        attention->mechanism->read_backward(gradient, dparameters, attention, saved, plan, leaf,
                                            work);
    }
}

rfa_status rfa_attention_exchange_backward_start(const rfa_attention_gradient *gradient,
                                                 rfa_attention *attention,
                                                 const rfa_attention_saved *saved,
                                                 const rfa_plan *plan,
                                                 int round,
                                                 rfa_real *const *works)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    attention->spent = spent(attention);
    return attention->mechanism->exchange_backward(gradient, attention, saved, plan, round, works);
}

void rfa_attention_exchange_backward_end(rfa_attention *attention,
                                         const rfa_attention_saved *saved,
                                         const rfa_plan *plan,
                                         int round)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    if (attention->mechanism->exchange_backward_end) {
        attention->mechanism->exchange_backward_end(attention, saved, plan, round);
    }
    count(attention, saved->layer, true);
}

rfa_status rfa_attention_exchange_backward(const rfa_attention_gradient *gradient,
                                           rfa_attention *attention,
                                           const rfa_attention_saved *saved,
                                           const rfa_plan *plan,
                                           int round,
                                           rfa_real *const *works)
{
    RFA_TRY(rfa_attention_exchange_backward_start(gradient, attention, saved, plan, round, works));
    rfa_attention_exchange_backward_end(attention, saved, plan, round);
    return RFA_OK;
}

void rfa_attention_local_backward(const rfa_attention_gradient *gradient,
                                  rfa_real *dparameters,
                                  const rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int round,
                                  int leaf,
                                  rfa_real *work)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    if (attention->mechanism->local_backward) {
        attention->mechanism->local_backward(gradient, dparameters, attention, saved, plan, round,
                                             leaf, work);
    }
}

void rfa_attention_input_backward(rfa_real *dx,
                                  rfa_real *dparameters,
                                  const rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int leaf,
                                  const rfa_real *x)
{
    RFA_PROFILE(RFA_PHASE_ATTENTION);
    if (attention->mechanism->input_backward) {
        attention->mechanism->input_backward(dx, dparameters, attention, saved, plan, leaf, x);
    }
}

double rfa_attention_flops(const rfa_attention_options *options,
                           ptrdiff_t n,
                           ptrdiff_t read,
                           bool backward)
{
    return mechanisms[options->kind]->flops(options, n, read, backward);
}
