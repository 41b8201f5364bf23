#include "models/classifier_impl.h"

#include "layers/embedding.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>

static ptrdiff_t most(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

static rfa_status add_norm(
    rfa_parameters *table, ptrdiff_t *scale, ptrdiff_t *shift, ptrdiff_t width, const char *name)
{
    RFA_TRY(rfa_parameters_add(table, scale, width, 0, RFA_INIT_CONSTANT, 1, "%s.scale", name));
    return rfa_parameters_add(table, shift, width, 0, RFA_INIT_CONSTANT, 0, "%s.shift", name);
}

static rfa_status add_linear(rfa_parameters *table,
                             ptrdiff_t *w,
                             ptrdiff_t *b,
                             ptrdiff_t out,
                             ptrdiff_t in,
                             const char *name)
{
    const double bound = 1 / sqrt((double)in);
    RFA_TRY(rfa_parameters_add(table, w, out, in, RFA_INIT_UNIFORM, bound, "%s.weight", name));
    return rfa_parameters_add(table, b, out, 0, RFA_INIT_UNIFORM, bound, "%s.bias", name);
}

// "layer1.norm2": the name under which a part of a block stands in checkpoints.
static const char *part_name(char text[48], ptrdiff_t layer, const char *part)
{
    snprintf(text, 48, "layer%td.%s", layer, part);
    return text;
}

static rfa_status add_block(rfa_classifier *model, ptrdiff_t layer)
{
    const rfa_classifier_options *o = &model->options;
    rfa_parameters *table = &model->table;
    rfa_block_offsets *at = &model->at.block[layer];
    char name[48];
    RFA_TRY(add_norm(table, &at->norm1_scale, &at->norm1_shift, o->width,
                     part_name(name, layer, "norm1")));
    RFA_TRY(add_linear(table, &at->qkv_w, &at->qkv_b, 3 * o->width, o->width,
                       part_name(name, layer, "attention.qkv")));
    for (int i = 0; i < model->attention.tensors; i++) {
        const rfa_attention_tensor *tensor = &model->attention.tensor[i];
        ptrdiff_t offset = 0;
        RFA_TRY(rfa_parameters_add(table, &offset, tensor->rows, tensor->columns, tensor->init,
                                   tensor->value, "layer%td.attention.%s", layer, tensor->name));
        if (i == 0) {
            at->attention = offset;
        }
        RFA_ASSERT(offset == at->attention + tensor->at);
    }
    RFA_TRY(add_linear(table, &at->out_w, &at->out_b, o->width, o->width,
                       part_name(name, layer, "attention.out")));
    RFA_TRY(add_norm(table, &at->norm2_scale, &at->norm2_shift, o->width,
                     part_name(name, layer, "norm2")));
    RFA_TRY(add_linear(table, &at->in_w, &at->in_b, o->feed_forward, o->width,
                       part_name(name, layer, "feed_forward.in")));
    return add_linear(table, &at->ff_w, &at->ff_b, o->width, o->feed_forward,
                      part_name(name, layer, "feed_forward.out"));
}

static rfa_status add_parameters(rfa_classifier *model)
{
    const rfa_classifier_options *o = &model->options;
    rfa_parameters *table = &model->table;
    RFA_TRY(rfa_parameters_add(table, &model->at.tokens, o->vocabulary, o->width, RFA_INIT_NORMAL,
                               0.02, "embedding.tokens"));
    if (o->positions == RFA_POSITIONS_LEARNED) {
        RFA_TRY(rfa_parameters_add(table, &model->at.positions, o->max_length, o->width,
                                   RFA_INIT_NORMAL, 0.02, "embedding.positions"));
    }
    for (ptrdiff_t layer = 0; layer < o->layers; layer++) {
        RFA_TRY(add_block(model, layer));
    }
    RFA_TRY(add_norm(table, &model->at.norm_scale, &model->at.norm_shift, o->width, "norm"));
    static const char *const names[] = {"head.hidden", "head.hidden2"};
    const rfa_head_weights head = rfa_classifier_head(model);
    RFA_ASSERT(head.layers <= RFA_HEAD_LAYERS);
    for (int l = 0; l < head.layers; l++) {
        RFA_TRY(add_linear(table, &model->at.head_w[l], &model->at.head_b[l], head.size[l + 1],
                           head.size[l], l + 1 < head.layers ? names[l] : "head.out"));
    }
    return RFA_OK;
}

static rfa_status create(rfa_classifier *model)
{
    const rfa_classifier_options *o = &model->options;
    RFA_TRY(rfa_alloc(&model->at.block, o->layers, sizeof *model->at.block, "model"));
    RFA_TRY(rfa_alloc(&model->block, o->layers, sizeof *model->block, "model"));
    rfa_attention_options attention = o->attention;
    attention.layers = o->layers;
    attention.width = o->width;
    attention.heads = o->heads;
    attention.longest = o->max_length;
    if (attention.landmarks > attention.longest) { // each has a token or more
        attention.landmarks = attention.longest;
    }
    attention.segments = o->segments;
    attention.seed = o->seed;
    RFA_ASSERT(o->layers <= RFA_MOST_LAYERS && o->heads <= RFA_MOST_HEADS);
    RFA_TRY(rfa_attention_create(&model->attention, &attention, model->exchange, model->sequence));
    RFA_TRY(add_parameters(model));
    RFA_TRY(rfa_alloc(&model->values, model->table.size, sizeof *model->values, "parameters"));
    const bool plan = rfa_mem_is_plan(); // nothing is computed with: nothing need be written
    if (!plan) {
        RFA_TRY(rfa_parameters_init(model->values, &model->table, o->seed));
    }
    if (o->positions == RFA_POSITIONS_SINUSOIDAL) {
        RFA_TRY(rfa_alloc(&model->sinusoids, rfa_sinusoids_size(o->max_length, o->width),
                          sizeof(double), "positions"));
        rfa_sinusoids_fill(model->sinusoids, o->max_length, o->width);
    }
    for (ptrdiff_t layer = 0; layer < o->layers; layer++) {
        rfa_attention_saved *saved = &model->block[layer].attention;
        rfa_real *values = model->values + model->at.block[layer].attention;
        if (!plan) {
            RFA_TRY(rfa_attention_init(values, &model->attention, layer));
        }
        saved->layer = layer;
        saved->parameters = values;
        saved->first_only = rfa_classifier_is_cut(o, layer);
    }
    model->threads = omp_get_max_threads();
    RFA_TRY(rfa_alloc(&model->scratch, model->threads, sizeof *model->scratch, "scratch"));
    RFA_TRY(rfa_alloc(&model->works, model->threads, sizeof *model->works, "scratch"));
    for (int t = 0; t < model->threads; t++) {
        RFA_TRY(rfa_exact_sum_create(&model->scratch[t].sum, model->table.size, "gradients"));
    }
    return RFA_OK;
}

rfa_status rfa_classifier_create(rfa_classifier **out,
                                 const rfa_classifier_options *options,
                                 const rfa_comm *sequence,
                                 rfa_exchange *exchange)
{
    rfa_classifier *model = NULL;
    *out = NULL;
    RFA_TRY(rfa_alloc(&model, 1, sizeof *model, "model"));
    model->options = *options;
    model->sequence = sequence;
    model->exchange = exchange;
    const rfa_status status = create(model);
    if (status != RFA_OK) {
        rfa_classifier_destroy(&model);
    }
    *out = model;
    return status;
}

void rfa_classifier_destroy(rfa_classifier **out)
{
    rfa_classifier *model = *out;
    if (!model) {
        return;
    }
    for (int t = 0; model->scratch && t < model->threads; t++) {
        rfa_exact_sum_destroy(&model->scratch[t].sum);
    }
    rfa_free(model->arena.base);
    rfa_free(model->kept.base);
    rfa_free(model->works);
    rfa_free(model->scratch);
    rfa_attention_destroy(&model->attention);
    rfa_free(model->sinusoids);
    rfa_free(model->values);
    rfa_parameters_destroy(&model->table);
    rfa_free(model->block);
    rfa_free(model->at.block);
    rfa_free(model);
    *out = NULL;
}

static void carve_scratch(rfa_classifier *model, rfa_arena *arena)
{
    const rfa_classifier_options *o = &model->options;
    const ptrdiff_t layer = most(3 * o->width, o->feed_forward);
    const rfa_head_weights head = rfa_classifier_head(model);
    const ptrdiff_t rows = model->plan.longest_leaf;
    const ptrdiff_t matrix = most(o->vocabulary, layer) * o->width;
    const ptrdiff_t work = rfa_attention_work(&model->attention, &model->plan);
    for (int t = 0; t < model->threads; t++) {
        rfa_scratch *scratch = &model->scratch[t];
        scratch->a = rfa_carve(arena, rows * layer, sizeof(rfa_real));
        scratch->b = rfa_carve(arena, rows * layer, sizeof(rfa_real));
        scratch->c = rfa_carve(arena, rows * layer, sizeof(rfa_real));
        scratch->dw = rfa_carve(arena, matrix, sizeof(rfa_real));
        scratch->db = rfa_carve(arena, layer, sizeof(rfa_real));
        scratch->db2 = rfa_carve(arena, layer, sizeof(rfa_real));
        for (int l = 0; l < head.layers; l++) {
            const ptrdiff_t in = head.size[l], out = head.size[l + 1];
            scratch->head.w[l] = rfa_carve(arena, out * in, sizeof(rfa_real));
            scratch->head.b[l] = rfa_carve(arena, out, sizeof(rfa_real));
        }
        scratch->djoined = rfa_carve(arena, head.size[0], sizeof(rfa_real));
        scratch->da = rfa_carve(arena, model->attention.parameters, sizeof(rfa_real));
        scratch->work = rfa_carve(arena, work, sizeof(rfa_real));
        model->works[t] = scratch->work;
    }
}

static void carve_block(rfa_classifier *model, rfa_arena *arena, ptrdiff_t layer)
{
    const rfa_classifier_options *o = &model->options;
    const ptrdiff_t rows = model->plan.rows;
    const size_t size = sizeof(rfa_real);
    rfa_block_saved *block = &model->block[layer];
    block->stats1 = rfa_carve(arena, rows * 2, size);
    rfa_attention_carve_saved(&block->attention, arena, &model->attention, &model->plan);
    block->middle = rfa_carve(arena, rows * o->width, size);
    block->stats2 = rfa_carve(arena, rows * 2, size);
    block->u = rfa_carve(arena, rows * o->feed_forward, size);
}

static void carve(rfa_classifier *model, rfa_arena *arena)
{
    const rfa_classifier_options *o = &model->options;
    const ptrdiff_t rows = model->plan.rows;
    const size_t size = sizeof(rfa_real);
    for (ptrdiff_t layer = 0; layer < o->layers; layer++) {
        model->block[layer].x = rfa_carve(arena, rows * o->width, size);
    }
    const size_t shared = arena->used;
    for (ptrdiff_t layer = 0; layer < o->layers; layer++) {
        arena->used = o->recompute ? shared : arena->used;
        carve_block(model, arena, layer);
    }
    rfa_attention_carve(&model->attention, arena, &model->plan);
    model->x = rfa_carve(arena, rows * o->width, size);
    model->stats = rfa_carve(arena, rows * 2, size);
    model->dx = rfa_carve(arena, rows * o->width, size);
    model->dout = rfa_carve(arena, rows * o->width, size);
    model->dqkv = rfa_carve(arena, rows * 3 * o->width, size);
    carve_scratch(model, arena);
}

static void carve_window(rfa_classifier *model, rfa_arena *arena, double *const *carry)
{
    for (ptrdiff_t layer = 0; layer < model->options.layers; layer++) {
        rfa_attention_carve_kept(&model->block[layer].attention, arena, &model->attention,
                                 &model->plan, carry[layer]);
    }
}

// For all windows up to and with window: its arrays are those that the layers then point to. All
// windows take as much.
static void carve_kept(rfa_classifier *model, rfa_arena *arena, int window, bool carried)
{
    const rfa_classifier_options *o = &model->options;
    const ptrdiff_t sequences = model->plan.examples, examples = sequences / o->documents;
    const rfa_head_weights head = rfa_classifier_head(model);
    const size_t size = sizeof(rfa_real);
    double *carry[RFA_MOST_LAYERS] = {NULL};
    rfa_arena one = {0};
    carve_window(model, &one, carry);
    model->pooled_parts = rfa_carve(arena, model->plan.own * sequences * o->width, sizeof(double));
    model->pooled = rfa_carve(arena, sequences * o->width, size);
    model->joined =
        o->documents > 1 ? rfa_carve(arena, examples * head.size[0], size) : model->pooled;
    model->hidden = rfa_carve(arena, examples * (o->head + o->head2), size);
    model->logits = rfa_carve(arena, examples * o->classes, size);
    model->dpooled = rfa_carve(arena, sequences * o->width, size);
    for (ptrdiff_t layer = 0; carried && layer < o->layers; layer++) {
        carry[layer] = rfa_attention_carve_carry(arena, &model->attention, &model->plan);
    }
    arena->used += (size_t)window * one.used;
    carve_window(model, arena, carry);
}

// Rows of the longest segment and of all segments of the longest example, on any rank.
static void plan_extent(rfa_plan *plan, int segments)
{
    for (int e = 0; e < plan->examples; e++) {
        ptrdiff_t rows = 0;
        for (int g = 0; g < segments; g++) {
            const ptrdiff_t tokens = rfa_segment_begin(plan->lengths[e], segments, g + 1) -
                                     rfa_segment_begin(plan->lengths[e], segments, g);
            plan->longest_leaf = most(plan->longest_leaf, rfa_padded(tokens));
            rows += rfa_padded(tokens);
        }
        plan->longest_example = most(plan->longest_example, rows);
    }
}

// Makes room for what was measured, and begins to carve.
static rfa_status
make_room(rfa_arena *arena, size_t *capacity, const rfa_arena *measured, const char *what)
{
    if (measured->used > *capacity) {
        rfa_free(arena->base);
        arena->base = NULL;
        *capacity = 0;
        RFA_TRY(rfa_alloc(&arena->base, (ptrdiff_t)measured->used, 1, what));
        *capacity = measured->used;
    }
    arena->used = 0;
    return RFA_OK;
}

bool rfa_classifier_is_stateful(const rfa_classifier *model)
{
    return model->training && model->options.carry == RFA_CARRY_STATEFUL;
}

rfa_status rfa_classifier_reserve(rfa_classifier *model, const rfa_batch *batch, bool training)
{
    const bool carried = batch->windows > 1;
    const bool keeps = training && model->options.carry != RFA_CARRY_STATEFUL;
    model->plan = (rfa_plan){
        .examples = batch->sequences,
        .own = batch->own,
        .leaves = batch->leaves,
        .lengths = batch->present,
        .mask = batch->mask,
        .rows = batch->rows,
        .first = batch->first,
        .longest_leaf = RFA_ROWS,
        .longest_example = RFA_ROWS,
        .follows = batch->window > 0,
        .is_followed = batch->window + 1 < batch->windows,
        .cut = model->options.carry != RFA_CARRY_EXACT,
    };
    plan_extent(&model->plan, model->options.segments);
    if (batch->window == 0) {
        rfa_arena measure = {0};
        carve_kept(model, &measure, keeps ? batch->windows - 1 : 0, carried);
        RFA_TRY(make_room(&model->kept, &model->kept_capacity, &measure, "states"));
    }
    model->kept.used = 0;
    carve_kept(model, &model->kept, keeps ? batch->window : 0, carried);
    rfa_arena measure = {0};
    carve(model, &measure);
    RFA_TRY(make_room(&model->arena, &model->arena_capacity, &measure, "activations"));
    carve(model, &model->arena);
    return RFA_OK;
}

bool rfa_classifier_is_cut(const rfa_classifier_options *options, ptrdiff_t layer)
{
    return options->pooling == RFA_POOLING_FIRST && layer + 1 == options->layers &&
           !options->attention.causal;
}

const rfa_parameters *rfa_classifier_table(const rfa_classifier *model)
{
    return &model->table;
}

rfa_real *rfa_classifier_values(rfa_classifier *model)
{
    return model->values;
}

const rfa_pool *rfa_classifier_pool(const rfa_classifier *model)
{
    return &model->attention.pool;
}

const rfa_real *rfa_classifier_logits(const rfa_classifier *model)
{
    return model->logits;
}

int64_t rfa_classifier_guards(rfa_classifier *model)
{
    const int64_t guards = model->guards;
    model->guards = 0;
    return guards;
}

rfa_exchange_cost rfa_classifier_gather_cost(const rfa_classifier *model)
{
    return model->attention.gather_cost;
}

double rfa_classifier_flops(const rfa_classifier *model, ptrdiff_t n, bool backward)
{
    const rfa_classifier_options *o = &model->options;
    const double E = (double)o->width, M = (double)o->feed_forward;
    const double twice = backward ? 2 : 1; // gradients of inputs and of weights
    const rfa_head_weights head = rfa_classifier_head(model);
    double flops = 0;
    for (int l = 0; l < head.layers; l++) {
        flops += twice * 2 * (double)head.size[l] * (double)head.size[l + 1] / o->documents;
    }
    for (ptrdiff_t layer = 0; layer < o->layers; layer++) {
        const ptrdiff_t read = rfa_classifier_is_cut(o, layer) && n > RFA_ROWS ? RFA_ROWS : n;
        flops += twice * 2 * ((double)n * 3 * E * E + (double)read * (E * E + 2 * E * M)) +
                 rfa_attention_flops(&model->attention.options, n, read, backward);
    }
    return flops;
}
