// One layer of attention on inputs that are a function of example, position and column, cut over
// the ranks as in a model.
#ifndef RFA_BENCH_LAYER_H
#define RFA_BENCH_LAYER_H

#include "layers/attention_layer.h"

// Inputs: queries and keys are (1 + u) / 2, values u, the layer's own input and the gradient of the
// output u, with u uniform of variance 1.
typedef enum {
    RFA_BENCH_Q,
    RFA_BENCH_K,
    RFA_BENCH_V,
    RFA_BENCH_X,
    RFA_BENCH_DOUT,
    RFA_BENCH_INPUTS
} rfa_bench_input;

// out [width] = one row. width <= RFA_BENCH_WIDTH. Local.
enum { RFA_BENCH_WIDTH = 8192 };
void rfa_bench_row(
    rfa_real *out, rfa_bench_input input, int example, ptrdiff_t position, ptrdiff_t width);

typedef struct {
    rfa_exchange *exchange;
    rfa_attention attention;
    rfa_attention_saved saved;
    rfa_plan plan;
    rfa_leaf *leaves;   // [examples * own]
    ptrdiff_t *lengths; // [examples]
    rfa_real *mask;     // [rows]
    rfa_real *x, *dx;   // [rows][E]
    rfa_real *dqkv;     // [rows][3 E]
    rfa_real *dout;     // [rows][E]
    rfa_real *values;   // [parameters]
    rfa_real *dvalues;  // [threads][parameters padded]
    rfa_real **works;   // [threads]
    void *memory;
    int threads, leaf_count;
} rfa_bench_layer;

// examples of length tokens; options as a classifier completes them, layers 1. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_bench_layer_create(rfa_bench_layer *layer,
                                                const rfa_attention_options *options,
                                                rfa_exchange_algorithm algorithm,
                                                const rfa_comm *world,
                                                int threads,
                                                int examples,
                                                ptrdiff_t length);
void rfa_bench_layer_destroy(rfa_bench_layer *layer); // idempotent. Collective

// Other inputs: those of positions from begin on. Local.
void rfa_bench_layer_fill(rfa_bench_layer *layer, ptrdiff_t begin);

// The forward up to its exchanges, alone: a window's states. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_bench_layer_states(rfa_bench_layer *layer, int64_t step);

// A pass; step 0: an evaluation, without noise. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_bench_layer_forward(rfa_bench_layer *layer, int64_t step);
RFA_NODISCARD rfa_status rfa_bench_layer_backward(rfa_bench_layer *layer);

#endif
