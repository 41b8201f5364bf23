#include "tasks/image.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, SIDE = 32, COLOUR = 1 + 3 * SIDE * SIDE, GREY = 1 + SIDE * SIDE };

static const char *const cifar_classes[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                            "dog",      "frog",       "horse", "ship", "truck"};

// root/name or root/name.gz; false when neither is there.
static bool find_file(char path[PATH_SIZE], const char *root, const char *name)
{
    return (snprintf(path, PATH_SIZE, "%s/%s", root, name) < PATH_SIZE && rfa_is_file(path)) ||
           (snprintf(path, PATH_SIZE, "%s/%s.gz", root, name) < PATH_SIZE && rfa_is_file(path));
}

// Bytes of a file when unpacked.
static rfa_status unpacked_size(int64_t *size, const char *path)
{
    enum { PIECE = 1 << 20 };
    rfa_bytes bytes = {0};
    unsigned char *piece = NULL;
    int64_t got = PIECE;
    *size = 0;
    RFA_TRY(rfa_alloc(&piece, PIECE, 1, "bytes of a file"));
    rfa_status status = RFA_OK;
    while (status == RFA_OK && got == PIECE) {
        status = rfa_bytes_read_some(&bytes, path, *size, piece, PIECE, &got);
        *size += got;
    }
    rfa_bytes_close(&bytes);
    rfa_free(piece);
    return status;
}

// The records of one binary file of CIFAR-10; *number counts them over the files of a split.
static rfa_status list_records(rfa_index *index, const char *path, int64_t *number)
{
    int64_t size;
    rfa_entry entry = {0};
    RFA_TRY(unpacked_size(&size, path));
    const int record = size % COLOUR == 0 ? COLOUR : GREY;
    if (size == 0 || size % record != 0) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: %lld bytes are not records of a label and %d colour or %d grey bytes",
                        path, (long long)size, COLOUR - 1, GREY - 1);
    }
    RFA_TRY(rfa_index_stamp(index, path));
    RFA_TRY(rfa_index_name(index, &entry.file[0], path));
    for (int64_t at = 0; at < size; at += record) {
        entry.place[0] = at;
        entry.size[0] = record;
        entry.origin = (*number)++;
        RFA_TRY(rfa_index_add(index, &entry));
    }
    return RFA_OK;
}

static rfa_status
list_cifar(rfa_index *index, rfa_image_facts *facts, const char *root, int percent)
{
    char path[PATH_SIZE], name[32];
    int64_t number = 0;
    int files = 0;
    for (int b = 1; b <= 5; b++, files++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", b);
        if (!find_file(path, root, name)) {
            break;
        }
        RFA_TRY(list_records(index, path, &number));
    }
    for (int b = files + 1; b <= 5; b++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", b);
        if (find_file(path, root, name)) {
            return rfa_fail(RFA_ERR_IO, "%s: data_batch_%d.bin is missing", root, files + 1);
        }
    }
    const int64_t train = index->count;
    if (!find_file(path, root, "test_batch.bin")) {
        return rfa_fail(RFA_ERR_IO, "%s: test_batch.bin is missing", root);
    }
    number = 0;
    RFA_TRY(list_records(index, path, &number));
    facts->format = RFA_IMAGE_CIFAR;
    facts->width = facts->height = SIDE;
    snprintf(facts->name, sizeof facts->name, "CIFAR-10 binary files");
    for (int c = 0; c < 10; c++, facts->classes.count++) {
        snprintf(facts->classes.name[c], RFA_CLASS_NAME, "%s", cifar_classes[c]);
    }
    return rfa_index_split(index, train, percent);
}

static rfa_status list_idx(rfa_index *index, rfa_image_facts *facts, const char *root, int percent)
{
    RFA_TRY(rfa_image_list_idx(index, facts, root, "train"));
    const int64_t train = index->count;
    RFA_TRY(rfa_image_list_idx(index, facts, root, "t10k"));
    facts->format = RFA_IMAGE_IDX;
    snprintf(facts->name, sizeof facts->name, "idx files");
    return rfa_index_split(index, train, percent);
}

void rfa_image_reader_free(rfa_image_reader *reader)
{
    rfa_bytes_close(&reader->bytes);
    rfa_free(reader->buffer);
    rfa_image_free(&reader->image);
    *reader = (rfa_image_reader){0};
}

static rfa_status read_entry(rfa_image_reader *r, const rfa_entry *e, const char *path)
{
    if (e->size[0] > r->capacity) {
        rfa_free(r->buffer);
        r->buffer = NULL;
        r->capacity = 0;
        RFA_TRY(rfa_alloc(&r->buffer, 2 * e->size[0], 1, "bytes of a picture"));
        r->capacity = 2 * e->size[0];
    }
    return rfa_bytes_read(&r->bytes, path, e->place[0], r->buffer, e->size[0]);
}

rfa_status rfa_image_measure(rfa_image_facts *facts, const rfa_index *index)
{
    rfa_image_reader reader = {.index = index};
    const rfa_entry *first = &index->entries[0];
    const char *path = rfa_index_file(index, first, 0);
    rfa_status status = read_entry(&reader, first, path);
    if (status == RFA_OK) {
        status = rfa_png_decode(&reader.image, path, reader.buffer, first->size[0]);
    }
    facts->width = reader.image.width;
    facts->height = reader.image.height;
    rfa_image_reader_free(&reader);
    return status;
}

static rfa_status list_tree(rfa_index *index, rfa_image_facts *facts, const char *root, int percent)
{
    RFA_TRY(rfa_tree_list(index, &facts->classes, root, "train", ".png", NULL, RFA_TREE_BY_HASH));
    const int64_t train = index->count;
    RFA_TRY(rfa_tree_list(index, &facts->classes, root, "test", ".png", NULL, RFA_TREE_BY_HASH));
    facts->format = RFA_IMAGE_TREE;
    snprintf(facts->name, sizeof facts->name, "folders of PNG files");
    RFA_TRY(rfa_index_split(index, train, percent));
    return rfa_image_measure(facts, index);
}

rfa_status rfa_image_list(rfa_index *index, rfa_image_facts *facts, const char *root, int percent)
{
    static const struct {
        const char *file;
        rfa_status (*list)(rfa_index *, rfa_image_facts *, const char *, int);
    } formats[] = {{"data_batch_1.bin", list_cifar},
                   {"data_batch_1.bin.gz", list_cifar},
                   {"train-images-idx3-ubyte", list_idx},
                   {"train-images-idx3-ubyte.gz", list_idx},
                   {"train", list_tree}};
    char folder[PATH_SIZE];
    rfa_status status = RFA_OK;
    *index = (rfa_index){0};
    memset(facts, 0, sizeof *facts);
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        status = rfa_find_folder(folder, sizeof folder, root, formats[f].file);
        if (status == RFA_OK) {
            status = formats[f].list(index, facts, folder, percent);
            if (status != RFA_OK) {
                rfa_index_destroy(index);
            }
            return status;
        }
        if (!rfa_is_folder(root) || strstr(rfa_error_text(), "which one")) {
            return status;
        }
    }
    return rfa_fail(RFA_ERR_IO,
                    "%s: neither data_batch_1.bin (CIFAR-10) nor train-images-idx3-ubyte (idx) nor "
                    "a folder train (PNG) in it, nor one or two levels deeper",
                    root);
}

// A record of CIFAR-10: planes of red, green and blue, or one of grey.
static rfa_status
load_record(rfa_image_reader *r, const rfa_entry *e, const char *path, rfa_example *out)
{
    enum { PIXELS = SIDE * SIDE };
    RFA_ASSERT(r->buffer);
    const unsigned char *at = r->buffer + 1;
    out->label = r->buffer[0];
    if (out->label > 9) {
        return rfa_fail(RFA_ERR_IO, "%s: record %lld at byte %lld: label %d, not 0 to 9", path,
                        (long long)(e->place[0] / e->size[0]), (long long)e->place[0], out->label);
    }
    for (int i = 0; i < PIXELS; i++) {
        const unsigned char value =
            e->size[0] == GREY ? at[i]
                               : rfa_grey_value(r->grey, at[i], at[PIXELS + i], at[2 * PIXELS + i]);
        out->ids[0][i] = (uint16_t)(value + 1);
    }
    return RFA_OK;
}

static rfa_status
load_png(rfa_image_reader *r, const rfa_entry *e, const char *path, rfa_example *out)
{
    const rfa_image_facts *f = r->facts;
    RFA_TRY(rfa_png_decode(&r->image, path, r->buffer, e->size[0]));
    const rfa_image *image = &r->image;
    if (image->width != f->width || image->height != f->height) {
        return rfa_fail(RFA_ERR_IO, "%s: %d x %d pixels, but the others have %d x %d", path,
                        image->width, image->height, f->width, f->height);
    }
    const int64_t pixels = (int64_t)image->width * image->height;
    for (int64_t i = 0; i < pixels; i++) {
        const unsigned char *at = image->values + i * image->channels;
        const unsigned char value =
            image->channels == 1 ? *at : rfa_grey_value(r->grey, at[0], at[1], at[2]);
        out->ids[0][i] = (uint16_t)(value + 1);
    }
    return RFA_OK;
}

rfa_status rfa_image_load(void *self, rfa_example *example, int split, int64_t index)
{
    rfa_image_reader *r = self;
    const rfa_entry *e = &r->index->entries[r->index->first[split] + index];
    const char *path = rfa_index_file(r->index, e, 0);
    RFA_TRY(read_entry(r, e, path));
    example->label = e->label;
    example->origin = e->origin;
    example->length[0] = (ptrdiff_t)r->facts->width * r->facts->height;
    switch (r->facts->format) {
    case RFA_IMAGE_CIFAR: return load_record(r, e, path, example);
    case RFA_IMAGE_TREE: return load_png(r, e, path, example);
    case RFA_IMAGE_IDX: rfa_byte_ids(example->ids[0], r->buffer, example->length[0]); break;
    }
    return RFA_OK;
}
