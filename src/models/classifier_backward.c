// The model's backward: classifier_forward.c, read upwards.
#include "models/classifier_impl.h"

#include "base/profile.h"
#include "layers/embedding.h"
#include "layers/gelu.h"
#include "layers/head.h"
#include "layers/linear.h"
#include "layers/norm.h"

#include <string.h>

static void add_gradient(rfa_scratch *scratch, ptrdiff_t at, const rfa_real *x, ptrdiff_t n)
{
    rfa_exact_sum_add(&scratch->sum, at, x, n);
}

// One leaf's gradients of attention's own tensors, which several calls add to.
static void clear_attention_gradient(const rfa_classifier *model, rfa_scratch *scratch)
{
    memset(scratch->da, 0, (size_t)model->attention.parameters * sizeof *scratch->da);
}

static void
add_attention_gradient(const rfa_classifier *model, rfa_scratch *scratch, ptrdiff_t layer)
{
    add_gradient(scratch, model->at.block[layer].attention, scratch->da,
                 model->attention.parameters);
}

// One leaf's gradients of a linear layer, y = x W^T + b.
static void linear_gradient(rfa_scratch *scratch,
                            ptrdiff_t at_w,
                            ptrdiff_t at_b,
                            const rfa_real *dy,
                            const rfa_real *x,
                            ptrdiff_t rows,
                            ptrdiff_t in,
                            ptrdiff_t out)
{
    rfa_linear_backward_weight(scratch->dw, scratch->db, dy, x, rows, in, out);
    add_gradient(scratch, at_w, scratch->dw, out * in);
    add_gradient(scratch, at_b, scratch->db, out);
}

// One leaf's gradients of a norm; dx is added to.
static void norm_backward(rfa_scratch *scratch,
                          rfa_real *dx,
                          ptrdiff_t at_scale,
                          ptrdiff_t at_shift,
                          const rfa_real *dy,
                          const rfa_real *stats,
                          const rfa_real *x,
                          const rfa_real *scale,
                          ptrdiff_t rows,
                          ptrdiff_t width)
{
    rfa_norm_backward(dx, scratch->db, scratch->db2, dy, stats, x, scale, rows, width);
    add_gradient(scratch, at_scale, scratch->db, width);
    add_gradient(scratch, at_shift, scratch->db2, width);
}

static void pool_backward(rfa_classifier *model, const rfa_batch *batch, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width;
    const rfa_pooled_rows read = rfa_pooled_rows_of(model, batch, leaf);
    const ptrdiff_t rows = rfa_padded(read.end), row = leaf->row0 + read.row;
    const rfa_real *dpooled = model->dpooled + leaf->example * E;
    const rfa_real factor = (rfa_real)rfa_pooling_factor(model, batch, leaf->example);
    rfa_scratch *scratch = rfa_my_scratch(model);
    rfa_real *dy = scratch->a;
    memset(model->dx + leaf->row0 * E, 0, (size_t)(leaf->rows * E) * sizeof *model->dx);
    memset(dy, 0, (size_t)(rows * E) * sizeof *dy);
    for (ptrdiff_t t = read.begin; t < read.end; t++) {
        for (ptrdiff_t j = 0; j < E; j++) {
            dy[t * E + j] = dpooled[j] * factor;
        }
    }
    if (rows > 0) {
        norm_backward(scratch, model->dx + row * E, model->at.norm_scale, model->at.norm_shift, dy,
                      model->stats + row * 2, model->x + row * E,
                      model->values + model->at.norm_scale, rows, E);
    }
}

static void after_exchange_backward(rfa_classifier *model,
                                    const rfa_batch *batch,
                                    ptrdiff_t layer,
                                    const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width, M = model->options.feed_forward;
    const ptrdiff_t row0 = leaf->row0;
    const ptrdiff_t rows = rfa_attention_read_rows(&model->block[layer].attention, leaf);
    const rfa_real *values = model->values;
    const rfa_block_offsets *at = &model->at.block[layer];
    const rfa_block_saved *block = &model->block[layer];
    rfa_scratch *scratch = rfa_my_scratch(model);
    const rfa_real *middle = block->middle + row0 * E;
    rfa_real *dx = model->dx + row0 * E, *dout = model->dout + row0 * E;
    rfa_real *dy = scratch->a, *g = scratch->b, *slope = scratch->c;

    memcpy(dy, dx, (size_t)(rows * E) * sizeof *dy);
    rfa_classifier_dropout(dy, NULL, model, batch, leaf, rows, E, layer, RFA_AFTER_FEED_FORWARD);
    rfa_gelu_slope(g, slope, block->u + row0 * M, rows * M);
    rfa_classifier_dropout(g, slope, model, batch, leaf, rows, M, layer, RFA_IN_FEED_FORWARD);
    linear_gradient(scratch, at->ff_w, at->ff_b, dy, g, rows, M, E);
    rfa_linear_backward_input(g, dy, values + at->ff_w, rows, M, E);
    for (ptrdiff_t i = 0; i < rows * M; i++) {
        g[i] *= slope[i]; // the gradient of u
    }
    rfa_real *h = scratch->a, *dh = scratch->c; // dy and slope are done with
    rfa_norm_apply(h, block->stats2 + row0 * 2, middle, values + at->norm2_scale,
                   values + at->norm2_shift, rows, E);
    linear_gradient(scratch, at->in_w, at->in_b, g, h, rows, E, M);
    rfa_linear_backward_input(dh, g, values + at->in_w, rows, E, M);
    norm_backward(scratch, dx, at->norm2_scale, at->norm2_shift, dh, block->stats2 + row0 * 2,
                  middle, values + at->norm2_scale, rows, E);

    rfa_real *dz = block->middle + row0 * E; // which is done with too
    memcpy(dz, dx, (size_t)(rows * E) * sizeof *dz);
    rfa_classifier_dropout(dz, NULL, model, batch, leaf, rows, E, layer, RFA_AFTER_ATTENTION);
    rfa_linear_backward_input(dout, dz, values + at->out_w, rows, E, E);
    const rfa_attention_gradient gradient = {model->dqkv, model->dout};
    clear_attention_gradient(model, scratch);
    rfa_attention_read_backward(&gradient, scratch->da, &model->attention, &block->attention,
                                &model->plan, (int)(leaf - model->plan.leaves), scratch->work);
    add_attention_gradient(model, scratch, layer);
}

// The output projection's gradients, while the adjoint states are on their way.
static void during_exchange_backward(rfa_classifier *model, ptrdiff_t layer, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width, row0 = leaf->row0;
    const rfa_block_offsets *at = &model->at.block[layer];
    const rfa_block_saved *block = &model->block[layer];
    const ptrdiff_t rows = rfa_attention_read_rows(&block->attention, leaf);
    linear_gradient(rfa_my_scratch(model), at->out_w, at->out_b, block->middle + row0 * E,
                    block->attention.out + row0 * E, rows, E, E);
    if (omp_get_thread_num() == 0) {
        rfa_attention_exchange_pump(&model->attention);
    }
}

static void
before_exchange_backward(rfa_classifier *model, ptrdiff_t layer, int round, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width, row0 = leaf->row0, rows = leaf->rows;
    const rfa_real *values = model->values;
    const rfa_block_offsets *at = &model->at.block[layer];
    const rfa_block_saved *block = &model->block[layer];
    rfa_scratch *scratch = rfa_my_scratch(model);
    rfa_real *h = scratch->a, *dh = scratch->b;
    const rfa_attention_gradient gradient = {model->dqkv, model->dout};
    const int index = (int)(leaf - model->plan.leaves);
    clear_attention_gradient(model, scratch);
    rfa_attention_local_backward(&gradient, scratch->da, &model->attention, &block->attention,
                                 &model->plan, round, index, scratch->work);
    if (round > 0) {
        add_attention_gradient(model, scratch, layer);
        return;
    }
    rfa_norm_apply(h, block->stats1 + row0 * 2, block->x + row0 * E, values + at->norm1_scale,
                   values + at->norm1_shift, rows, E);
    const rfa_real *dqkv = model->dqkv + row0 * 3 * E;
    linear_gradient(scratch, at->qkv_w, at->qkv_b, dqkv, h, rows, E, 3 * E);
    rfa_linear_backward_input(dh, dqkv, values + at->qkv_w, rows, E, 3 * E);
    rfa_attention_input_backward(dh, scratch->da, &model->attention, &block->attention,
                                 &model->plan, index, h);
    add_attention_gradient(model, scratch, layer);
    norm_backward(scratch, model->dx + row0 * E, at->norm1_scale, at->norm1_shift, dh,
                  block->stats1 + row0 * 2, block->x + row0 * E, values + at->norm1_scale, rows, E);
}

static void embed_backward(rfa_classifier *model, const rfa_batch *batch, const rfa_leaf *leaf)
{
    const ptrdiff_t E = model->options.width, V = model->options.vocabulary;
    rfa_scratch *scratch = rfa_my_scratch(model);
    rfa_real *dx = model->dx + leaf->row0 * E;
    rfa_classifier_dropout(dx, NULL, model, batch, leaf, leaf->rows, E, 0, RFA_AFTER_EMBEDDING);
    if (model->options.positions == RFA_POSITIONS_LEARNED) {
        add_gradient(scratch, model->at.positions + leaf->begin * E, dx, leaf->tokens * E);
    }
    rfa_embedding_backward(scratch->dw, dx, batch->ids + leaf->row0, leaf->tokens, V, E);
    add_gradient(scratch, model->at.tokens, scratch->dw, V * E);
}

// Every rank of the sequence computes the same dpooled; one of them adds the head's gradients.
static void head_backward(rfa_classifier *model, int example, const rfa_real *dlogits)
{
    const rfa_classifier_options *o = &model->options;
    const rfa_head_weights head = rfa_classifier_head(model);
    const ptrdiff_t at = (ptrdiff_t)example * o->documents * o->width; // of the first document
    rfa_scratch *scratch = rfa_my_scratch(model);
    rfa_head_backward(o->documents > 1 ? scratch->djoined : model->dpooled + at, &scratch->head,
                      dlogits, model->hidden + example * (o->head + o->head2),
                      model->joined + example * head.size[0], &head);
    if (o->documents > 1) {
        const rfa_real *a = model->pooled + at, *b = a + o->width;
        rfa_match_backward(model->dpooled + at, model->dpooled + at + o->width, scratch->djoined, a,
                           b, o->width, o->match);
    }
    for (int l = 0; l < head.layers && model->sequence->rank == 0; l++) {
        const ptrdiff_t out = head.size[l + 1];
        add_gradient(scratch, model->at.head_w[l], scratch->head.w[l], out * head.size[l]);
        add_gradient(scratch, model->at.head_b[l], scratch->head.b[l], out);
    }
}

rfa_status
rfa_classifier_backward(rfa_classifier *model, const rfa_batch *batch, const rfa_real *dlogits)
{
    const rfa_leaf *leaves = batch->leaves;
    const bool just_run = rfa_classifier_gives_logits(model, batch);
    for (int e = 0; just_run && e < batch->examples; e++) {
        head_backward(model, e, dlogits + e * model->options.classes);
    }
    if (!just_run) {
        RFA_TRY(rfa_classifier_run_window(model, batch, true));
    }
    model->attention.again = true;
#pragma omp parallel for schedule(dynamic)
    for (int l = 0; l < batch->leaf_count; l++) {
        pool_backward(model, batch, &leaves[l]);
    }
    for (ptrdiff_t layer = model->options.layers - 1; layer >= 0; layer--) {
        if (model->options.recompute && layer + 1 < model->options.layers) {
            RFA_TRY(rfa_classifier_run_block(model, batch, layer));
        }
#pragma omp parallel for schedule(dynamic)
        for (int l = 0; l < batch->leaf_count; l++) {
            after_exchange_backward(model, batch, layer, &leaves[l]);
        }
        const rfa_attention_gradient gradient = {model->dqkv, model->dout};
        const int last_round = rfa_attention_rounds(&model->attention) - 1;
        for (int round = last_round; round >= 0; round--) {
            const rfa_attention_saved *saved = &model->block[layer].attention;
            RFA_TRY(rfa_attention_exchange_backward_start(&gradient, &model->attention, saved,
                                                          &model->plan, round, model->works));
#pragma omp parallel for schedule(dynamic) if (round == last_round)
            for (int l = 0; l < (round == last_round ? batch->leaf_count : 0); l++) {
                during_exchange_backward(model, layer, &leaves[l]);
            }
            rfa_attention_exchange_backward_end(&model->attention, saved, &model->plan, round);
#pragma omp parallel for schedule(dynamic)
            for (int l = 0; l < batch->leaf_count; l++) {
                before_exchange_backward(model, layer, round, &leaves[l]);
            }
        }
    }
#pragma omp parallel for schedule(dynamic)
    for (int l = 0; l < batch->leaf_count; l++) {
        embed_backward(model, batch, &leaves[l]);
    }
    return RFA_OK;
}

rfa_status rfa_classifier_gradients(rfa_classifier *model, rfa_real *gradient, const rfa_comm *all)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    rfa_exact_sum *sum = &model->scratch[0].sum;
    for (int t = 1; t < model->threads; t++) {
        rfa_exact_sum_merge(sum, &model->scratch[t].sum);
        rfa_exact_sum_clear(&model->scratch[t].sum);
    }
    rfa_exact_sum_reduce(sum, all);
    const bool good = rfa_exact_sum_is_good(sum);
    rfa_exact_sum_values(gradient, sum);
    rfa_exact_sum_clear(sum);
    return good ? RFA_OK
                : rfa_fail(RFA_ERR_NUMERIC, "a gradient is not finite or beyond 16384: diverged");
}
