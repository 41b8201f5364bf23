// The classifier of the Long Range Arena: embedding, pre-norm transformer blocks, final norm,
// pooling, a head of two or three layers; of pairs of documents, each encoded by itself, the head
// reads both pooled vectors. Its sequences are cut over the ranks of a group.
#ifndef RFA_MODELS_CLASSIFIER_H
#define RFA_MODELS_CLASSIFIER_H

#include "base/kinds.h"
#include "layers/attention_layer.h"
#include "models/parameters.h"
#include "tasks/batch.h"

typedef struct {
    ptrdiff_t layers, width, heads, feed_forward; // L, E, H, M
    ptrdiff_t head, head2; // widths of the head's hidden layers; head2 0: one
    int documents;         // of an example: 1 or 2
    rfa_match_kind match;  // of two
    ptrdiff_t classes, vocabulary, max_length;
    rfa_positions positions;
    rfa_pooling pooling;
    double dropout; // after the embedding, on both residuals, inside the feed-forward
    rfa_attention_options
        attention; // its layers, width, heads, segments and seed are set from here
    int segments;  // G
    rfa_carry carry;
    bool recompute; // keep only the blocks' inputs for the backward, and run each block once more
    uint64_t seed;
} rfa_classifier_options;

typedef struct rfa_classifier rfa_classifier; // opaque

// sequence and exchange are borrowed for the model's life. Local.
RFA_NODISCARD rfa_status rfa_classifier_create(rfa_classifier **out,
                                               const rfa_classifier_options *options,
                                               const rfa_comm *sequence,
                                               rfa_exchange *exchange);
void rfa_classifier_destroy(rfa_classifier **out); // NULL-safe, sets *out to NULL

const rfa_parameters *rfa_classifier_table(const rfa_classifier *model);
rfa_real *rfa_classifier_values(rfa_classifier *model); // [table->size], owned by the model

// The projections of all heads; empty where there are none.
const rfa_pool *rfa_classifier_pool(const rfa_classifier *model);

// Makes room for this window of a batch, in the first one for what training keeps of all; the calls
// below do it by themselves. Errors: RFA_ERR_MEMORY. Local.
RFA_NODISCARD rfa_status rfa_classifier_reserve(rfa_classifier *model,
                                                const rfa_batch *batch,
                                                bool training);

// Whether the model trains on each window by itself, with states that it carries from step to step:
// then each window's forward gives logits, of its own tokens, and has its backward at once.
bool rfa_classifier_is_stateful(const rfa_classifier *model);

// Logits [examples][classes] of a batch, on every rank of the sequence. training: step step >= 1,
// with dropout, noise and that step's projections; else an evaluation after step step. A batch in
// windows comes window after window, the logits with the last one; memory is that of one window,
// and the states of all heads at each segment's begin, 8 B L H (2 + F (d + 1)) bytes. Causal linear
// attention alone. Collective over sequence.
RFA_NODISCARD rfa_status rfa_classifier_forward(rfa_classifier *model,
                                                const rfa_batch *batch,
                                                int64_t step,
                                                bool training);
const rfa_real *rfa_classifier_logits(const rfa_classifier *model);

// Adds the gradients for dlogits [examples][classes] to the model's exact sums; after the forward
// of the same batch, and in windows: from the last one, which is still loaded, back to the first.
// Each but the last is computed once more from the states that enter it, so a step costs about 4/3;
// the gradient is the exact one of the whole sequence, as adjoints of states go back from window to
// window (or carry is detached). Collective over sequence.
RFA_NODISCARD rfa_status rfa_classifier_backward(rfa_classifier *model,
                                                 const rfa_batch *batch,
                                                 const rfa_real *dlogits);

// Sums the gradients over all ranks, writes them to gradient [table->size] and clears the sums.
// RFA_ERR_NUMERIC on all ranks alike when one was NaN, Inf or out of range. Collective over all.
RFA_NODISCARD rfa_status rfa_classifier_gradients(rfa_classifier *model,
                                                  rfa_real *gradient,
                                                  const rfa_comm *all);

// Clamped denominators since the last call, on this rank.
int64_t rfa_classifier_guards(rfa_classifier *model);

// What softmax's gathers cost, beside the exchange's own costs.
rfa_exchange_cost rfa_classifier_gather_cost(const rfa_classifier *model);

// Flops of all products for one sequence of n tokens, and its share of the head; see
// rfa_attention_flops.
double rfa_classifier_flops(const rfa_classifier *model, ptrdiff_t n, bool backward);

#endif
