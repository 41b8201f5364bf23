// Batches: batch k of a run is a function of (seed, k), never of the rank count. A data group takes
// a contiguous share of its examples, a rank its own segments of these.
#ifndef RFA_TASKS_BATCH_H
#define RFA_TASKS_BATCH_H

#include "base/mem.h"
#include "storage/dataset.h"

// Order of examples: each epoch is a permutation, so that every example comes exactly once an
// epoch.
typedef struct {
    uint64_t seed;
    int64_t examples, epoch; // epoch whose order is held; -1: none
    int32_t *order;          // [examples]
} rfa_sampler;

RFA_NODISCARD rfa_status rfa_sampler_create(rfa_sampler *sampler, uint64_t seed, int64_t examples);
void rfa_sampler_destroy(rfa_sampler *sampler); // idempotent

// The example at place index (0, 1, ... over all epochs). Local; n operations when the epoch
// changes.
int64_t rfa_sampler_at(rfa_sampler *sampler, int64_t index);

// Share [begin, end) of data group d of D in a batch of n.
static inline int64_t rfa_share(int64_t n, int d, int D)
{
    return n * d / D;
}

// A few examples of one data group, and this rank's tokens of them.
typedef struct {
    int examples;        // of this pass, may be 0
    int first;           // index of the first one in the whole batch: the key of its dropout
    int64_t *id;         // [capacity] index in the data set
    int *label;          // [capacity]
    ptrdiff_t *length;   // [capacity] tokens, cut at max_length
    rfa_leaf *leaves;    // [examples * own]
    int own, leaf_count; // segments of this rank; examples * own
    ptrdiff_t rows;      // of this rank
    ptrdiff_t tokens;    // valid, of this rank
    uint16_t *ids;       // [rows]
    rfa_real *mask;      // [rows] 1 for a token, 0 for padding
    int segments, parts, part, capacity;
    ptrdiff_t row_capacity, max_length;
} rfa_batch;

// For passes of up to capacity examples, cut into segments; this rank is part of parts. Local.
RFA_NODISCARD rfa_status rfa_batch_create(
    rfa_batch *batch, int capacity, int segments, int parts, int part, ptrdiff_t max_length);
void rfa_batch_destroy(rfa_batch *batch); // idempotent

// Loads examples id[0..n) whose first one is number first of the whole batch. Collective over the
// data set's ranks (n may differ, also 0).
RFA_NODISCARD rfa_status rfa_batch_load(rfa_batch *batch,
                                        rfa_dataset *dataset,
                                        const rfa_comm *all,
                                        const int64_t *id,
                                        int n,
                                        int first);

#endif
