#include "tasks/bytes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { BUFFER = 1 << 17, PIECE = 1 << 30 };

void rfa_bytes_close(rfa_bytes *bytes)
{
    if (bytes->file) {
        gzclose_r(bytes->file);
    }
    *bytes = (rfa_bytes){0};
}

static rfa_status open_at(rfa_bytes *b, const char *path, int64_t place)
{
    if (!b->file || strcmp(b->path, path) != 0) {
        rfa_bytes_close(b);
        if (snprintf(b->path, sizeof b->path, "%s", path) >= (int)sizeof b->path) {
            return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", path);
        }
        errno = 0;
        b->file = gzopen(path, "re");
        if (!b->file) {
            return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path,
                            errno ? strerror(errno) : "out of memory");
        }
        gzbuffer(b->file, BUFFER);
    }
    if (b->at != place) {
        if (gzseek(b->file, place, SEEK_SET) != place) {
            rfa_bytes_close(b);
            return rfa_fail(RFA_ERR_IO, "%s: byte %lld can't be reached", path, (long long)place);
        }
        b->at = place;
    }
    return RFA_OK;
}

rfa_status rfa_bytes_read_some(
    rfa_bytes *bytes, const char *path, int64_t place, void *out, int64_t most, int64_t *size)
{
    *size = 0;
    RFA_TRY(open_at(bytes, path, place));
    while (*size < most) {
        const int64_t left = most - *size;
        errno = 0;
        const int got =
            gzread(bytes->file, (char *)out + *size, (unsigned)(left < PIECE ? left : PIECE));
        int code = Z_OK;
        const char *text = gzerror(bytes->file, &code);
        if (got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
            const char *why = code == Z_ERRNO       ? strerror(errno)
                              : code == Z_BUF_ERROR ? "the compressed file is cut off"
                                                    : text;
            const rfa_status status = rfa_fail(RFA_ERR_IO, "%s: can't be read at byte %lld: %s",
                                               path, (long long)(place + *size), why);
            rfa_bytes_close(bytes);
            return status;
        }
        if (got == 0) {
            break;
        }
        *size += got;
        bytes->at += got;
    }
    return RFA_OK;
}

rfa_status
rfa_bytes_read(rfa_bytes *bytes, const char *path, int64_t place, void *out, int64_t size)
{
    int64_t got = 0;
    RFA_TRY(rfa_bytes_read_some(bytes, path, place, out, size, &got));
    return got == size ? RFA_OK
                       : rfa_fail(RFA_ERR_IO, "%s: ends at byte %lld, %lld short", path,
                                  (long long)(place + got), (long long)(size - got));
}
