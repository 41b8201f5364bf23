// Prefix, suffix and total of states over all segments of a sequence, whose bits do not depend on
// the number of ranks: every result is a fixed expression of the G leaves.
//
// The expression is that of one binary tree over the segments. A node is the sum of its two
// children. The exclusive prefix of a right child is prefix(parent) + left sibling, of a left child
// prefix(parent); the suffix is its mirror image; the total is the root. (Blelloch, "Prefix sums
// and their applications", 1990.)
#ifndef RFA_EXCHANGE_STATES_H
#define RFA_EXCHANGE_STATES_H

#include "base/status.h"
#include "tensor/shapes.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    RFA_EXCHANGE_AUTO,       // exscan where its left fold is the tree's expression, else transposed
    RFA_EXCHANGE_EXSCAN,     // MPI_Exscan, on a rank-reversed communicator for suffixes
    RFA_EXCHANGE_TRANSPOSED, // all-to-all of subtree sums, local fold, all-to-all back
} rfa_exchange_algorithm;

typedef enum { RFA_PREFIX, RFA_SUFFIX, RFA_TOTAL } rfa_exchange_kind;

// What the exchange has cost this rank so far.
typedef struct {
    double seconds; // inside MPI calls: waiting and moving
    int64_t calls, messages, bytes_sent;
} rfa_exchange_cost;

typedef struct rfa_exchange rfa_exchange; // opaque: own duplicate of the communicator, buffers

// segments: a power of two, >= sequence->size (else RFA_ERR_USAGE). Collective over sequence.
RFA_NODISCARD rfa_status rfa_exchange_create(rfa_exchange **out,
                                             const rfa_comm *sequence,
                                             int segments,
                                             rfa_exchange_algorithm algorithm);
void rfa_exchange_destroy(rfa_exchange **exchange); // NULL-safe, sets *exchange to NULL. Collective

// What a row of numbers is made of, and how rows stand in memory.
typedef struct {
    ptrdiff_t size;   // numbers of a row
    ptrdiff_t stride; // from one leaf's row to the next, >= size
    ptrdiff_t unit;   // 1: sums; else scaled elements of unit numbers (exchange/element.h)
} rfa_exchange_rows;

// leaves [own segments][stride], this rank's segments in ascending order. PREFIX and SUFFIX replace
// each leaf by the sum of all leaves before (after) it, TOTAL replaces leaves[0 .. size) by the sum
// of all (the rest is undefined). Scaled elements are combined as a reader at the end (SUFFIX: at
// the beginning) of the sequence so far sees them; in a TOTAL none decays (L = 0). Identity: zeros,
// or empty elements. Errors: RFA_ERR_MEMORY, agreed. Collective over sequence, rows the same on all
// its ranks; any size >= 0, also beyond 2^31 bytes.
// Bytes sent a rank with one subtree a rank: exscan size * 8; transposed 2 (P-1)/P size * 8.
RFA_NODISCARD rfa_status rfa_exchange_rows_run(rfa_exchange *exchange,
                                               rfa_exchange_kind kind,
                                               double *leaves,
                                               rfa_exchange_rows rows);

// The same for sums of size numbers that stand one after another.
RFA_NODISCARD rfa_status rfa_exchange_run(rfa_exchange *exchange,
                                          rfa_exchange_kind kind,
                                          double *leaves,
                                          ptrdiff_t size);

// The algorithm that sums of a kind take after AUTO is resolved; never AUTO. For scaled elements
// AUTO is transposed: libraries have split or swapped operands of own operations.
rfa_exchange_algorithm rfa_exchange_choice(const rfa_exchange *exchange, rfa_exchange_kind kind);

// True when every kind gives bits that do not depend on the rank count. Forced exscan for totals or
// where its fold is not the tree's is "fast": right, but its own bits for each P.
bool rfa_exchange_is_exact(const rfa_exchange *exchange);

const rfa_exchange_cost *rfa_exchange_costs(const rfa_exchange *exchange);

#endif
