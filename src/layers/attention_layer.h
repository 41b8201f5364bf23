// Attention of one layer over a batch that is cut into leaves and over ranks: joins features, local
// kernels and the exchange. A forward is: local for every leaf, exchange once, read for every leaf;
// a backward is its mirror image. Leaves are independent and may be run by several threads.
//
// Exchanges per layer: rfa bidirectional TOTAL forward, TOTAL backward; rfa causal PREFIX, SUFFIX;
// B H F (d + 1) doubles each. softmax gathers keys and values (2 N E numbers an example) in each
// direction, and sums their gradients by a TOTAL.
#ifndef RFA_LAYERS_ATTENTION_LAYER_H
#define RFA_LAYERS_ATTENTION_LAYER_H

#include "base/kinds.h"
#include "base/mem.h"
#include "exchange/gather.h"
#include "exchange/partition.h"
#include "features/pool.h"

// The local batch as attention sees it.
typedef struct {
    int examples, own;        // examples of this data group, segments of this rank
    const rfa_leaf *leaves;   // [examples * own], example-major
    const ptrdiff_t *lengths; // [examples] tokens of the whole example
    const rfa_real *mask;     // [rows]
    ptrdiff_t rows, longest_leaf, longest_example; // rows: of this rank; of a leaf; of all segments
} rfa_plan;

typedef struct {
    rfa_attention_kind kind;
    bool causal;
    ptrdiff_t width, heads; // E, H
    int segments;           // G
    const rfa_pool *pool;   // borrowed; D comes from it
    rfa_exchange *exchange; // borrowed
    const rfa_comm *sequence;
} rfa_attention_options;

// What all layers share: options and scratch.
typedef struct {
    rfa_attention_options options;
    double *states;                // [own][size]: states, then adjoints of states
    rfa_real *dtotal;              // [size] adjoint of the total
    rfa_real *gathered;            // [longest_example][2 E] keys and values of one example
    double *gathered_gradient;     // [own][H][longest_example][2 d]
    ptrdiff_t *counts;             // [P] rows of each rank
    rfa_exchange_cost gather_cost; // of softmax's gathers
} rfa_attention;

// What one layer keeps from its forward for its backward.
typedef struct {
    rfa_real *qkv;   // [rows][3 E]: q | k | v, head h at column h d of each
    rfa_real *out;   // [rows][E]
    rfa_real *den;   // [H][rows] denominators; softmax: log of the sum of exponentials
    rfa_real *total; // bidirectional: [size]
    double *before;  // causal: [own][size]
    const rfa_real *w[RFA_MOST_HEADS]; // [H] projections of this pass
    const rfa_real *sigma;             // [H][d] borrowed parameters
    bool first_only;                   // only the first RFA_ROWS rows of an example are read out
} rfa_attention_saved;

// Carves scratch and saved arrays for a plan (see rfa_arena: measure first). Local.
void rfa_attention_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan);
void rfa_attention_carve_saved(rfa_attention_saved *saved,
                               rfa_arena *arena,
                               const rfa_attention *attention,
                               const rfa_plan *plan);
// Elements of a thread's workspace.
ptrdiff_t rfa_attention_work(const rfa_attention *attention, const rfa_plan *plan);

// Leaf by leaf, after saved->qkv is filled. Local.
void rfa_attention_local(const rfa_attention *attention,
                         rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         int leaf,
                         rfa_real *work);
// Once. works [threads]: workspaces. Collective over sequence.
RFA_NODISCARD rfa_status rfa_attention_exchange(rfa_attention *attention,
                                                rfa_attention_saved *saved,
                                                const rfa_plan *plan,
                                                rfa_real *const *works);
// How many rows of a leaf are read out: all, or with first_only those around the first token.
ptrdiff_t rfa_attention_read_rows(const rfa_attention_saved *saved, const rfa_leaf *leaf);
// Leaf by leaf: fills saved->out; returns how many denominators were clamped. Local.
int64_t rfa_attention_read(const rfa_attention *attention,
                           rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int leaf,
                           rfa_real *work);

// Mirror image: dout [rows][E] is the gradient of saved->out, dqkv [rows][3 E] is overwritten over
// the three calls; dsigma [H][d] accumulates, one leaf's array a call.
void rfa_attention_read_backward(rfa_real *dqkv,
                                 rfa_real *dsigma,
                                 const rfa_real *dout,
                                 const rfa_attention *attention,
                                 const rfa_attention_saved *saved,
                                 const rfa_plan *plan,
                                 int leaf,
                                 rfa_real *work);
RFA_NODISCARD rfa_status rfa_attention_exchange_backward(rfa_real *dqkv,
                                                         const rfa_real *dout,
                                                         rfa_attention *attention,
                                                         const rfa_attention_saved *saved,
                                                         const rfa_plan *plan,
                                                         rfa_real *const *works);
void rfa_attention_local_backward(rfa_real *dqkv,
                                  rfa_real *dsigma,
                                  const rfa_real *dout,
                                  const rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int leaf,
                                  rfa_real *work);

// Flops of the products of one layer's attention for one example of n tokens of which `read` are
// read out: the definition behind "model flops", which counts nothing twice that is computed twice.
// rfa, with E = H d: 2 D E a feature map, 2 F E a state or read-out; backward: 2 D E a map, twice
// as many for the others. softmax: 4 E a pair of tokens forward, 10 E backward (half the pairs when
// causal).
double rfa_attention_flops(const rfa_attention_options *options,
                           ptrdiff_t n,
                           ptrdiff_t read,
                           bool backward);

#endif
