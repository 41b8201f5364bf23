// The process grid that ScaLAPACK's matrices are dealt over.
#ifndef RFA_LINALG_GRID_H
#define RFA_LINALG_GRID_H

#include "base/status.h"

#include <stdbool.h>

enum { RFA_BLOCK = 64 }; // rows and columns of a block where the caller has no other wish

// Rank r < rows * columns of comm is process (r / columns, r % columns). The others are spare: they
// hold no part of a matrix, but take part in every call of this room and get every result.
typedef struct {
    rfa_comm comm;       // borrowed: it must outlive the grid
    rfa_comm within;     // the grid's processes; size 0 on a spare rank
    rfa_comm in_row;     // those of my row, by column; size 0 on a spare rank
    rfa_comm in_column;  // those of my column, by row
    int rows, columns;   // processes, known to all
    int row, column;     // of this process; -1: spare
    ptrdiff_t block;     // of the matrices
    int context, handle; // of BLACS; -1: spare
} rfa_linalg_grid;

// The grid for matrices whose smaller side is about `order`: the most processes in rows <= columns
// <= 2 rows (a single row or column of a prime number of them is slow), and no more than leave each
// two blocks in either direction: below 4 blocks everything is done by one process, for tiny
// distributed problems are where ScaLAPACK returns wrong values without an error. Also sets BLAS to
// one thread. block 0: RFA_BLOCK. Collective over comm, as all that follows.
RFA_NODISCARD rfa_status rfa_linalg_grid_create(rfa_linalg_grid *grid,
                                                const rfa_comm *comm,
                                                ptrdiff_t order,
                                                ptrdiff_t block);
void rfa_linalg_grid_destroy(rfa_linalg_grid *grid); // idempotent; leaves nothing of BLACS behind

// The choice alone: rows <= columns for `ranks` processes. Local.
void rfa_linalg_grid_shape(int *rows, int *columns, int ranks, ptrdiff_t order, ptrdiff_t block);

bool rfa_linalg_grid_is_spare(const rfa_linalg_grid *grid);
bool rfa_linalg_grid_is_single(const rfa_linalg_grid *grid); // one process does everything

#endif
