#include "linalg/solve.h"

#include "linalg/scalapack.h"

// What a routine reported on this rank; the next thing is to agree on it.
static rfa_status verdict(const char *routine, int info)
{
    if (info == 0) {
        return RFA_OK;
    }
    if (info < 0) {
        return rfa_fail(RFA_ERR_INTERNAL, "%s refused argument %d", routine, -info);
    }
    return rfa_fail(RFA_ERR_NUMERIC, "%s failed with info %d", routine, info);
}

rfa_status rfa_linalg_posv(rfa_matrix *a, rfa_matrix *b)
{
    const rfa_linalg_grid *grid = a->grid;
    RFA_ASSERT(a->rows == a->columns && b->rows == a->rows && b->grid == grid);
    RFA_TRY(rfa_matrix_check(a, "the matrix of a system of equations"));
    RFA_TRY(rfa_matrix_check(b, "the right-hand side of a system of equations"));
    rfa_status status = RFA_OK;
    if (!rfa_linalg_grid_is_spare(grid)) {
        const int n = rfa_int(a->rows), columns = rfa_int(b->columns), one = 1;
        int info = 0;
        if (rfa_linalg_grid_is_single(grid)) {
            const int lda = rfa_int(a->ld), ldb = rfa_int(b->ld);
            dposv_("L", &n, &columns, a->data, &lda, b->data, &ldb, &info, 1);
        } else {
            pdposv_("L", &n, &columns, a->data, &one, &one, a->desc, b->data, &one, &one, b->desc,
                    &info, 1);
        }
        status = info > 0 ? rfa_fail(RFA_ERR_NUMERIC,
                                     "a matrix of order %d is not positive definite from order %d "
                                     "on",
                                     n, info)
                          : verdict("PDPOSV", info);
    }
    return rfa_agree(&grid->comm, status);
}
