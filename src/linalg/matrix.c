#include "linalg/matrix.h"

#include "base/mem.h"
#include "linalg/scalapack.h"

#include <limits.h>
#include <math.h>
#include <string.h>

// Elements of n, dealt in blocks to `parts` processes, that process `part` holds.
static ptrdiff_t share(ptrdiff_t n, ptrdiff_t block, int part, int parts)
{
    const ptrdiff_t blocks = n / block, each = blocks / parts, more = blocks % parts;
    return each * block + (part < more ? block : part == more ? n % block : 0);
}

int64_t rfa_matrix_most_elements(const rfa_linalg_grid *grid, ptrdiff_t rows, ptrdiff_t columns)
{
    // The first process holds most of everything.
    return (int64_t)share(rows, grid->block, 0, grid->rows) *
           (int64_t)share(columns, grid->block, 0, grid->columns);
}

// From global facts alone, so that all ranks refuse alike.
static rfa_status fits(const rfa_linalg_grid *grid, ptrdiff_t rows, ptrdiff_t columns)
{
    const int64_t most = rfa_matrix_most_elements(grid, rows, columns);
    if (rows <= INT_MAX && columns <= INT_MAX && most <= INT_MAX) {
        return RFA_OK;
    }
    const double processes = ceil((double)rows * (double)columns / (double)INT_MAX);
    return rfa_fail(RFA_ERR_USAGE,
                    "a %td x %td matrix over %d x %d processes has %lld elements on one of them, "
                    "and ScaLAPACK counts to 2^31: start more than %.0f ranks",
                    rows, columns, grid->rows, grid->columns, (long long)most, processes);
}

rfa_status rfa_matrix_create(rfa_matrix *matrix,
                             const rfa_linalg_grid *grid,
                             ptrdiff_t rows,
                             ptrdiff_t columns)
{
    RFA_ASSERT(rows >= 1 && columns >= 1);
    *matrix = (rfa_matrix){.grid = grid, .rows = rows, .columns = columns, .ld = 1};
    RFA_TRY(fits(grid, rows, columns));
    rfa_status status = RFA_OK;
    if (!rfa_linalg_grid_is_spare(grid)) {
        matrix->local_rows = share(rows, grid->block, grid->row, grid->rows);
        matrix->local_columns = share(columns, grid->block, grid->column, grid->columns);
        matrix->ld = matrix->local_rows > 1 ? matrix->local_rows : 1;
        const int block = rfa_int(grid->block);
        const int desc[] = {
            1, grid->context,       rfa_int(rows), rfa_int(columns), block, block, 0,
            0, rfa_int(matrix->ld),
        };
        memcpy(matrix->desc, desc, sizeof desc);
        const ptrdiff_t elements =
            matrix->ld * (matrix->local_columns > 1 ? matrix->local_columns : 1);
        status = rfa_alloc(&matrix->data, elements, sizeof(double), "a distributed matrix");
    }
    status = rfa_agree(&grid->comm, status);
    if (status != RFA_OK) {
        rfa_matrix_destroy(matrix);
    }
    return status;
}

void rfa_matrix_destroy(rfa_matrix *matrix)
{
    rfa_free(matrix->data);
    *matrix = (rfa_matrix){.data = NULL};
}

static ptrdiff_t global(ptrdiff_t local, ptrdiff_t block, int part, int parts)
{
    return (local / block * parts + part) * block + local % block;
}

ptrdiff_t rfa_matrix_row(const rfa_matrix *matrix, ptrdiff_t local)
{
    return global(local, matrix->grid->block, matrix->grid->row, matrix->grid->rows);
}

ptrdiff_t rfa_matrix_column(const rfa_matrix *matrix, ptrdiff_t local)
{
    return global(local, matrix->grid->block, matrix->grid->column, matrix->grid->columns);
}

void rfa_matrix_put(rfa_matrix *matrix, const double *all)
{
    for (ptrdiff_t j = 0; j < matrix->local_columns; j++) {
        const double *from = all + rfa_matrix_column(matrix, j);
        for (ptrdiff_t i = 0; i < matrix->local_rows; i++) {
            matrix->data[i + j * matrix->ld] = from[rfa_matrix_row(matrix, i) * matrix->columns];
        }
    }
}

rfa_status rfa_matrix_get(const rfa_matrix *matrix, double *all)
{
    if (matrix->columns > INT_MAX / matrix->rows) {
        return rfa_fail(RFA_ERR_USAGE, "a %td x %td matrix is too large to be gathered",
                        matrix->rows, matrix->columns);
    }
    memset(all, 0, (size_t)(matrix->rows * matrix->columns) * sizeof *all);
    for (ptrdiff_t j = 0; j < matrix->local_columns; j++) {
        double *to = all + rfa_matrix_column(matrix, j);
        for (ptrdiff_t i = 0; i < matrix->local_rows; i++) {
            to[rfa_matrix_row(matrix, i) * matrix->columns] = matrix->data[i + j * matrix->ld];
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, all, rfa_int(matrix->rows * matrix->columns), MPI_DOUBLE, MPI_SUM,
                  matrix->grid->comm.comm);
    return RFA_OK;
}

static bool is_finite(const rfa_matrix *matrix)
{
    for (ptrdiff_t j = 0; j < matrix->local_columns; j++) {
        for (ptrdiff_t i = 0; i < matrix->local_rows; i++) {
            if (!isfinite(matrix->data[i + j * matrix->ld])) {
                return false;
            }
        }
    }
    return true;
}

rfa_status rfa_matrix_check(const rfa_matrix *matrix, const char *what)
{
    rfa_status status = RFA_OK;
    if (!is_finite(matrix)) {
        status = rfa_fail(RFA_ERR_NUMERIC, "%s holds NaN or infinity", what);
    }
    return rfa_agree(&matrix->grid->comm, status);
}

void rfa_matrix_gemm(bool transpose_a,
                     bool transpose_b,
                     double alpha,
                     const rfa_matrix *a,
                     const rfa_matrix *b,
                     double beta,
                     rfa_matrix *c)
{
    const ptrdiff_t inner = transpose_a ? a->rows : a->columns;
    RFA_ASSERT((transpose_a ? a->columns : a->rows) == c->rows);
    RFA_ASSERT((transpose_b ? b->columns : b->rows) == inner);
    RFA_ASSERT((transpose_b ? b->rows : b->columns) == c->columns);
    RFA_ASSERT(a->grid == c->grid && b->grid == c->grid);
    if (!rfa_linalg_grid_is_spare(c->grid)) {
        const int m = rfa_int(c->rows), n = rfa_int(c->columns), k = rfa_int(inner), one = 1;
        pdgemm_(transpose_a ? "T" : "N", transpose_b ? "T" : "N", &m, &n, &k, &alpha, a->data, &one,
                &one, a->desc, b->data, &one, &one, b->desc, &beta, c->data, &one, &one, c->desc);
    }
}
