#include "fidelity/exact.h"

#include "base/log.h"

#include <math.h>
#include <string.h>

const char *rfa_fidelity_phase_name(rfa_fidelity_phase phase)
{
    static const char *const names[] = {"scores",  "softmax", "output",  "read",
                                        "factors", "product", "compare", "values"};
    return names[phase];
}

static void lap(rfa_fidelity_clock *clock, rfa_fidelity_phase phase, double start, double flops)
{
    clock->seconds[phase] += rfa_now() - start;
    clock->flops[phase] += flops;
}

// m [n][d] = x [n][d], row-major on every rank.
static void deal(rfa_matrix *m, const rfa_real *x)
{
    for (ptrdiff_t j = 0; j < m->local_columns; j++) {
        for (ptrdiff_t i = 0; i < m->local_rows; i++) {
            m->data[i + j * m->ld] =
                (double)x[rfa_matrix_row(m, i) * m->columns + rfa_matrix_column(m, j)];
        }
    }
}

// Rows of a become exp(a + bias of the column) over their sums. Collective over the grid's
// processes.
static rfa_status softmax_rows(rfa_matrix *a, const double *bias)
{
    const rfa_linalg_grid *grid = a->grid;
    double *top = NULL, *sum = NULL;
    rfa_status status = rfa_alloc(&top, a->local_rows + 1, sizeof *top, "maxima of rows");
    if (status == RFA_OK) {
        status = rfa_alloc(&sum, a->local_rows + 1, sizeof *sum, "sums of rows");
    }
    status = rfa_agree(&grid->comm, status);
    if (status == RFA_OK && !rfa_linalg_grid_is_spare(grid)) {
        RFA_ASSERT(top && sum);
        for (ptrdiff_t i = 0; i < a->local_rows; i++) {
            top[i] = -INFINITY;
        }
        for (ptrdiff_t j = 0; j < a->local_columns; j++) {
            double *column = a->data + j * a->ld;
            const double more = bias ? bias[rfa_matrix_column(a, j)] : 0;
            for (ptrdiff_t i = 0; i < a->local_rows; i++) {
                column[i] += more;
                top[i] = column[i] > top[i] ? column[i] : top[i];
            }
        }
        const int count = rfa_int(a->local_rows);
        MPI_Allreduce(MPI_IN_PLACE, top, count, MPI_DOUBLE, MPI_MAX, grid->in_row.comm);
        for (ptrdiff_t j = 0; j < a->local_columns; j++) {
            double *column = a->data + j * a->ld;
            for (ptrdiff_t i = 0; i < a->local_rows; i++) {
                column[i] = exp(column[i] - top[i]);
                sum[i] += column[i];
            }
        }
        MPI_Allreduce(MPI_IN_PLACE, sum, count, MPI_DOUBLE, MPI_SUM, grid->in_row.comm);
        for (ptrdiff_t j = 0; j < a->local_columns; j++) {
            double *column = a->data + j * a->ld;
            for (ptrdiff_t i = 0; i < a->local_rows; i++) {
                column[i] /= sum[i];
            }
        }
    }
    rfa_free(top);
    rfa_free(sum);
    return status;
}

// a = softmax over keys of w . k / sqrt(d) + bias, w [n][d] dealt.
static rfa_status weights(rfa_matrix *a,
                          const rfa_matrix *w,
                          const rfa_vectors *x,
                          const double *bias,
                          rfa_fidelity_clock *clock)
{
    rfa_matrix k;
    RFA_TRY(rfa_matrix_create(&k, a->grid, x->n, x->d));
    deal(&k, x->k);
    double start = rfa_now();
    rfa_matrix_gemm(false, true, 1 / sqrt((double)x->d), w, &k, 0, a);
    lap(clock, RFA_FIDELITY_SCORES, start, 2 * (double)x->n * (double)x->n * (double)x->d);
    rfa_matrix_destroy(&k);
    RFA_TRY(rfa_matrix_check(a, "the scores of queries and keys"));
    start = rfa_now();
    const rfa_status status = softmax_rows(a, bias);
    lap(clock, RFA_FIDELITY_SOFTMAX, start, 0);
    return status;
}

rfa_status rfa_exact_weights(rfa_matrix *a, const rfa_vectors *x, rfa_fidelity_clock *clock)
{
    rfa_matrix q;
    RFA_TRY(rfa_matrix_create(&q, a->grid, x->n, x->d));
    deal(&q, x->q);
    const rfa_status status = weights(a, &q, x, NULL, clock);
    rfa_matrix_destroy(&q);
    return status;
}

rfa_status
rfa_exact_output(double *out, const rfa_matrix *a, const rfa_vectors *x, rfa_fidelity_clock *clock)
{
    rfa_matrix v = {.data = NULL}, y = {.data = NULL};
    rfa_status status = rfa_matrix_create(&v, a->grid, x->n, x->d);
    if (status == RFA_OK) {
        status = rfa_matrix_create(&y, a->grid, x->n, x->d);
    }
    if (status == RFA_OK) {
        deal(&v, x->v);
        const double start = rfa_now();
        rfa_matrix_gemm(false, false, 1, a, &v, 0, &y);
        lap(clock, RFA_FIDELITY_OUTPUT, start, 2 * (double)x->n * (double)x->n * (double)x->d);
        status = rfa_matrix_get(&y, out);
    }
    rfa_matrix_destroy(&v);
    rfa_matrix_destroy(&y);
    return status;
}

// Fills m [n][columns] by strips of the rows that this process holds: take puts rows [begin, begin
// + rows) into strip [rows][columns].
typedef void (*strip_source)(double *strip, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);

static void fill(rfa_matrix *m, rfa_estimate *e, strip_source take, double *strip)
{
    ptrdiff_t rows = 0;
    for (ptrdiff_t i = 0; i < m->local_rows; i += rows) {
        const ptrdiff_t left = m->grid->block - i % m->grid->block;
        rows = left < RFA_ESTIMATE_STRIP ? left : RFA_ESTIMATE_STRIP;
        rows = rows < m->local_rows - i ? rows : m->local_rows - i;
        take(strip, e, rfa_matrix_row(m, i), rows);
        for (ptrdiff_t j = 0; j < m->local_columns; j++) {
            const ptrdiff_t column = rfa_matrix_column(m, j);
            for (ptrdiff_t t = 0; t < rows; t++) {
                m->data[i + t + j * m->ld] = strip[t * m->columns + column];
            }
        }
    }
}

static void take_left(double *strip, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    rfa_estimate_left(strip, NULL, e, begin, rows);
}

// Into e->out, where directions look for what was drawn.
static void take_directions(double *strip, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    rfa_estimate_read(e, begin, rows);
    rfa_estimate_directions(strip, e, begin, rows);
}

static rfa_status product(
    rfa_matrix *b, rfa_matrix *left, rfa_matrix *right, rfa_estimate *e, rfa_fidelity_clock *clock)
{
    const ptrdiff_t n = e->x->n;
    double *strip = NULL;
    RFA_TRY(rfa_matrix_create(left, b->grid, n, e->rank));
    RFA_TRY(rfa_matrix_create(right, b->grid, n, e->rank));
    RFA_TRY(rfa_agree(&b->grid->comm,
                      rfa_alloc(&strip, RFA_ESTIMATE_STRIP * e->rank, sizeof *strip, "factors")));
    double start = rfa_now();
    fill(left, e, take_left, strip);
    fill(right, e, rfa_estimate_right, strip);
    lap(clock, RFA_FIDELITY_FACTORS, start, 0);
    rfa_free(strip);
    start = rfa_now();
    rfa_matrix_gemm(false, true, 1, left, right, 0, b);
    lap(clock, RFA_FIDELITY_PRODUCT, start, 2 * (double)n * (double)n * (double)e->rank);
    return RFA_OK;
}

static rfa_status scores(rfa_matrix *b, rfa_matrix *w, rfa_estimate *e, rfa_fidelity_clock *clock)
{
    const rfa_vectors *x = e->x;
    double *strip = NULL, *bias = NULL;
    RFA_TRY(rfa_matrix_create(w, b->grid, x->n, x->d));
    rfa_status status = rfa_alloc(&strip, RFA_ESTIMATE_STRIP * x->d, sizeof *strip, "samples");
    if (status == RFA_OK) {
        status = rfa_alloc(&bias, x->n, sizeof *bias, "samples");
    }
    status = rfa_agree(&b->grid->comm, status);
    if (status == RFA_OK) {
        RFA_ASSERT(bias);
        for (ptrdiff_t t = 0; t < x->n; t++) {
            for (ptrdiff_t j = 0; j < x->d; j++) {
                const double k = (double)x->k[t * x->d + j];
                bias[t] -= k * k / (2 * sqrt((double)x->d));
            }
        }
        const double start = rfa_now();
        fill(w, e, take_directions, strip);
        lap(clock, RFA_FIDELITY_FACTORS, start, 0);
        status = weights(b, w, x, bias, clock);
    }
    rfa_free(strip);
    rfa_free(bias);
    return status;
}

static void columns(rfa_matrix *b, rfa_estimate *e, rfa_fidelity_clock *clock)
{
    const double start = rfa_now();
    const ptrdiff_t d = e->x->d;
    ptrdiff_t count = 0;
    for (ptrdiff_t j = 0; j < b->local_columns; j += count) {
        const ptrdiff_t left = b->grid->block - j % b->grid->block;
        count = left < d ? left : d;
        count = count < b->local_columns - j ? count : b->local_columns - j;
        rfa_estimate_columns(e, rfa_matrix_column(b, j), count);
        for (ptrdiff_t l = 0; l < count; l++) {
            for (ptrdiff_t i = 0; i < b->local_rows; i++) {
                b->data[i + (j + l) * b->ld] = (double)e->out[rfa_matrix_row(b, i) * d + l];
            }
        }
    }
    lap(clock, RFA_FIDELITY_FACTORS, start, 0);
}

rfa_status rfa_estimate_matrix(rfa_matrix *b, rfa_estimate *e, rfa_fidelity_clock *clock)
{
    rfa_matrix left = {.data = NULL}, right = {.data = NULL};
    rfa_status status = RFA_OK;
    RFA_ASSERT(b->grid->block % RFA_ROWS == 0);
    switch (rfa_estimate_form_of(e)) {
    case RFA_ESTIMATE_FACTORS: status = product(b, &left, &right, e, clock); break;
    case RFA_ESTIMATE_SCORES: status = scores(b, &left, e, clock); break;
    case RFA_ESTIMATE_COLUMNS: columns(b, e, clock); break;
    }
    rfa_matrix_destroy(&left);
    rfa_matrix_destroy(&right);
    return status;
}

rfa_status rfa_estimate_output(
    double *out, int64_t *clamped, rfa_estimate *e, const rfa_comm *comm, rfa_fidelity_clock *clock)
{
    const ptrdiff_t n = e->x->n, d = e->x->d, strips = rfa_padded(n) / RFA_ROWS;
    const ptrdiff_t begin = strips * comm->rank / comm->size * RFA_ROWS;
    const ptrdiff_t end = strips * (comm->rank + 1) / comm->size * RFA_ROWS;
    const ptrdiff_t last = end < n ? end : n, rows = last > begin ? last - begin : 0;
    const double start = rfa_now();
    *clamped = rfa_estimate_read(e, begin, rows);
    memset(out, 0, (size_t)(n * d) * sizeof *out);
    for (ptrdiff_t i = begin * d; i < last * d; i++) {
        out[i] = (double)e->out[i];
    }
    lap(clock, RFA_FIDELITY_READ, start, 0);
    MPI_Allreduce(MPI_IN_PLACE, out, rfa_int(n * d), MPI_DOUBLE, MPI_SUM, comm->comm);
    MPI_Allreduce(MPI_IN_PLACE, clamped, 1, MPI_INT64_T, MPI_SUM, comm->comm);
    return RFA_OK;
}

ptrdiff_t rfa_estimate_negative_work(const rfa_estimate *e)
{
    return RFA_ESTIMATE_STRIP * (e->rank + 1);
}

double rfa_estimate_negative(rfa_estimate *e, double *work)
{
    const ptrdiff_t n = e->x->n;
    double *den = work + RFA_ESTIMATE_STRIP * e->rank, count = 0;
    if (rfa_estimate_form_of(e) != RFA_ESTIMATE_FACTORS) {
        return 0;
    }
    for (ptrdiff_t t = 0; t < n; t += RFA_ESTIMATE_STRIP) {
        const ptrdiff_t rows = n - t < RFA_ESTIMATE_STRIP ? n - t : RFA_ESTIMATE_STRIP;
        rfa_estimate_left(work, den, e, t, rows);
        for (ptrdiff_t i = 0; i < rows; i++) {
            count += !(den[i] > 0);
        }
    }
    return count / (double)n;
}

// Sums of squares of this process's part of each row, at the row's place, and the largest
// difference.
static double row_squares(double *a_squares, double *gaps, const rfa_matrix *a, const rfa_matrix *b)
{
    double most = 0;
    // First by local rows, which are not behind their places; from the last one on they move there.
    for (ptrdiff_t j = 0; j < a->local_columns; j++) {
        const double *x = a->data + j * a->ld, *y = b ? b->data + j * b->ld : x;
        for (ptrdiff_t i = 0; i < a->local_rows; i++) {
            const double gap = x[i] - y[i];
            a_squares[i] += x[i] * x[i];
            gaps[i] += gap * gap;
            most = !(fabs(gap) <= most) ? fabs(gap) : most;
        }
    }
    for (ptrdiff_t i = a->local_rows - 1; i >= 0; i--) {
        const ptrdiff_t row = rfa_matrix_row(a, i);
        if (row != i) {
            a_squares[row] = a_squares[i];
            gaps[row] = gaps[i];
            a_squares[i] = gaps[i] = 0;
        }
    }
    return most;
}

rfa_status rfa_matrix_compare(double *rows,
                              double *frobenius,
                              double *most,
                              double *norm,
                              const rfa_matrix *a,
                              const rfa_matrix *b)
{
    const ptrdiff_t n = a->rows;
    const rfa_comm *comm = &a->grid->comm;
    double *squares = NULL, square = 0, gap = 0;
    RFA_TRY(rfa_agree(comm, rfa_alloc(&squares, 2 * n, sizeof *squares, "norms of rows")));
    double largest = row_squares(squares, squares + n, a, b);
    MPI_Allreduce(MPI_IN_PLACE, squares, rfa_int(2 * n), MPI_DOUBLE, MPI_SUM, comm->comm);
    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_DOUBLE, MPI_MAX, comm->comm);
    for (ptrdiff_t i = 0; i < n; i++) {
        square += squares[i];
        gap += squares[n + i];
        if (b) {
            rows[i] = sqrt(squares[n + i] / squares[i]);
        }
    }
    *norm = sqrt(square);
    if (b) {
        *frobenius = sqrt(gap / square);
        *most = largest;
    }
    rfa_free(squares);
    return RFA_OK;
}
