// What attention_linear.c (a pass) and attention_linear_setup.c (parameters, projections, memory)
// of the linear kinds share: rfa, elu, performer.
#ifndef RFA_LAYERS_ATTENTION_LINEAR_H
#define RFA_LAYERS_ATTENTION_LINEAR_H

#include "attention/linear.h"
#include "layers/attention_impl.h"

// States stand as [own][H][examples][state], so that the heads of one direction are together.
typedef struct {
    double *states;   // states, then adjoints of states
    double *aside;    // [H][examples][state] of the segment that a window's scan leaves last
    rfa_real *dtotal; // [H][examples][state] adjoint of the total
    rfa_real *dgate;  // [H][rows] gradient before the gate's sigmoid
} rfa_linear_scratch;

typedef struct {
    // Kept: they crossed the ranks.
    rfa_real *total;    // bidirectional: [H][examples][state]
    double *before;     // causal: as states
    double *statistics; // oprf: [own][H][examples][rfa_oprf_statistics_size]
    double *carry;      // [H][examples][state] between windows: states, then adjoints
    // The rest.
    double *scale;                     // causal: [H][rows] rfa_reading.scale
    rfa_real *decay, *input;           // gate: [H][rows] log g, log (1 - g)
    const rfa_real *w[RFA_MOST_HEADS]; // [H] projections of this pass
    rfa_real *own_w;                   // [H][D][d] where they are learned
    rfa_real *w_squares;               // [H][D] of oprf
    rfa_real *sigma;                   // [H][d] where it is no parameter
} rfa_linear_saved;

// Tensors, in order; absent ones are -1.
typedef struct {
    int bandwidth, fastfood, gate_weight, gate_bias;
} rfa_linear_tensors;

rfa_linear_tensors rfa_linear_tensor_places(const rfa_attention_options *options);

static inline rfa_linear_saved *rfa_linear_own(const rfa_attention_saved *saved)
{
    return saved->own;
}

// Whether head h runs from the end of the sequence.
bool rfa_linear_is_reverse(const rfa_attention_options *options, ptrdiff_t h);

// The map of head h, for leaf's example (of which only oprf's a depends; < 0: none).
rfa_feature_map rfa_linear_map(const rfa_attention *attention,
                               const rfa_attention_saved *saved,
                               const rfa_plan *plan,
                               int leaf,
                               ptrdiff_t h);

// Numbers of a state, and of the states of all heads and examples.
ptrdiff_t rfa_linear_state_numbers(const rfa_attention_options *options);

// The setup's part of rfa_mechanism_linear.
int rfa_linear_rounds(const rfa_attention_options *options);
bool rfa_linear_pool_rows(const rfa_attention_options *options);
int rfa_linear_tensors_fill(rfa_attention_tensor *tensor, const rfa_attention_options *options);
void rfa_linear_init(rfa_real *values,
                     const rfa_attention *attention,
                     ptrdiff_t layer,
                     rfa_real *work);
ptrdiff_t rfa_linear_init_work(const rfa_attention_options *options);
void rfa_linear_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan);
double *
rfa_linear_carve_carry(rfa_arena *arena, const rfa_attention *attention, const rfa_plan *plan);
void rfa_linear_carve_kept(rfa_attention_saved *saved,
                           rfa_arena *arena,
                           const rfa_attention *attention,
                           const rfa_plan *plan,
                           double *carry);
void rfa_linear_carve_saved(rfa_attention_saved *saved,
                            rfa_arena *arena,
                            const rfa_attention *attention,
                            const rfa_plan *plan);
ptrdiff_t rfa_linear_layer_work(const rfa_attention *attention, const rfa_plan *plan);
void rfa_linear_begin(const rfa_attention *attention, rfa_attention_saved *saved, rfa_real *work);
double
rfa_linear_flops(const rfa_attention_options *options, ptrdiff_t n, ptrdiff_t read, bool backward);

// One segment's states, [H][examples][state].
ptrdiff_t rfa_linear_row_size(const rfa_attention *attention, const rfa_plan *plan);

// Around the exchange of a window's states, or of their adjoints when backward: before it, what
// enters the window joins the segment that the scan comes to first; after it, what leaves the
// window is handed to the rank at which it enters the next one. One message a window. Called on all
// ranks of the sequence.
void rfa_linear_carry_in(const rfa_attention *attention,
                         const rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         double *states,
                         bool backward);
void rfa_linear_carry_out(rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          double *states,
                          bool backward);

// Gradients of a head's map as the tensors hold them: what a leaf's pass adds to sigma [d] and w
// [D][d], which rfa_linear_gradient_begin clears in work, goes to dparameters.
typedef struct {
    rfa_map_gradient map;
    rfa_real *work; // what is left of it
} rfa_linear_gradient;

rfa_linear_gradient rfa_linear_gradient_begin(const rfa_attention *attention, rfa_real *work);
void rfa_linear_gradient_end(rfa_real *dparameters,
                             const rfa_linear_gradient *gradient,
                             const rfa_attention *attention,
                             const rfa_attention_saved *saved,
                             ptrdiff_t h);

// log g and log (1 - g) of g = sigmoid(w . x + b) (Peng et al. 2021, eq. 7) for a leaf with input
// x; a fixed gate adds tokens with weight 1, as a constant factor would cancel.
void rfa_gates_open(const rfa_attention *attention,
                    const rfa_attention_saved *saved,
                    const rfa_plan *plan,
                    int leaf,
                    const rfa_real *x);

// From the gradients of log g and log (1 - g), [rows], to the one before the sigmoid.
void rfa_gates_close(const rfa_attention *attention,
                     const rfa_attention_saved *saved,
                     const rfa_plan *plan,
                     int leaf,
                     ptrdiff_t h,
                     const rfa_real *ddecay,
                     const rfa_real *dinput);

// And on to the layer's input and the gates' parameters.
void rfa_gates_input_backward(rfa_real *dx,
                              rfa_real *dparameters,
                              const rfa_attention *attention,
                              const rfa_attention_saved *saved,
                              const rfa_plan *plan,
                              int leaf,
                              const rfa_real *x);

#endif
