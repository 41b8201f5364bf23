// The model, top to bottom, leaf by leaf. classifier_backward.c is this file read upwards.
#include "models/classifier_impl.h"

#include "layers/embedding.h"
#include "layers/gelu.h"
#include "layers/head.h"
#include "layers/linear.h"
#include "layers/norm.h"

#include <string.h>

void rfa_classifier_dropout(rfa_real *x,
                            rfa_real *also,
                            const rfa_classifier *model,
                            const rfa_batch *batch,
                            const rfa_leaf *leaf,
                            ptrdiff_t rows,
                            ptrdiff_t width,
                            ptrdiff_t layer,
                            int place)
{
    if (model->training) {
        const uint32_t example = (uint32_t)(batch->first + leaf->example);
        const uint32_t where = (uint32_t)(layer * RFA_PLACES + place);
        const rfa_rng stream = rfa_rng_stream(model->options.seed, RFA_RNG_DROPOUT,
                                              (uint32_t)model->step, example << 10 | where);
        rfa_dropout(x, also, rows, width, leaf->begin, &stream, model->options.dropout);
    }
}

rfa_head_weights rfa_classifier_head(const rfa_classifier *model)
{
    const rfa_classifier_options *o = &model->options;
    const ptrdiff_t in = o->documents > 1 ? rfa_match_size(o->match, o->width) : o->width;
    rfa_head_weights head = {.layers = 2, .size = {in, o->head, o->classes}};
    if (o->head2 > 0) {
        head = (rfa_head_weights){.layers = 3, .size = {in, o->head, o->head2, o->classes}};
    }
    for (int l = 0; l < head.layers && model->values; l++) {
        head.w[l] = model->values + model->at.head_w[l];
        head.b[l] = model->values + model->at.head_b[l];
    }
    return head;
}

// Tokens [begin, end) of an example are read out: all, or those of a window by itself.
static ptrdiff_t read_begin(const rfa_classifier *model, const rfa_batch *batch)
{
    return rfa_classifier_is_stateful(model) ? batch->window * batch->span : 0;
}

static ptrdiff_t read_end(const rfa_classifier *model, const rfa_batch *batch, int sequence)
{
    return rfa_classifier_is_stateful(model) ? read_begin(model, batch) + batch->present[sequence]
                                             : batch->length[sequence];
}

bool rfa_classifier_gives_logits(const rfa_classifier *model, const rfa_batch *batch)
{
    return batch->window + 1 == batch->windows || rfa_classifier_is_stateful(model);
}

rfa_pooled_rows
rfa_pooled_rows_of(const rfa_classifier *model, const rfa_batch *batch, const rfa_leaf *leaf)
{
    ptrdiff_t token = -leaf->begin; // the one that is read, in the leaf
    switch (model->options.pooling) {
    case RFA_POOLING_MEAN:
    case RFA_POOLING_PADDED_MEAN: return (rfa_pooled_rows){.end = leaf->tokens};
    case RFA_POOLING_FIRST: break;
    case RFA_POOLING_LAST: token += read_end(model, batch, leaf->example) - 1; break;
    }
    const ptrdiff_t row = token / RFA_ROWS * RFA_ROWS;
    return token >= 0 && token < leaf->tokens
               ? (rfa_pooled_rows){.row = row, .begin = token - row, .end = token - row + 1}
               : (rfa_pooled_rows){0};
}

double rfa_pooling_factor(const rfa_classifier *model, const rfa_batch *batch, int sequence)
{
    const ptrdiff_t tokens = read_end(model, batch, sequence) - read_begin(model, batch);
    switch (model->options.pooling) {
    case RFA_POOLING_MEAN: return 1 / (double)(tokens > 0 ? tokens : 1);
    case RFA_POOLING_PADDED_MEAN: return 1 / (double)model->options.max_length;
    default: return 1;
    }
}

static void
add(rfa_real *restrict y, const rfa_real *restrict a, const rfa_real *restrict b, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] = a[i] + b[i];
    }
}

static void embed(rfa_classifier *model, const rfa_batch *batch, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width;
    const bool learned = model->options.positions == RFA_POSITIONS_LEARNED;
    rfa_real *x = rfa_block_input(model, 0) + leaf->row0 * E;
    rfa_embedding_forward(x, batch->ids + leaf->row0, model->values + model->at.tokens,
                          learned ? model->values + model->at.positions : NULL, leaf->begin,
                          leaf->tokens, leaf->rows, E);
    if (model->sinusoids) {
        rfa_sinusoids_add(x, model->sinusoids, leaf->begin, leaf->tokens, E);
    }
    rfa_classifier_dropout(x, NULL, model, batch, leaf, leaf->rows, E, 0, RFA_AFTER_EMBEDDING);
}

// Queries, or keys and values (count 2 from 1 on), or all three (3 from 0 on) of a leaf with normed
// input x.
static void project(rfa_classifier *model,
                    ptrdiff_t layer,
                    const rfa_leaf *leaf,
                    const rfa_real *x,
                    ptrdiff_t first,
                    ptrdiff_t count)
{
    const ptrdiff_t E = model->options.width;
    const rfa_block_offsets *at = &model->at.block[layer];
    rfa_real *qkv = model->block[layer].attention.qkv + leaf->row0 * 3 * E;
    rfa_linear_forward_into(qkv + first * E, 3 * E, x, model->values + at->qkv_w + first * E * E,
                            model->values + at->qkv_b + first * E, leaf->rows, E, count * E);
}

// x -> norm -> k, v (and q where it can't wait) -> this segment's state; of later rounds the state
// alone. Where queries wait, the normed input does so in the place of attention's output.
static void before_exchange(rfa_classifier *model, ptrdiff_t layer, int round, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width, row0 = leaf->row0;
    const rfa_real *values = model->values;
    const rfa_block_offsets *at = &model->at.block[layer];
    rfa_block_saved *block = &model->block[layer];
    rfa_scratch *scratch = rfa_my_scratch(model);
    const bool late = rfa_attention_queries_late(&model->attention);
    rfa_real *x = late ? block->attention.out + row0 * E : scratch->a;
    if (round == 0) {
        rfa_norm_forward(x, block->stats1 + row0 * 2, block->x + row0 * E, values + at->norm1_scale,
                         values + at->norm1_shift, leaf->rows, E);
        project(model, layer, leaf, x, late ? 1 : 0, late ? 2 : 3);
    }
    rfa_attention_local(&model->attention, &block->attention, &model->plan, round,
                        (int)(leaf - model->plan.leaves), x, scratch->work);
}

// q, while the states are on their way
static void during_exchange(rfa_classifier *model, ptrdiff_t layer, const rfa_leaf *leaf)
{
    const ptrdiff_t at = leaf->row0 * model->options.width;
    project(model, layer, leaf, model->block[layer].attention.out + at, 0, 1);
    if (omp_get_thread_num() == 0) {
        rfa_attention_exchange_pump(&model->attention);
    }
}

// read-out -> projection -> residual -> norm -> feed-forward -> residual
static int64_t
after_exchange(rfa_classifier *model, const rfa_batch *batch, ptrdiff_t layer, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width, M = model->options.feed_forward;
    const ptrdiff_t row0 = leaf->row0;
    const ptrdiff_t rows = rfa_attention_read_rows(&model->block[layer].attention, leaf);
    const rfa_real *values = model->values;
    const rfa_block_offsets *at = &model->at.block[layer];
    rfa_block_saved *block = &model->block[layer];
    rfa_scratch *scratch = rfa_my_scratch(model);
    rfa_real *middle = block->middle + row0 * E, *u = block->u + row0 * M;
    const int64_t guards = rfa_attention_read(&model->attention, &block->attention, &model->plan,
                                              (int)(leaf - model->plan.leaves), scratch->work);
    rfa_linear_forward(scratch->a, block->attention.out + row0 * E, values + at->out_w,
                       values + at->out_b, rows, E, E);
    rfa_classifier_dropout(scratch->a, NULL, model, batch, leaf, rows, E, layer,
                           RFA_AFTER_ATTENTION);
    add(middle, block->x + row0 * E, scratch->a, rows * E);

    rfa_norm_forward(scratch->a, block->stats2 + row0 * 2, middle, values + at->norm2_scale,
                     values + at->norm2_shift, rows, E);
    rfa_linear_forward(u, scratch->a, values + at->in_w, values + at->in_b, rows, E, M);
    rfa_gelu_forward(scratch->b, u, rows * M);
    rfa_classifier_dropout(scratch->b, NULL, model, batch, leaf, rows, M, layer,
                           RFA_IN_FEED_FORWARD);
    rfa_linear_forward(scratch->a, scratch->b, values + at->ff_w, values + at->ff_b, rows, M, E);
    rfa_classifier_dropout(scratch->a, NULL, model, batch, leaf, rows, E, layer,
                           RFA_AFTER_FEED_FORWARD);
    add(rfa_block_input(model, layer + 1) + row0 * E, middle, scratch->a, rows * E);
    return guards;
}

// final norm -> this segment's part of the pooled vector, to which each window adds
static void pool(rfa_classifier *model, const rfa_batch *batch, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width;
    const rfa_pooled_rows read = rfa_pooled_rows_of(model, batch, leaf);
    const ptrdiff_t own = (leaf - model->plan.leaves) % model->plan.own;
    double *part = model->pooled_parts + (own * model->plan.examples + leaf->example) * E;
    const rfa_real *x = model->x + (leaf->row0 + read.row) * E;
    rfa_real *y = rfa_my_scratch(model)->a;
    rfa_norm_forward(y, model->stats + (leaf->row0 + read.row) * 2, x,
                     model->values + model->at.norm_scale, model->values + model->at.norm_shift,
                     rfa_padded(read.end), E);
    for (ptrdiff_t t = read.begin; t < read.end && !model->attention.again; t++) {
        for (ptrdiff_t j = 0; j < E; j++) {
            part[j] += y[t * E + j];
        }
    }
}

rfa_status rfa_classifier_run_block(rfa_classifier *model, const rfa_batch *batch, ptrdiff_t layer)
{
    const rfa_leaf *leaves = batch->leaves;
    rfa_attention_saved *saved = &model->block[layer].attention;
    const bool late = rfa_attention_queries_late(&model->attention);
    int64_t guards = 0;
    rfa_attention_begin(&model->attention, saved, model->works[0]);
    for (int round = 0; round < rfa_attention_rounds(&model->attention); round++) {
#pragma omp parallel for schedule(dynamic)
        for (int l = 0; l < batch->leaf_count; l++) {
            before_exchange(model, layer, round, &leaves[l]);
        }
        RFA_TRY(rfa_attention_exchange_start(&model->attention, saved, &model->plan, round,
                                             model->works));
#pragma omp parallel for schedule(dynamic) if (late)
        for (int l = 0; l < (late ? batch->leaf_count : 0); l++) {
            during_exchange(model, layer, &leaves[l]);
        }
        rfa_attention_exchange_end(&model->attention, saved, &model->plan, round);
    }
#pragma omp parallel for schedule(dynamic) reduction(+ : guards)
    for (int l = 0; l < batch->leaf_count; l++) {
        guards += after_exchange(model, batch, layer, &leaves[l]);
    }
    model->guards += model->attention.again ? 0 : guards;
    return RFA_OK;
}

rfa_status rfa_classifier_run_window(rfa_classifier *model, const rfa_batch *batch, bool again)
{
    const rfa_leaf *leaves = batch->leaves;
    RFA_TRY(rfa_agree(model->sequence, rfa_classifier_reserve(model, batch, model->training)));
    model->attention.again = again;
    if ((batch->window == 0 || rfa_classifier_is_stateful(model)) && !again) {
        const ptrdiff_t parts = batch->own * batch->sequences * model->options.width;
        memset(model->pooled_parts, 0, (size_t)parts * sizeof *model->pooled_parts);
    }
#pragma omp parallel for schedule(dynamic)
    for (int l = 0; l < batch->leaf_count; l++) {
        embed(model, batch, &leaves[l]);
    }
    for (ptrdiff_t layer = 0; layer < model->options.layers; layer++) {
        RFA_TRY(rfa_classifier_run_block(model, batch, layer));
    }
#pragma omp parallel for schedule(dynamic)
    for (int l = 0; l < batch->leaf_count; l++) {
        pool(model, batch, &leaves[l]);
    }
    return RFA_OK;
}

rfa_status
rfa_classifier_forward(rfa_classifier *model, const rfa_batch *batch, int64_t step, bool training)
{
    const rfa_classifier_options *o = &model->options;
    model->step = model->attention.step = step;
    model->training = model->attention.training = training;
    RFA_TRY(rfa_classifier_run_window(model, batch, false));
    if (!rfa_classifier_gives_logits(model, batch)) {
        return RFA_OK;
    }
    RFA_TRY(rfa_exchange_run(model->exchange, RFA_TOTAL, model->pooled_parts,
                             batch->sequences * o->width));
    for (int s = 0; s < batch->sequences; s++) {
        const double factor = rfa_pooling_factor(model, batch, s);
        for (ptrdiff_t j = s * o->width; j < (s + 1) * o->width; j++) {
            model->pooled[j] = (rfa_real)(model->pooled_parts[j] * factor);
        }
    }
    const rfa_head_weights head = rfa_classifier_head(model);
    for (int e = 0; e < batch->examples; e++) {
        rfa_real *joined = model->joined + e * head.size[0];
        if (o->documents > 1) {
            const rfa_real *pooled = model->pooled + 2 * e * o->width;
            rfa_match_forward(joined, pooled, pooled + o->width, o->width, o->match);
        }
        rfa_head_forward(model->logits + e * o->classes, model->hidden + e * (o->head + o->head2),
                         joined, &head);
    }
    return RFA_OK;
}
