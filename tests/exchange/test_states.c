// Ranks: 1 2 3 4 5 8
// Precision: f64
#include "support/support.h"

#include "exchange/partition.h"
#include "exchange/states.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 }; // segments

// Makes MPI_Exscan associate from the right.
static bool right_fold;

int MPI_Exscan(
    const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    if (!right_fold) {
        return PMPI_Exscan(sendbuf, recvbuf, count, datatype, op, comm);
    }
    int rank = 0, size = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    double *all = test_doubles((ptrdiff_t)count * size), *out = recvbuf;
    PMPI_Allgather(recvbuf, count, datatype, all, count, datatype, comm);
    for (int i = 0; i < count && rank > 0; i++) {
        out[i] = all[(ptrdiff_t)(rank - 1) * count + i];
        for (int r = rank - 2; r >= 0; r--) {
            out[i] = all[(ptrdiff_t)r * count + i] + out[i];
        }
    }
    rfa_free(all);
    return MPI_SUCCESS;
}

// Numbers of magnitudes 2^-30 to 2^30, some of them zeros of either sign.
static double number(uint64_t seed, int segment, ptrdiff_t i)
{
    uint64_t z = (seed * MOST + (uint64_t)segment) * 0x9e3779b97f4a7c15U + (uint64_t)i;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    if (z % 8 == 0) {
        return z % 16 ? -0.0 : 0.0;
    }
    return ldexp((double)(int64_t)z * 0x1p-63, (int)(z % 61) - 30);
}

// The definition, in the slowest and clearest way: x[lo, hi) summed by the tree.
static double tree_sum(const double *x, int lo, int hi)
{
    const int mid = (lo + hi) / 2;
    return hi - lo == 1 ? x[lo] : tree_sum(x, lo, mid) + tree_sum(x, mid, hi);
}

// Prefix of segment g: the left siblings on the way down from the root, from the outside in.
static double tree_prefix(const double *x, int G, int g)
{
    double sum = 0;
    bool empty = true;
    for (int lo = 0, hi = G; hi - lo > 1;) {
        const int mid = (lo + hi) / 2;
        if (g < mid) {
            hi = mid;
            continue;
        }
        sum = empty ? tree_sum(x, lo, mid) : sum + tree_sum(x, lo, mid);
        empty = false;
        lo = mid;
    }
    return sum;
}

static double tree_suffix(const double *x, int G, int g)
{
    double sum = 0;
    bool empty = true;
    for (int lo = 0, hi = G; hi - lo > 1;) {
        const int mid = (lo + hi) / 2;
        if (g >= mid) {
            lo = mid;
            continue;
        }
        sum = empty ? tree_sum(x, mid, hi) : tree_sum(x, mid, hi) + sum;
        empty = false;
        hi = mid;
    }
    return sum;
}

static double want(rfa_exchange_kind kind, const double *x, int G, int g)
{
    return kind == RFA_PREFIX   ? tree_prefix(x, G, g)
           : kind == RFA_SUFFIX ? tree_suffix(x, G, g)
                                : tree_sum(x, 0, G);
}

static bool same_bits(double a, double b)
{
    uint64_t p = 0, q = 0;
    memcpy(&p, &a, sizeof a);
    memcpy(&q, &b, sizeof b);
    return p == q;
}

static void fill(double *leaves, const rfa_comm *comm, int G, ptrdiff_t size, uint64_t seed)
{
    const int first = rfa_part_begin(G, comm->size, comm->rank);
    const int end = rfa_part_begin(G, comm->size, comm->rank + 1);
    for (int g = first; g < end; g++) {
        for (ptrdiff_t i = 0; i < size; i++) {
            leaves[(g - first) * size + i] = number(seed, g, i);
        }
    }
}

// What all ranks' leaves were decides what this rank must hold now. Counts elements whose bits
// differ, and the largest difference relative to the sum of magnitudes.
static void compare(const double *leaves,
                    const rfa_comm *comm,
                    int G,
                    ptrdiff_t size,
                    uint64_t seed,
                    rfa_exchange_kind kind,
                    ptrdiff_t *differ,
                    double *worst)
{
    const int first = rfa_part_begin(G, comm->size, comm->rank);
    const int end = kind == RFA_TOTAL ? first + 1 : rfa_part_begin(G, comm->size, comm->rank + 1);
    *differ = 0;
    *worst = 0;
    for (ptrdiff_t i = 0; i < size; i++) {
        double x[MOST], scale = 1e-300;
        for (int g = 0; g < G; g++) {
            x[g] = number(seed, g, i);
            scale += fabs(x[g]);
        }
        for (int g = first; g < end; g++) {
            const double got = leaves[(g - first) * size + i], right = want(kind, x, G, g);
            const double gap = fabs(got - right) / scale;
            *differ += !same_bits(got, right);
            *worst = gap <= *worst ? *worst : gap;
        }
    }
}

static rfa_exchange *create(const rfa_comm *comm, int G, rfa_exchange_algorithm algorithm)
{
    rfa_exchange *exchange = NULL;
    check_ok(rfa_exchange_create(&exchange, comm, G, algorithm));
    return exchange;
}

static bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

// Every kind of exchange on one set of leaves over comm, checked by all ranks of the world.
static void check_kinds(
    const rfa_comm *comm, int G, rfa_exchange_algorithm algorithm, ptrdiff_t size, uint64_t seed)
{
    const int own =
        rfa_part_begin(G, comm->size, comm->rank + 1) - rfa_part_begin(G, comm->size, comm->rank);
    double *leaves = test_doubles(own * size);
    rfa_exchange *exchange = create(comm, G, algorithm);
    for (rfa_exchange_kind kind = RFA_PREFIX; kind <= RFA_TOTAL; kind++) {
        // Poison whatever the exchange keeps between calls.
        for (ptrdiff_t i = 0; i < own * size; i++) {
            leaves[i] = NAN;
        }
        check_ok(rfa_exchange_run(exchange, kind, leaves, size));
        fill(leaves, comm, G, size, seed);
        check_ok(rfa_exchange_run(exchange, kind, leaves, size));
        ptrdiff_t differ = 0;
        double worst = 0;
        compare(leaves, comm, G, size, seed, kind, &differ, &worst);
        const bool aligned = is_power_of_two(comm->size) && comm->size <= 4;
        const bool exact = rfa_exchange_choice(exchange, kind) == RFA_EXCHANGE_TRANSPOSED ||
                           comm->size <= 2 || (aligned && kind != RFA_TOTAL);
        if ((exact && differ) || !(worst <= 1e-12)) {
            print_error("P %d G %d size %td algorithm %d kind %d: %td differ, worst %g\n",
                        comm->size, G, size, (int)algorithm, (int)kind, differ, worst);
        }
        check(!exact || differ == 0);
        check(worst <= 1e-12);
    }
    rfa_exchange_destroy(&exchange);
    check(exchange == NULL);
    rfa_exchange_destroy(&exchange);
    rfa_free(leaves);
}

static void all_kinds_are_the_tree(void **state)
{
    (void)state;
    static const ptrdiff_t sizes[] = {0, 1, 3, 7, 5000};
    for (int G = 8; G <= MOST; G *= 2) {
        for (rfa_exchange_algorithm a = RFA_EXCHANGE_AUTO; a <= RFA_EXCHANGE_TRANSPOSED; a++) {
            for (int s = 0; s < 5; s++) {
                check_kinds(&test_world, G, a, sizes[s], 17);
            }
        }
    }
}

// One leaf a rank; with one rank, one leaf in all, whose prefix is nothing.
static void fewest_segments(void **state)
{
    (void)state;
    int G = 1;
    while (G < test_world.size) {
        G *= 2;
    }
    for (rfa_exchange_algorithm a = RFA_EXCHANGE_AUTO; a <= RFA_EXCHANGE_TRANSPOSED; a++) {
        check_kinds(&test_world, G, a, 100, 18);
    }
}

// Beyond the columns of one call.
static void several_pieces(void **state)
{
    (void)state;
    check_kinds(&test_world, 8, RFA_EXCHANGE_AUTO, (1 << 20) + 3, 19);
    check_kinds(&test_world, 8, RFA_EXCHANGE_TRANSPOSED, (1 << 20) + 3, 20);
}

// The scratch of an exchange is that of one call, whatever the size.
static void memory_is_bounded(void **state)
{
    (void)state;
    const ptrdiff_t size = 3 << 20;
    double *leaves = test_doubles(8 / test_world.size * size + size);
    rfa_exchange *exchange = create(&test_world, 8, RFA_EXCHANGE_TRANSPOSED);
    const int64_t before = rfa_mem_now();
    check_ok(rfa_exchange_run(exchange, RFA_PREFIX, leaves, size));
    check(rfa_mem_now() - before <= 2 * ((int64_t)8 << 20) + 4096);
    rfa_exchange_destroy(&exchange);
    rfa_free(leaves);
}

// The numbers show how a sum was associated: the tree is neither a left nor a right fold.
static void the_test_can_fail(void **state)
{
    (void)state;
    int left_differs = 0, right_differs = 0, from_start_differs = 0;
    for (ptrdiff_t i = 0; i < 5000; i++) {
        double x[MOST], left = 0, right = 0;
        for (int g = 0; g < 8; g++) {
            x[g] = number(17, g, i);
        }
        for (int g = 0; g < 7; g++) {
            left += x[g];
            right = x[6 - g] + right;
        }
        const double tree = tree_prefix(x, 8, 7);
        left_differs += left != tree;
        right_differs += right != tree;
        // Prefix of [5, 8)'s second subtree from that of its first, as rank 2 of 3 might.
        from_start_differs += tree_prefix(x, 8, 5) + x[5] != tree_prefix(x, 8, 6);
    }
    check(left_differs > 500 && right_differs > 500 && from_start_differs > 200);
}

// <y, prefix x> = <suffix y, x>: what a backward pass relies on.
static void suffix_is_the_adjoint_of_prefix(void **state)
{
    (void)state;
    enum { G = 16, SIZE = 333 };
    const int own = rfa_part_begin(G, test_world.size, test_world.rank + 1) -
                    rfa_part_begin(G, test_world.size, test_world.rank);
    double *x = test_doubles(own * SIZE), *y = test_doubles(own * SIZE);
    double *prefix = test_doubles(own * SIZE), *suffix = test_doubles(own * SIZE);
    fill(x, &test_world, G, SIZE, 1);
    fill(y, &test_world, G, SIZE, 2);
    fill(prefix, &test_world, G, SIZE, 1);
    fill(suffix, &test_world, G, SIZE, 2);
    rfa_exchange *exchange = create(&test_world, G, RFA_EXCHANGE_AUTO);
    check_ok(rfa_exchange_run(exchange, RFA_PREFIX, prefix, SIZE));
    check_ok(rfa_exchange_run(exchange, RFA_SUFFIX, suffix, SIZE));
    double sums[3] = {0};
    for (ptrdiff_t i = 0; i < own * SIZE; i++) {
        sums[0] += y[i] * prefix[i];
        sums[1] += suffix[i] * x[i];
        sums[2] += fabs(y[i] * prefix[i]);
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, test_world.comm);
    check(sums[2] > 0 && fabs(sums[0] - sums[1]) <= 1e-12 * sums[2]);
    rfa_exchange_destroy(&exchange);
    rfa_free(x);
    rfa_free(y);
    rfa_free(prefix);
    rfa_free(suffix);
}

// Groups of one sequence each, at the same time, and ranks in another order than the world's.
static void other_communicators(void **state)
{
    (void)state;
    for (int colours = 1; colours <= 2; colours++) {
        rfa_comm comm;
        MPI_Comm_split(test_world.comm, test_world.rank % colours, -test_world.rank, &comm.comm);
        MPI_Comm_rank(comm.comm, &comm.rank);
        MPI_Comm_size(comm.comm, &comm.size);
        for (rfa_exchange_algorithm a = RFA_EXCHANGE_AUTO; a <= RFA_EXCHANGE_TRANSPOSED; a++) {
            check_kinds(&comm, 8, a, 1000, 30 + (uint64_t)(test_world.rank % colours));
        }
        rfa_comm_destroy(&comm);
    }
}

static void wrong_segments_are_refused(void **state)
{
    (void)state;
    static const int wrong[] = {0, -8, 3, 6, 12, 100};
    rfa_exchange *exchange = NULL;
    for (int i = 0; i < 6; i++) {
        check_status(rfa_exchange_create(&exchange, &test_world, wrong[i], RFA_EXCHANGE_AUTO),
                     RFA_ERR_USAGE);
        check(exchange == NULL && strstr(rfa_error_text(), "power of two"));
    }
    for (int G = 1; G < test_world.size; G *= 2) {
        check_status(rfa_exchange_create(&exchange, &test_world, G, RFA_EXCHANGE_TRANSPOSED),
                     RFA_ERR_USAGE);
        check(exchange == NULL && strstr(rfa_error_text(), "too few"));
    }
    rfa_exchange_destroy(&exchange);
}

static void choices(void **state)
{
    (void)state;
    const int P = test_world.size;
    rfa_exchange *exchange = create(&test_world, 8, RFA_EXCHANGE_AUTO);
    const rfa_exchange_algorithm scan =
        P == 1 || P == 2 || P == 4 ? RFA_EXCHANGE_EXSCAN : RFA_EXCHANGE_TRANSPOSED;
    check(rfa_exchange_choice(exchange, RFA_PREFIX) == scan);
    check(rfa_exchange_choice(exchange, RFA_SUFFIX) == scan);
    check(rfa_exchange_choice(exchange, RFA_TOTAL) == RFA_EXCHANGE_TRANSPOSED);
    check(rfa_exchange_is_exact(exchange));
    rfa_exchange_destroy(&exchange);
    exchange = create(&test_world, 8, RFA_EXCHANGE_TRANSPOSED);
    check(rfa_exchange_choice(exchange, RFA_PREFIX) == RFA_EXCHANGE_TRANSPOSED);
    check(rfa_exchange_is_exact(exchange));
    rfa_exchange_destroy(&exchange);
    exchange = create(&test_world, 8, RFA_EXCHANGE_EXSCAN);
    check(rfa_exchange_choice(exchange, RFA_TOTAL) == RFA_EXCHANGE_EXSCAN);
    check(rfa_exchange_is_exact(exchange) == (P <= 2));
    rfa_exchange_destroy(&exchange);
}

// A library whose scan associates otherwise is found out at the start and not used.
static void another_fold_is_not_trusted(void **state)
{
    (void)state;
    right_fold = true;
    rfa_exchange *exchange = create(&test_world, 8, RFA_EXCHANGE_AUTO);
    const bool trusted = rfa_exchange_choice(exchange, RFA_PREFIX) == RFA_EXCHANGE_EXSCAN;
    // Sums of two cannot tell, and need not.
    check(trusted == (test_world.size <= 2));
    check(rfa_exchange_is_exact(exchange));
    rfa_exchange_destroy(&exchange);
    check_kinds(&test_world, 8, RFA_EXCHANGE_AUTO, 500, 40);
    right_fold = false;
}

static void memory_failure_is_agreed(void **state)
{
    (void)state;
    const int64_t held = rfa_mem_now();
    double *leaves = test_doubles(8 * 1000);
    rfa_exchange *exchange = create(&test_world, 8, RFA_EXCHANGE_TRANSPOSED);
    check_ok(rfa_exchange_run(exchange, RFA_PREFIX, leaves, 10));
    setenv("RFA_FAULT", "exchange.memory@1", 1);
    const rfa_status status = rfa_exchange_run(exchange, RFA_PREFIX, leaves, 1000);
    unsetenv("RFA_FAULT");
    check(status == (test_world.size > 1 ? RFA_ERR_MEMORY : RFA_OK));
    fill(leaves, &test_world, 8, 1000, 50);
    check_ok(rfa_exchange_run(exchange, RFA_PREFIX, leaves, 1000));
    ptrdiff_t differ = 0;
    double worst = 0;
    compare(leaves, &test_world, 8, 1000, 50, RFA_PREFIX, &differ, &worst);
    check(differ == 0);
    rfa_exchange_destroy(&exchange);
    rfa_free(leaves);
    check(rfa_mem_now() == held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_test_can_fail),
        cmocka_unit_test(all_kinds_are_the_tree),
        cmocka_unit_test(fewest_segments),
        cmocka_unit_test(several_pieces),
        cmocka_unit_test(memory_is_bounded),
        cmocka_unit_test(suffix_is_the_adjoint_of_prefix),
        cmocka_unit_test(other_communicators),
        cmocka_unit_test(wrong_segments_are_refused),
        cmocka_unit_test(choices),
        cmocka_unit_test(another_fold_is_not_trusted),
        cmocka_unit_test(memory_failure_is_agreed),
    };
    return test_main(tests);
}
