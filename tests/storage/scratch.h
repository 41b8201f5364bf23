// A folder of one's own for tests of files, and what they do to files.
#ifndef TESTS_STORAGE_SCRATCH_H
#define TESTS_STORAGE_SCRATCH_H

#include "support/support.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[256];

static inline int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

// Makes $SCRATCH/name or /tmp/rfa-test-name, empty.
static inline void scratch_begin(const char *name)
{
    const char *base = getenv("SCRATCH");
    snprintf(scratch, sizeof scratch, "%s%s", base ? base : "/tmp/rfa-test-", base ? "/" : "");
    snprintf(scratch + strlen(scratch), sizeof scratch - strlen(scratch), "%s.%d", name,
             (int)getpid());
    remove_tree(scratch);
    if (mkdir(scratch, 0777) != 0) {
        print_error("%s: %s\n", scratch, strerror(errno));
        fail();
    }
}

static inline void scratch_end(void)
{
    char disk[300];
    snprintf(disk, sizeof disk, "%s/disk", scratch);
    (void)umount2(disk, MNT_DETACH); // of a test that failed before it did so
    remove_tree(scratch);
}

// The path of a file in the folder; the last 64 stay valid.
static inline const char *in_scratch(const char *name)
{
    static char paths[64][512];
    static int next;
    next = (next + 1) % 64;
    snprintf(paths[next], sizeof paths[next], "%s/%s", scratch, name);
    return paths[next];
}

static inline bool is_there(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static inline long size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

// The representation, where NaN equals itself.
static inline bool same_bytes(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

// The bytes of a file (rfa_free), and how many.
static inline char *slurp(const char *path, long *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = NULL;
    *size = size_of(path);
    if (!file || *size < 0 || rfa_alloc(&bytes, *size + 1, 1, path) != RFA_OK ||
        fread(bytes, 1, (size_t)*size, file) != (size_t)*size) {
        print_error("%s can't be read\n", path);
        fail();
    }
    (void)fclose(file);
    return bytes;
}

static inline void spill(const char *path, const char *bytes, long size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, (size_t)size, file) != (size_t)size || fclose(file) != 0) {
        print_error("%s can't be written\n", path);
        fail();
    }
}

static inline void copy_file(const char *from, const char *to)
{
    long size = 0;
    char *bytes = slurp(from, &size);
    spill(to, bytes, size);
    rfa_free(bytes);
}

static inline bool same_file(const char *a, const char *b)
{
    long n = 0, m = 0;
    char *x = slurp(a, &n), *y = slurp(b, &m);
    const bool same = n == m && memcmp(x, y, (size_t)n) == 0;
    rfa_free(x);
    rfa_free(y);
    return same;
}

// A small file system at folder, called disk; without the right to mount, the test is skipped, and
// fails under CI.
static inline void mount_small(const char *folder, const char *options)
{
    if (mkdir(folder, 0777) == 0 && mount("tmpfs", folder, "tmpfs", 0, options) == 0) {
        return;
    }
    print_message("not run: a small file system can't be mounted: %s\n", strerror(errno));
    if (getenv("CI")) {
        fail();
    }
    skip();
}

#endif
