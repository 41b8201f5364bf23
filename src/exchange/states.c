#include "exchange/states.h"

#include "base/log.h"
#include "base/mem.h"
#include "exchange/element.h"
#include "exchange/partition.h"
#include "exchange/tree.h"

#include <string.h>

enum {
    PIECE = 1 << 20,     // doubles a call: scratch of at most 8 MiB a buffer, counts far below int
    EXSCAN_RANKS = 4,    // up to here the left fold of whole ranks is the tree's expression
    TEST_COUNT = 1 << 15 // doubles of the start-up test, beyond any library's short-vector switch
};

struct rfa_exchange {
    rfa_comm comm;
    rfa_comm reversed; // the same ranks, last first; only where an exscan may run
    rfa_exchange_algorithm algorithm;
    bool exscan;     // AUTO takes MPI_Exscan for prefixes and suffixes
    rfa_tree own;    // over this rank's segments
    rfa_tree above;  // over the subtrees of all ranks
    int *first;      // [P + 1]: rank p's subtrees are leaves [first[p], first[p + 1]) of above
    int most;        // subtrees of the rank that has most
    int *mpi_counts; // [4][P]: counts and displacements on the own and on the owner's side
    ptrdiff_t room, columns; // that the buffers hold: of a piece, of a slice; same on all ranks
    double *wire;            // [P] x [own.roots][slice], packed; unused with one subtree
    double *nodes;           // [above.leaves][slice]: this rank's columns of all subtrees
    rfa_exchange_cost cost;
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

static void sort_out_plans(rfa_exchange *x, int *bounds, int segments)
{
    const int P = x->comm.size;
    x->first[0] = 0;
    for (int p = 0; p < P; p++) {
        const int count =
            rfa_tree_cover(bounds + x->first[p], segments, rfa_part_begin(segments, P, p),
                           rfa_part_begin(segments, P, p + 1));
        x->first[p + 1] = x->first[p] + count;
        x->most = count > x->most ? count : x->most;
    }
    bounds[x->first[P]] = segments;
}

// Everything but communicators. Local.
static rfa_status create_plans(rfa_exchange *x, int segments)
{
    const int P = x->comm.size, r = x->comm.rank;
    int *bounds = NULL, *roots = NULL;
    rfa_status status = rfa_alloc(&x->first, P + 1, sizeof *x->first, "exchange");
    if (status == RFA_OK) {
        status = rfa_alloc(&x->mpi_counts, 4 * (ptrdiff_t)P, sizeof *x->mpi_counts, "exchange");
    }
    if (status == RFA_OK) { // there are no more subtrees than segments
        status = rfa_alloc(&bounds, segments + (ptrdiff_t)1, sizeof *bounds, "exchange");
    }
    if (status == RFA_OK) {
        status = rfa_alloc(&roots, segments + (ptrdiff_t)1, sizeof *roots, "exchange");
    }
    if (status == RFA_OK) {
        sort_out_plans(x, bounds, segments);
        const int count = x->first[r + 1] - x->first[r];
        for (int k = 0; k <= count; k++) {
            roots[k] = bounds[x->first[r] + k] - bounds[x->first[r]];
        }
        status = rfa_tree_create(&x->own, NULL, roots, count, x->algorithm == RFA_EXCHANGE_EXSCAN);
    }
    if (status == RFA_OK) {
        const int root[2] = {0, x->first[P]};
        status = rfa_tree_create(&x->above, bounds, root, 1, false);
    }
    rfa_free(roots);
    rfa_free(bounds);
    return status;
}

// Terms whose sum shows how it was associated: 1, then numbers that vanish one by one but not
// together; for odd i the other way round. ranks: how many terms there are.
static double test_term(ptrdiff_t i, int rank, int ranks)
{
    const double scale = (double)(1 << i % 31); // a power of two keeps the ties
    const bool big = i % 2 == 0 ? rank == 0 : rank == ranks - 2;
    return big ? scale : scale * 0x1p-53;
}

// Whether the library's exscan over comm is the left fold, bit by bit, for short and long vectors.
// buffer [TEST_COUNT]. Collective; the answer is this rank's.
static bool is_left_fold(const rfa_comm *comm, double *buffer)
{
    bool good = true;
    for (ptrdiff_t n = 16; n <= TEST_COUNT; n *= TEST_COUNT / 16) {
        for (ptrdiff_t i = 0; i < n; i++) {
            buffer[i] = test_term(i, comm->rank, comm->size);
        }
        MPI_Exscan(MPI_IN_PLACE, buffer, rfa_int(n), MPI_DOUBLE, MPI_SUM, comm->comm);
        for (ptrdiff_t i = 0; i < n && comm->rank > 0; i++) {
            double fold = test_term(i, 0, comm->size);
            for (int r = 1; r < comm->rank; r++) {
                fold += test_term(i, r, comm->size);
            }
            good &= fold == buffer[i];
        }
    }
    return good;
}

static void reverse(rfa_exchange *x)
{
    MPI_Comm_split(x->comm.comm, 0, -x->comm.rank, &x->reversed.comm);
    MPI_Comm_rank(x->reversed.comm, &x->reversed.rank);
    MPI_Comm_size(x->reversed.comm, &x->reversed.size);
}

rfa_status rfa_exchange_create(rfa_exchange **out,
                               const rfa_comm *sequence,
                               int segments,
                               rfa_exchange_algorithm algorithm)
{
    const int P = sequence->size;
    const bool aligned = P <= EXSCAN_RANKS && (P & (P - 1)) == 0; // one subtree a rank
    const bool test = algorithm == RFA_EXCHANGE_AUTO && aligned && P > 1;
    rfa_exchange *x = NULL;
    double *buffer = NULL;
    rfa_status status = RFA_OK;
    *out = NULL;
    if (segments < 1 || (segments & (segments - 1)) != 0) {
        status = rfa_fail(RFA_ERR_USAGE, "segments: %d is not a power of two", segments);
    } else if (segments < P) {
        status = rfa_fail(RFA_ERR_USAGE, "segments: %d are too few for %d ranks a sequence",
                          segments, P);
    }
    if (status == RFA_OK) {
        status = rfa_alloc(&x, 1, sizeof *x, "exchange");
    }
    if (status == RFA_OK) {
        // The communicator itself is set only when all ranks are through.
        x->comm = (rfa_comm){.comm = MPI_COMM_NULL, .rank = sequence->rank, .size = P};
        x->algorithm = algorithm;
        x->exscan = algorithm == RFA_EXCHANGE_EXSCAN || (algorithm == RFA_EXCHANGE_AUTO && aligned);
        status = create_plans(x, segments);
    }
    if (status == RFA_OK && test) {
        status = rfa_alloc(&buffer, TEST_COUNT, sizeof *buffer, "exchange");
    }
    status = rfa_agree(sequence, status);
    if (status != RFA_OK) {
        if (x) {
            x->comm.size = 0;
            rfa_exchange_destroy(&x);
        }
        goto out;
    }
    RFA_ASSERT(x);
    rfa_comm_create(&x->comm, sequence->comm);
    if (x->exscan && P > 1) {
        reverse(x);
    }
    if (buffer) {
        int good = is_left_fold(&x->comm, buffer);
        good &= is_left_fold(&x->reversed, buffer);
        MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, x->comm.comm);
        x->exscan = good;
    }
    *out = x;
out:
    rfa_free(buffer);
    return status;
}

static void free_buffers(rfa_exchange *x)
{
    rfa_free(x->wire);
    rfa_free(x->nodes);
    x->wire = x->nodes = NULL;
    x->room = x->columns = 0;
}

void rfa_exchange_destroy(rfa_exchange **exchange)
{
    rfa_exchange *x = *exchange;
    if (!x) {
        return;
    }
    rfa_comm_destroy(&x->reversed);
    rfa_comm_destroy(&x->comm);
    rfa_tree_destroy(&x->own);
    rfa_tree_destroy(&x->above);
    free_buffers(x);
    rfa_free(x->first);
    rfa_free(x->mpi_counts);
    rfa_free(x);
    *exchange = NULL;
}

// Buffers for pieces of up to n columns in elements of unit; all ranks grow at the same call.
// Collective.
static rfa_status reserve(rfa_exchange *x, ptrdiff_t n, ptrdiff_t unit)
{
    const ptrdiff_t columns = (n / unit / x->comm.size + 1) * unit;
    if (n <= x->room && columns <= x->columns) {
        return RFA_OK;
    }
    free_buffers(x);
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
        free_buffers(x);
        return status;
    }
    x->room = n;
    x->columns = columns;
    return RFA_OK;
}

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

// Through the owners: each gets its slice of all subtree sums, folds, and answers.
static void run_transposed(rfa_exchange *x, rfa_exchange_kind kind, const run *at)
{
    const int P = x->comm.size, r = x->comm.rank, roots = x->own.roots;
    const bool suffix = kind != RFA_PREFIX; // totals rise to the first row
    const ptrdiff_t mine = slice(x, at, r + 1) - slice(x, at, r);
    int *count = x->mpi_counts, *first = count + P, *owner_count = first + P,
        *owner_first = owner_count + P;
    for (int q = 0; q < P; q++) {
        count[q] = rfa_int(roots * (slice(x, at, q + 1) - slice(x, at, q)));
        first[q] = rfa_int(roots * slice(x, at, q));
        owner_count[q] = rfa_int((x->first[q + 1] - x->first[q]) * mine);
        owner_first[q] = rfa_int(x->first[q] * mine);
    }
    sweep_own(x, RFA_SWEEP_UP, suffix, false, at);
    // The row of a single root is its own wire.
    double *wire = x->wire;
    if (roots == 1) {
        wire = at->leaves + rfa_tree_slot(&x->own, suffix, 0) * at->stride;
    } else {
        pack(x, suffix, at, false);
    }
    double start = rfa_now();
    MPI_Alltoallv(wire, count, first, MPI_DOUBLE, x->nodes, owner_count, owner_first, MPI_DOUBLE,
                  x->comm.comm);
    x->cost.seconds += rfa_now() - start;
    x->cost.messages += 2 * (int64_t)(P - 1);
    x->cost.bytes_sent += roots * (at->n - mine) * (int64_t)sizeof *wire;
    if (kind == RFA_TOTAL) {
        rfa_tree_sweep(&x->above, RFA_SWEEP_UP, suffix, true, x->nodes, mine, mine, at->unit);
        for (int q = 0; q < P; q++) {
            count[q] = rfa_int(slice(x, at, q + 1) - slice(x, at, q));
            first[q] = rfa_int(slice(x, at, q));
        }
        start = rfa_now();
        MPI_Allgatherv(x->nodes, count[r], MPI_DOUBLE, at->leaves, count, first, MPI_DOUBLE,
                       x->comm.comm);
        x->cost.seconds += rfa_now() - start;
        x->cost.bytes_sent += (P - 1) * mine * (int64_t)sizeof *wire;
        return;
    }
    rfa_tree_sweep(&x->above, RFA_SWEEP_BOTH, suffix, true, x->nodes, mine, mine, at->unit);
    start = rfa_now();
    MPI_Alltoallv(x->nodes, owner_count, owner_first, MPI_DOUBLE, wire, count, first, MPI_DOUBLE,
                  x->comm.comm);
    x->cost.seconds += rfa_now() - start;
    x->cost.bytes_sent += (x->above.leaves - roots) * mine * (int64_t)sizeof *wire;
    if (roots != 1) {
        pack(x, suffix, at, true);
    }
    sweep_own(x, RFA_SWEEP_DOWN, suffix, r == (suffix ? P - 1 : 0), at);
}

// Of MPI: in is what lies farther from the reader, also on the reversed communicator.
static void combine(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes = 0;
    MPI_Type_size(*type, &bytes);
    rfa_element_combine(inout, in, inout, *count, bytes / (int)sizeof(double));
}

// One element is one datatype: no library then cuts it.
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

// By the library's scan or reduction of whole ranks, in place in the root's row.
static void run_exscan(rfa_exchange *x, rfa_exchange_kind kind, const run *at)
{
    const bool suffix = kind != RFA_PREFIX, total = kind == RFA_TOTAL;
    const int P = x->comm.size;
    sweep_own(x, RFA_SWEEP_UP, suffix, false, at);
    double *sum = at->leaves + rfa_tree_slot(&x->own, suffix, 0) * at->stride;
    const rfa_comm *comm = suffix ? &x->reversed : &x->comm;
    const double start = rfa_now();
    if (at->unit > 1) {
        scan_elements(sum, at->n / at->unit, at->unit, total, comm->comm);
    } else if (total) {
        MPI_Allreduce(MPI_IN_PLACE, sum, rfa_int(at->n), MPI_DOUBLE, MPI_SUM, x->comm.comm);
    } else {
        MPI_Exscan(MPI_IN_PLACE, sum, rfa_int(at->n), MPI_DOUBLE, MPI_SUM, comm->comm);
    }
    x->cost.seconds += rfa_now() - start;
    if (total) {
        // What the best algorithm needs, a reduce-scatter and an allgather: the library's own count
        // is hidden.
        x->cost.messages += 2 * (int64_t)(P - 1);
        x->cost.bytes_sent += 2 * (P - 1) * at->n * (int64_t)sizeof *sum / P;
        return;
    }
    if (comm->rank < P - 1) {
        x->cost.messages += 1;
        x->cost.bytes_sent += at->n * (int64_t)sizeof *sum;
    }
    // The first rank's row is undefined now: open makes it the identity.
    sweep_own(x, RFA_SWEEP_DOWN, suffix, comm->rank == 0, at);
}

rfa_status rfa_exchange_rows_run(rfa_exchange *exchange,
                                 rfa_exchange_kind kind,
                                 double *leaves,
                                 rfa_exchange_rows rows)
{
    RFA_ASSERT(rows.size >= 0 && rows.stride >= rows.size && rows.size % rows.unit == 0);
    if (exchange->comm.size == 1) {
        const run all = {leaves, rows.stride, rows.size, rows.unit};
        const rfa_sweep sweep = kind == RFA_TOTAL ? RFA_SWEEP_UP : RFA_SWEEP_BOTH;
        sweep_own(exchange, sweep, kind != RFA_PREFIX, true, &all);
        return RFA_OK;
    }
    const bool forced = exchange->algorithm == RFA_EXCHANGE_EXSCAN;
    const bool transposed =
        rows.unit > 1 ? !forced : rfa_exchange_choice(exchange, kind) == RFA_EXCHANGE_TRANSPOSED;
    ptrdiff_t piece = transposed ? PIECE / exchange->most : PIECE;
    piece = (piece / rows.unit + (piece < rows.unit)) * rows.unit;
    piece = piece < rows.size ? piece : rows.size;
    if (transposed) {
        RFA_TRY(reserve(exchange, piece, rows.unit));
    }
    exchange->cost.calls++;
    for (ptrdiff_t at = 0; at < rows.size; at += piece) {
        const ptrdiff_t n = rows.size - at < piece ? rows.size - at : piece;
        const run part = {leaves + at, rows.stride, n, rows.unit};
        if (transposed) {
            run_transposed(exchange, kind, &part);
        } else {
            run_exscan(exchange, kind, &part);
        }
    }
    return RFA_OK;
}

rfa_status
rfa_exchange_run(rfa_exchange *exchange, rfa_exchange_kind kind, double *leaves, ptrdiff_t size)
{
    return rfa_exchange_rows_run(exchange, kind, leaves, (rfa_exchange_rows){size, size, 1});
}

rfa_exchange_algorithm rfa_exchange_choice(const rfa_exchange *exchange, rfa_exchange_kind kind)
{
    const bool forced = exchange->algorithm == RFA_EXCHANGE_EXSCAN;
    return forced || (exchange->exscan && kind != RFA_TOTAL) ? RFA_EXCHANGE_EXSCAN
                                                             : RFA_EXCHANGE_TRANSPOSED;
}

bool rfa_exchange_is_exact(const rfa_exchange *exchange)
{
    // A sum of two has one association.
    return exchange->algorithm != RFA_EXCHANGE_EXSCAN || exchange->comm.size <= 2;
}

const rfa_exchange_cost *rfa_exchange_costs(const rfa_exchange *exchange)
{
    return &exchange->cost;
}
