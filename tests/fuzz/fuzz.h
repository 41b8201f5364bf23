// What the fuzz targets share. Each target reads bytes from outside by one of our readers, and
// holds what comes back against what the reader's header promises; the sanitizers watch the rest.
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include "base/status.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A promise that does not hold ends the process, and libFuzzer keeps the input.
#define PROMISE(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
static inline void fuzz_broken(const char *text, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s does not hold; last error: %s\n", file, line, text,
            rfa_error_text());
    abort();
}

// name in the folder of temporary files, which the caller of the target removes; never freed.
static inline char *fuzz_path(const char *name)
{
    const char *folder = getenv("TMPDIR");
    char path[1024];
    PROMISE(snprintf(path, sizeof path, "%s/%s", folder ? folder : "/tmp", name) <
            (int)sizeof path);
    return strdup(path);
}

static inline bool fuzz_same(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size) == 0;
}

static inline void fuzz_write(const char *path, const void *data, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    PROMISE(file >= 0 && write(file, data, size) == (ssize_t)size);
    close(file);
}

// A terminated copy (free); bytes after a zero are cut off, as in any C text.
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    PROMISE(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
