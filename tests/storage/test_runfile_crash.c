// Precision: f32
#define _GNU_SOURCE // nftw
#include "storage/runfile_support.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

// From any step, whether it lies in RUN.h5, at its end or in the lines, and without RUN.h5.
static void test_resume(void **state)
{
    (void)state;
    const int64_t resume[] = {0, 1, 40, 59, 60, 61, 77, 100};
    const char *path = in_scratch("resume.h5");
    for (int64_t i = 0; i < 16; i++) {
        const int64_t at = resume[i % 8];
        const bool lost = i >= 8;
        rfa_run *run = NULL;
        make_run(path, lost ? 0 : 60, 100, 20);
        if (lost) {
            check(unlink(path) == 0);
        }
        check_ok(rfa_run_create(&run, path, config_text, at, false));
        check_file(path, at, 20, lost || at > 60);
        add(run, at + 1, 130, 20);
        check_file(path, 130, 20, true);
        check_ok(rfa_run_write(run));
        rfa_run_destroy(&run);
        check_file(path, 130, 20, true);
    }
}

// The last line may end anywhere: it is the only one lost, and the next goes on a line of its own.
static void test_torn_line(void **state)
{
    (void)state;
    const char *path = in_scratch("torn.h5"), *lines = in_scratch("torn.jsonl");
    make_run(path, 10, 30, 7);
    long size = 0;
    char *bytes = slurp(lines, &size);
    long last = size - 1;
    while (bytes[last - 1] != '\n') {
        last--;
    }
    for (long cut = last; cut < size; cut += 13) {
        rfa_run *run = NULL;
        spill(lines, bytes, cut);
        check_file(path, 29, 7, true);
        if ((cut - last) % 3 == 0) {
            copy_file(path, in_scratch("torn.kept"));
            check_ok(rfa_run_create(&run, path, config_text, 29, false));
            add(run, 30, 31, 7);
            check_file(path, 31, 7, true);
            rfa_run_destroy(&run);
            copy_file(in_scratch("torn.kept"), path);
        }
    }
    // A damaged line in the middle costs only itself, and a warning.
    spill(lines, bytes, size);
    bytes[2] = '?';
    spill(lines, bytes, size);
    rfa_run_view view;
    check_ok(rfa_run_read(&view, path));
    check(view.steps == 29 && view.step[10].step == 12);
    rfa_run_view_free(&view);
    rfa_free(bytes);
}

// A crash leaves the old file and all lines, perhaps a temporary file, or the new file and all
// lines.
static void test_crash_while_writing(void **state)
{
    (void)state;
    const char *path = in_scratch("crash.h5"), *lines = in_scratch("crash.jsonl");
    rfa_run *run = NULL;
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    add(run, 1, 20, 5);
    check_ok(rfa_run_write(run));
    add(run, 21, 33, 5);
    copy_file(path, in_scratch("old.h5"));
    copy_file(lines, in_scratch("old.jsonl"));
    spill(in_scratch("old.h5.tmp"), "half", 4);
    check_file(in_scratch("old.h5"), 33, 5, true);
    check_ok(rfa_run_write(run));
    rfa_run_destroy(&run);
    copy_file(path, in_scratch("between.h5"));
    copy_file(in_scratch("old.jsonl"), in_scratch("between.jsonl"));
    check_file(in_scratch("between.h5"), 33, 5, true);
    const char *names[] = {"old.h5", "between.h5"};
    for (int i = 0; i < 2; i++) {
        check_ok(rfa_run_create(&run, in_scratch(names[i]), config_text, 33, false));
        add(run, 34, 40, 5);
        check_ok(rfa_run_write(run));
        rfa_run_destroy(&run);
        check_file(in_scratch(names[i]), 40, 5, true);
    }
    check(!is_there(in_scratch("old.h5.tmp")));
}

// What a child that is killed says of itself.
typedef struct {
    int64_t taken_up; // its record exists
    int64_t done;     // steps that rfa_run_add_step returned from
} progress;

static void write_for_ever(const char *path, int64_t resume, volatile progress *at)
{
    rfa_run *run = NULL;
    rfa_status status = rfa_run_create(&run, path, config_text, resume, false);
    if (status == RFA_OK) {
        status = rfa_run_write(run);
    }
    at->taken_up = 1;
    for (int64_t n = (resume < 0 ? 0 : resume) + 1; status == RFA_OK; n++) {
        const rfa_step_record record = step_record(n);
        const rfa_evaluation_record evaluation = evaluation_record(n);
        status = rfa_run_add_step(run, &record);
        at->done = n;
        if (status == RFA_OK && n % 4 == 0) {
            status = rfa_run_add_evaluation(run, &evaluation);
        }
        if (status == RFA_OK && n % 8 == 0) {
            status = rfa_run_write(run);
        }
    }
    fprintf(stderr, "%s\n", rfa_error_text());
    _exit(1);
}

// Killed at any moment, each step that rfa_run_add_step returned from is there, once.
static void test_killed(void **state)
{
    (void)state;
    enum { ROUNDS = 25 };
    volatile progress *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *path = in_scratch("killed.h5");
    check(at != MAP_FAILED);
    int64_t resume = -1, before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        at->taken_up = 0;
        at->done = resume < 0 ? 0 : resume;
        const pid_t child = fork();
        if (child == 0) {
            write_for_ever(path, resume, at);
        }
        check(child > 0);
        // Every fifth is killed as it starts.
        while (round % 5 != 4 && !at->taken_up) {
            usleep(1000);
        }
        usleep(1000 + 2777u * (unsigned)round);
        kill(child, SIGKILL);
        int code = 0;
        check(waitpid(child, &code, 0) == child && WIFSIGNALED(code));
        rfa_run_view view;
        check_ok(rfa_run_read(&view, path));
        const int64_t n = view.steps;
        check(n == at->done || n == at->done + 1 || (!at->taken_up && n == before));
        // The evaluation of the very last step may not have come to be.
        check(view.evaluations == n / 4 || (n % 4 == 0 && view.evaluations == n / 4 - 1));
        for (int64_t i = 0; i < n; i++) {
            const rfa_step_record want = step_record(i + 1);
            if (!same_step(&view.step[i], &want, true)) {
                check(false);
            }
        }
        before = n;
        resume = n - n % 8;
        rfa_run_view_free(&view);
    }
    print_message("%d kills, %lld steps\n", ROUNDS, (long long)resume);
    check(resume > 0);
    munmap((void *)at, sizeof *at);
}

static void test_failed_write(void **state)
{
    (void)state;
    const char *path = in_scratch("fault.h5");
    rfa_run *run = NULL;
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    add(run, 1, 10, 5);
    check_ok(rfa_run_write(run));
    copy_file(path, in_scratch("fault.copy"));
    add(run, 11, 17, 5);
    check(setenv("RFA_FAULT", "run.write@0", 1) == 0);
    check_status(rfa_run_write(run), RFA_ERR_IO);
    check(unsetenv("RFA_FAULT") == 0);
    check(strstr(rfa_error_text(), "fault.h5 is not written: injected fault at run.write"));
    check(same_file(path, in_scratch("fault.copy")) && !is_there(in_scratch("fault.h5.tmp")));
    check_file(path, 17, 5, true);
    check_ok(rfa_run_write(run));
    rfa_run_destroy(&run);
    check_file(path, 17, 5, false);
}

static void test_full_disk(void **state)
{
    (void)state;
    char disk[512], path[600], copy[600], lines[600], ballast[600];
    snprintf(disk, sizeof disk, "%s", in_scratch("disk"));
    mount_small(disk, "size=1m");
    snprintf(path, sizeof path, "%s/run.h5", disk);
    snprintf(lines, sizeof lines, "%s/run.jsonl", disk);
    snprintf(ballast, sizeof ballast, "%s/ballast", disk);
    snprintf(copy, sizeof copy, "%s", in_scratch("disk.copy"));
    rfa_run *run = NULL;
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    add(run, 1, 100, 20);
    check_ok(rfa_run_write(run));
    copy_file(path, copy);
    // Lines until the disk is full; they end with a whole one.
    int64_t n = 100;
    rfa_status status = RFA_OK;
    while (status == RFA_OK && n < 100000) {
        const rfa_step_record record = step_record(++n);
        status = rfa_run_add_step(run, &record);
    }
    check(status == RFA_ERR_IO && strstr(rfa_error_text(), "run.jsonl") != NULL);
    check(strstr(rfa_error_text(), "No space left on device") != NULL);
    long size = 0;
    char *bytes = slurp(lines, &size);
    check(size > 0 && bytes[size - 1] == '\n');
    rfa_free(bytes);
    rfa_run_view view;
    check_ok(rfa_run_read(&view, path));
    check(view.steps == n - 1);
    rfa_run_view_free(&view);
    // The whole file doesn't fit either: however much of it does, the former one stands.
    int failures = 0;
    for (long room = 0; room < 600; room += 4) { // KiB that are free: pages of a tmpfs
        check(truncate(lines, 0) == 0);
        spill(ballast, "", 0);
        FILE *file = fopen(ballast, "wb");
        check(file != NULL);
        setvbuf(file, NULL, _IONBF, 0);
        static const char block[4096];
        while (fwrite(block, 1, sizeof block, file) == sizeof block) {
        }
        (void)fclose(file);
        check(truncate(ballast, size_of(ballast) - room * 1024) == 0 || room == 0);
        status = rfa_run_write(run);
        if (status == RFA_OK) {
            break;
        }
        failures++;
        check(status == RFA_ERR_IO && strstr(rfa_error_text(), "run.h5") != NULL);
        check(strstr(rfa_error_text(), "No space left on device") != NULL);
        check(same_file(path, copy) && size_of(lines) == 0);
        check(!is_there(in_scratch("disk/run.h5.tmp")));
    }
    print_message("%d writes on a full disk failed\n", failures);
    check(failures >= 20 && status == RFA_OK);
    check(unlink(ballast) == 0);
    rfa_run_destroy(&run);
    check_ok(rfa_run_read(&view, path));
    check(view.steps == n);
    rfa_run_view_free(&view);
    check(umount(disk) == 0);
}

// A file that was damaged is refused before HDF5 sees it; a change by another program is not
// damage.
static void test_damaged_file(void **state)
{
    (void)state;
    const char *path = in_scratch("damaged.h5");
    make_run(path, 20, 20, 5);
    long size = 0;
    char *bytes = slurp(path, &size);
    rfa_run_view view;
    for (long at = 5; at < size; at += 397) {
        bytes[at] ^= 16;
        spill(path, bytes, size);
        bytes[at] ^= 16;
        check_status(rfa_run_read(&view, path), RFA_ERR_IO);
        check(strstr(rfa_error_text(), "damaged.h5: damaged") != NULL);
    }
    spill(path, bytes, size);
    rfa_free(bytes);
    check_file(path, 20, 5, false);
    check(truncate(path, size_of(path) - 24) == 0); // as h5py leaves it
    check_file(path, 20, 5, false);
    check(truncate(path, size_of(path) / 2) == 0);
    check_status(rfa_run_read(&view, path), RFA_ERR_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_torn_line),
        cmocka_unit_test(test_crash_while_writing),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_failed_write),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_damaged_file),
    };
    scratch_begin("runfile_crash");
    const int failed = test_main(tests);
    scratch_end();
    return failed;
}
