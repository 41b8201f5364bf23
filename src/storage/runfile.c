#define _GNU_SOURCE // memrchr
#include "storage/h5.h"
#include "storage/runfile_parts.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Every folder that path needs.
static rfa_status make_folders(const char *path)
{
    char *folder = NULL;
    RFA_TRY(rfa_text_copy(&folder, path));
    rfa_status status = RFA_OK;
    for (char *slash = strchr(folder + 1, '/'); folder[0] && slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            status = rfa_fail(RFA_ERR_IO, "%s: folder %s can't be made: %s", path, folder,
                              strerror(errno));
            break;
        }
        *slash = '/';
    }
    rfa_free(folder);
    return status;
}

// Refuses to write over the record, the lines or the checkpoints of a former run.
// --overwrite replaces runs, not whatever else has that name: an HDF5 file of another kind is left
// alone.
static rfa_status check_is_run(const char *path)
{
    hid_t file = H5I_INVALID_HID;
    if (rfa_h5_open(&file, path) != RFA_OK) {
        return RFA_OK; // a damaged run, perhaps
    }
    const bool is_run = rfa_h5_has_attribute(file, "schema");
    rfa_h5_close(&file);
    return is_run ? RFA_OK
                  : rfa_fail(RFA_ERR_USAGE,
                             "%s is not a run, which is all that --overwrite replaces: choose "
                             "another --out",
                             path);
}

static rfa_status check_free(rfa_run *run, bool overwrite)
{
    static const char *const suffix[] = {".h5", ".jsonl", ".ckpt", ".ckpt.prev"};
    for (size_t i = 0; i < sizeof suffix / sizeof *suffix; i++) {
        char *path = NULL;
        struct stat info;
        RFA_TRY(rfa_run_beside(&path, run->path, suffix[i]));
        const bool there = stat(path, &info) == 0 && (i != 1 || info.st_size > 0);
        rfa_status status = RFA_OK;
        if (there && !overwrite) {
            status = rfa_fail(RFA_ERR_USAGE,
                              "%s exists: continue it with --resume or write over it with "
                              "--overwrite",
                              path);
        }
        if (status == RFA_OK && there && i == 0) {
            status = check_is_run(path);
        }
        run->stale = run->stale || (there && i >= 2);
        rfa_free(path);
        RFA_TRY(status);
    }
    return RFA_OK;
}

// The end of the last whole line before end.
static rfa_status whole_lines(off_t *length, const rfa_run *run, off_t end)
{
    char block[4096];
    while (end > 0) {
        const off_t begin = end > (off_t)sizeof block ? end - (off_t)sizeof block : 0;
        const ssize_t got = pread(run->lines, block, (size_t)(end - begin), begin);
        if (got != end - begin) {
            return rfa_fail(RFA_ERR_IO, "%s: can't be read: %s", run->lines_path,
                            got < 0 ? strerror(errno) : "it shrank");
        }
        const char *newline = memrchr(block, '\n', (size_t)got);
        if (newline) {
            *length = begin + (newline - block) + 1;
            return RFA_OK;
        }
        end = begin;
    }
    *length = 0;
    return RFA_OK;
}

// Opens and locks RUN.jsonl, and cuts off a torn last line.
static rfa_status open_lines(rfa_run *run)
{
    run->lines = open(run->lines_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (run->lines < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be created: %s", run->lines_path, strerror(errno));
    }
    // File systems without locks are taken as they are.
    if (flock(run->lines, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(run->lines);
        run->lines = -1;
        return rfa_fail(RFA_ERR_USAGE, "%s is being written by another run", run->path);
    }
    struct stat info;
    if (fstat(run->lines, &info) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: %s", run->lines_path, strerror(errno));
    }
    RFA_TRY(whole_lines(&run->length, run, info.st_size));
    if (run->length < info.st_size && ftruncate(run->lines, run->length) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be cut: %s", run->lines_path, strerror(errno));
    }
    return RFA_OK;
}

// A fresh record: nothing is written yet.
static rfa_status begin(rfa_run *run)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(run->id, sizeof run->id, "%016" PRIx64,
             (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    rfa_run_set_text(run, "run", run->id);
    return RFA_OK;
}

// Takes up the record of the steps that the checkpoint covers, and makes the files say the same.
static rfa_status take_up(rfa_run *run, int64_t step)
{
    RFA_TRY(rfa_run_load(&run->view, run->id, run->path));
    rfa_view_trim(&run->view, step);
    rfa_free(run->view.config_text);
    rfa_free(run->view.state);
    run->view.config_text = run->view.state = NULL;
    const rfa_run_view *view = &run->view;
    if (view->steps != step || (step > 0 && view->step[step - 1].step != step)) {
        rfa_warn("%s holds %" PRId64 " of the %" PRId64 " steps before the checkpoint", run->path,
                 view->steps, step);
    }
    return RFA_OK;
}

static rfa_status
create(rfa_run *run, const char *path, const char *config_text, int64_t resume_step, bool overwrite)
{
    const size_t length = strlen(path);
    if (length < 4 || strcmp(path + length - 3, ".h5") != 0 || path[length - 4] == '/') {
        return rfa_fail(RFA_ERR_USAGE, "%s: the name of a run's record must end in .h5", path);
    }
    rfa_attributes keys;
    RFA_TRY(rfa_attributes_parse(&keys, config_text));
    rfa_attributes_free(&keys);
    RFA_TRY(rfa_text_copy(&run->path, path));
    RFA_TRY(rfa_run_beside(&run->lines_path, path, ".jsonl"));
    if (resume_step < 0) {
        RFA_TRY(check_free(run, overwrite));
    }
    RFA_TRY(make_folders(path));
    RFA_TRY(open_lines(run));
    RFA_TRY(resume_step < 0 ? begin(run) : take_up(run, resume_step));
    RFA_TRY(rfa_text_copy(&run->view.config_text, config_text));
    RFA_TRY(rfa_text_copy(&run->view.state, "running"));
    return resume_step < 0 ? RFA_OK : rfa_run_write(run);
}

rfa_status rfa_run_create(
    rfa_run **out, const char *path, const char *config_text, int64_t resume_step, bool overwrite)
{
    rfa_run *run = NULL;
    *out = NULL;
    RFA_TRY(rfa_alloc(&run, 1, sizeof *run, "record of the run"));
    run->lines = -1;
    const rfa_status status = create(run, path, config_text, resume_step, overwrite);
    if (status != RFA_OK) {
        rfa_run_destroy(&run);
        return status;
    }
    *out = run;
    return RFA_OK;
}

void rfa_run_destroy(rfa_run **run)
{
    rfa_run *old = *run;
    if (!old) {
        return;
    }
    if (old->lines >= 0) {
        if (old->length == 0) {
            unlink(old->lines_path);
        }
        close(old->lines);
    }
    rfa_run_view_free(&old->view);
    rfa_free(old->path);
    rfa_free(old->lines_path);
    rfa_free(old);
    *run = NULL;
}

static void set(rfa_run *run, const rfa_run_attribute *attribute)
{
    const rfa_status status = rfa_attributes_set(&run->view.attributes, attribute);
    if (status != RFA_OK) {
        run->broken = status;
    }
}

void rfa_run_set_text(rfa_run *run, const char *name, const char *text)
{
    if (text) {
        set(run, &(rfa_run_attribute){.name = name, .text = text});
    }
}

void rfa_run_set_number(rfa_run *run, const char *name, double number)
{
    rfa_run_attribute attribute = {.name = name, .number = number};
    if (fabs(number) < 0x1p53 && number == floor(number)) {
        attribute.whole = true;
        attribute.integer = (int64_t)number;
    }
    set(run, &attribute);
}

void rfa_run_set_flag(rfa_run *run, const char *name, bool flag)
{
    set(run, &(rfa_run_attribute){.name = name, .number = flag, .integer = flag, .flag = true});
}

void rfa_run_set_state(rfa_run *run, const char *state)
{
    char *copy = NULL;
    const rfa_status status = rfa_text_copy(&copy, state);
    if (status != RFA_OK) {
        run->broken = status;
        return;
    }
    rfa_free(run->view.state);
    run->view.state = copy;
}

rfa_status rfa_run_add_start(rfa_run *run, const rfa_start_record *record)
{
    const rfa_run_view *view = &run->view;
    RFA_ASSERT(view->starts == 0 || record->step >= view->start[view->starts - 1].step);
    return rfa_view_add_start(&run->view, record);
}

int64_t rfa_run_work(const rfa_run *run, double *seconds, double *sgemm_flops)
{
    const rfa_run_view *view = &run->view;
    *seconds = *sgemm_flops = 0;
    for (int64_t i = 0, s = 0; i < view->steps; i++) {
        const rfa_step_record *step = &view->step[i];
        while (s + 1 < view->starts && view->start[s + 1].step < step->step) {
            s++;
        }
        *seconds += step->seconds;
        *sgemm_flops +=
            step->seconds * (view->starts > 0 ? view->start[s].sgemm_flops_per_second : 0);
    }
    return view->steps;
}

// Appends one line by one write. A part of it, on a full disk, is taken back.
static rfa_status append(rfa_run *run, const char *line, size_t size)
{
    ssize_t put = 0;
    int error = 0;
    do {
        put = write(run->lines, line, size);
    } while (put < 0 && errno == EINTR);
    if (put == (ssize_t)size) {
        run->length += put;
        return RFA_OK;
    }
    error = put < 0 ? errno : ENOSPC;
    if (put > 0 && ftruncate(run->lines, run->length) != 0) {
        error = errno;
    }
    return rfa_fail(RFA_ERR_IO, "%s: a line can't be written: %s", run->lines_path,
                    strerror(error));
}

rfa_status rfa_run_add_step(rfa_run *run, const rfa_step_record *record)
{
    const rfa_run_view *view = &run->view;
    RFA_ASSERT(view->steps == 0 || record->step > view->step[view->steps - 1].step);
    char line[RFA_LINE_STEP_SIZE];
    RFA_TRY(rfa_view_add_step(&run->view, record));
    const int size = rfa_line_step(line, record, run->id);
    return append(run, line, (size_t)size);
}

static rfa_status
append_evaluation(rfa_run *run, const rfa_evaluation_record *record, rfa_line_kind kind)
{
    char *line = NULL;
    rfa_evaluation_record copy = *record;
    copy.split[sizeof copy.split - 1] = '\0';
    RFA_TRY(rfa_line_evaluation(&line, &copy, kind, run->id));
    const rfa_status status = append(run, line, strlen(line));
    rfa_free(line);
    return status;
}

rfa_status rfa_run_add_evaluation(rfa_run *run, const rfa_evaluation_record *record)
{
    RFA_TRY(rfa_view_add_evaluation(&run->view, record));
    return append_evaluation(run, record, RFA_LINE_EVALUATION);
}

rfa_status rfa_run_set_test(rfa_run *run, const rfa_evaluation_record *record)
{
    RFA_TRY(rfa_view_set_test(&run->view, record));
    return append_evaluation(run, record, RFA_LINE_TEST);
}
