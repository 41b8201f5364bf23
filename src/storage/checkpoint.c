#include "storage/checkpoint.h"

#include "base/log.h"
#include "base/mem.h"
#include "storage/checkpoint_parts.h"
#include "storage/h5.h"
#include "storage/runfile_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Checkpoints are rank 0's; injected faults want a communicator.
static const rfa_comm alone = {.rank = 0, .size = 1};

typedef struct {
    char *current, *previous, *tmp;
} names;

static void free_names(names *paths)
{
    rfa_free(paths->current);
    rfa_free(paths->previous);
    rfa_free(paths->tmp);
    *paths = (names){0};
}

static rfa_status make_names(names *paths, const char *run_path)
{
    *paths = (names){0};
    rfa_status status = rfa_run_beside(&paths->current, run_path, ".ckpt");
    if (status == RFA_OK) {
        status = rfa_run_beside(&paths->previous, run_path, ".ckpt.prev");
    }
    if (status == RFA_OK) {
        status = rfa_run_beside(&paths->tmp, run_path, ".ckpt.tmp");
    }
    if (status != RFA_OK) {
        free_names(paths);
    }
    return status;
}

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 || errno != ENOENT;
}

// What the disk has, not what the page cache remembers.
static void drop_cache(const char *path)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (fsync(file) == 0) {
            (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        }
        close(file);
    }
}

static rfa_status read_back(const char *path, const rfa_checkpoint_header *header, int count)
{
    rfa_checkpoint_header found = {0};
    int64_t arrays = 0, values = 0;
    drop_cache(path);
    RFA_TRY(rfa_checkpoint_check(path, &found, &arrays, &values));
    const bool same = found.step == header->step && found.digest == header->digest;
    rfa_checkpoint_header_free(&found);
    if (!same || arrays != count) {
        return rfa_fail(RFA_ERR_IO, "%s: read back, it is not what was written", path);
    }
    return RFA_OK;
}

// A damaged RUN.ckpt does not replace a good RUN.ckpt.prev. On failure RUN.ckpt is as before.
static rfa_status rotate(const names *paths)
{
    rfa_checkpoint_header header = {0};
    int64_t arrays = 0, values = 0;
    const bool keep = exists(paths->current) &&
                      rfa_checkpoint_check(paths->current, &header, &arrays, &values) == RFA_OK;
    rfa_checkpoint_header_free(&header);
    if (keep && rename(paths->current, paths->previous) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be renamed to %s: %s", paths->current,
                        paths->previous, strerror(errno));
    }
    const rfa_status status = rfa_publish(paths->tmp, paths->current);
    if (status != RFA_OK && keep && !exists(paths->current)) {
        (void)rename(paths->previous, paths->current);
    }
    return status;
}

rfa_status rfa_checkpoint_write(const char *run_path,
                                const rfa_checkpoint_header *header,
                                const rfa_checkpoint_array *arrays,
                                int count)
{
    names paths;
    RFA_TRY(make_names(&paths, run_path));
    rfa_status status = rfa_checkpoint_write_file(paths.tmp, header, arrays, count);
    if (status == RFA_OK) {
        status = read_back(paths.tmp, header, count);
    }
    if (status == RFA_OK) {
        status = rfa_fault("checkpoint.write", &alone, RFA_ERR_IO);
    }
    if (status == RFA_OK) {
        status = rotate(&paths);
    }
    if (status != RFA_OK) {
        unlink(paths.tmp);
        status = rfa_fail_within(status, "checkpoint %s is not written", paths.current);
    }
    free_names(&paths);
    return status;
}

// One attempt: header and arrays of one file.
static rfa_status read_one(const char *path,
                           rfa_checkpoint_header *header,
                           rfa_checkpoint_array *arrays,
                           int count,
                           bool current)
{
    int64_t held = 0, values = 0;
    if (current) { // the fault strikes the newest only: what then happens is what is tested
        RFA_TRY(rfa_fault("checkpoint.read", &alone, RFA_ERR_IO));
    }
    RFA_TRY(rfa_checkpoint_check(path, header, &held, &values));
    const rfa_status status = rfa_checkpoint_read_arrays(path, arrays, count);
    if (status != RFA_OK) {
        rfa_checkpoint_header_free(header);
    }
    return status;
}

// A checkpoint is read twice, for its header and for its arrays: the same damage is told once.
static void warn_once(const char *damage, int64_t step)
{
    static char told[512];
    if (strcmp(told, damage) != 0) {
        snprintf(told, sizeof told, "%s", damage);
        rfa_warn("%s; the one before, of step %" PRId64 ", is used", damage, step);
    }
}

rfa_status rfa_checkpoint_read(const char *run_path,
                               rfa_checkpoint_header *header,
                               rfa_checkpoint_array *arrays,
                               int count)
{
    names paths;
    char damage[512] = "";
    *header = (rfa_checkpoint_header){0};
    RFA_TRY(make_names(&paths, run_path));
    const bool current = exists(paths.current), previous = exists(paths.previous);
    rfa_status status = RFA_OK;
    if (current) {
        status = read_one(paths.current, header, arrays, count, true);
        if (status == RFA_OK) {
            goto out;
        }
        snprintf(damage, sizeof damage, "%s", rfa_error_text());
    } else {
        snprintf(damage, sizeof damage, "%s: %s", paths.current, strerror(ENOENT));
    }
    if (!previous) {
        status = rfa_fail(RFA_ERR_IO, "no usable checkpoint: %s", damage);
        goto out;
    }
    status = read_one(paths.previous, header, arrays, count, false);
    if (status == RFA_OK) {
        warn_once(damage, header->step);
    } else {
        status = rfa_fail_within(RFA_ERR_IO, "no usable checkpoint: %s", damage);
    }
out:
    free_names(&paths);
    return status;
}

rfa_status rfa_checkpoint_read_header(const char *run_path, rfa_checkpoint_header *header)
{
    return rfa_checkpoint_read(run_path, header, NULL, 0);
}

void rfa_checkpoint_header_free(rfa_checkpoint_header *header)
{
    rfa_free(header->config_text);
    rfa_free(header->data_digest);
    header->config_text = header->data_digest = NULL;
}
