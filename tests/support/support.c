#include "support/support.h"

#include "rng/rng.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

rfa_comm test_world;

int test_main_(const char *name, const struct CMUnitTest *tests, size_t count)
{
    MPI_Init(NULL, NULL);
    rfa_comm_create(&test_world, MPI_COMM_WORLD);
    if (test_world.rank > 0 && !freopen("/dev/null", "w", stdout)) {
        return 1;
    }
    if (test_world.rank > 0 && !getenv("RFA_TEST_ALL_RANKS")) {
        // cmocka reports on stderr too; a failed check has spoken already.
        if (!freopen("/dev/null", "w", stderr)) {
            return 1;
        }
    }
    const int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    rfa_comm_destroy(&test_world);
    MPI_Finalize();
    return failed ? 1 : 0;
}

void check_(bool good, const char *text, const char *file, int line)
{
    int bad_rank = good ? test_world.size : test_world.rank;
    MPI_Allreduce(MPI_IN_PLACE, &bad_rank, 1, MPI_INT, MPI_MIN, test_world.comm);
    if (bad_rank < test_world.size) {
        print_error("rank %d: %s does not hold\n", bad_rank, text);
        _fail(file, line);
    }
}

void check_status_(rfa_status got, rfa_status want, const char *text, const char *file, int line)
{
    if (got != want) {
        print_error("%s: status %d, expected %d: %s\n", text, got, want, rfa_error_text());
    }
    check_(got == want, text, file, line);
}

void check_close_(const char *what,
                  const rfa_real *a,
                  const double *b,
                  ptrdiff_t n,
                  double bound,
                  const char *file,
                  int line)
{
    double worst = 0;
    ptrdiff_t where = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double gap = fabs((double)a[i] - b[i]);
        if (!(gap <= worst)) {
            worst = gap;
            where = i;
        }
    }
    if (!(worst <= bound)) {
        print_error("%s: element %td: %.9g, expected %.9g; difference %.3g, bound %.3g\n", what,
                    where, (double)a[where], b[where], worst, bound);
    }
    check_(worst <= bound, what, file, line);
}

double test_eps(void)
{
    return sizeof(rfa_real) == sizeof(float) ? FLT_EPSILON : DBL_EPSILON;
}

void test_fill(rfa_real *out, ptrdiff_t n, uint32_t seed, double scale)
{
    const rfa_rng stream = rfa_rng_stream(seed, RFA_RNG_TEST, 0, 0);
    double *normals = test_doubles(n);
    rfa_rng_normals(normals, &stream, n);
    for (ptrdiff_t i = 0; i < n; i++) {
        out[i] = (rfa_real)(float)(scale * normals[i]);
    }
    rfa_free(normals);
}

rfa_real *test_reals(ptrdiff_t count)
{
    rfa_real *out = NULL;
    if (rfa_alloc(&out, count, sizeof *out, "test") != RFA_OK) {
        fail();
    }
    return out;
}

double *test_doubles(ptrdiff_t count)
{
    double *out = NULL;
    if (rfa_alloc(&out, count, sizeof *out, "test") != RFA_OK) {
        fail();
    }
    return out;
}
