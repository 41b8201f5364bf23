#include "base/comm.h"

#include "base/status.h"

#include <limits.h>

void rfa_comm_create(rfa_comm *comm, MPI_Comm parent)
{
    MPI_Comm_dup(parent, &comm->comm);
    MPI_Comm_rank(comm->comm, &comm->rank);
    MPI_Comm_size(comm->comm, &comm->size);
}

void rfa_comm_destroy(rfa_comm *comm)
{
    if (comm->size > 0) {
        MPI_Comm_free(&comm->comm);
        *comm = (rfa_comm){.size = 0};
    }
}

static void comm_split(rfa_comm *comm, const rfa_comm *parent, int colour)
{
    MPI_Comm_split(parent->comm, colour, parent->rank, &comm->comm);
    MPI_Comm_rank(comm->comm, &comm->rank);
    MPI_Comm_size(comm->comm, &comm->size);
}

void rfa_grid_create(rfa_grid *grid, MPI_Comm world, int sequence_size)
{
    rfa_comm_create(&grid->all, world);
    RFA_ASSERT(sequence_size >= 1 && grid->all.size % sequence_size == 0);
    comm_split(&grid->sequence, &grid->all, grid->all.rank / sequence_size);
    comm_split(&grid->data, &grid->all, grid->all.rank % sequence_size);
}

void rfa_grid_destroy(rfa_grid *grid)
{
    rfa_comm_destroy(&grid->data);
    rfa_comm_destroy(&grid->sequence);
    rfa_comm_destroy(&grid->all);
}

int rfa_int(ptrdiff_t n)
{
    RFA_ASSERT(n >= 0 && n <= INT_MAX);
    return (int)n;
}
