#include "storage/dataset_writer.h"

#include "base/mem.h"
#include "storage/h5.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, NAME_SIZE = 64, BUFFER_TOKENS = 1 << 19 };

struct rfa_dataset_writer {
    char path[PATH_SIZE], tmp[PATH_SIZE];
    hid_t file;
    int lock; // descriptor of tmp, -1 when there is none
    bool overwrite, published;
    int symbols, classes;
    uint64_t digest;

    // The split that is being written, group < 0 between splits.
    hid_t group, tokens;
    char split[NAME_SIZE], origin_name[NAME_SIZE];
    int64_t examples, size; // announced
    int64_t added, written; // examples so far; tokens in the file
    int64_t *offsets;       // [examples + 1]
    int64_t *origins;       // [examples]
    int32_t *lengths, *labels;
    int64_t *class_counts; // [classes]
    uint16_t *buffer;      // [BUFFER_TOKENS]
    ptrdiff_t buffered;
};

// Two processes must not write the same temporary file: the later one leaves the former alone.
static rfa_status take_lock(rfa_dataset_writer *w)
{
    w->lock = open(w->tmp, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (w->lock < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be created: %s", w->tmp, strerror(errno));
    }
    if (flock(w->lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(w->lock);
        w->lock = -1;
        return rfa_fail(RFA_ERR_IO, "%s: another process is writing it", w->tmp);
    }
    return RFA_OK; // a file system without locks: best effort
}

static rfa_status check_absent(const rfa_dataset_writer *w)
{
    struct stat info;
    if (stat(w->path, &info) != 0) {
        return RFA_OK;
    }
    if (S_ISDIR(info.st_mode)) {
        return rfa_fail(RFA_ERR_USAGE, "%s: is a folder, not a file to write", w->path);
    }
    if (!w->overwrite) {
        return rfa_fail(RFA_ERR_USAGE, "%s: exists already; --force overwrites it", w->path);
    }
    hid_t file = H5I_INVALID_HID;
    if (rfa_h5_open(&file, w->path) == RFA_OK) { // else damaged, which is no loss
        const bool is_run = rfa_h5_has_attribute(file, "schema");
        rfa_h5_close(&file);
        if (is_run) {
            return rfa_fail(RFA_ERR_USAGE, "%s: is a run; --force replaces data sets only",
                            w->path);
        }
    }
    return RFA_OK;
}

static rfa_status write_head(rfa_dataset_writer *w, const rfa_dataset_description *d)
{
    hid_t vocabulary = H5I_INVALID_HID;
    rfa_status status = rfa_h5_write_text(w->file, w->tmp, "task", d->task);
    if (status == RFA_OK) {
        status = rfa_h5_write_text(w->file, w->tmp, "title", d->title);
    }
    if (status == RFA_OK) {
        status = rfa_h5_write_int(w->file, w->tmp, "classes", d->classes);
    }
    if (status == RFA_OK) {
        status = rfa_h5_write_texts(&vocabulary, w->file, w->tmp, "vocabulary", d->vocabulary,
                                    d->symbols);
    }
    if (status == RFA_OK) {
        status = rfa_h5_write_text(vocabulary, w->tmp, "long_name",
                                   "symbol of each token id; id 0 is padding");
    }
    if (status == RFA_OK) {
        status = rfa_h5_close_array(&vocabulary, w->tmp);
    }
    rfa_h5_close(&vocabulary);
    return status;
}

rfa_status rfa_dataset_writer_create(rfa_dataset_writer **out,
                                     const char *path,
                                     const rfa_dataset_description *description,
                                     bool overwrite)
{
    RFA_ASSERT(description->symbols > 1 && description->symbols <= 65536);
    RFA_ASSERT(description->classes > 1);
    *out = NULL;
    rfa_dataset_writer *w = NULL;
    RFA_TRY(rfa_alloc(&w, 1, sizeof *w, "data set writer"));
    *w = (rfa_dataset_writer){.file = H5I_INVALID_HID,
                              .group = H5I_INVALID_HID,
                              .tokens = H5I_INVALID_HID,
                              .lock = -1,
                              .overwrite = overwrite,
                              .symbols = description->symbols,
                              .classes = description->classes,
                              .digest = 0xcbf29ce484222325u};
    rfa_status status = RFA_OK;
    if (snprintf(w->path, PATH_SIZE, "%s", path) >= PATH_SIZE ||
        snprintf(w->tmp, PATH_SIZE, "%s.tmp", path) >= PATH_SIZE) {
        status = rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", path);
        goto out;
    }
    if ((status = check_absent(w)) != RFA_OK || (status = take_lock(w)) != RFA_OK ||
        (status = rfa_h5_create(&w->file, w->tmp)) != RFA_OK ||
        (status = rfa_alloc(&w->buffer, BUFFER_TOKENS, sizeof *w->buffer, "data set buffer")) !=
            RFA_OK) {
        goto out;
    }
    status = write_head(w, description);
out:
    if (status != RFA_OK) {
        rfa_dataset_writer_destroy(&w);
    }
    *out = w;
    return status;
}

static void free_split(rfa_dataset_writer *w)
{
    rfa_h5_close(&w->tokens);
    rfa_h5_close(&w->group);
    rfa_free(w->offsets);
    rfa_free(w->origins);
    rfa_free(w->lengths);
    rfa_free(w->labels);
    rfa_free(w->class_counts);
    w->offsets = w->origins = w->class_counts = NULL;
    w->lengths = w->labels = NULL;
}

void rfa_dataset_writer_destroy(rfa_dataset_writer **writer)
{
    rfa_dataset_writer *w = *writer;
    if (w) {
        if (!w->published && w->lock >= 0) {
            rfa_h5_abandon(&w->file, w->tmp);
        }
        free_split(w);
        if (w->lock >= 0) {
            close(w->lock);
        }
        rfa_free(w->buffer);
        rfa_free(w);
        *writer = NULL;
    }
}

rfa_status rfa_dataset_writer_text(rfa_dataset_writer *writer, const char *name, const char *text)
{
    return rfa_h5_write_text(writer->file, writer->tmp, name, text);
}

rfa_status rfa_dataset_writer_int(rfa_dataset_writer *writer, const char *name, int64_t value)
{
    return rfa_h5_write_int(writer->file, writer->tmp, name, value);
}

rfa_status rfa_dataset_writer_double(rfa_dataset_writer *writer, const char *name, double value)
{
    return rfa_h5_write_double(writer->file, writer->tmp, name, value);
}

rfa_status rfa_dataset_writer_bool(rfa_dataset_writer *writer, const char *name, bool value)
{
    return rfa_h5_write_bool(writer->file, writer->tmp, name, value);
}

static rfa_status create_tokens(rfa_dataset_writer *w)
{
    const hsize_t size = (hsize_t)w->size;
    const hid_t type = w->symbols <= 256 ? H5T_STD_U8LE : H5T_STD_U16LE;
    hid_t space = H5Screate_simple(1, &size, NULL);
    if (space >= 0) {
        w->tokens =
            H5Dcreate2(w->group, "tokens", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    }
    rfa_h5_close(&space);
    if (w->tokens < 0) {
        return rfa_h5_fail(RFA_ERR_IO, w->tmp, "dataset '%s/tokens' can't be created", w->split);
    }
    RFA_TRY(rfa_h5_write_text(w->tokens, w->tmp, "units", "id (index in /vocabulary)"));
    return rfa_h5_write_text(w->tokens, w->tmp, "long_name",
                             "token ids of all examples, one example after the other");
}

rfa_status rfa_dataset_writer_begin(rfa_dataset_writer *writer,
                                    const char *split,
                                    int64_t examples,
                                    int64_t tokens,
                                    const char *origin_name)
{
    rfa_dataset_writer *w = writer;
    RFA_ASSERT(w->group < 0 && examples > 0 && tokens >= examples);
    snprintf(w->split, sizeof w->split, "%s", split);
    snprintf(w->origin_name, sizeof w->origin_name, "%s", origin_name);
    w->examples = examples;
    w->size = tokens;
    w->added = w->written = 0;
    w->buffered = 0;
    RFA_TRY(rfa_alloc(&w->offsets, examples + 1, sizeof *w->offsets, "data set offsets"));
    RFA_TRY(rfa_alloc(&w->origins, examples, sizeof *w->origins, "data set origins"));
    RFA_TRY(rfa_alloc(&w->lengths, examples, sizeof *w->lengths, "data set lengths"));
    RFA_TRY(rfa_alloc(&w->labels, examples, sizeof *w->labels, "data set labels"));
    RFA_TRY(rfa_alloc(&w->class_counts, w->classes, sizeof *w->class_counts, "class counts"));
    RFA_TRY(rfa_h5_create_group(&w->group, w->file, w->tmp, split));
    return create_tokens(w);
}

// Appends the buffer to the tokens in the file.
static rfa_status write_buffer(rfa_dataset_writer *w)
{
    if (w->buffered == 0) {
        return RFA_OK;
    }
    const hsize_t begin = (hsize_t)w->written, count = (hsize_t)w->buffered;
    hid_t memory = H5Screate_simple(1, &count, NULL), file = H5Dget_space(w->tokens);
    rfa_status status = RFA_OK;
    if (memory < 0 || file < 0 ||
        H5Sselect_hyperslab(file, H5S_SELECT_SET, &begin, NULL, &count, NULL) < 0 ||
        H5Dwrite(w->tokens, H5T_NATIVE_UINT16, memory, file, H5P_DEFAULT, w->buffer) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, w->tmp, "dataset '%s/tokens' can't be written", w->split);
    }
    rfa_h5_close(&file);
    rfa_h5_close(&memory);
    w->written += w->buffered;
    w->buffered = 0;
    return status;
}

static uint64_t digest_bytes(uint64_t digest, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        digest = (digest ^ (value >> 8 * i & 0xff)) * 0x100000001b3u;
    }
    return digest;
}

rfa_status rfa_dataset_writer_add(
    rfa_dataset_writer *writer, const uint16_t *ids, ptrdiff_t length, int label, int64_t origin)
{
    rfa_dataset_writer *w = writer;
    RFA_ASSERT(w->group >= 0 && length > 0 && length <= INT32_MAX);
    RFA_ASSERT(label >= 0 && label < w->classes);
    const int64_t n = w->added, end = w->offsets[n <= w->examples ? n : w->examples] + length;
    if (n == w->examples || end > w->size) {
        return rfa_fail(RFA_ERR_IO, "%s: split '%s' got more than its %lld examples of %lld tokens",
                        w->tmp, w->split, (long long)w->examples, (long long)w->size);
    }
    w->digest = digest_bytes(w->digest, (uint32_t)label, 4);
    w->digest = digest_bytes(w->digest, (uint32_t)length, 4);
    for (ptrdiff_t i = 0; i < length; i++) {
        RFA_ASSERT(ids[i] < w->symbols);
        w->digest = digest_bytes(w->digest, ids[i], 2);
        if (w->buffered == BUFFER_TOKENS) {
            RFA_TRY(write_buffer(w));
        }
        w->buffer[w->buffered++] = ids[i];
    }
    w->lengths[n] = (int32_t)length;
    w->labels[n] = (int32_t)label;
    w->origins[n] = origin;
    w->class_counts[label]++;
    w->offsets[n + 1] = end;
    w->added++;
    return RFA_OK;
}

// One array of the split with its attributes; scale < 0: none.
static rfa_status write_column(const rfa_dataset_writer *w,
                               hid_t *out,
                               const char *name,
                               hid_t file_type,
                               hid_t memory_type,
                               int64_t count,
                               const void *values,
                               const char *units,
                               const char *long_name,
                               hid_t scale)
{
    const hsize_t shape = (hsize_t)count;
    hid_t column;
    char full[2 * NAME_SIZE];
    snprintf(full, sizeof full, "%s/%s", w->split, name);
    RFA_TRY(rfa_h5_write_array(&column, w->file, w->tmp, full, file_type, memory_type, 1, &shape,
                               values));
    rfa_status status = rfa_h5_write_text(column, w->tmp, "units", units);
    if (status == RFA_OK) {
        status = rfa_h5_write_text(column, w->tmp, "long_name", long_name);
    }
    if (status == RFA_OK && scale >= 0) {
        status = rfa_h5_attach_scale(column, w->tmp, 0, scale);
    }
    if (status == RFA_OK && out) {
        *out = column;
    } else if (status == RFA_OK) {
        status = rfa_h5_close_array(&column, w->tmp);
    } else {
        rfa_h5_close(&column);
    }
    return status;
}

static rfa_status write_columns(const rfa_dataset_writer *w)
{
    hid_t scale = H5I_INVALID_HID;
    rfa_status status =
        write_column(w, NULL, "offsets", H5T_STD_I64LE, H5T_NATIVE_INT64, w->examples + 1,
                     w->offsets, "token", "first token of each example; at the end the total", -1);
    if (status == RFA_OK) {
        status =
            write_column(w, &scale, w->origin_name, H5T_STD_I64LE, H5T_NATIVE_INT64, w->examples,
                         w->origins, "1", "number of the example at its source", -1);
    }
    if (status == RFA_OK) {
        status = rfa_h5_make_scale(scale, w->tmp, w->origin_name);
    }
    if (status == RFA_OK) {
        status = write_column(w, NULL, "lengths", H5T_STD_I32LE, H5T_NATIVE_INT32, w->examples,
                              w->lengths, "token", "number of tokens of each example", scale);
    }
    if (status == RFA_OK) {
        status = write_column(w, NULL, "labels", H5T_STD_I32LE, H5T_NATIVE_INT32, w->examples,
                              w->labels, "class", "class of each example", scale);
    }
    if (status == RFA_OK) {
        status = rfa_h5_close_array(&scale, w->tmp);
    }
    rfa_h5_close(&scale);
    return status;
}

rfa_status rfa_dataset_writer_end(rfa_dataset_writer *writer)
{
    rfa_dataset_writer *w = writer;
    RFA_ASSERT(w->group >= 0);
    RFA_TRY(write_buffer(w));
    if (w->added != w->examples || w->written != w->size) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: split '%s' got %lld examples of %lld tokens, not %lld of %lld", w->tmp,
                        w->split, (long long)w->added, (long long)w->written,
                        (long long)w->examples, (long long)w->size);
    }
    RFA_TRY(write_columns(w));
    char name[2 * NAME_SIZE];
    snprintf(name, sizeof name, "examples_%s", w->split);
    RFA_TRY(rfa_h5_write_int(w->file, w->tmp, name, w->examples));
    snprintf(name, sizeof name, "tokens_%s", w->split);
    RFA_TRY(rfa_h5_write_int(w->file, w->tmp, name, w->size));
    snprintf(name, sizeof name, "class_counts_%s", w->split);
    RFA_TRY(rfa_h5_write_ints(w->file, w->tmp, name, w->class_counts, w->classes));
    RFA_TRY(rfa_h5_close_array(&w->tokens, w->tmp));
    free_split(w);
    return RFA_OK;
}

rfa_status rfa_dataset_writer_finish(rfa_dataset_writer *writer, char digest[17])
{
    rfa_dataset_writer *w = writer;
    RFA_ASSERT(w->group < 0 && w->file >= 0);
    snprintf(digest, 17, "%016" PRIx64, w->digest);
    RFA_TRY(rfa_h5_write_text(w->file, w->tmp, "digest", digest));
    RFA_TRY(rfa_h5_write_int(w->file, w->tmp, "complete", 1));
    RFA_TRY(rfa_h5_close_file(&w->file, w->tmp));
    RFA_TRY(check_absent(w));
    RFA_TRY(rfa_publish(w->tmp, w->path));
    w->published = true;
    return RFA_OK;
}
