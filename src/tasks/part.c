#include "tasks/part.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { HEAD = 11 + 2 * 8 + 2 * 4 + 8 + RFA_DOCUMENTS * 8 + 8 + 4, RECORD = 3 * 8 + 4 };
static const char magic[] = "rfa part 1\n";

void rfa_part_destroy(rfa_part *part)
{
    rfa_free(part->bytes);
    *part = (rfa_part){0};
}

static rfa_status reserve(rfa_part *p, int64_t size)
{
    if (size > p->capacity) {
        unsigned char *larger = NULL;
        RFA_TRY(rfa_alloc(&larger, size + size / 2, 1, "part of a data set"));
        if (p->size > 0) {
            memcpy(larger, p->bytes, (size_t)p->size);
        }
        rfa_free(p->bytes);
        p->bytes = larger;
        p->capacity = size + size / 2;
    }
    return RFA_OK;
}

static void put(unsigned char **at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        *(*at)++ = (unsigned char)(value >> 8 * i);
    }
}

static uint64_t get(const unsigned char **at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t) * (*at)++ << 8 * i;
    }
    return value;
}

void rfa_part_start(rfa_part *part, const rfa_part_key *key)
{
    part->key = *key;
    part->size = part->at = 0;
    part->added = part->taken = 0;
    memset(part->tokens, 0, sizeof part->tokens);
}

// Of the ids of all documents; of one document that of its ids alone.
static rfa_fingerprint fingerprint(const rfa_example *e, int documents)
{
    rfa_fingerprint all = rfa_fingerprint_ids(e->ids[0], e->length[0]);
    for (int d = 1; d < documents; d++) {
        const rfa_fingerprint next = rfa_fingerprint_ids(e->ids[d], e->length[d]);
        all.high = all.high * 0x9e3779b97f4a7c15u + next.high;
        all.low = (all.low ^ all.low >> 29) * 0xbf58476d1ce4e5b9u + next.low;
    }
    return all;
}

// Ids begin at even addresses, as they are read in place: records have an even number of bytes.
rfa_status rfa_part_add(rfa_part *part, const rfa_example *example)
{
    const rfa_example *e = example;
    int64_t size = part->size + RECORD;
    for (int d = 0; d < part->key.documents; d++) {
        size += 4 + 2 * e->length[d];
    }
    RFA_TRY(reserve(part, size));
    const rfa_fingerprint mark = fingerprint(e, part->key.documents);
    unsigned char *at = part->bytes + part->size;
    put(&at, (uint64_t)e->origin, 8);
    put(&at, mark.high, 8);
    put(&at, mark.low, 8);
    put(&at, (uint32_t)e->label, 4);
    for (int d = 0; d < part->key.documents; d++) {
        put(&at, (uint32_t)e->length[d], 4);
        memcpy(at, e->ids[d], 2 * (size_t)e->length[d]);
        at += 2 * e->length[d];
        part->tokens[d] += e->length[d];
    }
    part->size = size;
    part->added++;
    return RFA_OK;
}

static void fill_head(unsigned char head[HEAD], const rfa_part *p)
{
    unsigned char *at = head + 11;
    memcpy(head, magic, sizeof magic - 1);
    put(&at, p->key.recipe.high, 8);
    put(&at, p->key.recipe.low, 8);
    put(&at, (uint32_t)p->key.split, 4);
    put(&at, (uint32_t)p->added, 4);
    put(&at, (uint64_t)p->key.first, 8);
    for (int d = 0; d < RFA_DOCUMENTS; d++) {
        put(&at, (uint64_t)p->tokens[d], 8);
    }
    put(&at, (uint64_t)p->size, 8);
    put(&at, crc32_z(0, p->bytes, (z_size_t)p->size), 4);
}

static bool write_all(int file, const unsigned char *bytes, int64_t size)
{
    while (size > 0) {
        const ssize_t n = write(file, bytes, (size_t)size);
        if (n <= 0 && errno != EINTR) {
            return false;
        }
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? n : 0;
    }
    return true;
}

rfa_status rfa_part_write(rfa_part *part, const char *path)
{
    char tmp[4096];
    unsigned char head[HEAD];
    RFA_ASSERT(part->added == part->key.examples);
    if (snprintf(tmp, sizeof tmp, "%s.tmp", path) >= (int)sizeof tmp) {
        return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", path);
    }
    fill_head(head, part);
    errno = 0;
    const int file = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be created: %s", tmp, strerror(errno));
    }
    // No fsync: what a power failure takes is found by the checksum, and made again.
    bool good = write_all(file, head, HEAD) && write_all(file, part->bytes, part->size);
    int problem = errno;
    if (close(file) != 0 && good) {
        good = false;
        problem = errno;
    }
    if (good && rename(tmp, path) != 0) {
        good = false;
        problem = errno;
    }
    if (!good) {
        unlink(tmp);
        return rfa_fail(RFA_ERR_IO, "%s: can't be written: %s", tmp, strerror(problem));
    }
    return RFA_OK;
}

static rfa_status damaged(const char *path, const char *what)
{
    return rfa_fail(RFA_ERR_IO, "%s: not the wanted part: %s", path, what);
}

static bool read_all(int file, unsigned char *bytes, int64_t size)
{
    while (size > 0) {
        const ssize_t n = read(file, bytes, (size_t)size);
        if (n <= 0 && errno != EINTR) {
            return false;
        }
        bytes += n > 0 ? n : 0;
        size -= n > 0 ? n : 0;
    }
    return true;
}

// The lengths of all records fit what is there, and give the tokens that the head tells.
static bool records_fit(rfa_part *p)
{
    rfa_part_example example;
    int64_t tokens[RFA_DOCUMENTS] = {0};
    while (p->taken < p->added) {
        const int64_t left = p->size - p->at;
        int64_t need = RECORD;
        for (int d = 0; d < p->key.documents; d++) {
            if (left < need + 4) {
                return false;
            }
            const unsigned char *at = p->bytes + p->at + need;
            const int64_t length = (int64_t)get(&at, 4);
            need += 4 + 2 * length;
            tokens[d] += length;
            if (length < 1 || left < need) {
                return false;
            }
        }
        (void)rfa_part_next(p, &example);
    }
    const bool good = p->at == p->size && memcmp(tokens, p->tokens, sizeof tokens) == 0;
    p->at = 0;
    p->taken = 0;
    return good;
}

static rfa_status read_open(rfa_part *p, int file, const char *path)
{
    unsigned char head[HEAD];
    const unsigned char *at = head + 11;
    struct stat info;
    if (fstat(file, &info) != 0 || !read_all(file, head, HEAD) || memcmp(head, magic, 11) != 0) {
        return damaged(path, "its head");
    }
    const rfa_part_key *k = &p->key;
    if (get(&at, 8) != k->recipe.high || get(&at, 8) != k->recipe.low ||
        get(&at, 4) != (uint32_t)k->split || get(&at, 4) != (uint32_t)k->examples ||
        get(&at, 8) != (uint64_t)k->first) {
        return damaged(path, "it is of other examples");
    }
    for (int d = 0; d < RFA_DOCUMENTS; d++) {
        p->tokens[d] = (int64_t)get(&at, 8);
    }
    const int64_t size = (int64_t)get(&at, 8);
    const uint32_t crc = (uint32_t)get(&at, 4);
    if (size != info.st_size - HEAD) {
        return damaged(path, "its size");
    }
    RFA_TRY(reserve(p, size));
    p->size = size;
    p->added = k->examples;
    if (!read_all(file, p->bytes, size) || crc32_z(0, p->bytes, (z_size_t)size) != crc ||
        !records_fit(p)) {
        return damaged(path, "its content");
    }
    return RFA_OK;
}

rfa_status rfa_part_read(rfa_part *part, const char *path, const rfa_part_key *key)
{
    rfa_part_start(part, key);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path, strerror(errno));
    }
    const rfa_status status = read_open(part, file, path);
    close(file);
    return status;
}

bool rfa_part_next(rfa_part *part, rfa_part_example *example)
{
    if (part->taken == part->added) {
        return false;
    }
    const unsigned char *at = part->bytes + part->at;
    *example = (rfa_part_example){0};
    example->origin = (int64_t)get(&at, 8);
    example->fingerprint.high = get(&at, 8);
    example->fingerprint.low = get(&at, 8);
    example->label = (int)(int32_t)get(&at, 4);
    for (int d = 0; d < part->key.documents; d++) {
        example->length[d] = (ptrdiff_t)get(&at, 4);
        example->ids[d] = (const uint16_t *)(const void *)at;
        at += 2 * example->length[d];
    }
    part->at = at - part->bytes;
    part->taken++;
    return true;
}
