#include "layers/attention_layer.h"

#include "attention/linear.h"
#include "attention/softmax.h"

#include <omp.h>
#include <string.h>

static ptrdiff_t head_width(const rfa_attention *attention)
{
    return attention->options.width / attention->options.heads;
}

static bool is_softmax(const rfa_attention *attention)
{
    return attention->options.kind == RFA_ATTENTION_SOFTMAX;
}

static rfa_feature_map
head_map(const rfa_attention *attention, const rfa_attention_saved *saved, ptrdiff_t head)
{
    const ptrdiff_t d = head_width(attention);
    return (rfa_feature_map){
        .width = d,
        .projections = attention->options.pool->projections,
        .w = saved ? saved->w[head] : NULL,
        .sigma = saved ? saved->sigma + head * d : NULL,
    };
}

// Numbers of one head's state, and of the states of all examples and heads.
static ptrdiff_t state_size(const rfa_attention *attention)
{
    const rfa_feature_map map = head_map(attention, NULL, 0);
    return rfa_linear_state_size(&map);
}

static ptrdiff_t states_size(const rfa_attention *attention, const rfa_plan *plan)
{
    return plan->examples * attention->options.heads * state_size(attention);
}

// Where the state of (leaf, head) stands in an array [own][examples][H][state].
static ptrdiff_t
state_at(const rfa_attention *attention, const rfa_plan *plan, int leaf, ptrdiff_t head)
{
    const ptrdiff_t example = leaf / plan->own, own = leaf % plan->own;
    return ((own * plan->examples + example) * attention->options.heads + head) *
           state_size(attention);
}

// Where the state of (example of the leaf, head) stands in an array [examples][H][state].
static ptrdiff_t
total_at(const rfa_attention *attention, const rfa_plan *plan, int leaf, ptrdiff_t head)
{
    return (leaf / plan->own * attention->options.heads + head) * state_size(attention);
}

ptrdiff_t rfa_attention_read_rows(const rfa_attention_saved *saved, const rfa_leaf *leaf)
{
    if (!saved->first_only) {
        return leaf->rows;
    }
    return leaf->begin == 0 && leaf->tokens > 0 ? RFA_ROWS : 0;
}

static rfa_head leaf_head(const rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          int leaf,
                          ptrdiff_t head)
{
    const ptrdiff_t E = attention->options.width, ld = 3 * E;
    const rfa_leaf *part = &plan->leaves[leaf];
    const rfa_real *q = saved->qkv + part->row0 * ld + head * head_width(attention);
    return (rfa_head){
        .q = q,
        .k = q + E,
        .v = q + 2 * E,
        .ld = ld,
        .rows = part->rows,
        .mask = plan->mask + part->row0,
    };
}

void rfa_attention_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan)
{
    const ptrdiff_t E = attention->options.width, H = attention->options.heads;
    if (is_softmax(attention)) {
        const ptrdiff_t longest = plan->longest_example, d = head_width(attention);
        attention->gathered = rfa_carve(arena, longest * 2 * E, sizeof(rfa_real));
        attention->gathered_gradient =
            rfa_carve(arena, plan->own * H * longest * 2 * d, sizeof(double));
        attention->counts = rfa_carve(arena, attention->options.sequence->size, sizeof(ptrdiff_t));
    } else {
        const ptrdiff_t size = states_size(attention, plan);
        attention->states = rfa_carve(arena, plan->own * size, sizeof(double));
        attention->dtotal =
            attention->options.causal ? NULL : rfa_carve(arena, size, sizeof(rfa_real));
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
    if (!is_softmax(attention)) {
        const ptrdiff_t size = states_size(attention, plan);
        if (attention->options.causal) {
            saved->before = rfa_carve(arena, plan->own * size, sizeof(double));
        } else {
            saved->total = rfa_carve(arena, size, sizeof(rfa_real));
        }
    }
}

ptrdiff_t rfa_attention_work(const rfa_attention *attention, const rfa_plan *plan)
{
    if (is_softmax(attention)) {
        return rfa_softmax_work_size(plan->longest_leaf, head_width(attention));
    }
    const rfa_feature_map map = head_map(attention, NULL, 0);
    return rfa_linear_work(&map, plan->longest_leaf);
}

void rfa_attention_local(const rfa_attention *attention,
                         rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         int leaf,
                         rfa_real *work)
{
    if (is_softmax(attention)) {
        return;
    }
    double *states = attention->options.causal ? saved->before : attention->states;
    for (ptrdiff_t h = 0; h < attention->options.heads; h++) {
        const rfa_head head = leaf_head(attention, saved, plan, leaf, h);
        const rfa_feature_map map = head_map(attention, saved, h);
        rfa_linear_state(states + state_at(attention, plan, leaf, h), &head, &map, work);
    }
}

// The segments of one example: rows in the gathered array, and the rows that each rank brings.
static void example_blocks(rfa_softmax_block *blocks,
                           const rfa_attention *attention,
                           const rfa_plan *plan,
                           int example)
{
    const int G = attention->options.segments, P = attention->options.sequence->size;
    ptrdiff_t row = 0;
    for (int p = 0; p < P; p++) {
        attention->counts[p] = 0;
        for (int g = rfa_part_begin(G, P, p); g < rfa_part_begin(G, P, p + 1); g++) {
            const ptrdiff_t length = plan->lengths[example];
            const ptrdiff_t begin = rfa_segment_begin(length, G, g);
            const ptrdiff_t tokens = rfa_segment_begin(length, G, g + 1) - begin;
            blocks[g] = (rfa_softmax_block){
                .row0 = row, .rows = rfa_padded(tokens), .tokens = tokens, .begin = begin};
            row += blocks[g].rows;
            attention->counts[p] += blocks[g].rows;
        }
    }
}

// Keys and values of one example from all ranks into attention->gathered [rows][k | v].
static rfa_status gather_example(rfa_attention *attention,
                                 const rfa_attention_saved *saved,
                                 const rfa_plan *plan,
                                 const rfa_softmax_block *blocks,
                                 int example)
{
    const ptrdiff_t E = attention->options.width;
    for (int o = 0; o < plan->own; o++) {
        const rfa_leaf *leaf = &plan->leaves[example * plan->own + o];
        for (ptrdiff_t t = 0; t < leaf->rows; t++) {
            memcpy(attention->gathered + (blocks[leaf->segment].row0 + t) * 2 * E,
                   saved->qkv + (leaf->row0 + t) * 3 * E + E, (size_t)(2 * E) * sizeof(rfa_real));
        }
    }
    return rfa_gather_rows(attention->gathered, attention->counts, 2 * E,
                           attention->options.sequence, &attention->gather_cost);
}

// The queries of a leaf that are read out, in the arrays of this rank.
static rfa_softmax_block own_block(const rfa_attention_saved *saved, const rfa_leaf *leaf)
{
    const ptrdiff_t rows = rfa_attention_read_rows(saved, leaf);
    return (rfa_softmax_block){.row0 = leaf->row0,
                               .rows = rows,
                               .tokens = leaf->tokens < rows ? leaf->tokens : rows,
                               .begin = leaf->begin};
}

static rfa_status softmax_exchange(rfa_attention *attention,
                                   rfa_attention_saved *saved,
                                   const rfa_plan *plan,
                                   rfa_real *const *works)
{
    const rfa_attention_options *options = &attention->options;
    const ptrdiff_t E = options->width, d = head_width(attention);
    const int tasks = plan->own * (int)options->heads;
    rfa_softmax_block *blocks = NULL;
    rfa_status status = rfa_agree(
        options->sequence, rfa_alloc(&blocks, options->segments, sizeof *blocks, "segments"));
    for (int e = 0; status == RFA_OK && e < plan->examples; e++) {
        example_blocks(blocks, attention, plan, e);
        status = gather_example(attention, saved, plan, blocks, e);
        if (status != RFA_OK) {
            break;
        }
#pragma omp parallel for schedule(dynamic)
        for (int task = 0; task < tasks; task++) {
            const rfa_softmax_block own =
                own_block(saved, &plan->leaves[e * plan->own + task / options->heads]);
            const ptrdiff_t h = task % options->heads;
            const rfa_real *k = attention->gathered + h * d;
            rfa_softmax_forward(saved->out + h * d, E, saved->den + h * plan->rows,
                                saved->qkv + h * d, 3 * E, &own, k, 2 * E, k + E, 2 * E, blocks,
                                options->segments, d, options->causal, works[omp_get_thread_num()]);
        }
    }
    rfa_free(blocks);
    return status;
}

rfa_status rfa_attention_exchange(rfa_attention *attention,
                                  rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  rfa_real *const *works)
{
    if (is_softmax(attention)) {
        return softmax_exchange(attention, saved, plan, works);
    }
    const ptrdiff_t size = states_size(attention, plan);
    if (attention->options.causal) {
        return rfa_exchange_run(attention->options.exchange, RFA_PREFIX, saved->before, size);
    }
    RFA_TRY(rfa_exchange_run(attention->options.exchange, RFA_TOTAL, attention->states, size));
#pragma omp parallel for schedule(static)
    for (ptrdiff_t i = 0; i < size; i++) {
        saved->total[i] = (rfa_real)attention->states[i];
    }
    return RFA_OK;
}

int64_t rfa_attention_read(const rfa_attention *attention,
                           rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int leaf,
                           rfa_real *work)
{
    if (is_softmax(attention)) {
        return 0;
    }
    const ptrdiff_t E = attention->options.width, row0 = plan->leaves[leaf].row0;
    int64_t guards = 0;
    for (ptrdiff_t h = 0; h < attention->options.heads; h++) {
        rfa_head head = leaf_head(attention, saved, plan, leaf, h);
        const rfa_feature_map map = head_map(attention, saved, h);
        head.rows = rfa_attention_read_rows(saved, &plan->leaves[leaf]);
        rfa_real *out = saved->out + row0 * E + h * head_width(attention);
        rfa_real *den = saved->den + h * plan->rows + row0;
        if (attention->options.causal) {
            guards += rfa_causal_read(out, E, den, &head, &map,
                                      saved->before + state_at(attention, plan, leaf, h), work);
        } else {
            guards += rfa_linear_read(out, E, den, &head, &map,
                                      saved->total + total_at(attention, plan, leaf, h), work);
        }
    }
    return guards;
}

void rfa_attention_read_backward(rfa_real *dqkv,
                                 rfa_real *dsigma,
                                 const rfa_real *dout,
                                 const rfa_attention *attention,
                                 const rfa_attention_saved *saved,
                                 const rfa_plan *plan,
                                 int leaf,
                                 rfa_real *work)
{
    const ptrdiff_t E = attention->options.width, d = head_width(attention);
    const ptrdiff_t row0 = plan->leaves[leaf].row0;
    const ptrdiff_t rows = rfa_attention_read_rows(saved, &plan->leaves[leaf]);
    for (ptrdiff_t t = rows; t < plan->leaves[leaf].rows; t++) { // queries that nobody reads
        memset(dqkv + (row0 + t) * 3 * E, 0, (size_t)E * sizeof *dqkv);
    }
    if (is_softmax(attention)) {
        return;
    }
    for (ptrdiff_t h = 0; h < attention->options.heads; h++) {
        rfa_head head = leaf_head(attention, saved, plan, leaf, h);
        const rfa_feature_map map = head_map(attention, saved, h);
        head.rows = rows;
        const bool causal =
            attention->options.causal; // its dq needs no exchange, but comes with dk
        rfa_linear_read_backward(
            causal ? NULL : dqkv + row0 * 3 * E + h * d, 3 * E,
            attention->states + state_at(attention, plan, leaf, h), dsigma + h * d,
            dout + row0 * E + h * d, saved->out + row0 * E + h * d, E,
            saved->den + h * plan->rows + row0, &head, &map,
            causal ? NULL : saved->total + total_at(attention, plan, leaf, h), work);
    }
}

static rfa_status softmax_exchange_backward(rfa_real *dqkv,
                                            const rfa_real *dout,
                                            rfa_attention *attention,
                                            const rfa_attention_saved *saved,
                                            const rfa_plan *plan,
                                            rfa_real *const *works)
{
    const rfa_attention_options *options = &attention->options;
    const ptrdiff_t E = options->width, H = options->heads, d = head_width(attention);
    const int tasks = plan->own * (int)H;
    rfa_softmax_block *blocks = NULL;
    rfa_status status = rfa_agree(
        options->sequence, rfa_alloc(&blocks, options->segments, sizeof *blocks, "segments"));
    for (int e = 0; status == RFA_OK && e < plan->examples; e++) {
        example_blocks(blocks, attention, plan, e);
        status = gather_example(attention, saved, plan, blocks, e);
        if (status != RFA_OK) {
            break;
        }
        const rfa_softmax_block *last = &blocks[options->segments - 1];
        const ptrdiff_t rows = last->row0 + last->rows, size = rows * 2 * d;
#pragma omp parallel for schedule(dynamic)
        for (int task = 0; task < tasks; task++) {
            const rfa_softmax_block own = own_block(saved, &plan->leaves[e * plan->own + task / H]);
            const ptrdiff_t h = task % H;
            const rfa_real *k = attention->gathered + h * d;
            double *dkv = attention->gathered_gradient + task * size;
            memset(dkv, 0, (size_t)size * sizeof *dkv);
            rfa_softmax_backward(dqkv + h * d, 3 * E, dkv, dout + h * d, E, saved->out + h * d, E,
                                 saved->den + h * plan->rows, saved->qkv + h * d, 3 * E, &own, k,
                                 2 * E, k + E, 2 * E, blocks, options->segments, d, options->causal,
                                 works[omp_get_thread_num()]);
        }
        // The contributions of all query segments, folded in the tree's order.
        status =
            rfa_exchange_run(options->exchange, RFA_TOTAL, attention->gathered_gradient, H * size);
        for (int o = 0; status == RFA_OK && o < plan->own; o++) {
            const rfa_leaf *leaf = &plan->leaves[e * plan->own + o];
            const ptrdiff_t first = blocks[leaf->segment].row0;
            for (ptrdiff_t h = 0; h < H; h++) {
                const double *sum = attention->gathered_gradient + h * size + first * 2 * d;
                rfa_real *dk = dqkv + leaf->row0 * 3 * E + E + h * d;
                for (ptrdiff_t t = 0; t < leaf->rows; t++) {
                    for (ptrdiff_t j = 0; j < d; j++) {
                        dk[t * 3 * E + j] = (rfa_real)sum[t * 2 * d + j];
                        dk[t * 3 * E + E + j] = (rfa_real)sum[t * 2 * d + d + j];
                    }
                }
            }
        }
    }
    rfa_free(blocks);
    return status;
}

rfa_status rfa_attention_exchange_backward(rfa_real *dqkv,
                                           const rfa_real *dout,
                                           rfa_attention *attention,
                                           const rfa_attention_saved *saved,
                                           const rfa_plan *plan,
                                           rfa_real *const *works)
{
    if (is_softmax(attention)) {
        return softmax_exchange_backward(dqkv, dout, attention, saved, plan, works);
    }
    const ptrdiff_t size = states_size(attention, plan);
    if (attention->options.causal) {
        return rfa_exchange_run(attention->options.exchange, RFA_SUFFIX, attention->states, size);
    }
    RFA_TRY(rfa_exchange_run(attention->options.exchange, RFA_TOTAL, attention->states, size));
#pragma omp parallel for schedule(static)
    for (ptrdiff_t i = 0; i < size; i++) {
        attention->dtotal[i] = (rfa_real)attention->states[i];
    }
    return RFA_OK;
}

void rfa_attention_local_backward(rfa_real *dqkv,
                                  rfa_real *dsigma,
                                  const rfa_real *dout,
                                  const rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int leaf,
                                  rfa_real *work)
{
    if (is_softmax(attention)) {
        return;
    }
    const ptrdiff_t E = attention->options.width, d = head_width(attention);
    const ptrdiff_t row0 = plan->leaves[leaf].row0;
    for (ptrdiff_t h = 0; h < attention->options.heads; h++) {
        const rfa_head head = leaf_head(attention, saved, plan, leaf, h);
        const rfa_feature_map map = head_map(attention, saved, h);
        rfa_real *dq = dqkv + row0 * 3 * E + h * d;
        if (attention->options.causal) {
            const ptrdiff_t at = state_at(attention, plan, leaf, h);
            rfa_causal_backward(dq, dq + E, dq + 2 * E, 3 * E, dsigma + h * d,
                                dout + row0 * E + h * d, saved->out + row0 * E + h * d, E,
                                saved->den + h * plan->rows + row0, &head, &map, saved->before + at,
                                attention->states + at, work);
        } else {
            rfa_linear_state_backward(dq + E, dq + 2 * E, 3 * E, dsigma + h * d, &head, &map,
                                      attention->dtotal + total_at(attention, plan, leaf, h), work);
        }
    }
}

double rfa_attention_flops(const rfa_attention_options *options,
                           ptrdiff_t n,
                           ptrdiff_t read,
                           bool backward)
{
    const double N = (double)n, R = (double)read, E = (double)options->width;
    if (options->kind == RFA_ATTENTION_SOFTMAX) {
        return (backward ? 10 : 4) * E * (options->causal ? R * N / 2 : R * N);
    }
    const double D = (double)options->pool->projections, F = 2 * D;
    return (N + R) * E * (2 * D + (backward ? 4 : 2) * F);
}
