// Ranks: 1 2 3 4 5 8
// Precision: f64
//
// An exchange in two halves: the bits of the blocking one whatever the caller does in between, no
// call that waits before the end, and less to wait for at the end when it has been pumped.
#include "support/support.h"

#include "exchange/element.h"
#include "exchange/partition.h"
#include "exchange/states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { G = 8, MOST = 1 << 20 };

// The MPI calls of the exchange, seen: those that wait, and those that begin something.
static struct {
    int waiting, begun;
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
    mpi.waiting++;
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
    mpi.waiting++;
    return PMPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                           comm);
}

int MPI_Exscan(
    const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    mpi.waiting++;
    return PMPI_Exscan(sendbuf, recvbuf, count, datatype, op, comm);
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    mpi.waiting++;
    return PMPI_Wait(request, status);
}

int MPI_Ialltoallv(const void *sendbuf,
                   const int sendcounts[],
                   const int sdispls[],
                   MPI_Datatype sendtype,
                   void *recvbuf,
                   const int recvcounts[],
                   const int rdispls[],
                   MPI_Datatype recvtype,
                   MPI_Comm comm,
                   MPI_Request *request)
{
    mpi.begun++;
    return PMPI_Ialltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                           recvtype, comm, request);
}

int MPI_Iallgatherv(const void *sendbuf,
                    int sendcount,
                    MPI_Datatype sendtype,
                    void *recvbuf,
                    const int recvcounts[],
                    const int displs[],
                    MPI_Datatype recvtype,
                    MPI_Comm comm,
                    MPI_Request *request)
{
    mpi.begun++;
    return PMPI_Iallgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype,
                            comm, request);
}

int MPI_Iexscan(const void *sendbuf,
                void *recvbuf,
                int count,
                MPI_Datatype datatype,
                MPI_Op op,
                MPI_Comm comm,
                MPI_Request *request)
{
    mpi.begun++;
    return PMPI_Iexscan(sendbuf, recvbuf, count, datatype, op, comm, request);
}

static int own_segments(void)
{
    return rfa_part_begin(G, test_world.size, test_world.rank + 1) -
           rfa_part_begin(G, test_world.size, test_world.rank);
}

static rfa_exchange *create(rfa_exchange_algorithm algorithm)
{
    rfa_exchange *exchange = NULL;
    check_ok(rfa_exchange_create(&exchange, &test_world, G, algorithm));
    return exchange;
}

// Sums whose bits show the order of additions, or elements with a scale and a decay each.
static void fill(double *leaves, ptrdiff_t size, ptrdiff_t unit)
{
    const int first = rfa_part_begin(G, test_world.size, test_world.rank);
    for (ptrdiff_t i = 0; i < own_segments() * size; i++) {
        const int64_t column = i % size, segment = first + i / size;
        const double x = sin((double)(segment * 7919 + column * 31 + 1));
        const bool header = unit > 1 && column % unit < RFA_ELEMENT_HEADER;
        leaves[i] = header ? 3 * x - 3 : ldexp(x, (int)((column + 5 * segment) % 40) - 20);
    }
}

// A caller's work: pumps now and then, differently on each rank, for a while.
static void compute(rfa_exchange *exchange, int pumps)
{
    double sum = 1;
    for (int p = 0; p < pumps * (test_world.rank + 1) / test_world.size; p++) {
        for (int i = 0; i < 20000; i++) {
            sum = sqrt(sum + i);
        }
        assert_true(sum > 1);
        rfa_exchange_pump(exchange);
    }
}

// [0, middle) one way and [middle, size) the other way, both in flight, against blocking calls.
static void check_both(rfa_exchange_algorithm algorithm,
                       rfa_exchange_kind kind,
                       ptrdiff_t size,
                       ptrdiff_t unit,
                       int pumps)
{
    const ptrdiff_t middle = size / unit / 3 * unit, n = own_segments() * size;
    const rfa_exchange_kind other = kind == RFA_PREFIX ? RFA_SUFFIX : RFA_PREFIX;
    const rfa_exchange_rows rows[2] = {{middle, size, unit}, {size - middle, size, unit}};
    double *want = test_doubles(n + 1), *got = test_doubles(n + 1);
    rfa_exchange *exchange = create(algorithm);
    fill(want, size, unit);
    memcpy(got, want, (size_t)n * sizeof *got);
    check_ok(rfa_exchange_rows_run(exchange, kind, want, rows[0]));
    check_ok(rfa_exchange_rows_run(exchange, other, want + middle, rows[1]));
    const rfa_exchange_cost blocking = *rfa_exchange_costs(exchange);
    for (int again = 0; again < 2; again++) {
        fill(got, size, unit);
        const int waiting = mpi.waiting;
        check_ok(rfa_exchange_rows_start(exchange, kind, got, rows[0]));
        compute(exchange, pumps);
        check_ok(rfa_exchange_rows_start(exchange, other, got + middle, rows[1]));
        compute(exchange, pumps);
        check(mpi.waiting == waiting || (unit > 1 && algorithm == RFA_EXCHANGE_EXSCAN));
        rfa_exchange_finish(exchange);
        check(rfa_exchange_pump(exchange)); // nothing is left
        // A total leaves its sum in the first row alone, over [0, middle).
        const ptrdiff_t skip = kind == RFA_TOTAL ? middle : 0;
        bool same = memcmp(want, got, (size_t)size * sizeof *got) == 0;
        for (ptrdiff_t at = size; at < n; at += size) {
            same &=
                memcmp(want + at + skip, got + at + skip, (size_t)(size - skip) * sizeof *got) == 0;
        }
        check(same);
    }
    const rfa_exchange_cost *all = rfa_exchange_costs(exchange);
    check(all->calls == 3 * blocking.calls && all->messages == 3 * blocking.messages);
    check(all->bytes_sent == 3 * blocking.bytes_sent);
    rfa_exchange_destroy(&exchange);
    rfa_free(want);
    rfa_free(got);
}

static void same_bits_as_blocking(void **state)
{
    (void)state;
    static const ptrdiff_t sizes[] = {0, 1, 7, 5000};
    for (rfa_exchange_algorithm a = RFA_EXCHANGE_AUTO; a <= RFA_EXCHANGE_TRANSPOSED; a++) {
        for (rfa_exchange_kind kind = RFA_PREFIX; kind <= RFA_TOTAL; kind++) {
            for (int s = 0; s < 4; s++) {
                check_both(a, kind, sizes[s], 1, 4 * s);
            }
            check_both(a, kind, 400, 5, 8);
        }
    }
}

static void several_pieces(void **state)
{
    (void)state;
    for (rfa_exchange_kind kind = RFA_PREFIX; kind <= RFA_TOTAL; kind++) {
        check_both(RFA_EXCHANGE_AUTO, kind, MOST + 3, 1, 10);
        check_both(RFA_EXCHANGE_TRANSPOSED, kind, MOST + 3, 1, 10);
    }
}

// A rank may compute, and talk to others, while its states are on their way: none waits in start
// for one that has not started.
static void start_waits_for_nobody(void **state)
{
    (void)state;
    const int P = test_world.size, r = test_world.rank;
    double *leaves = test_doubles(G * 1000);
    for (rfa_exchange_algorithm a = RFA_EXCHANGE_EXSCAN; a <= RFA_EXCHANGE_TRANSPOSED; a++) {
        // Totals by the library's reduction are always blocking.
        const rfa_exchange_kind last = a == RFA_EXCHANGE_EXSCAN ? RFA_SUFFIX : RFA_TOTAL;
        for (rfa_exchange_kind kind = RFA_PREFIX; kind <= last; kind++) {
            rfa_exchange *exchange = create(a);
            check_ok(rfa_exchange_run(exchange, kind, leaves, 1000)); // buffers
            const rfa_exchange_rows rows = {1000, 1000, 1};
            if (r > 0) { // the rank before has started
                MPI_Recv(NULL, 0, MPI_INT, r - 1, 0, test_world.comm, MPI_STATUS_IGNORE);
            }
            const rfa_status status = rfa_exchange_rows_start(exchange, kind, leaves, rows);
            if (r < P - 1) {
                MPI_Send(NULL, 0, MPI_INT, r + 1, 0, test_world.comm);
            }
            rfa_exchange_finish(exchange);
            check_ok(status);
            rfa_exchange_destroy(&exchange);
        }
    }
    rfa_free(leaves);
}

// What is left for finish after some work: calls that begin something, calls that wait, seconds.
typedef struct {
    int begun, waiting;
    double seconds;
} rest;

static rest rest_of(rfa_exchange *exchange, double *leaves, bool pumped)
{
    const rfa_exchange_rows rows = {MOST, MOST, 1};
    fill(leaves, MOST, 1);
    check_ok(rfa_exchange_rows_start(exchange, RFA_PREFIX, leaves, rows));
    const double start = MPI_Wtime();
    while (MPI_Wtime() - start < 20) { // as long as it takes to get through, or a while
        if (pumped ? rfa_exchange_pump(exchange) : MPI_Wtime() - start > 0.02) {
            break;
        }
    }
    check(true); // all have computed
    const int begun = mpi.begun, waiting = mpi.waiting;
    const double seconds = rfa_exchange_costs(exchange)->seconds;
    rfa_exchange_finish(exchange);
    return (rest){mpi.begun - begun, mpi.waiting - waiting,
                  rfa_exchange_costs(exchange)->seconds - seconds};
}

static void pumping_leaves_nothing_to_wait_for(void **state)
{
    (void)state;
    const bool alone = test_world.size == 1;
    double *leaves = test_doubles(own_segments() * (ptrdiff_t)MOST);
    rfa_exchange *exchange = create(RFA_EXCHANGE_TRANSPOSED);
    check_ok(rfa_exchange_run(exchange, RFA_PREFIX, leaves, MOST)); // buffers
    const rest pumped = rest_of(exchange, leaves, true);
    check(pumped.begun == 0 && pumped.waiting == 0 && pumped.seconds == 0);
    const rest idle = rest_of(exchange, leaves, false);
    check(alone || (idle.begun >= 1 && idle.waiting >= 2 && idle.seconds > 0));
    rfa_exchange_destroy(&exchange);
    rfa_free(leaves);
}

// A second start that fails undoes nothing of the first one.
static void second_start_fails(void **state)
{
    (void)state;
    enum { SMALL = 10, LARGE = 5000 };
    const int own = own_segments();
    const rfa_exchange_rows small = {SMALL, SMALL, 1}, large = {LARGE, LARGE, 1};
    double *want = test_doubles(own * SMALL), *got = test_doubles(own * SMALL);
    double *more = test_doubles(own * LARGE);
    rfa_exchange *exchange = create(RFA_EXCHANGE_TRANSPOSED);
    fill(want, SMALL, 1);
    check_ok(rfa_exchange_run(exchange, RFA_PREFIX, want, SMALL));
    fill(got, SMALL, 1);
    check_ok(rfa_exchange_rows_start(exchange, RFA_PREFIX, got, small));
    setenv("RFA_FAULT", "exchange.memory@1", 1);
    const rfa_status status = rfa_exchange_rows_start(exchange, RFA_SUFFIX, more, large);
    unsetenv("RFA_FAULT");
    check(status == (test_world.size > 1 ? RFA_ERR_MEMORY : RFA_OK));
    rfa_exchange_finish(exchange);
    check(memcmp(want, got, (size_t)(own * SMALL) * sizeof *got) == 0);
    check_ok(rfa_exchange_run(exchange, RFA_SUFFIX, more, LARGE));
    rfa_exchange_destroy(&exchange);
    rfa_free(more);
    rfa_free(want);
    rfa_free(got);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_as_blocking),
        cmocka_unit_test(several_pieces),
        cmocka_unit_test(start_waits_for_nobody),
        cmocka_unit_test(pumping_leaves_nothing_to_wait_for),
        cmocka_unit_test(second_start_fails),
    };
    return test_main(tests);
}
