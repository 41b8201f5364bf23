#include "tasks/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { BUFFER = 1 << 17, PIECE = 1 << 30 };

void rfa_bytes_close(rfa_bytes *bytes)
{
    if (bytes->file) {
        gzclose_r(bytes->file);
    } else if (bytes->open) {
        close(bytes->descriptor);
    }
    *bytes = (rfa_bytes){0};
}

static rfa_status open_file(rfa_bytes *b, const char *path)
{
    unsigned char head[2];
    if (b->open && strcmp(b->path, path) == 0) {
        return RFA_OK;
    }
    rfa_bytes_close(b);
    if (snprintf(b->path, sizeof b->path, "%s", path) >= (int)sizeof b->path) {
        return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", path);
    }
    b->descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (b->descriptor < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path, strerror(errno));
    }
    b->open = true;
    if (pread(b->descriptor, head, 2, 0) == 2 && head[0] == 0x1f && head[1] == 0x8b) {
        b->file = gzdopen(b->descriptor, "r");
        if (!b->file) {
            return rfa_fail(RFA_ERR_MEMORY, "%s: out of memory to unpack it", path);
        }
        gzbuffer(b->file, BUFFER);
    }
    return RFA_OK;
}

// Up to `most` bytes at once; *got is -1 on failure, with *why.
static void read_piece(rfa_bytes *b, void *out, int64_t most, int64_t *got, const char **why)
{
    const unsigned size = (unsigned)(most < PIECE ? most : PIECE);
    errno = 0;
    if (!b->file) {
        *got = pread(b->descriptor, out, size, b->at);
        *why = strerror(errno);
        return;
    }
    int code = Z_OK;
    *got = gzread(b->file, out, size);
    *why = gzerror(b->file, &code);
    if (*got < 0 || (code != Z_OK && code != Z_STREAM_END)) {
        *why = code == Z_ERRNO       ? strerror(errno)
               : code == Z_BUF_ERROR ? "the compressed file is cut off"
                                     : *why;
        *got = -1;
    }
}

rfa_status rfa_bytes_read_some(
    rfa_bytes *bytes, const char *path, int64_t place, void *out, int64_t most, int64_t *size)
{
    *size = 0;
    RFA_TRY(open_file(bytes, path));
    if (bytes->file && bytes->at != place && gzseek(bytes->file, place, SEEK_SET) != place) {
        rfa_bytes_close(bytes);
        return rfa_fail(RFA_ERR_IO, "%s: byte %lld can't be reached", path, (long long)place);
    }
    bytes->at = place;
    while (*size < most) {
        int64_t got;
        const char *why = "";
        read_piece(bytes, (char *)out + *size, most - *size, &got, &why);
        if (got < 0) {
            const rfa_status status = rfa_fail(RFA_ERR_IO, "%s: can't be read at byte %lld: %s",
                                               path, (long long)bytes->at, why);
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
    const int64_t end = place + got, lacking = size - got;
    return lacking == 0 ? RFA_OK
                        : rfa_fail(RFA_ERR_IO, "%s: ends at byte %lld, %lld short", path,
                                   (long long)end, (long long)lacking);
}
