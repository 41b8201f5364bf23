// Dense double matrices dealt block-cyclically over a grid, and their products.
#ifndef RFA_LINALG_MATRIX_H
#define RFA_LINALG_MATRIX_H

#include "linalg/grid.h"

#include <stdint.h>

// A local array is column-major: data[i + j * ld] with i < local_rows, j < local_columns; a spare
// rank holds 0 x 0.
typedef struct {
    const rfa_linalg_grid *grid; // borrowed
    ptrdiff_t rows, columns;
    ptrdiff_t local_rows, local_columns, ld;
    double *data;
    int desc[9]; // ScaLAPACK's descriptor
} rfa_matrix;

// Zeroed; 8 rows columns / processes bytes a rank. Errors: RFA_ERR_USAGE where some rank's part has
// 2^31 elements or more, which ScaLAPACK's 32-bit indices cannot address (the text says how many
// processes it takes); RFA_ERR_MEMORY. Collective.
RFA_NODISCARD rfa_status rfa_matrix_create(rfa_matrix *matrix,
                                           const rfa_linalg_grid *grid,
                                           ptrdiff_t rows,
                                           ptrdiff_t columns);
void rfa_matrix_destroy(rfa_matrix *matrix); // idempotent

// Local elements of the rank that has most. 64-bit throughout; local.
int64_t rfa_matrix_most_elements(const rfa_linalg_grid *grid, ptrdiff_t rows, ptrdiff_t columns);

// Where a local row or column is in the whole matrix. Local.
ptrdiff_t rfa_matrix_row(const rfa_matrix *matrix, ptrdiff_t local);
ptrdiff_t rfa_matrix_column(const rfa_matrix *matrix, ptrdiff_t local);

// The matrix from a copy of all of it, and such a copy, row-major all [rows][columns] on every
// rank: for what is small. Put is local; get is collective, and fails alike on all ranks.
void rfa_matrix_put(rfa_matrix *matrix, const double *all);
RFA_NODISCARD rfa_status rfa_matrix_get(const rfa_matrix *matrix, double *all);

// RFA_ERR_NUMERIC on all ranks where one element of any rank is NaN or infinite. Collective.
RFA_NODISCARD rfa_status rfa_matrix_check(const rfa_matrix *matrix, const char *what);

// c = alpha op(a) op(b) + beta c by PDGEMM; a, b, c of one grid. 2 m n k flops over the grid.
// Collective.
void rfa_matrix_gemm(bool transpose_a,
                     bool transpose_b,
                     double alpha,
                     const rfa_matrix *a,
                     const rfa_matrix *b,
                     double beta,
                     rfa_matrix *c);

#endif
