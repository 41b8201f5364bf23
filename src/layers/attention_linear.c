// The linear kinds over leaves and ranks: rfa, elu, performer; causal, gated and bidirectional.
#include "layers/attention_linear.h"
#include "exchange/element.h"

#include <string.h>

// Where head h's state of a leaf stands in an array [own][H][examples][state], and in one of totals
// [H][examples][state].
static ptrdiff_t
total_at(const rfa_attention *attention, const rfa_plan *plan, int leaf, ptrdiff_t h)
{
    const ptrdiff_t example = leaf / plan->own;
    return (h * plan->examples + example) * rfa_linear_state_numbers(&attention->options);
}

static ptrdiff_t
state_at(const rfa_attention *attention, const rfa_plan *plan, int leaf, ptrdiff_t h)
{
    return leaf % plan->own * rfa_linear_row_size(attention, plan) +
           total_at(attention, plan, leaf, h);
}

// Head h of a leaf, of its first rows.
static rfa_head leaf_head(const rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          int leaf,
                          ptrdiff_t h,
                          ptrdiff_t rows,
                          const rfa_feature_map *map)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, ld = 3 * E, row0 = plan->leaves[leaf].row0;
    const rfa_linear_saved *own = rfa_linear_own(saved);
    const rfa_real *q = saved->qkv + row0 * ld + h * rfa_head_width(o);
    return (rfa_head){
        .q = q,
        .k = q + E,
        .v = q + 2 * E,
        .ld = ld,
        .rows = rows,
        .mask = plan->mask + row0,
        .map = map,
        .decay = own->decay ? own->decay + h * plan->rows + row0 : NULL,
        .input = o->gate == RFA_GATE_LEARNED ? own->input + h * plan->rows + row0 : NULL,
        .reverse = rfa_linear_is_reverse(o, h),
    };
}

static rfa_reading leaf_reading(const rfa_attention *attention,
                                const rfa_attention_saved *saved,
                                const rfa_plan *plan,
                                int leaf,
                                ptrdiff_t h)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t row0 = plan->leaves[leaf].row0;
    const rfa_linear_saved *own = rfa_linear_own(saved);
    return (rfa_reading){
        .out = saved->out + row0 * o->width + h * rfa_head_width(o),
        .ld = o->width,
        .den = saved->den + h * plan->rows + row0,
        .scale = own->scale ? own->scale + h * plan->rows + row0 : NULL,
    };
}

// Sums over the leaf that oprf's shape depends on.
static void take_statistics(const rfa_attention *attention,
                            const rfa_attention_saved *saved,
                            const rfa_plan *plan,
                            int leaf,
                            rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t size = rfa_oprf_statistics_size(rfa_head_width(o));
    const ptrdiff_t rows = plan->leaves[leaf].rows;
    double *sums =
        rfa_linear_own(saved)->statistics + leaf % plan->own * o->heads * plan->examples * size;
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        rfa_feature_map map = rfa_linear_map(attention, NULL, NULL, 0, 0);
        const rfa_head head = leaf_head(attention, saved, plan, leaf, h, rows, &map);
        rfa_oprf_statistics(sums + (h * plan->examples + leaf / plan->own) * size, head.q, head.k,
                            head.ld, head.mask, &map, rows, work);
    }
}

// oprf's shape depends on the queries too.
static bool queries_late(const rfa_attention_options *options)
{
    return rfa_linear_rounds(options) == 1;
}

// Rows of a leaf whose sum, or in the backward its adjoint, goes from a causal head to other
// segments: none of the segment that the head's scan comes to last, unless a window is next.
static ptrdiff_t rows_passed_on(
    const rfa_attention *attention, const rfa_plan *plan, int leaf, ptrdiff_t h, bool backward)
{
    const rfa_attention_options *o = &attention->options;
    const int last = rfa_linear_is_reverse(o, h) != backward ? 0 : o->segments - 1;
    const bool is_last = o->causal && plan->leaves[leaf].segment == last;
    return is_last && !plan->follows && !plan->is_followed ? 0 : plan->leaves[leaf].rows;
}

static void local(const rfa_attention *attention,
                  rfa_attention_saved *saved,
                  const rfa_plan *plan,
                  int round,
                  int leaf,
                  const rfa_real *x,
                  rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_saved *own = rfa_linear_own(saved);
    const rfa_linear_scratch *scratch = attention->scratch;
    if (o->gate != RFA_GATE_NONE && round == 0) {
        rfa_gates_open(attention, saved, plan, leaf, x);
    }
    if (attention->again) {
        return; // states are kept
    }
    if (round + 1 < rfa_linear_rounds(o)) {
        take_statistics(attention, saved, plan, leaf, work);
        return;
    }
    double *states = o->causal ? own->before : scratch->states;
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_feature_map map = rfa_linear_map(attention, saved, plan, leaf, h);
        const rfa_head head = leaf_head(attention, saved, plan, leaf, h,
                                        rows_passed_on(attention, plan, leaf, h, false), &map);
        rfa_linear_state(states + state_at(attention, plan, leaf, h), &head, work);
    }
}

// Whether states are scaled elements: the same for all heads.
static bool is_weighted(const rfa_attention *attention)
{
    const rfa_feature_map map = rfa_linear_map(attention, NULL, NULL, 0, 0);
    return attention->options.gate != RFA_GATE_NONE || rfa_feature_is_weighted(&map);
}

// Starts one exchange of the heads [first, end) of states.
static rfa_status exchange_heads(rfa_attention *attention,
                                 const rfa_plan *plan,
                                 rfa_exchange_kind kind,
                                 double *states,
                                 ptrdiff_t first,
                                 ptrdiff_t end)
{
    const ptrdiff_t state = rfa_linear_state_numbers(&attention->options);
    const ptrdiff_t a_head = plan->examples * state;
    const rfa_exchange_rows rows = {
        .size = (end - first) * a_head,
        .stride = rfa_linear_row_size(attention, plan),
        .unit = is_weighted(attention) ? state : 1,
    };
    return rfa_exchange_rows_start(attention->exchange, kind, states + first * a_head, rows);
}

// Forward heads by kind, reverse heads by its mirror image: two on their way for both directions.
static rfa_status exchange_directions(rfa_attention *attention,
                                      const rfa_plan *plan,
                                      rfa_exchange_kind kind,
                                      double *states)
{
    const rfa_attention_options *o = &attention->options;
    ptrdiff_t forward = 0;
    while (forward < o->heads && !rfa_linear_is_reverse(o, forward)) {
        forward++;
    }
    if (forward > 0) {
        RFA_TRY(exchange_heads(attention, plan, kind, states, 0, forward));
    }
    if (forward < o->heads) {
        const rfa_exchange_kind mirror = kind == RFA_PREFIX ? RFA_SUFFIX : RFA_PREFIX;
        return exchange_heads(attention, plan, mirror, states, forward, o->heads);
    }
    return RFA_OK;
}

// Sums that are seen by all: narrow ones of the first row of wide.
static void keep_total(rfa_real *narrow, const double *wide, ptrdiff_t size)
{
#pragma omp parallel for schedule(static)
    for (ptrdiff_t i = 0; i < size; i++) {
        narrow[i] = (rfa_real)wide[i];
    }
}

static rfa_status exchange(rfa_attention *attention,
                           rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int round,
                           rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_saved *own = rfa_linear_own(saved);
    const rfa_linear_scratch *scratch = attention->scratch;
    (void)works;
    if (attention->again) {
        return RFA_OK;
    }
    if (round + 1 < rfa_linear_rounds(o)) {
        const ptrdiff_t size = rfa_oprf_statistics_size(rfa_head_width(o));
        return rfa_exchange_run(attention->exchange, RFA_TOTAL, own->statistics,
                                o->heads * plan->examples * size);
    }
    if (o->causal) {
        rfa_linear_carry_in(attention, saved, plan, own->before, false);
        return exchange_directions(attention, plan, RFA_PREFIX, own->before);
    }
    return exchange_heads(attention, plan, RFA_TOTAL, scratch->states, 0, o->heads);
}

static void
exchange_end(rfa_attention *attention, rfa_attention_saved *saved, const rfa_plan *plan, int round)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_saved *own = rfa_linear_own(saved);
    const rfa_linear_scratch *scratch = attention->scratch;
    rfa_exchange_finish(attention->exchange);
    if (attention->again || round + 1 < rfa_linear_rounds(o)) {
        return;
    }
    if (o->causal) {
        rfa_linear_carry_out(attention, saved, plan, own->before, false);
    } else {
        keep_total(own->total, scratch->states, rfa_linear_row_size(attention, plan));
    }
}

static int64_t read(const rfa_attention *attention,
                    rfa_attention_saved *saved,
                    const rfa_plan *plan,
                    int leaf,
                    rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_saved *own = rfa_linear_own(saved);
    const ptrdiff_t rows = rfa_attention_read_rows(saved, &plan->leaves[leaf]);
    int64_t guards = 0;
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_feature_map map = rfa_linear_map(attention, saved, plan, leaf, h);
        const rfa_head head = leaf_head(attention, saved, plan, leaf, h, rows, &map);
        const rfa_reading reading = leaf_reading(attention, saved, plan, leaf, h);
        guards += o->causal
                      ? rfa_causal_read(&reading, &head,
                                        own->before + state_at(attention, plan, leaf, h), work)
                      : rfa_linear_read(&reading, &head,
                                        own->total + total_at(attention, plan, leaf, h), work);
    }
    return guards;
}

// Where the gradients of head h of a leaf go.
static rfa_head_gradient leaf_gradient(const rfa_attention_gradient *gradient,
                                       const rfa_attention *attention,
                                       const rfa_plan *plan,
                                       int leaf,
                                       ptrdiff_t h,
                                       const rfa_map_gradient *map)
{
    const ptrdiff_t E = attention->options.width;
    rfa_real *dq =
        gradient->dqkv + plan->leaves[leaf].row0 * 3 * E + h * rfa_head_width(&attention->options);
    return (rfa_head_gradient){.q = dq, .k = dq + E, .v = dq + 2 * E, .ld = 3 * E, .map = *map};
}

// Bidirectional: gradients of queries and the adjoint of the total; causal: the adjoint alone, as
// gradients of queries come with those of keys.
static void read_backward(const rfa_attention_gradient *gradient,
                          rfa_real *dparameters,
                          const rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          int leaf,
                          rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_scratch *scratch = attention->scratch;
    const ptrdiff_t row0 = plan->leaves[leaf].row0;
    const ptrdiff_t rows = rfa_attention_read_rows(saved, &plan->leaves[leaf]);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_feature_map map = rfa_linear_map(attention, saved, plan, leaf, h);
        const ptrdiff_t passed = rows_passed_on(attention, plan, leaf, h, true);
        const rfa_head head =
            leaf_head(attention, saved, plan, leaf, h, passed < rows ? passed : rows, &map);
        const rfa_reading reading = leaf_reading(attention, saved, plan, leaf, h);
        const rfa_real *dout = gradient->dout + row0 * o->width + h * rfa_head_width(o);
        double *dstate = scratch->states + state_at(attention, plan, leaf, h);
        if (o->causal) {
            rfa_causal_adjoint(dstate, dout, &reading, &head, work);
            continue;
        }
        const rfa_linear_gradient own = rfa_linear_gradient_begin(attention, work);
        const rfa_head_gradient to = leaf_gradient(gradient, attention, plan, leaf, h, &own.map);
        rfa_linear_read_backward(&to, dstate, dout, &reading, &head,
                                 rfa_linear_own(saved)->total + total_at(attention, plan, leaf, h),
                                 own.work);
        rfa_linear_gradient_end(dparameters, &own, attention, saved, h);
    }
}

static rfa_status exchange_backward(const rfa_attention_gradient *gradient,
                                    rfa_attention *attention,
                                    const rfa_attention_saved *saved,
                                    const rfa_plan *plan,
                                    int round,
                                    rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_scratch *scratch = attention->scratch;
    const ptrdiff_t size = rfa_linear_row_size(attention, plan);
    (void)gradient, (void)saved, (void)works;
    if (round + 1 < rfa_linear_rounds(o)) {
        return RFA_OK; // oprf's shape is a constant
    }
    if (o->causal) {
        rfa_linear_carry_in(attention, saved, plan, scratch->states, true);
        return exchange_directions(attention, plan, RFA_SUFFIX, scratch->states);
    }
    // All are relative to the total's scale: a plain sum.
    const rfa_exchange_rows rows = {size, size, 1};
    return rfa_exchange_rows_start(attention->exchange, RFA_TOTAL, scratch->states, rows);
}

static void exchange_backward_end(rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int round)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_scratch *scratch = attention->scratch;
    rfa_exchange_finish(attention->exchange);
    if (round + 1 < rfa_linear_rounds(o)) {
        return;
    }
    if (o->causal) {
        rfa_linear_carry_out(attention, saved, plan, scratch->states, true);
    } else {
        keep_total(scratch->dtotal, scratch->states, rfa_linear_row_size(attention, plan));
    }
}

static void local_backward(const rfa_attention_gradient *gradient,
                           rfa_real *dparameters,
                           const rfa_attention *attention,
                           const rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int round,
                           int leaf,
                           rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_scratch *scratch = attention->scratch;
    const rfa_linear_saved *saved_own = rfa_linear_own(saved);
    const rfa_leaf *part = &plan->leaves[leaf];
    if (round + 1 < rfa_linear_rounds(o)) {
        return;
    }
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_feature_map map = rfa_linear_map(attention, saved, plan, leaf, h);
        const rfa_head head = leaf_head(attention, saved, plan, leaf, h, part->rows, &map);
        rfa_linear_gradient own = rfa_linear_gradient_begin(attention, work);
        rfa_head_gradient to = leaf_gradient(gradient, attention, plan, leaf, h, &own.map);
        if (o->causal) {
            const rfa_reading reading = leaf_reading(attention, saved, plan, leaf, h);
            const ptrdiff_t at = state_at(attention, plan, leaf, h);
            if (o->gate == RFA_GATE_LEARNED) {
                to.decay = own.work;
                to.input = to.decay + part->rows;
                own.work = to.input + part->rows;
            }
            rfa_causal_backward(&to, gradient->dout + part->row0 * o->width + h * rfa_head_width(o),
                                &reading, &head, saved_own->before + at, scratch->states + at,
                                own.work);
            if (to.decay) {
                rfa_gates_close(attention, saved, plan, leaf, h, to.decay, to.input);
            }
        } else {
            const ptrdiff_t at = total_at(attention, plan, leaf, h);
            rfa_linear_state_backward(&to, &head, saved_own->total[at], scratch->dtotal + at,
                                      own.work);
        }
        rfa_linear_gradient_end(dparameters, &own, attention, saved, h);
    }
}

const rfa_mechanism rfa_mechanism_linear = {
    .rounds = rfa_linear_rounds,
    .pool_rows = rfa_linear_pool_rows,
    .tensors = rfa_linear_tensors_fill,
    .init = rfa_linear_init,
    .init_work = rfa_linear_init_work,
    .carve = rfa_linear_carve,
    .carve_carry = rfa_linear_carve_carry,
    .carve_kept = rfa_linear_carve_kept,
    .carve_saved = rfa_linear_carve_saved,
    .work = rfa_linear_layer_work,
    .begin = rfa_linear_begin,
    .queries_late = queries_late,
    .local = local,
    .exchange = exchange,
    .exchange_end = exchange_end,
    .read = read,
    .read_backward = read_backward,
    .exchange_backward = exchange_backward,
    .exchange_backward_end = exchange_backward_end,
    .local_backward = local_backward,
    .input_backward = rfa_gates_input_backward,
    .flops = rfa_linear_flops,
};
