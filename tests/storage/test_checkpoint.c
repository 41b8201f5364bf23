// Precision: f32
#define _GNU_SOURCE // nftw
#include "storage/checkpoint_support.h"

#include <signal.h>
#include <sys/wait.h>

static void test_round_trip(void **state)
{
    (void)state;
    const char *run = in_scratch("a.h5");
    check_unusable(run, "a.ckpt: No such file");
    check_ok(save(run, 10));
    check_step(run, 10);
    check(!is_there(in_scratch("a.ckpt.prev")) && !is_there(in_scratch("a.ckpt.tmp")));
    check_ok(save(run, 20));
    check_step(run, 20);
    check(!is_there(in_scratch("a.ckpt.tmp")));
    check(size_of(in_scratch("a.ckpt")) < (long)(1.2 * sizeof written));
    rfa_checkpoint_header header;
    int64_t arrays = 0, values = 0;
    check_ok(rfa_checkpoint_check(in_scratch("a.ckpt.prev"), &header, &arrays, &values));
    check(header.step == 10 && arrays == ARRAYS && values == ALL);
    rfa_checkpoint_header_free(&header);
    // A part of the arrays may be read, as rfa eval does.
    rfa_checkpoint_array one[ARRAYS];
    arrays_of(one, got);
    memset(got, 0, sizeof got);
    check_ok(rfa_checkpoint_read(run, &header, one + 1, 1));
    check(same_bytes(got + A, written + A, B * sizeof *got) && got[0] == 0);
    rfa_checkpoint_header_free(&header);
}

// The good one before is kept when the newest, which it replaced for us, is thrown away.
static void test_damage_is_not_kept(void **state)
{
    (void)state;
    const char *run = in_scratch("c.h5"), *now = in_scratch("c.ckpt");
    check_ok(save(run, 10));
    check_ok(save(run, 20));
    check(truncate(now, size_of(now) / 2) == 0);
    check_step(run, 10);
    check_ok(save(run, 30));
    check_step(run, 30);
    check(truncate(now, size_of(now) / 2) == 0);
    check_step(run, 10);
    check(truncate(in_scratch("c.ckpt.prev"), 1000) == 0);
    check_unusable(run, "no usable checkpoint");
    check(strstr(rfa_error_text(), "c.ckpt.prev") != NULL);
}

static void test_leftovers_and_faults(void **state)
{
    (void)state;
    const char *run = in_scratch("d.h5"), *now = in_scratch("d.ckpt");
    const char *tmp = in_scratch("d.ckpt.tmp");
    spill(tmp, "half", 4);
    check_unusable(run, "d.ckpt: No such file"); // a temporary file is no checkpoint
    check_ok(save(run, 10));
    check(!is_there(tmp));
    copy_file(now, tmp);
    check_ok(save(run, 20));
    copy_file(now, in_scratch("d.copy"));
    check(setenv("RFA_FAULT", "checkpoint.write@0", 1) == 0);
    check_status(save(run, 30), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "d.ckpt is not written: injected fault") && !is_there(tmp));
    check(same_file(now, in_scratch("d.copy")));
    check(setenv("RFA_FAULT", "checkpoint.read@0", 1) == 0);
    check_step(run, 10);
    check(unsetenv("RFA_FAULT") == 0);
    check_step(run, 20);
    // Between the two renames.
    check(rename(now, in_scratch("d.ckpt.prev")) == 0);
    check_step(run, 20);
    check_ok(save(run, 30));
    check_step(run, 30);
}

static ino_t inode_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_ino : 0;
}

// Killed at any moment, the newest complete checkpoint loads.
static void test_killed(void **state)
{
    (void)state;
    const char *run = in_scratch("e.h5"), *now = in_scratch("e.ckpt");
    int64_t last = 1;
    check_ok(save(run, last));
    for (int round = 0; round < 20; round++) {
        const pid_t child = fork();
        if (child == 0) {
            for (int64_t step = last + 1; save(run, step) == RFA_OK; step++) {
            }
            _exit(1);
        }
        check(child > 0);
        // Every other one is killed soon after it has published a checkpoint.
        const ino_t former = inode_of(now);
        for (int wait = 0; round % 2 && inode_of(now) == former; wait++) {
            check(wait < 30000);
            usleep(1000);
        }
        usleep(1000 + 977u * (unsigned)round);
        kill(child, SIGKILL);
        int code = 0;
        check(waitpid(child, &code, 0) == child && WIFSIGNALED(code));
        int64_t step = 0;
        check_ok(load(run, &step));
        check(step >= last);
        last = step;
    }
    print_message("20 kills, %lld checkpoints\n", (long long)last);
    check(last > 5);
}

static void test_full_disk(void **state)
{
    (void)state;
    char disk[512], run[600], now[600];
    snprintf(disk, sizeof disk, "%s", in_scratch("disk"));
    snprintf(run, sizeof run, "%s/run.h5", disk);
    snprintf(now, sizeof now, "%s/run.ckpt", disk);
    mount_small(disk, "size=220k"); // two of 84 KB, not three
    check_ok(save(run, 10));
    check_ok(save(run, 20));
    check_status(save(run, 30), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "run.ckpt is not written") != NULL);
    check(strstr(rfa_error_text(), "No space left on device") != NULL);
    check(!is_there(in_scratch("disk/run.ckpt.tmp")));
    check_step(run, 20);
    check(unlink(now) == 0);
    check_step(run, 10);
    check_ok(save(run, 40));
    check_step(run, 40);
    check(umount(disk) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage_is_not_kept),
        cmocka_unit_test(test_leftovers_and_faults),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_full_disk),
    };
    scratch_begin("checkpoint");
    const int failed = test_main(tests);
    scratch_end();
    return failed;
}
