#include "linalg/grid.h"

#include "linalg/scalapack.h"

#include <cblas.h>

static int grids; // of this process, open now

void rfa_linalg_grid_shape(int *rows, int *columns, int ranks, ptrdiff_t order, ptrdiff_t block)
{
    enum { BLOCKS_EACH = 2 };
    const ptrdiff_t most = order / (BLOCKS_EACH * block) > 1 ? order / (BLOCKS_EACH * block) : 1;
    *rows = *columns = 1;
    for (int p = 1; p <= most && p * p <= ranks; p++) {
        int q = ranks / p < 2 * p ? ranks / p : 2 * p;
        q = q <= most ? q : (int)most;
        if (q >= p && p * q >= *rows * *columns) {
            *rows = p;
            *columns = q;
        }
    }
}

static void split(rfa_comm *comm, MPI_Comm parent, int colour, int key)
{
    *comm = (rfa_comm){.size = 0};
    MPI_Comm_split(parent, colour, key, &comm->comm);
    if (comm->comm != MPI_COMM_NULL) {
        MPI_Comm_rank(comm->comm, &comm->rank);
        MPI_Comm_size(comm->comm, &comm->size);
    }
}

rfa_status rfa_linalg_grid_create(rfa_linalg_grid *grid,
                                  const rfa_comm *comm,
                                  ptrdiff_t order,
                                  ptrdiff_t block)
{
    *grid = (rfa_linalg_grid){.comm = *comm, .row = -1, .column = -1, .context = -1, .handle = -1};
    RFA_ASSERT(order >= 1 && block >= 0);
    grid->block = block > 0 ? block : RFA_BLOCK;
    rfa_linalg_grid_shape(&grid->rows, &grid->columns, comm->size, order, grid->block);
    openblas_set_num_threads(1);
    const bool member = comm->rank < grid->rows * grid->columns;
    split(&grid->within, comm->comm, member ? 0 : MPI_UNDEFINED, comm->rank);
    rfa_status status = RFA_OK;
    if (member) {
        const int row = comm->rank / grid->columns, column = comm->rank % grid->columns;
        split(&grid->in_row, grid->within.comm, row, column);
        split(&grid->in_column, grid->within.comm, column, row);
        // The context is made from our communicator, never from all processes of the job.
        grid->handle = Csys2blacs_handle(grid->within.comm);
        grid->context = grid->handle;
        Cblacs_gridinit(&grid->context, "Row", grid->rows, grid->columns);
        grids++;
        int rows = 0, columns = 0;
        Cblacs_gridinfo(grid->context, &rows, &columns, &grid->row, &grid->column);
        if (rows != grid->rows || columns != grid->columns || grid->row != row ||
            grid->column != column) {
            status = rfa_fail(RFA_ERR_INTERNAL, "BLACS placed process (%d, %d) at (%d, %d)", row,
                              column, grid->row, grid->column);
        }
    }
    status = rfa_agree(comm, status);
    if (status != RFA_OK) {
        rfa_linalg_grid_destroy(grid);
    }
    return status;
}

void rfa_linalg_grid_destroy(rfa_linalg_grid *grid)
{
    if (grid->within.size > 0) {
        Cblacs_gridexit(grid->context);
        Cfree_blacs_system_handle(grid->handle);
        grids--;
        if (grids == 0) {
            Cblacs_exit(1); // its buffers; without ending MPI
        }
    }
    rfa_comm_destroy(&grid->in_column);
    rfa_comm_destroy(&grid->in_row);
    rfa_comm_destroy(&grid->within);
    *grid = (rfa_linalg_grid){.row = -1, .column = -1, .context = -1, .handle = -1};
}

bool rfa_linalg_grid_is_spare(const rfa_linalg_grid *grid)
{
    return grid->row < 0;
}

bool rfa_linalg_grid_is_single(const rfa_linalg_grid *grid)
{
    return grid->rows * grid->columns == 1;
}
