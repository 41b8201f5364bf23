// Ranks: 1 2 3 4
// Precision: f32
#include "support/support.h"

#include "base/log.h"
#include "base/stop.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void test_agree_takes_the_lowest_failing_rank(void **state)
{
    (void)state;
    const int P = test_world.size;
    check_ok(rfa_agree(&test_world, RFA_OK));
    for (int first = 0; first < P; first++) { // ranks first.. fail, each with its own words
        rfa_status local = RFA_OK;
        if (test_world.rank >= first) {
            local = rfa_fail(test_world.rank == first ? RFA_ERR_IO : RFA_ERR_MEMORY,
                             "file%d: two\nlines", test_world.rank);
        }
        check_status(rfa_agree(&test_world, local), RFA_ERR_IO);
        char want[64], rank[32] = "";
        if (P > 1) {
            snprintf(rank, sizeof rank, "rank %d: ", first);
        }
        snprintf(want, sizeof want, "%sfile%d: two lines", rank, first);
        check(strcmp(rfa_error_text(), want) == 0);
        // Agreed once more on the way up, the rank is not named twice.
        check_status(rfa_agree(&test_world, RFA_ERR_IO), RFA_ERR_IO);
        check(strcmp(rfa_error_text(), want) == 0);
    }
    check_status(rfa_agree(&test_world, rfa_fail(RFA_ERR_USAGE, "key")), RFA_ERR_USAGE);
    check(strcmp(rfa_error_text(), "key") == 0);
}

static void test_frames_keep_the_cause(void **state)
{
    (void)state;
    char path[900];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    rfa_status status = rfa_fail(RFA_ERR_IO, "the cause");
    status = rfa_fail_within(status, "%s", path);
    check(status == RFA_ERR_IO);
    check(strstr(rfa_error_text(), "the cause") != NULL);
    check(strncmp(rfa_error_text(), "ppp", 3) == 0);
}

static void test_faults_hit_their_point_and_rank(void **state)
{
    (void)state;
    setenv("RFA_FAULT", "here.there@1", 1);
    const rfa_status mine = rfa_fault("here.there", &test_world, RFA_ERR_MEMORY);
    check(mine == (test_world.rank == 1 ? RFA_ERR_MEMORY : RFA_OK));
    check_ok(rfa_fault("here", &test_world, RFA_ERR_MEMORY));
    check_ok(rfa_fault("here.there.more", &test_world, RFA_ERR_MEMORY));
    unsetenv("RFA_FAULT");
    check_ok(rfa_fault("here.there", &test_world, RFA_ERR_MEMORY));
}

static void test_memory(void **state)
{
    (void)state;
    const int64_t before = rfa_mem_now();
    double *block = NULL;
    check_ok(rfa_alloc(&block, 1000, sizeof *block, "block"));
    check((uintptr_t)block % RFA_ALIGN == 0);
    bool zero = true;
    for (int i = 0; i < 1000; i++) {
        zero = zero && block[i] == 0;
    }
    check(zero);
    check(rfa_mem_now() - before >= 8000 && rfa_mem_now() - before <= 8000 + 2 * RFA_ALIGN);
    check(rfa_mem_peak() >= rfa_mem_now());
    rfa_free(block);
    rfa_free(NULL);
    check(rfa_mem_now() == before);
    check_status(rfa_alloc(&block, PTRDIFF_MAX, 16, "sky"), RFA_ERR_MEMORY);
    check_status(rfa_alloc(&block, -1, 1, "less"), RFA_ERR_MEMORY);
    check_status(rfa_alloc(&block, (ptrdiff_t)1 << 60, 1, "too much"), RFA_ERR_MEMORY);
    check(strstr(rfa_error_text(), "too much") != NULL);

    rfa_arena arena = {0};
    check(rfa_carve(&arena, 3, 4) == NULL && arena.used == RFA_ALIGN);
    (void)rfa_carve(&arena, 100, 8);
    const size_t size = arena.used;
    check_ok(rfa_alloc(&arena.base, (ptrdiff_t)size, 1, "arena"));
    arena.used = 0;
    char *a = rfa_carve(&arena, 3, 4), *b = rfa_carve(&arena, 100, 8);
    check(a == arena.base && b == a + RFA_ALIGN && arena.used == size);
    rfa_free(arena.base);
}

static void test_grid(void **state)
{
    (void)state;
    const int P = test_world.size;
    for (int s = 1; s <= P; s++) {
        if (P % s != 0) {
            continue;
        }
        rfa_grid grid;
        rfa_grid_create(&grid, test_world.comm, s);
        check(grid.sequence.size == s && grid.data.size == P / s && grid.all.size == P);
        check(grid.data.rank * s + grid.sequence.rank == grid.all.rank);
        rfa_grid_destroy(&grid);
        rfa_grid_destroy(&grid);
    }
}

static void test_durations(void **state)
{
    (void)state;
    char text[32];
    check(strcmp(rfa_duration(text, 41.6), "42 s") == 0);
    check(strcmp(rfa_duration(text, 727), "12:07") == 0);
    check(strcmp(rfa_duration(text, 3 * 3600 + 245), "3:04:05") == 0);
    check(strcmp(rfa_duration(text, NAN), "?") == 0);
    check(strcmp(rfa_duration(text, -1), "?") == 0);
}

static void test_stop(void **state)
{
    (void)state;
    check(rfa_stop_signal() == NULL);
    rfa_stop_on_signals();
    raise(SIGUSR1);
    check(rfa_stop_signal() && strcmp(rfa_stop_signal(), "SIGUSR1") == 0);
    unsetenv("RFA_END_TIME");
    unsetenv("SLURM_JOB_END_TIME");
    const double now = rfa_now();
    check(isinf(rfa_stop_time_left(now, 0)));
    check(fabs(rfa_stop_time_left(now, 1) - 60) < 1);
    char at[32];
    snprintf(at, sizeof at, "%lld", (long long)time(NULL) + 20);
    setenv("SLURM_JOB_END_TIME", at, 1);
    check(fabs(rfa_stop_time_left(now, 1) - 20) < 2);
    setenv("RFA_END_TIME", "soon", 1); // no number: not heard
    check(fabs(rfa_stop_time_left(now, 1) - 20) < 2);
    unsetenv("SLURM_JOB_END_TIME");
    unsetenv("RFA_END_TIME");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agree_takes_the_lowest_failing_rank),
        cmocka_unit_test(test_frames_keep_the_cause),
        cmocka_unit_test(test_faults_hit_their_point_and_rank),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_durations),
        cmocka_unit_test(test_stop),
    };
    return test_main(tests);
}
