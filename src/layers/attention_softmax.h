// What softmax and randomised attention share: keys and values of one example, gathered from all
// ranks of a sequence in ascending order of segments, and the way back of their gradients.
#ifndef RFA_LAYERS_ATTENTION_SOFTMAX_H
#define RFA_LAYERS_ATTENTION_SOFTMAX_H

#include "attention/softmax.h"
#include "layers/attention_impl.h"

// Scratch of these kinds.
typedef struct {
    rfa_real *kv;              // [longest_example][2 E] keys and values of one example
    double *dkv;               // [own][H][longest_example][2 d] gradients of them
    ptrdiff_t *counts;         // [P] rows of each rank
    rfa_softmax_block *blocks; // [G] segments in kv
} rfa_gathered;

void rfa_gathered_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan);

// Fills kv and blocks for one example. Collective over sequence.
RFA_NODISCARD rfa_status rfa_gathered_fetch(rfa_attention *attention,
                                            const rfa_attention_saved *saved,
                                            const rfa_plan *plan,
                                            int example);

// Rows of the example in kv.
ptrdiff_t rfa_gathered_rows(const rfa_attention *attention);

// Sums dkv over all segments and writes this rank's part into dqkv. Collective over sequence.
RFA_NODISCARD rfa_status rfa_gathered_return(rfa_real *dqkv,
                                             rfa_attention *attention,
                                             const rfa_plan *plan,
                                             int example);

// The queries of a leaf that are read out, as a block of this rank's arrays.
rfa_softmax_block rfa_gathered_queries(const rfa_attention_saved *saved, const rfa_leaf *leaf);

#endif
