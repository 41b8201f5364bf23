// Ranks: 1 2 3
// Precision: f32
#define _GNU_SOURCE // nftw
#include "storage/scratch.h"

#include "storage/probe.h"

enum { PART_BYTES = 65536 };

// One folder for all ranks: that of rank 0.
static void share_scratch(void **state)
{
    (void)state;
    if (test_world.rank == 0) {
        scratch_begin("probe");
    }
    MPI_Bcast(scratch, (int)sizeof scratch, MPI_CHAR, 0, test_world.comm);
}

static int begin(void **state)
{
    share_scratch(state);
    return 0;
}

static int end(void **state)
{
    (void)state;
    MPI_Barrier(test_world.comm);
    if (test_world.rank == 0) {
        scratch_end();
    }
    return 0;
}

// Adds one to the last byte of a rank's part. The numbers are the last thing in the file.
static void damage(const char *path, int part)
{
    FILE *file = fopen(path, "r+b");
    const long at = size_of(path) - (long)(test_world.size - part) * PART_BYTES + PART_BYTES - 1;
    int byte = 0;
    if (!file || fseek(file, at, SEEK_SET) != 0 || (byte = getc(file)) == EOF ||
        fseek(file, at, SEEK_SET) != 0 || putc((byte + 1) & 255, file) == EOF ||
        fclose(file) != 0) {
        print_error("%s can't be changed\n", path);
        fail();
    }
}

static void test_round_trip(void **state)
{
    (void)state;
    const char *path = in_scratch("a.h5");
    rfa_probe probe;
    check_ok(rfa_probe_together(&probe, &test_world, path));
    check(probe.bytes == (int64_t)test_world.size * PART_BYTES && !probe.stuck);
    check(probe.write_together && probe.read_together);
    check(probe.write_seconds > 0 && probe.read_seconds > 0);
    check(size_of(path) >= probe.bytes);
    check_ok(rfa_probe_alone(&probe, &test_world, path));
    check(!probe.stuck);
    // One wrong byte in the last part: the rank that reads it says so, and all agree.
    MPI_Barrier(test_world.comm);
    if (test_world.rank == 0) {
        damage(path, test_world.size - 1);
    }
    MPI_Barrier(test_world.comm);
    check_status(rfa_probe_alone(&probe, &test_world, path), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "is read back as") != NULL && !probe.stuck);
}

// Neither hangs, nor is a file left open.
static void test_no_folder(void **state)
{
    (void)state;
    rfa_probe probe;
    check_status(rfa_probe_together(&probe, &test_world, in_scratch("none/a.h5")), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "can't be created by MPI-IO") != NULL && !probe.stuck);
    check_status(rfa_probe_alone(&probe, &test_world, in_scratch("b.h5")), RFA_ERR_IO);
    check(!probe.stuck);
}

// Rank 0 alone.
static void test_lock_and_rename(void **state)
{
    (void)state;
    if (test_world.rank == 0) {
        double seconds = -1;
        long size = 0;
        assert_int_equal(rfa_probe_lock(in_scratch("lock.h5")), RFA_OK);
        assert_false(is_there(in_scratch("lock.h5")));
        assert_int_equal(rfa_probe_lock(in_scratch("none/lock.h5")), RFA_ERR_IO);
        assert_int_equal(rfa_probe_rename(&seconds, in_scratch("tmp"), in_scratch("final")),
                         RFA_OK);
        assert_true(seconds >= 0 && !is_there(in_scratch("tmp")));
        char *text = slurp(in_scratch("final"), &size);
        assert_string_equal(text, "new");
        rfa_free(text);
        assert_int_equal(rfa_probe_rename(&seconds, in_scratch("none/tmp"), in_scratch("final")),
                         RFA_ERR_IO);
        // What stands at the final name can't be replaced: a folder.
        assert_int_equal(mkdir(in_scratch("folder"), 0777), 0);
        assert_int_equal(rfa_probe_rename(&seconds, in_scratch("tmp"), in_scratch("folder")),
                         RFA_ERR_IO);
    }
    MPI_Barrier(test_world.comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, begin, end),
        cmocka_unit_test_setup_teardown(test_no_folder, begin, end),
        cmocka_unit_test_setup_teardown(test_lock_and_rename, begin, end),
    };
    return test_main(tests);
}
