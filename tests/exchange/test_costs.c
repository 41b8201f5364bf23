// Ranks: 1 2 3 4 5 8
// Precision: f64
#include "support/support.h"

#include "exchange/partition.h"
#include "exchange/states.h"

// The MPI calls of the exchange, seen.
static struct {
    int calls;          // of the four below
    int64_t bytes_sent; // by all-to-alls, to others
} mpi;

int MPI_Alltoallv(const void *sendbuf,
                  const int sendcounts[],
                  const int sdispls[],
                  MPI_Datatype sendtype,
                  void *recvbuf,
                  const int recvcounts[],
                  const int rdispls[],
                  MPI_Datatype recvtype,
                  MPI_Comm comm)
{
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    mpi.calls++;
    for (int q = 0; q < size; q++) {
        mpi.bytes_sent += q == rank ? 0 : 8 * (int64_t)sendcounts[q];
    }
    return PMPI_Alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                          recvtype, comm);
}

int MPI_Allgatherv(const void *sendbuf,
                   int sendcount,
                   MPI_Datatype sendtype,
                   void *recvbuf,
                   const int recvcounts[],
                   const int displs[],
                   MPI_Datatype recvtype,
                   MPI_Comm comm)
{
    int size = 0;
    MPI_Comm_size(comm, &size);
    mpi.calls++;
    mpi.bytes_sent += 8 * (int64_t)sendcount * (size - 1);
    return PMPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                           comm);
}

int MPI_Allreduce(
    const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    mpi.calls++;
    return PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Exscan(
    const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    mpi.calls++;
    return PMPI_Exscan(sendbuf, recvbuf, count, datatype, op, comm);
}

static rfa_exchange *create(const rfa_comm *comm, int G, rfa_exchange_algorithm algorithm)
{
    rfa_exchange *exchange = NULL;
    check_ok(rfa_exchange_create(&exchange, comm, G, algorithm));
    return exchange;
}

// Nodes of the tree over [lo, hi) that lie in [begin, end) while their parents do not.
static int subtrees(int lo, int hi, int begin, int end)
{
    if (end <= lo || hi <= begin) {
        return 0;
    }
    const int mid = (lo + hi) / 2;
    return begin <= lo && hi <= end ? 1
                                    : subtrees(lo, mid, begin, end) + subtrees(mid, hi, begin, end);
}

// Messages and bytes: what is reported, what is sent, and the formulas of exchange/states.h.
static void costs_are_the_formulas(void **state)
{
    (void)state;
    enum { G = 8, SIZE = 840 }; // a multiple of 1 to 8 ranks
    const int64_t P = test_world.size, r = test_world.rank, bytes = SIZE * 8;
    int64_t own = 0, all = 0;
    for (int p = 0; p < P; p++) {
        const int count =
            subtrees(0, G, rfa_part_begin(G, (int)P, p), rfa_part_begin(G, (int)P, p + 1));
        own = p == r ? count : own;
        all += count;
    }
    double *leaves = test_doubles(G * SIZE);
    for (rfa_exchange_kind kind = RFA_PREFIX; kind <= RFA_TOTAL; kind++) {
        rfa_exchange *exchange = create(&test_world, G, RFA_EXCHANGE_TRANSPOSED);
        check_ok(rfa_exchange_run(exchange, kind, leaves, SIZE)); // grows the buffers
        const rfa_exchange_cost before = *rfa_exchange_costs(exchange);
        const int calls = mpi.calls;
        const int64_t sent = mpi.bytes_sent;
        const rfa_status status = rfa_exchange_run(exchange, kind, leaves, SIZE);
        const int calls_made = mpi.calls - calls;
        const rfa_exchange_cost after = *rfa_exchange_costs(exchange);
        check_ok(status);
        check(calls_made == (P > 1 ? 2 : 0));
        check(after.calls - before.calls == (P > 1));
        check(after.messages - before.messages == 2 * (P - 1));
        const int64_t second = kind == RFA_TOTAL ? P - 1 : all - own;
        const int64_t formula = (own * (P - 1) + second) * bytes / P;
        check(after.bytes_sent - before.bytes_sent == formula);
        check(mpi.bytes_sent - sent == formula);
        check(all != P || formula == 2 * (P - 1) * bytes / P);
        check(P > 1 ? after.seconds > before.seconds : after.seconds == 0);
        rfa_exchange_destroy(&exchange);
    }
    rfa_exchange *exchange = create(&test_world, G, RFA_EXCHANGE_EXSCAN);
    const rfa_exchange_cost *cost = rfa_exchange_costs(exchange);
    const int calls = mpi.calls;
    const rfa_status status = rfa_exchange_run(exchange, RFA_PREFIX, leaves, SIZE);
    const int calls_made = mpi.calls - calls;
    check_ok(status);
    check(calls_made == (P > 1));
    check(cost->calls == (P > 1));
    check(cost->messages == (r < P - 1) && cost->bytes_sent == (r < P - 1) * bytes);
    check_ok(rfa_exchange_run(exchange, RFA_SUFFIX, leaves, SIZE));
    check(cost->messages == (r < P - 1) + (r > 0));
    check(cost->bytes_sent == ((r < P - 1) + (r > 0)) * bytes);
    const int64_t scanned = cost->bytes_sent;
    check_ok(rfa_exchange_run(exchange, RFA_TOTAL, leaves, SIZE));
    check(cost->bytes_sent - scanned == 2 * (P - 1) * bytes / P);
    check(cost->calls == 3 * (P > 1));
    rfa_exchange_destroy(&exchange);
    rfa_free(leaves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_the_formulas),
    };
    return test_main(tests);
}
