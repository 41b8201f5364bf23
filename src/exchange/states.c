// Creation: trees, tables, and what the library's scan may be trusted with.
#include "base/log.h"
#include "base/mem.h"
#include "exchange/partition.h"
#include "exchange/states_impl.h"

enum {
    EXSCAN_RANKS = 4,    // up to here the left fold of whole ranks is the tree's expression
    TEST_COUNT = 1 << 15 // doubles of the start-up test, beyond any library's short-vector switch
};

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

static void exscan(double *x, int n, const rfa_comm *comm, bool blocking)
{
    if (blocking) {
        MPI_Exscan(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, comm->comm);
    } else {
        MPI_Request request;
        MPI_Iexscan(MPI_IN_PLACE, x, n, MPI_DOUBLE, MPI_SUM, comm->comm, &request);
        // The checker does not know MPI_Iexscan.
        // NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker)
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

// Whether one of the library's exscans over comm is the left fold, bit by bit, for short and long
// vectors. buffer [TEST_COUNT]. Collective; the answer is this rank's.
static bool is_left_fold(const rfa_comm *comm, double *buffer, bool blocking)
{
    bool good = true;
    for (ptrdiff_t n = 16; n <= TEST_COUNT; n *= TEST_COUNT / 16) {
        for (ptrdiff_t i = 0; i < n; i++) {
            buffer[i] = test_term(i, comm->rank, comm->size);
        }
        exscan(buffer, rfa_int(n), comm, blocking);
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
        x->request = MPI_REQUEST_NULL;
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
        int good = 1;
        for (int blocking = 0; blocking < 2; blocking++) {
            good &= is_left_fold(&x->comm, buffer, blocking);
            good &= is_left_fold(&x->reversed, buffer, blocking);
        }
        MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, x->comm.comm);
        x->exscan = good;
    }
    *out = x;
out:
    rfa_free(buffer);
    return status;
}

void rfa_exchange_destroy(rfa_exchange **exchange)
{
    rfa_exchange *x = *exchange;
    if (!x) {
        return;
    }
    RFA_ASSERT(x->jobs == 0);
    rfa_comm_destroy(&x->reversed);
    rfa_comm_destroy(&x->comm);
    rfa_tree_destroy(&x->own);
    rfa_tree_destroy(&x->above);
    rfa_exchange_free_buffers(x);
    rfa_free(x->first);
    rfa_free(x->mpi_counts);
    rfa_free(x);
    *exchange = NULL;
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
