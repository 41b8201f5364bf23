#include "linalg/solve.h"

#include "base/mem.h"
#include "linalg/scalapack.h"
#include "rng/rng.h"

#include <limits.h>

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

rfa_status rfa_linalg_workspace(int *size, double wanted)
{
    enum { ALWAYS = 4096 };
    const double more = wanted * 1.001 + ALWAYS;
    *size = 0;
    if (!(more < INT_MAX)) {
        return rfa_fail(RFA_ERR_USAGE,
                        "a workspace of %.3g numbers is beyond ScaLAPACK's 2^31: start more ranks",
                        wanted);
    }
    *size = (int)more;
    return RFA_OK;
}

// *work of as many numbers as the largest query of the grid says, so that no process refuses alone
// while the others wait. Collective over the grid's processes.
static rfa_status allocate(double **work, int *size, double wanted, const rfa_linalg_grid *grid)
{
    if (!rfa_linalg_grid_is_spare(grid)) {
        MPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_DOUBLE, MPI_MAX, grid->within.comm);
    }
    rfa_status status = rfa_linalg_workspace(size, wanted);
    if (status == RFA_OK) {
        status = rfa_alloc(work, *size, sizeof **work, "workspace of ScaLAPACK");
    }
    return rfa_agree(&grid->comm, status);
}

// Sizes as LAPACK takes them.
typedef struct {
    int m, n, ld, one;
} shape;

static shape shape_of(const rfa_matrix *a)
{
    return (shape){rfa_int(a->rows), rfa_int(a->columns), rfa_int(a->ld), 1};
}

// lwork -1: a query, whose answer is work[0].
static int values_step(double *s, rfa_matrix *a, double *work, int lwork, int *iwork)
{
    const shape x = shape_of(a);
    double none = 0;
    int info = 0;
    if (rfa_linalg_grid_is_single(a->grid)) {
        dgesdd_("N", &x.m, &x.n, a->data, &x.ld, s, &none, &x.one, &none, &x.one, work, &lwork,
                iwork, &info, 1);
    } else {
        pdgesvd_("N", "N", &x.m, &x.n, a->data, &x.one, &x.one, a->desc, s, &none, &x.one, &x.one,
                 a->desc, &none, &x.one, &x.one, a->desc, work, &lwork, &info, 1, 1);
    }
    return info;
}

rfa_status rfa_linalg_singular_values(double *s, rfa_matrix *a)
{
    const rfa_linalg_grid *grid = a->grid;
    const bool spare = rfa_linalg_grid_is_spare(grid);
    const ptrdiff_t least = a->rows < a->columns ? a->rows : a->columns;
    double *work = NULL, wanted = 0;
    int *iwork = NULL, size = 0;
    RFA_TRY(rfa_matrix_check(a, "a matrix of which singular values are wanted"));
    rfa_status status =
        rfa_agree(&grid->comm, rfa_alloc(&iwork, 8 * least, sizeof *iwork, "workspace of LAPACK"));
    if (status == RFA_OK) {
        if (!spare) {
            status = verdict("PDGESVD", values_step(s, a, &wanted, -1, iwork));
        }
        status = rfa_agree(&grid->comm, status);
    }
    if (status == RFA_OK) {
        status = allocate(&work, &size, wanted, grid);
    }
    if (status == RFA_OK) {
        if (!spare) {
            status = verdict("PDGESVD", values_step(s, a, work, size, iwork));
        }
        status = rfa_agree(&grid->comm, status);
    }
    if (status == RFA_OK) { // the first process's are right wherever any are
        MPI_Bcast(s, rfa_int(least), MPI_DOUBLE, 0, grid->comm.comm);
    }
    rfa_free(work);
    rfa_free(iwork);
    return status;
}

typedef int (*basis_step)(rfa_matrix *a, double *tau, double *work, int lwork);

static int factor_step(rfa_matrix *a, double *tau, double *work, int lwork)
{
    const shape x = shape_of(a);
    int info = 0;
    pdgeqrf_(&x.m, &x.n, a->data, &x.one, &x.one, a->desc, tau, work, &lwork, &info);
    return info;
}

static int form_step(rfa_matrix *a, double *tau, double *work, int lwork)
{
    const shape x = shape_of(a);
    int info = 0;
    pdorgqr_(&x.m, &x.n, &x.n, a->data, &x.one, &x.one, a->desc, tau, work, &lwork, &info);
    return info;
}

static rfa_status run_step(basis_step step, const char *routine, rfa_matrix *a, double *tau)
{
    const rfa_linalg_grid *grid = a->grid;
    const bool spare = rfa_linalg_grid_is_spare(grid);
    double *work = NULL, wanted = 0;
    int size = 0;
    rfa_status status = spare ? RFA_OK : verdict(routine, step(a, tau, &wanted, -1));
    RFA_TRY(rfa_agree(&grid->comm, status));
    status = allocate(&work, &size, wanted, grid);
    if (status == RFA_OK) {
        status =
            rfa_agree(&grid->comm, spare ? RFA_OK : verdict(routine, step(a, tau, work, size)));
    }
    rfa_free(work);
    return status;
}

rfa_status rfa_linalg_orthonormal(rfa_matrix *a)
{
    double *tau = NULL;
    RFA_ASSERT(a->rows >= a->columns);
    RFA_TRY(rfa_matrix_check(a, "a matrix of which a basis is wanted"));
    rfa_status status =
        rfa_agree(&a->grid->comm, rfa_alloc(&tau, a->local_columns + 1, sizeof *tau, "reflectors"));
    if (status == RFA_OK) {
        status = run_step(factor_step, "PDGEQRF", a, tau);
    }
    if (status == RFA_OK) {
        status = run_step(form_step, "PDORGQR", a, tau);
    }
    rfa_free(tau);
    return status;
}

static void fill_normals(rfa_matrix *x, uint64_t seed)
{
    for (ptrdiff_t j = 0; j < x->local_columns; j++) {
        const rfa_rng stream =
            rfa_rng_stream(seed, RFA_RNG_FIDELITY, UINT32_MAX, (uint32_t)rfa_matrix_column(x, j));
        for (ptrdiff_t i = 0; i < x->local_rows; i++) {
            rfa_rng_normals_at(x->data + i + j * x->ld, &stream, (uint64_t)rfa_matrix_row(x, i), 1);
        }
    }
}

rfa_status rfa_linalg_leading_values(double *s, ptrdiff_t count, const rfa_matrix *a, uint64_t seed)
{
    const ptrdiff_t least = a->rows < a->columns ? a->rows : a->columns;
    const ptrdiff_t more = count + RFA_RANGE_OVERSAMPLING, width = more < least ? more : least;
    rfa_matrix right = {.data = NULL}, left = {.data = NULL};
    double *all = NULL;
    RFA_ASSERT(count >= 1 && count <= least);
    RFA_TRY(rfa_agree(&a->grid->comm, rfa_alloc(&all, width, sizeof *all, "singular values")));
    rfa_status status = rfa_matrix_create(&right, a->grid, a->columns, width);
    if (status == RFA_OK) {
        status = rfa_matrix_create(&left, a->grid, a->rows, width);
    }
    if (status == RFA_OK) {
        fill_normals(&right, seed);
    }
    for (int power = 0; power <= RFA_RANGE_POWERS && status == RFA_OK; power++) {
        rfa_matrix_gemm(false, false, 1, a, &right, 0, &left);
        status = rfa_linalg_orthonormal(&left);
        if (status == RFA_OK) {
            rfa_matrix_gemm(true, false, 1, a, &left, 0, &right);
            status = power < RFA_RANGE_POWERS ? rfa_linalg_orthonormal(&right)
                                              : rfa_linalg_singular_values(all, &right);
        }
    }
    for (ptrdiff_t i = 0; i < count && status == RFA_OK; i++) {
        s[i] = all[i];
    }
    rfa_matrix_destroy(&left);
    rfa_matrix_destroy(&right);
    rfa_free(all);
    return status;
}
