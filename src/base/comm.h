// Communicators with their rank and size, and the grid: sequence x data.
#ifndef RFA_BASE_COMM_H
#define RFA_BASE_COMM_H

#include <mpi.h>
#include <stddef.h>

typedef struct {
    MPI_Comm comm;
    int rank, size;
} rfa_comm;

// World rank w = data.rank * sequence.size + sequence.rank: neighbours share a sequence.
typedef struct {
    rfa_comm all;      // every rank, in world order: sums of gradients, files
    rfa_comm sequence; // the ranks that share the examples of one data group
    rfa_comm data;     // the ranks that hold the same segments of different examples
} rfa_grid;

// Duplicates parent. Collective.
void rfa_comm_create(rfa_comm *comm, MPI_Comm parent);
void rfa_comm_destroy(rfa_comm *comm); // idempotent

// Splits world into sequence x data groups; sequence_size must divide the world's size. Collective.
void rfa_grid_create(rfa_grid *grid, MPI_Comm world, int sequence_size);
void rfa_grid_destroy(rfa_grid *grid);

// Checked cast for MPI and BLAS counts.
int rfa_int(ptrdiff_t n);

#endif
