// Bytes of files that may be compressed by gzip, at any place.
#ifndef RFA_TASKS_BYTES_H
#define RFA_TASKS_BYTES_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

// Keeps the file of the last call open. Start with all zero.
typedef struct {
    void *file;     // of gzip
    int descriptor; // of a plain file
    bool open;
    char path[4096];
    int64_t at; // in the unpacked file
} rfa_bytes;

// out = size bytes of path from place on. A compressed file is read through up to there, so ask in
// ascending order there. RFA_ERR_IO with file and byte when it can't be read or ends before. Local.
RFA_NODISCARD rfa_status
rfa_bytes_read(rfa_bytes *bytes, const char *path, int64_t place, void *out, int64_t size);
// Reads until the end of the file: how many of at most `most` bytes there are from place on.
RFA_NODISCARD rfa_status rfa_bytes_read_some(
    rfa_bytes *bytes, const char *path, int64_t place, void *out, int64_t most, int64_t *size);
void rfa_bytes_close(rfa_bytes *bytes); // idempotent

#endif
