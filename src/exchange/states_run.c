// An exchange as a sequence of stages, each behind one collective call: blocking ones in a row, or
// non-blocking ones between which the caller computes. Both are the same steps in the same order.
#include "base/log.h"
#include "base/mem.h"
#include "base/profile.h"
#include "exchange/element.h"
#include "exchange/states_impl.h"

#include <string.h>

enum {
    PIECE = 1 << 20, // doubles a call: scratch of at most 8 MiB a buffer, counts far below int
};

// A run of columns that goes through one call: of the rows, and of each only the first n.
typedef struct {
    double *leaves;
    ptrdiff_t stride, n, unit;
} run;

// Columns [slice(q), slice(q + 1)) belong to rank q: whole elements.
static ptrdiff_t slice(const rfa_exchange *x, const run *at, int q)
{
    return at->n / at->unit * q / x->comm.size * at->unit;
}

static void sweep_own(const rfa_exchange *x, rfa_sweep sweep, bool suffix, bool open, const run *at)
{
    rfa_tree_sweep(&x->own, sweep, suffix, open, at->leaves, at->stride, at->n, at->unit);
}

// Totals rise to the first row.
static bool is_suffix(rfa_exchange_kind kind)
{
    return kind != RFA_PREFIX;
}

void rfa_exchange_free_buffers(rfa_exchange *x)
{
    rfa_free(x->wire);
    rfa_free(x->nodes);
    x->wire = x->nodes = NULL;
    x->room = x->columns = 0;
}

// Buffers for pieces of up to n columns in elements of unit; all ranks grow at the same call, when
// what was started before has left them. Collective.
static rfa_status reserve(rfa_exchange *x, ptrdiff_t n, ptrdiff_t unit)
{
    const ptrdiff_t columns = (n / unit / x->comm.size + 1) * unit;
    if (n <= x->room && columns <= x->columns) {
        return RFA_OK;
    }
    rfa_exchange_finish(x);
    rfa_exchange_free_buffers(x);
    rfa_status status = rfa_fault("exchange.memory", &x->comm, RFA_ERR_MEMORY);
    if (status == RFA_OK && x->own.roots != 1) {
        status = rfa_alloc(&x->wire, n * x->own.roots, sizeof *x->wire, "exchange buffer");
    }
    if (status == RFA_OK) {
        status =
            rfa_alloc(&x->nodes, columns * x->above.leaves, sizeof *x->nodes, "exchange buffer");
    }
    status = rfa_agree(&x->comm, status);
    if (status != RFA_OK) {
        rfa_exchange_free_buffers(x);
        return status;
    }
    x->room = n;
    x->columns = columns;
    return RFA_OK;
}

// ---- through the owners: each gets its slice of all subtree sums, folds, and answers ----

// Copies between the roots' rows of leaves and wire, where the columns of each owner are together.
static void pack(const rfa_exchange *x, bool suffix, const run *at, bool back)
{
    double *wire = x->wire;
    RFA_ASSERT(wire);
    for (int q = 0; q < x->comm.size; q++) {
        const ptrdiff_t begin = slice(x, at, q), columns = slice(x, at, q + 1) - begin;
        for (int k = 0; k < x->own.roots; k++) {
            double *row = at->leaves + rfa_tree_slot(&x->own, suffix, k) * at->stride + begin;
            memcpy(back ? row : wire, back ? wire : row, (size_t)columns * sizeof *row);
            wire += columns;
        }
    }
}

// Counts and displacements of this rank and of it as an owner, which stay for the time of the call.
typedef struct {
    int *count, *first, *owner_count, *owner_first;
} tables;

static tables my_tables(const rfa_exchange *x)
{
    const int P = x->comm.size;
    return (tables){x->mpi_counts, x->mpi_counts + P, x->mpi_counts + 2 * P, x->mpi_counts + 3 * P};
}

// The row of a single root is its own wire.
static double *my_wire(const rfa_exchange *x, bool suffix, const run *at)
{
    return x->own.roots == 1 ? at->leaves + rfa_tree_slot(&x->own, suffix, 0) * at->stride
                             : x->wire;
}

static void send_to_owners(rfa_exchange *x, rfa_exchange_kind kind, const run *at)
{
    const int P = x->comm.size, r = x->comm.rank, roots = x->own.roots;
    const bool suffix = is_suffix(kind);
    const ptrdiff_t mine = slice(x, at, r + 1) - slice(x, at, r);
    const tables t = my_tables(x);
    for (int q = 0; q < P; q++) {
        t.count[q] = rfa_int(roots * (slice(x, at, q + 1) - slice(x, at, q)));
        t.first[q] = rfa_int(roots * slice(x, at, q));
        t.owner_count[q] = rfa_int((x->first[q + 1] - x->first[q]) * mine);
        t.owner_first[q] = rfa_int(x->first[q] * mine);
    }
    sweep_own(x, RFA_SWEEP_UP, suffix, false, at);
    if (roots != 1) {
        pack(x, suffix, at, false);
    }
    const double start = rfa_now();
    if (x->blocking) {
        MPI_Alltoallv(my_wire(x, suffix, at), t.count, t.first, MPI_DOUBLE, x->nodes, t.owner_count,
                      t.owner_first, MPI_DOUBLE, x->comm.comm);
    } else {
        MPI_Ialltoallv(my_wire(x, suffix, at), t.count, t.first, MPI_DOUBLE, x->nodes,
                       t.owner_count, t.owner_first, MPI_DOUBLE, x->comm.comm, &x->request);
    }
    x->cost.seconds += rfa_now() - start;
    x->cost.messages += P - 1;
    x->cost.bytes_sent += roots * (at->n - mine) * (int64_t)sizeof *at->leaves;
}

static void answer(rfa_exchange *x, rfa_exchange_kind kind, const run *at)
{
    const int P = x->comm.size, r = x->comm.rank;
    const bool suffix = is_suffix(kind), total = kind == RFA_TOTAL;
    const ptrdiff_t mine = slice(x, at, r + 1) - slice(x, at, r);
    const tables t = my_tables(x);
    rfa_tree_sweep(&x->above, total ? RFA_SWEEP_UP : RFA_SWEEP_BOTH, suffix, true, x->nodes, mine,
                   mine, at->unit);
    for (int q = 0; q < P && total; q++) {
        t.count[q] = rfa_int(slice(x, at, q + 1) - slice(x, at, q));
        t.first[q] = rfa_int(slice(x, at, q));
    }
    const double start = rfa_now();
    if (total && x->blocking) {
        MPI_Allgatherv(x->nodes, t.count[r], MPI_DOUBLE, at->leaves, t.count, t.first, MPI_DOUBLE,
                       x->comm.comm);
    } else if (total) {
        MPI_Iallgatherv(x->nodes, t.count[r], MPI_DOUBLE, at->leaves, t.count, t.first, MPI_DOUBLE,
                        x->comm.comm, &x->request);
    } else if (x->blocking) {
        MPI_Alltoallv(x->nodes, t.owner_count, t.owner_first, MPI_DOUBLE, my_wire(x, suffix, at),
                      t.count, t.first, MPI_DOUBLE, x->comm.comm);
    } else {
        MPI_Ialltoallv(x->nodes, t.owner_count, t.owner_first, MPI_DOUBLE, my_wire(x, suffix, at),
                       t.count, t.first, MPI_DOUBLE, x->comm.comm, &x->request);
    }
    x->cost.seconds += rfa_now() - start;
    x->cost.messages += P - 1;
    const ptrdiff_t others = total ? P - 1 : x->above.leaves - x->own.roots;
    x->cost.bytes_sent += others * mine * (int64_t)sizeof *at->leaves;
}

static void take_answer(rfa_exchange *x, rfa_exchange_kind kind, const run *at)
{
    const bool suffix = is_suffix(kind);
    if (kind == RFA_TOTAL) {
        return;
    }
    if (x->own.roots != 1) {
        pack(x, suffix, at, true);
    }
    sweep_own(x, RFA_SWEEP_DOWN, suffix, x->comm.rank == (suffix ? x->comm.size - 1 : 0), at);
}

// ---- by the library's scan or reduction of whole ranks, in place in the root's row ----

// Of MPI: in is what lies farther from the reader, also on the reversed communicator.
static void combine(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes = 0;
    MPI_Type_size(*type, &bytes);
    rfa_element_combine(inout, in, inout, *count, bytes / (int)sizeof(double));
}

// One element is one datatype: no library then cuts it. Blocking: non-blocking collectives with
// operations of one's own have been wrong in libraries.
static void scan_elements(double *x, ptrdiff_t count, ptrdiff_t unit, bool total, MPI_Comm comm)
{
    MPI_Datatype element;
    MPI_Op op;
    MPI_Type_contiguous(rfa_int(unit), MPI_DOUBLE, &element);
    MPI_Type_commit(&element);
    MPI_Op_create(combine, 0, &op);
    if (total) {
        MPI_Allreduce(MPI_IN_PLACE, x, rfa_int(count), element, op, comm);
    } else {
        MPI_Exscan(MPI_IN_PLACE, x, rfa_int(count), element, op, comm);
    }
    MPI_Op_free(&op);
    MPI_Type_free(&element);
}

static const rfa_comm *scanned(const rfa_exchange *x, rfa_exchange_kind kind)
{
    return is_suffix(kind) ? &x->reversed : &x->comm;
}

static void scan(rfa_exchange *x, rfa_exchange_kind kind, const run *at)
{
    const bool suffix = is_suffix(kind), total = kind == RFA_TOTAL;
    const int P = x->comm.size, n = rfa_int(at->n);
    const rfa_comm *comm = scanned(x, kind);
    sweep_own(x, RFA_SWEEP_UP, suffix, false, at);
    double *sum = at->leaves + rfa_tree_slot(&x->own, suffix, 0) * at->stride;
    const double start = rfa_now();
    if (at->unit > 1) {
        scan_elements(sum, at->n / at->unit, at->unit, total, comm->comm);
    } else if (total) { // blocking: non-blocking ones add in the order of arrival
        MPI_Allreduce(MPI_IN_PLACE, sum, n, MPI_DOUBLE, MPI_SUM, x->comm.comm);
    } else if (x->blocking) {
        MPI_Exscan(MPI_IN_PLACE, sum, n, MPI_DOUBLE, MPI_SUM, comm->comm);
    } else {
        MPI_Iexscan(MPI_IN_PLACE, sum, n, MPI_DOUBLE, MPI_SUM, comm->comm, &x->request);
    }
    x->cost.seconds += rfa_now() - start;
    if (total) {
        // What the best algorithm needs, a reduce-scatter and an allgather: the library's own count
        // is hidden.
        x->cost.messages += 2 * (int64_t)(P - 1);
        x->cost.bytes_sent += 2 * (P - 1) * at->n * (int64_t)sizeof *sum / P;
    } else if (comm->rank < P - 1) {
        x->cost.messages += 1;
        x->cost.bytes_sent += at->n * (int64_t)sizeof *sum;
    }
}

static void end_scan(const rfa_exchange *x, rfa_exchange_kind kind, const run *at)
{
    if (kind != RFA_TOTAL) {
        // The first rank's row is undefined now: open makes it the identity.
        sweep_own(x, RFA_SWEEP_DOWN, is_suffix(kind), scanned(x, kind)->rank == 0, at);
    }
}

// ---- one after another ----

// What the first job does when the call of its stage has returned or arrived.
static void advance(rfa_exchange *x)
{
    rfa_exchange_job *job = &x->job[0];
    const ptrdiff_t left = job->rows.size - job->at, n = left < job->piece ? left : job->piece;
    const run at = {job->leaves + job->at, job->rows.stride, n, job->rows.unit};
    switch (x->stage) {
    case RFA_STAGE_NONE:
        x->stage = job->transposed ? RFA_STAGE_THERE : RFA_STAGE_SCAN;
        if (job->transposed) {
            send_to_owners(x, job->kind, &at);
        } else {
            scan(x, job->kind, &at);
        }
        return;
    case RFA_STAGE_THERE:
        x->stage = RFA_STAGE_BACK;
        answer(x, job->kind, &at);
        return;
    case RFA_STAGE_BACK: take_answer(x, job->kind, &at); break;
    case RFA_STAGE_SCAN: end_scan(x, job->kind, &at); break;
    }
    x->stage = RFA_STAGE_NONE;
    job->at += n;
    if (job->at == job->rows.size) {
        x->jobs--;
        memmove(x->job, x->job + 1, (size_t)x->jobs * sizeof *x->job);
    }
}

bool rfa_exchange_pump(rfa_exchange *exchange)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    while (exchange->jobs > 0) {
        int arrived = 1; // at once without a request
        const double start = rfa_now();
        MPI_Test(&exchange->request, &arrived, MPI_STATUS_IGNORE);
        exchange->cost.seconds += rfa_now() - start;
        if (!arrived) {
            return false;
        }
        advance(exchange);
    }
    return true;
}

void rfa_exchange_finish(rfa_exchange *exchange)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    while (exchange->jobs > 0) {
        const double start = rfa_now();
        // Begun in advance. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        MPI_Wait(&exchange->request, MPI_STATUS_IGNORE);
        exchange->cost.seconds += rfa_now() - start;
        advance(exchange);
    }
}

static bool is_transposed(const rfa_exchange *x, rfa_exchange_kind kind, rfa_exchange_rows rows)
{
    if (x->algorithm != RFA_EXCHANGE_AUTO) {
        return x->algorithm == RFA_EXCHANGE_TRANSPOSED;
    }
    return rows.unit > 1 || rfa_exchange_choice(x, kind) == RFA_EXCHANGE_TRANSPOSED;
}

static rfa_status begin(
    rfa_exchange *x, rfa_exchange_kind kind, double *leaves, rfa_exchange_rows rows, bool blocking)
{
    RFA_ASSERT(rows.size >= 0 && rows.stride >= rows.size && rows.size % rows.unit == 0);
    RFA_ASSERT(x->jobs < (blocking ? 1 : RFA_EXCHANGE_STARTED));
    if (x->comm.size == 1) {
        const run all = {leaves, rows.stride, rows.size, rows.unit};
        sweep_own(x, kind == RFA_TOTAL ? RFA_SWEEP_UP : RFA_SWEEP_BOTH, is_suffix(kind), true,
                  &all);
        return RFA_OK;
    }
    rfa_exchange_job job = {.kind = kind, .leaves = leaves, .rows = rows};
    job.transposed = is_transposed(x, kind, rows);
    ptrdiff_t piece = job.transposed ? PIECE / x->most : PIECE;
    piece = (piece / rows.unit + (piece < rows.unit)) * rows.unit;
    job.piece = piece < rows.size ? piece : rows.size;
    if (job.transposed) {
        RFA_TRY(reserve(x, job.piece, rows.unit));
    }
    x->cost.calls++;
    if (rows.size > 0) {
        x->blocking = blocking;
        x->job[x->jobs++] = job;
    }
    return RFA_OK;
}

rfa_status rfa_exchange_rows_start(rfa_exchange *exchange,
                                   rfa_exchange_kind kind,
                                   double *leaves,
                                   rfa_exchange_rows rows)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    RFA_TRY(begin(exchange, kind, leaves, rows, false));
    if (exchange->jobs > 0 && exchange->stage == RFA_STAGE_NONE) {
        advance(exchange);
    }
    return RFA_OK;
}

rfa_status rfa_exchange_rows_run(rfa_exchange *exchange,
                                 rfa_exchange_kind kind,
                                 double *leaves,
                                 rfa_exchange_rows rows)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    RFA_TRY(begin(exchange, kind, leaves, rows, true));
    rfa_exchange_finish(exchange);
    return RFA_OK;
}

rfa_status
rfa_exchange_run(rfa_exchange *exchange, rfa_exchange_kind kind, double *leaves, ptrdiff_t size)
{
    return rfa_exchange_rows_run(exchange, kind, leaves, (rfa_exchange_rows){size, size, 1});
}
