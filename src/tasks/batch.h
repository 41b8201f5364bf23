// Batches: batch k of a run is a function of (seed, k), never of the rank count. A data group takes
// a contiguous share of its examples, a rank its own segments of these. Long examples come window
// after window: window w holds tokens [w span, (w + 1) span) of each, cut into segments by itself.
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

// A few examples of one data group, and this rank's tokens of one window of them. The sequences of
// a pair stand side by side: an example of leaves and plans is a sequence here.
typedef struct {
    int examples;        // of this pass, may be 0
    int documents;       // sequences of an example: 1 or 2
    int sequences;       // examples * documents
    int window, windows; // which of how many
    int first;           // number of the first sequence in the whole batch: the key of its dropout
    int64_t *id;         // [sequences] number in the data set
    int *label;          // [examples]
    ptrdiff_t *length;   // [sequences] tokens, cut at max_length
    ptrdiff_t *present;  // [sequences] tokens in the window; length where there is one window
    rfa_leaf *leaves;    // [sequences * own], begin: in the whole sequence
    int own, leaf_count; // segments of this rank; sequences * own
    ptrdiff_t rows;      // of this rank
    ptrdiff_t tokens;    // valid, of this rank and window
    uint16_t *ids;       // [rows]
    rfa_real *mask;      // [rows] 1 for a token, 0 for padding
    int segments, parts, part, capacity;
    ptrdiff_t row_capacity, max_length, span;
} rfa_batch;

// For passes of up to capacity examples of one or two documents, in windows of span tokens (a
// multiple of RFA_ROWS; 0: one window for all), cut into segments; this rank is part of parts.
// Local.
RFA_NODISCARD rfa_status rfa_batch_create(rfa_batch *batch,
                                          int capacity,
                                          int segments,
                                          int parts,
                                          int part,
                                          ptrdiff_t max_length,
                                          ptrdiff_t span,
                                          int documents);
void rfa_batch_destroy(rfa_batch *batch); // idempotent

// Windows of an example of length tokens, 1 or more. Local.
int rfa_batch_windows(const rfa_batch *batch, ptrdiff_t length);

// Sets id, label and length of examples id[0..n). Local.
void rfa_batch_describe(rfa_batch *batch, const rfa_dataset *dataset, const int64_t *id, int n);

// Lays out window of windows of n examples, whose label and length are set and whose first one is
// number first of the whole batch: everything but the ids. Errors: RFA_ERR_MEMORY. Local.
RFA_NODISCARD rfa_status
rfa_batch_lay_out(rfa_batch *batch, int n, int first, int window, int windows);

// The same for examples id[0..n), with their ids. Collective over the data set's ranks (n may
// differ, also 0).
RFA_NODISCARD rfa_status rfa_batch_load(rfa_batch *batch,
                                        rfa_dataset *dataset,
                                        const rfa_comm *all,
                                        const int64_t *id,
                                        int n,
                                        int first,
                                        int window,
                                        int windows);

#endif
