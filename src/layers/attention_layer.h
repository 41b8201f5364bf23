// Attention of one layer over a batch that is cut into leaves and over ranks: joins features, local
// kernels and the exchange. A forward is, for each round: local for every leaf, exchange once; then
// read for every leaf. A backward is its mirror image. Leaves are independent and may be run by
// several threads. An exchange may be had in two halves, between which the caller computes what
// needs nothing of it: of the linear kinds, states are then on their way; other kinds wait.
//
// The kinds are rows of one table (layers/attention_impl.h). Exchanges of a layer and step, forward
// and backward, in bytes that cross before the exchange's own factor (exchange/states.h), with B
// examples, S = 8 (2 + F (d + 1)) bytes a state:
//
//   kind                       forward                       backward
//   rfa, elu, performer        TOTAL    B H S                TOTAL    B H S
//     oprf map, in addition    TOTAL    B H 8 (2 + 2 d)      none
//     causal                   PREFIX   B H S                SUFFIX   B H S
//     direction both           PREFIX and SUFFIX, half each  the same
//   softmax, ra                B gathers of 4 N 2 E          the same, and B TOTALs of 8 N 2 E
//   lara, C landmarks,         TOTAL    B H 8 C 2 d          TOTAL    B H 8 J (2 d + 1), specific
//     J draws of them                                                 weights J + C d numbers more
//                              TOTAL    B H 8 J (d + 3)      TOTAL    B H 8 J d
//   eva, C chunks              TOTAL    B 8 C 2 E            TOTAL    B 8 C 2 E
//                              TOTAL    B H 8 C (d + 3)      TOTAL    B 8 C E
//     and keys and values      4 2 E a row that windows      the same, and 8 2 E a row back
//                              reach in other segments
#ifndef RFA_LAYERS_ATTENTION_LAYER_H
#define RFA_LAYERS_ATTENTION_LAYER_H

#include "base/kinds.h"
#include "base/mem.h"
#include "exchange/gather.h"
#include "exchange/partition.h"
#include "features/pool.h"

// The local batch as attention sees it. In cross attention (Peng et al. 2021, algorithm 2) queries
// and keys belong to sequences of different lengths, each cut over the ranks: leaves and lengths
// are the target's, those of source the keys'. Both count rows of the same arrays, and the calls
// for one leaf take the plan that the leaf is of: local and local_backward the source's, the others
// the target's. Kinds rfa, elu, performer (but oprf) and softmax, not causal.
typedef struct rfa_plan rfa_plan;
struct rfa_plan {
    int examples, own;        // examples of this data group, segments of this rank
    const rfa_leaf *leaves;   // [examples * own], example-major
    const ptrdiff_t *lengths; // [examples] tokens of the whole example
    const rfa_real *mask;     // [rows]
    ptrdiff_t rows, longest_leaf, longest_example; // rows: of this rank; of a leaf; of all segments
    int64_t first;          // place of the first example in the batch of all ranks
    const rfa_plan *source; // NULL: this
    // A window of a longer sequence, which a state of causal linear heads enters from the window
    // before, and leaves for the one behind. cut: adjoints of states stop at these borders.
    bool follows, is_followed, cut;
};

typedef struct {
    rfa_attention_kind kind;
    int segments;                   // G
    ptrdiff_t layers, width, heads; // L, E, H
    uint64_t seed;
    bool causal;
    rfa_direction direction; // of causal heads; both: the first half of them forward
    // rfa, elu, performer
    rfa_map_kind map;
    rfa_rows_kind rows;
    ptrdiff_t projections, pool; // D, matrices of the pool
    int64_t redraw;              // training steps that take the same matrices; 0: all steps
    rfa_bandwidth_kind bandwidth_kind;
    rfa_gate_kind gate;
    double bandwidth; // initial sigma, or 1 / temperature
    double gate_bias; // initial
    // ra, lara, eva
    ptrdiff_t landmarks;      // C
    ptrdiff_t draws;          // samples a query (ra), a landmark (lara)
    double specificity;       // of lara's specific weights
    ptrdiff_t window;         // tokens, of eva
    ptrdiff_t longest;        // tokens that an example may have: eva's chunks have longest / C
    rfa_weights_kind weights; // of lara
    bool antithetic;          // lara: draws come in pairs of opposite noise
    bool landmark_map;        // learned landmarks: a linear map and a norm; else means
    bool unit_norm;           // of rfa's map
} rfa_attention_options;

// A tensor of parameters of one layer.
typedef struct {
    char name[24];
    ptrdiff_t rows, columns; // columns 0: a vector
    rfa_init init;
    double value;
    ptrdiff_t at; // elements from the first tensor; each is padded by rfa_padded
} rfa_attention_tensor;

enum { RFA_ATTENTION_TENSORS = 10 }; // at most

typedef struct rfa_mechanism rfa_mechanism;

// What all layers share: options, projections and scratch.
typedef struct {
    rfa_attention_options options;
    const rfa_mechanism *mechanism;
    rfa_attention_tensor tensor[RFA_ATTENTION_TENSORS];
    int tensors;
    ptrdiff_t parameters; // elements of a layer's tensors
    rfa_pool pool;
    int *matrix;              // [L][H] of the pool, in this pass
    rfa_exchange *exchange;   // borrowed
    const rfa_comm *sequence; // borrowed
    int64_t step;             // of the current pass
    bool training;            // with noise and this step's projections
    bool again; // this forward repeats an earlier one, whose kept arrays are still there
    rfa_exchange_cost gather_cost; // of what does not cross by the exchange
    rfa_exchange_cost *costs;      // [L][2] forward and backward, of all that crosses
    rfa_exchange_cost spent;       // by all layers when the current exchange began
    void *scratch;                 // of the kind, carved
} rfa_attention;

// What one layer keeps from its forward for its backward: what crossed the ranks and windows (kept
// for each window), and the rest (which a repeated forward of the window fills again).
typedef struct {
    ptrdiff_t layer;
    const rfa_real *parameters; // [attention->parameters] of this layer, borrowed
    bool first_only;            // only the first RFA_ROWS rows of an example are read out
    rfa_real *qkv;              // [rows][3 E]: q | k | v, head h at column h d of each
    rfa_real *out;              // [rows][E]
    rfa_real *den;              // [H][rows] denominators; softmax: log of the sum of exponentials
    void *own;                  // of the kind, carved
} rfa_attention_saved;

// Gradients of one layer over its backward.
typedef struct {
    rfa_real *dqkv;       // [rows][3 E] overwritten over the calls
    const rfa_real *dout; // [rows][E] the gradient of saved->out
} rfa_attention_gradient;

// Parameters and projections; exchange and sequence are borrowed. Local.
RFA_NODISCARD rfa_status rfa_attention_create(rfa_attention *attention,
                                              const rfa_attention_options *options,
                                              rfa_exchange *exchange,
                                              const rfa_comm *sequence);
void rfa_attention_destroy(rfa_attention *attention); // idempotent

// Initial values that the tensors' init can't say, over values [parameters] of a layer. Local.
RFA_NODISCARD rfa_status rfa_attention_init(rfa_real *values,
                                            const rfa_attention *attention,
                                            ptrdiff_t layer);

// Carves scratch, kept and saved arrays for a plan, in this order (see rfa_arena: measure first).
// carry: what goes from window to window, of one layer; NULL where nothing does. Local.
void rfa_attention_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan);
double *
rfa_attention_carve_carry(rfa_arena *arena, const rfa_attention *attention, const rfa_plan *plan);
void rfa_attention_carve_kept(rfa_attention_saved *saved,
                              rfa_arena *arena,
                              const rfa_attention *attention,
                              const rfa_plan *plan,
                              double *carry);
void rfa_attention_carve_saved(rfa_attention_saved *saved,
                               rfa_arena *arena,
                               const rfa_attention *attention,
                               const rfa_plan *plan);
// Elements of a thread's workspace.
ptrdiff_t rfa_attention_work(const rfa_attention *attention, const rfa_plan *plan);

// Begins a pass of one layer: what follows from parameters, step and training alone. work: any
// thread's. Local.
void rfa_attention_begin(const rfa_attention *attention,
                         rfa_attention_saved *saved,
                         rfa_real *work);

// How often local and exchange alternate: 1 or 2.
int rfa_attention_rounds(const rfa_attention *attention);

// Whether local reads no queries, so that they may be filled in while the exchange goes on.
bool rfa_attention_queries_late(const rfa_attention *attention);

// Leaf by leaf, after saved->qkv is filled. x [leaf rows][E]: the layer's input, from which qkv was
// made. Local.
void rfa_attention_local(const rfa_attention *attention,
                         rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         int round,
                         int leaf,
                         const rfa_real *x,
                         rfa_real *work);
// Once a round. works [threads]: workspaces. Collective over sequence.
RFA_NODISCARD rfa_status rfa_attention_exchange(rfa_attention *attention,
                                                rfa_attention_saved *saved,
                                                const rfa_plan *plan,
                                                int round,
                                                rfa_real *const *works);
// The same in two halves; pump in between now and then, by the thread that called MPI_Init, or the
// states wait too. start: collective over sequence; pump: local; end: a rank may wait for others.
RFA_NODISCARD rfa_status rfa_attention_exchange_start(rfa_attention *attention,
                                                      rfa_attention_saved *saved,
                                                      const rfa_plan *plan,
                                                      int round,
                                                      rfa_real *const *works);
void rfa_attention_exchange_pump(rfa_attention *attention);
void rfa_attention_exchange_end(rfa_attention *attention,
                                rfa_attention_saved *saved,
                                const rfa_plan *plan,
                                int round);

// What the exchanges of a layer have cost this rank so far, forward or backward. seconds are those
// inside MPI calls.
const rfa_exchange_cost *
rfa_attention_cost(const rfa_attention *attention, ptrdiff_t layer, bool backward);

// How many rows of a leaf are read out: all, or with first_only those around the first token.
ptrdiff_t rfa_attention_read_rows(const rfa_attention_saved *saved, const rfa_leaf *leaf);
// Leaf by leaf: fills saved->out; returns how many denominators were clamped. Local.
int64_t rfa_attention_read(const rfa_attention *attention,
                           rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int leaf,
                           rfa_real *work);

// Mirror image, rounds downwards. dparameters [parameters] accumulates, one leaf's array a call.
void rfa_attention_read_backward(const rfa_attention_gradient *gradient,
                                 rfa_real *dparameters,
                                 const rfa_attention *attention,
                                 const rfa_attention_saved *saved,
                                 const rfa_plan *plan,
                                 int leaf,
                                 rfa_real *work);
RFA_NODISCARD rfa_status rfa_attention_exchange_backward(const rfa_attention_gradient *gradient,
                                                         rfa_attention *attention,
                                                         const rfa_attention_saved *saved,
                                                         const rfa_plan *plan,
                                                         int round,
                                                         rfa_real *const *works);
RFA_NODISCARD rfa_status
rfa_attention_exchange_backward_start(const rfa_attention_gradient *gradient,
                                      rfa_attention *attention,
                                      const rfa_attention_saved *saved,
                                      const rfa_plan *plan,
                                      int round,
                                      rfa_real *const *works);
void rfa_attention_exchange_backward_end(rfa_attention *attention,
                                         const rfa_attention_saved *saved,
                                         const rfa_plan *plan,
                                         int round);
void rfa_attention_local_backward(const rfa_attention_gradient *gradient,
                                  rfa_real *dparameters,
                                  const rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int round,
                                  int leaf,
                                  rfa_real *work);
// What reaches the layer's input x [leaf rows][E] not through qkv (a gate): dx accumulates.
void rfa_attention_input_backward(rfa_real *dx,
                                  rfa_real *dparameters,
                                  const rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int leaf,
                                  const rfa_real *x);

// Flops of the products of one layer's attention for one example of n tokens of which `read` are
// read out: the definition behind "model flops", which counts nothing twice that is computed twice.
// Linear kinds, with E = H d: 2 D E a feature map, 2 F E a state or read-out; backward: 2 D E a
// map, twice as many for the others. softmax: 4 E a pair of tokens forward, 10 E backward (half the
// pairs when causal).
double rfa_attention_flops(const rfa_attention_options *options,
                           ptrdiff_t n,
                           ptrdiff_t read,
                           bool backward);

#endif
