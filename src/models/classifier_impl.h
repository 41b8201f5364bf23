// What classifier.c (tables, memory), classifier_forward.c and classifier_backward.c share.
#ifndef RFA_MODELS_CLASSIFIER_IMPL_H
#define RFA_MODELS_CLASSIFIER_IMPL_H

#include "exchange/exact_sum.h"
#include "layers/attention_layer.h"
#include "layers/dropout.h"
#include "layers/head.h"
#include "models/classifier.h"

#include <omp.h>

// Offsets in the parameter array.
typedef struct {
    ptrdiff_t norm1_scale, norm1_shift, qkv_w, qkv_b, attention, out_w, out_b;
    ptrdiff_t norm2_scale, norm2_shift, in_w, in_b, ff_w, ff_b;
} rfa_block_offsets;

// What one block keeps for its backward; all [rows][...]. With recomputation all but x and what
// attention keeps is the same memory in all blocks.
typedef struct {
    rfa_real *x;      // [E] input
    rfa_real *stats1; // [2]
    rfa_attention_saved attention;
    rfa_real *middle, *stats2; // [E] after the attention's residual; [2]
    rfa_real *u;               // [M] before GELU
} rfa_block_saved;

// One thread's scratch.
typedef struct {
    rfa_real *a, *b, *c;     // [longest leaf][widest layer]
    rfa_real *dw, *db, *db2; // gradients of a leaf: of a matrix, of vectors
    rfa_head_gradients head; // of an example
    rfa_real *djoined;       // of what the head reads of it
    rfa_real *da;            // of attention's own tensors
    rfa_real *work;          // of attention
    rfa_exact_sum sum;       // gradients of all parameters so far
} rfa_scratch;

struct rfa_classifier {
    rfa_classifier_options options;
    const rfa_comm *sequence;
    rfa_exchange *exchange;
    rfa_parameters table;
    struct {
        ptrdiff_t tokens, positions, norm_scale, norm_shift;
        ptrdiff_t head_w[RFA_HEAD_LAYERS], head_b[RFA_HEAD_LAYERS];
        rfa_block_offsets *block; // [L]
    } at;
    rfa_real *values;  // [table.size]
    double *sinusoids; // rfa_sinusoids_size, or NULL
    rfa_attention attention;
    int64_t step;  // of the current pass
    bool training; // with dropout and noise
    int threads;
    rfa_scratch *scratch; // [threads]
    rfa_real **works;     // [threads] scratch[].work

    rfa_plan plan; // of the window

    // Carved once for all windows of a batch.
    rfa_arena kept;
    size_t kept_capacity;
    double *pooled_parts;       // [own][sequences][E]
    rfa_real *pooled, *dpooled; // [sequences][E]
    rfa_real *joined;           // [examples][what the head reads]: pooled, where that is all
    rfa_real *hidden, *logits;  // [examples][head + head2 | classes]

    // Carved for each window; the arena grows to the largest one so far.
    rfa_arena arena;
    size_t arena_capacity;
    rfa_block_saved *block;     // [L]
    rfa_real *x, *stats;        // [rows][E] output of the last block; [rows][2]
    rfa_real *dx, *dout, *dqkv; // [rows][E | E | 3 E]
    int64_t guards;
};

// The last block, when only the first token is read: what it would compute for other tokens after
// its keys and values has no influence, and is left out. (Not of causal heads: their scans come
// by.)
bool rfa_classifier_is_cut(const rfa_classifier_options *options, ptrdiff_t layer);

// A window's forward up to its part of the pooled vector; again: for its backward. Collective.
RFA_NODISCARD rfa_status rfa_classifier_run_window(rfa_classifier *model,
                                                   const rfa_batch *batch,
                                                   bool again);
// One block of it. Collective.
RFA_NODISCARD rfa_status rfa_classifier_run_block(rfa_classifier *model,
                                                  const rfa_batch *batch,
                                                  ptrdiff_t layer);

// Places of dropout, one stream each.
enum {
    RFA_AFTER_EMBEDDING,
    RFA_AFTER_ATTENTION,
    RFA_IN_FEED_FORWARD,
    RFA_AFTER_FEED_FORWARD,
    RFA_PLACES
};

void rfa_classifier_dropout(rfa_real *x,
                            rfa_real *also,
                            const rfa_classifier *model,
                            const rfa_batch *batch,
                            const rfa_leaf *leaf,
                            ptrdiff_t rows,
                            ptrdiff_t width,
                            ptrdiff_t layer,
                            int place);

static inline rfa_scratch *rfa_my_scratch(rfa_classifier *model)
{
    return &model->scratch[omp_get_thread_num()];
}

// The input of block layer, or the output of the last block.
static inline rfa_real *rfa_block_input(rfa_classifier *model, ptrdiff_t layer)
{
    return layer < model->options.layers ? model->block[layer].x : model->x;
}

// The head: sizes, and its tensors in the parameter array.
rfa_head_weights rfa_classifier_head(const rfa_classifier *model);

// Whether a window's forward ends with the head.
bool rfa_classifier_gives_logits(const rfa_classifier *model, const rfa_batch *batch);

// What pooling reads of a leaf: tokens [begin, end) of the rows from row on, a whole block's first.
typedef struct {
    ptrdiff_t row, begin, end;
} rfa_pooled_rows;

rfa_pooled_rows
rfa_pooled_rows_of(const rfa_classifier *model, const rfa_batch *batch, const rfa_leaf *leaf);

// 1 / tokens for the mean, 1 / max_length for the padded one, else 1.
double rfa_pooling_factor(const rfa_classifier *model, const rfa_batch *batch, int sequence);

#endif
