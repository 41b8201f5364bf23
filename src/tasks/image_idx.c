// idx files: two zero bytes, type 0x08 (unsigned byte), number of dimensions, each dimension as
// big-endian 32-bit number, then the values (LeCun, Cortes, Burges, "The MNIST database").
#include "base/mem.h"
#include "tasks/image.h"

#include <stdio.h>

enum { PATH_SIZE = 4096, CLASSES = 256, PIECE = 1 << 16 };

typedef struct {
    char path[PATH_SIZE];
    int dimensions;
    int64_t shape[3], head; // head: bytes before the values
} idx_file;

// Opens root/SPLIT-KIND-idxN-ubyte or its .gz, and checks the head. Writers of Fashion-MNIST and
// MNIST differ in one character: "images-idx3" or "images.idx3".
static rfa_status read_head(
    idx_file *file, rfa_bytes *bytes, const char *root, const char *split, const char *kind, int n)
{
    unsigned char head[4 + 3 * 4];
    bool found = false;
    for (int e = 0; e < 4 && !found; e++) {
        char ending[32];
        snprintf(ending, sizeof ending, "%cidx%d-ubyte%s", e < 2 ? '-' : '.', n,
                 e % 2 ? ".gz" : "");
        found =
            snprintf(file->path, PATH_SIZE, "%s/%s-%s%s", root, split, kind, ending) < PATH_SIZE &&
            rfa_is_file(file->path);
    }
    if (!found) {
        return rfa_fail(RFA_ERR_IO, "%s: %s-%s-idx%d-ubyte (or .gz) is missing", root, split, kind,
                        n);
    }
    file->dimensions = n;
    file->head = 4 + 4 * n;
    RFA_TRY(rfa_bytes_read(bytes, file->path, 0, head, file->head));
    if (head[0] != 0 || head[1] != 0 || head[2] != 8 || head[3] != n) {
        return rfa_fail(
            RFA_ERR_IO,
            "%s: begins with %02x %02x %02x %02x, not with 00 00 08 %02x of an idx file "
            "of bytes in %d dimension%s",
            file->path, head[0], head[1], head[2], head[3], n, n, n == 1 ? "" : "s");
    }
    for (int d = 0; d < n; d++) {
        const unsigned char *at = head + 4 + 4 * d;
        file->shape[d] = (int64_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
    }
    return RFA_OK;
}

// Every picture is in the file: a truncated one is found now.
static rfa_status check_end(rfa_bytes *bytes, const idx_file *file, int64_t size)
{
    unsigned char last;
    int64_t more = 0;
    const int64_t end = file->head + size;
    RFA_TRY(rfa_bytes_read(bytes, file->path, end - 1, &last, 1));
    RFA_TRY(rfa_bytes_read_some(bytes, file->path, end, &last, 1, &more));
    return more == 0 ? RFA_OK
                     : rfa_fail(RFA_ERR_IO, "%s: goes on after byte %lld, where its head ends it",
                                file->path, (long long)end);
}

// Labels and pictures into the index.
static rfa_status add_all(rfa_index *index,
                          rfa_image_facts *facts,
                          rfa_bytes *bytes,
                          const idx_file *images,
                          const idx_file *labels)
{
    unsigned char piece[PIECE];
    const int64_t n = images->shape[0], size = images->shape[1] * images->shape[2];
    rfa_entry entry = {.size = {size}};
    RFA_TRY(rfa_index_name(index, &entry.file[0], images->path));
    for (int64_t i = 0; i < n; i++) {
        if (i % PIECE == 0) {
            const int64_t left = n - i;
            RFA_TRY(rfa_bytes_read(bytes, labels->path, labels->head + i, piece,
                                   left < PIECE ? left : PIECE));
        }
        entry.place[0] = images->head + i * size;
        entry.origin = i;
        entry.label = piece[i % PIECE];
        for (rfa_classes *c = &facts->classes; c->count <= entry.label; c->count++) {
            snprintf(c->name[c->count], RFA_CLASS_NAME, "%d", c->count);
        }
        RFA_TRY(rfa_index_add(index, &entry));
    }
    return RFA_OK;
}

static rfa_status list(
    rfa_index *index, rfa_image_facts *facts, rfa_bytes *bytes, const char *root, const char *split)
{
    idx_file images, labels;
    RFA_TRY(read_head(&images, bytes, root, split, "images", 3));
    RFA_TRY(read_head(&labels, bytes, root, split, "labels", 1));
    const int64_t *shape = images.shape;
    if (shape[1] < 1 || shape[1] > RFA_IMAGE_SIDE || shape[2] < 1 || shape[2] > RFA_IMAGE_SIDE) {
        return rfa_fail(RFA_ERR_IO, "%s: pictures of %lld x %lld pixels", images.path,
                        (long long)shape[2], (long long)shape[1]);
    }
    if (facts->height == 0) {
        facts->height = (int)shape[1];
        facts->width = (int)shape[2];
    }
    if (shape[1] != facts->height || shape[2] != facts->width) {
        return rfa_fail(RFA_ERR_IO, "%s: %lld x %lld pixels, but train has %d x %d", images.path,
                        (long long)shape[2], (long long)shape[1], facts->width, facts->height);
    }
    if (shape[0] < 1 || shape[0] != labels.shape[0]) {
        return rfa_fail(RFA_ERR_IO, "%s: %lld pictures, but %lld labels", images.path,
                        (long long)shape[0], (long long)labels.shape[0]);
    }
    RFA_TRY(check_end(bytes, &images, shape[0] * shape[1] * shape[2]));
    RFA_TRY(check_end(bytes, &labels, shape[0]));
    RFA_TRY(rfa_index_stamp(index, images.path));
    RFA_TRY(rfa_index_stamp(index, labels.path));
    return add_all(index, facts, bytes, &images, &labels);
}

rfa_status
rfa_image_list_idx(rfa_index *index, rfa_image_facts *facts, const char *root, const char *split)
{
    rfa_bytes bytes = {0};
    const rfa_status status = list(index, facts, &bytes, root, split);
    rfa_bytes_close(&bytes);
    return status;
}
