// What classifier.c (tables, memory) and classifier_pass.c (forward, backward) share.
#ifndef RFA_MODELS_CLASSIFIER_IMPL_H
#define RFA_MODELS_CLASSIFIER_IMPL_H

#include "exchange/exact_sum.h"
#include "layers/attention_layer.h"
#include "models/classifier.h"

// Offsets in the parameter array.
typedef struct {
    ptrdiff_t norm1_scale, norm1_shift, qkv_w, qkv_b, attention, out_w, out_b;
    ptrdiff_t norm2_scale, norm2_shift, in_w, in_b, ff_w, ff_b;
} rfa_block_offsets;

// What one block keeps for its backward; all [rows][...].
typedef struct {
    rfa_real *x, *stats1; // [E] input; [2]
    rfa_attention_saved attention;
    rfa_real *middle, *stats2; // [E] after the attention's residual; [2]
    rfa_real *u;               // [M] before GELU
} rfa_block_saved;

// One thread's scratch.
typedef struct {
    rfa_real *a, *b, *c;           // [longest leaf][widest layer]
    rfa_real *dw, *dw2, *db, *db2; // gradients of a leaf: of a matrix, of the last one, of vectors
    rfa_real *da;                  // of attention's own tensors
    rfa_real *work;                // of attention
    rfa_exact_sum sum;             // gradients of all parameters so far
} rfa_scratch;

struct rfa_classifier {
    rfa_classifier_options options;
    const rfa_comm *sequence;
    rfa_exchange *exchange;
    rfa_parameters table;
    struct {
        ptrdiff_t tokens, positions, norm_scale, norm_shift, w1, b1, w2, b2;
        rfa_block_offsets *block; // [L]
    } at;
    rfa_real *values;    // [table.size]
    rfa_real *sinusoids; // [max_length][E] or NULL
    rfa_attention attention;
    int64_t step;  // of the current pass
    bool training; // with dropout and noise
    int threads;
    rfa_scratch *scratch; // [threads]
    rfa_real **works;     // [threads] scratch[].work

    // Carved from one arena, which grows to the largest batch so far.
    rfa_arena arena;
    size_t arena_capacity;
    rfa_plan plan;
    rfa_block_saved *block;                       // [L]
    rfa_real *x, *stats;                          // [rows][E] output of the last block; [rows][2]
    double *pooled_parts;                         // [own][examples][E]
    rfa_real *pooled, *hidden, *logits, *dpooled; // [examples][E | head | classes | E]
    rfa_real *dx, *dout, *dqkv;                   // [rows][E | E | 3 E]
    int64_t guards;
};

// The last block, when only the first token is read: what it would compute for other tokens after
// its keys and values has no influence, and is left out. (Not of causal heads: their scans come
// by.)
bool rfa_classifier_is_cut(const rfa_classifier_options *options, ptrdiff_t layer);

// Lays out all arrays for this batch. Local.
RFA_NODISCARD rfa_status rfa_classifier_reserve(rfa_classifier *model, const rfa_batch *batch);

#endif
