#include "storage/dataset_writer.h"

#include "base/mem.h"
#include "storage/dataset_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, NAME_SIZE = 64, DOCUMENTS = 2 };

struct rfa_dataset_writer {
    char path[PATH_SIZE], tmp[PATH_SIZE];
    hid_t file;
    int lock; // descriptor of tmp, -1 when there is none
    bool overwrite, published;
    int symbols, classes, documents;
    uint64_t digest;

    // The split that is being written, group < 0 between splits.
    hid_t group;
    char split[NAME_SIZE], origin_name[NAME_SIZE];
    int64_t examples, added; // announced; so far
    rfa_dataset_stream stream[DOCUMENTS];
    int64_t *origins; // [examples]
    int32_t *labels;
    int64_t *class_counts; // [classes]
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
    if (status == RFA_OK && w->documents > 1) {
        status = rfa_h5_write_int(w->file, w->tmp, "documents", w->documents);
    }
    if (status == RFA_OK) {
        status = rfa_h5_write_int(w->file, w->tmp, "padding_id", 0);
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
    RFA_ASSERT(description->classes > 1 && description->documents <= DOCUMENTS);
    RFA_ASSERT(description->first_id == 0 || description->first_id == 1);
    *out = NULL;
    rfa_dataset_writer *w = NULL;
    RFA_TRY(rfa_alloc(&w, 1, sizeof *w, "data set writer"));
    *w = (rfa_dataset_writer){.file = H5I_INVALID_HID,
                              .group = H5I_INVALID_HID,
                              .lock = -1,
                              .overwrite = overwrite,
                              .symbols = description->symbols,
                              .classes = description->classes,
                              .documents = description->documents > 1 ? description->documents : 1,
                              .digest = 0xcbf29ce484222325u};
    for (int d = 0; d < DOCUMENTS; d++) {
        w->stream[d] = (rfa_dataset_stream){.path = w->tmp,
                                            .split = w->split,
                                            .suffix = {d > 0 ? '2' : 0},
                                            .tokens = H5I_INVALID_HID,
                                            .first_id = description->first_id};
    }
    rfa_status status = RFA_OK;
    if (snprintf(w->path, PATH_SIZE, "%s", path) >= PATH_SIZE ||
        snprintf(w->tmp, PATH_SIZE, "%s.tmp", path) >= PATH_SIZE) {
        status = rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", path);
        goto out;
    }
    if ((status = check_absent(w)) != RFA_OK || (status = take_lock(w)) != RFA_OK ||
        (status = rfa_h5_create(&w->file, w->tmp)) != RFA_OK) {
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
    for (int d = 0; d < DOCUMENTS; d++) {
        rfa_dataset_stream_free(&w->stream[d]);
    }
    rfa_h5_close(&w->group);
    rfa_free(w->origins);
    rfa_free(w->labels);
    rfa_free(w->class_counts);
    w->origins = w->class_counts = NULL;
    w->labels = NULL;
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
        for (int d = 0; d < DOCUMENTS; d++) {
            rfa_free(w->stream[d].buffer);
        }
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

rfa_status rfa_dataset_writer_texts(rfa_dataset_writer *writer,
                                    const char *name,
                                    const char *const *texts,
                                    int64_t count)
{
    return rfa_h5_write_text_list(writer->file, writer->tmp, name, texts, count);
}

rfa_status rfa_dataset_writer_begin_pairs(rfa_dataset_writer *writer,
                                          const char *split,
                                          int64_t examples,
                                          const int64_t *tokens,
                                          const char *origin_name)
{
    rfa_dataset_writer *w = writer;
    RFA_ASSERT(w->group < 0 && examples > 0);
    snprintf(w->split, sizeof w->split, "%s", split);
    snprintf(w->origin_name, sizeof w->origin_name, "%s", origin_name);
    w->examples = examples;
    w->added = 0;
    RFA_TRY(rfa_alloc(&w->origins, examples, sizeof *w->origins, "data set origins"));
    RFA_TRY(rfa_alloc(&w->labels, examples, sizeof *w->labels, "data set labels"));
    RFA_TRY(rfa_alloc(&w->class_counts, w->classes, sizeof *w->class_counts, "class counts"));
    RFA_TRY(rfa_h5_create_group(&w->group, w->file, w->tmp, split));
    for (int d = 0; d < w->documents; d++) {
        RFA_ASSERT(tokens[d] >= examples);
        RFA_TRY(rfa_dataset_stream_begin(&w->stream[d], w->group,
                                         w->symbols - w->stream[d].first_id, examples, tokens[d]));
    }
    return RFA_OK;
}

rfa_status rfa_dataset_writer_begin(rfa_dataset_writer *writer,
                                    const char *split,
                                    int64_t examples,
                                    int64_t tokens,
                                    const char *origin_name)
{
    RFA_ASSERT(writer->documents == 1);
    return rfa_dataset_writer_begin_pairs(writer, split, examples, &tokens, origin_name);
}

static uint64_t digest_bytes(uint64_t digest, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        digest = (digest ^ (value >> 8 * i & 0xff)) * 0x100000001b3u;
    }
    return digest;
}

rfa_status rfa_dataset_writer_add_pair(rfa_dataset_writer *writer,
                                       const uint16_t *const *ids,
                                       const ptrdiff_t *length,
                                       int label,
                                       int64_t origin)
{
    rfa_dataset_writer *w = writer;
    const int64_t n = w->added;
    RFA_ASSERT(w->group >= 0 && label >= 0 && label < w->classes);
    for (int d = 0; d < w->documents; d++) {
        const rfa_dataset_stream *s = &w->stream[d];
        RFA_ASSERT(length[d] > 0 && length[d] <= INT32_MAX);
        if (n == w->examples || s->offsets[n] + length[d] > s->size) {
            return rfa_fail(RFA_ERR_IO,
                            "%s: split '%s' got more than its %lld examples of %lld tokens", w->tmp,
                            w->split, (long long)w->examples, (long long)s->size);
        }
    }
    w->digest = digest_bytes(w->digest, (uint32_t)label, 4);
    for (int d = 0; d < w->documents; d++) {
        w->digest = digest_bytes(w->digest, (uint32_t)length[d], 4);
        for (ptrdiff_t i = 0; i < length[d]; i++) {
            RFA_ASSERT(ids[d][i] < w->symbols && ids[d][i] >= w->stream[d].first_id);
            w->digest = digest_bytes(w->digest, ids[d][i], 2);
        }
        RFA_TRY(rfa_dataset_stream_add(&w->stream[d], n, ids[d], length[d]));
    }
    w->labels[n] = (int32_t)label;
    w->origins[n] = origin;
    w->class_counts[label]++;
    w->added++;
    return RFA_OK;
}

rfa_status rfa_dataset_writer_add(
    rfa_dataset_writer *writer, const uint16_t *ids, ptrdiff_t length, int label, int64_t origin)
{
    RFA_ASSERT(writer->documents == 1);
    return rfa_dataset_writer_add_pair(writer, &ids, &length, label, origin);
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
        write_column(w, &scale, w->origin_name, H5T_STD_I64LE, H5T_NATIVE_INT64, w->examples,
                     w->origins, "1", "number of the example at its source", -1);
    if (status == RFA_OK) {
        status = rfa_h5_make_scale(scale, w->tmp, w->origin_name);
    }
    for (int d = 0; d < w->documents && status == RFA_OK; d++) {
        const rfa_dataset_stream *s = &w->stream[d];
        char name[16];
        snprintf(name, sizeof name, "offsets%s", s->suffix);
        status = write_column(w, NULL, name, H5T_STD_I64LE, H5T_NATIVE_INT64, w->examples + 1,
                              s->offsets, "token",
                              "first token of each example; at the end the total", -1);
        if (status == RFA_OK) {
            snprintf(name, sizeof name, "lengths%s", s->suffix);
            status = write_column(w, NULL, name, H5T_STD_I32LE, H5T_NATIVE_INT32, w->examples,
                                  s->lengths, "token", "number of tokens of each example", scale);
        }
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
    int64_t total = 0;
    char name[2 * NAME_SIZE];
    RFA_ASSERT(w->group >= 0);
    for (int d = 0; d < w->documents; d++) {
        rfa_dataset_stream *s = &w->stream[d];
        RFA_TRY(rfa_dataset_stream_flush(s));
        if (w->added != w->examples || s->written != s->size) {
            return rfa_fail(RFA_ERR_IO,
                            "%s: split '%s' got %lld examples of %lld tokens, not %lld of %lld",
                            w->tmp, w->split, (long long)w->added, (long long)s->written,
                            (long long)w->examples, (long long)s->size);
        }
        total += s->size;
    }
    RFA_TRY(write_columns(w));
    snprintf(name, sizeof name, "examples_%s", w->split);
    RFA_TRY(rfa_h5_write_int(w->file, w->tmp, name, w->examples));
    snprintf(name, sizeof name, "tokens_%s", w->split);
    RFA_TRY(rfa_h5_write_int(w->file, w->tmp, name, total));
    snprintf(name, sizeof name, "class_counts_%s", w->split);
    RFA_TRY(rfa_h5_write_ints(w->file, w->tmp, name, w->class_counts, w->classes));
    for (int d = 0; d < w->documents; d++) {
        RFA_TRY(rfa_h5_close_array(&w->stream[d].tokens, w->tmp));
    }
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
