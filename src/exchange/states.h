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

// AUTO takes exscan for prefixes and suffixes of sums on 2 and 4 ranks, where a left fold of whole
// ranks is the tree's expression and the library is seen to fold so; else transposed. Times within
// a node, as parts of transposed's, medians for states of 8 KiB | 256 KiB | 4 MiB | 64 MiB, with
// Open MPI 4.1.4 on two cores (4 ranks share them):
//                                    P = 2                      P = 4
//   exscan, blocking                 0.54 | 0.85 | 0.79 | 0.77  0.74 | 0.78 | 0.72 | 0.87
//   exscan, started                  0.58 | 0.93 | 0.96 | 0.88  0.79 | 0.78 | 0.68 | 0.83
//   transposed, started              0.99 | 1.01 | 1.03 | 1.00  1.08 | 0.86 | 0.93 | 1.04
//   totals by MPI_Allreduce          0.67 | 0.76 | 0.85 | 0.74  1.42 | 1.14 | 1.09 | 1.44
//   by MPI_Iallreduce, not taken     1.00 | 1.02 | 1.44 | 1.07  1.39 | 1.44 | 1.16 | 1.81
// (mpirun -n 2 rfa bench exchange --set bench.states=1024,32768,524288,8388608). exscan moves less
// (its bytes are half), but in P - 1 hops one after another. A prototype that loads from a window
// of MPI_Win_allocate_shared (copy in, barrier, fold of the peers' rows, barrier), without local
// sums:
//   exscan, blocking                 0.37 | 0.83 | 0.36 | 0.40  0.98 | 0.71 | 1.24 | 1.47
//   window, each its own prefix      0.18 | 0.62 | 0.45 | 0.74  0.78 | 0.61 | 1.03 | 1.04
//   window, slices, both ways        0.20 | 0.91 | 0.77 | 0.93  1.09 | 0.49 | 1.00 | 0.89
// so messages lose microseconds where states are small and nothing where they are large: there is
// no window.
typedef enum {
    RFA_EXCHANGE_AUTO,
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

// The same in two halves, with the same bits, so that the caller may compute while states cross:
// leaves belong to the exchange from start to finish. Up to RFA_EXCHANGE_STARTED are in flight and
// cross in the order of their starts; when a start fails, it alone is undone. pump makes progress
// (a library moves data, and the next of several stages begins, only in calls): true when nothing
// is in flight. finish waits for all of it; rfa_exchange_rows_run only when nothing is in flight.
// start and finish: collective over sequence, though a rank may be anywhere between them. pump:
// local. All by the thread that called MPI_Init.
enum { RFA_EXCHANGE_STARTED = 2 };
RFA_NODISCARD rfa_status rfa_exchange_rows_start(rfa_exchange *exchange,
                                                 rfa_exchange_kind kind,
                                                 double *leaves,
                                                 rfa_exchange_rows rows);
bool rfa_exchange_pump(rfa_exchange *exchange);
void rfa_exchange_finish(rfa_exchange *exchange);

// rfa_exchange_rows_run for sums of size numbers that stand one after another.
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
