// What states.c (creation) and states_run.c (an exchange) share.
#ifndef RFA_EXCHANGE_STATES_IMPL_H
#define RFA_EXCHANGE_STATES_IMPL_H

#include "exchange/states.h"
#include "exchange/tree.h"

// One exchange that was started, and how far it is.
typedef struct {
    rfa_exchange_kind kind;
    bool transposed;
    double *leaves;
    rfa_exchange_rows rows;
    ptrdiff_t piece, at; // columns of one call, and where the current one begins
} rfa_exchange_job;

// What the current piece of the first job waits for.
typedef enum {
    RFA_STAGE_NONE,  // nothing: it is yet to begin
    RFA_STAGE_THERE, // the owners' slices of all subtree sums
    RFA_STAGE_BACK,  // the owners' answers
    RFA_STAGE_SCAN,  // the library's scan or reduction
} rfa_exchange_stage;

struct rfa_exchange {
    rfa_comm comm;
    rfa_comm reversed; // the same ranks, last first; only where an exscan may run
    rfa_exchange_algorithm algorithm;
    bool exscan;     // AUTO takes the library's scan for short prefixes and suffixes
    rfa_tree own;    // over this rank's segments
    rfa_tree above;  // over the subtrees of all ranks
    int *first;      // [P + 1]: rank p's subtrees are leaves [first[p], first[p + 1]) of above
    int most;        // subtrees of the rank that has most
    int *mpi_counts; // [4][P]: counts and displacements on the own and on the owner's side
    ptrdiff_t room, columns; // that the buffers hold: of a piece, of a slice; same on all ranks
    double *wire;            // [P] x [own.roots][slice], packed; unused with one subtree
    double *nodes;           // [above.leaves][slice]: this rank's columns of all subtrees
    rfa_exchange_job job[RFA_EXCHANGE_STARTED]; // in the order in which they cross
    int jobs;
    rfa_exchange_stage stage;
    bool blocking;       // nothing to overlap: the library's blocking calls
    MPI_Request request; // of the stage
    rfa_exchange_cost cost;
};

void rfa_exchange_free_buffers(rfa_exchange *x);

#endif
