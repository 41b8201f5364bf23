#include "storage/dataset.h"

#include "base/mem.h"
#include "storage/dataset_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

rfa_status rfa_dataset_check_ids(hid_t type, const char *path, const char *name)
{
    const size_t size = H5Tget_size(type);
    const H5T_order_t order = H5Tget_order(type);
    if (H5Tget_class(type) != H5T_INTEGER || H5Tget_sign(type) != H5T_SGN_NONE ||
        (size != 1 && size != 2) || H5Tget_precision(type) != 8 * size ||
        (order != H5T_ORDER_LE && order != H5T_ORDER_BE)) {
        return rfa_h5_fail(RFA_ERR_IO, path,
                           "dataset '%s' doesn't hold unsigned 8-bit or 16-bit integers", name);
    }
    return RFA_OK;
}

// Text attribute of 1 to RFA_DATASET_TEXT - 1 bytes.
static rfa_status
short_text(char out[RFA_DATASET_TEXT], hid_t file, const char *path, const char *name)
{
    char *text = NULL;
    RFA_TRY(rfa_h5_read_text(file, path, name, &text));
    const size_t length = strlen(text);
    rfa_status status = RFA_OK;
    if (length == 0 || length >= RFA_DATASET_TEXT) {
        status = rfa_fail(RFA_ERR_IO, "%s: attribute '%s' has %zu bytes, not 1 to %d", path, name,
                          length, RFA_DATASET_TEXT - 1);
    } else {
        memcpy(out, text, length + 1);
    }
    rfa_free(text);
    return status;
}

static rfa_status check_root(rfa_dataset_facts *facts, hid_t file, const char *path)
{
    if (!rfa_h5_has_attribute(file, "complete")) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: attribute 'complete' is missing: not a data set, or one that was not "
                        "written to its end",
                        path);
    }
    bool complete;
    RFA_TRY(rfa_h5_read_bool(file, path, "complete", &complete));
    if (!complete) {
        return rfa_fail(RFA_ERR_IO, "%s: attribute 'complete' is 0: it was not written to its end",
                        path);
    }
    RFA_TRY(short_text(facts->task, file, path, "task"));
    RFA_TRY(short_text(facts->digest, file, path, "digest"));
    if (strlen(facts->digest) != 16 || strspn(facts->digest, "0123456789abcdef") != 16) {
        return rfa_fail(RFA_ERR_IO, "%s: attribute 'digest' is '%s', not 16 hex digits", path,
                        facts->digest);
    }
    if (rfa_h5_has_attribute(file, "validation")) {
        RFA_TRY(short_text(facts->validation, file, path, "validation"));
    }
    int64_t classes;
    RFA_TRY(rfa_h5_read_int(file, path, "classes", &classes));
    if (classes < 2 || classes > 4096) { // a confusion matrix is kept per evaluation
        return rfa_fail(RFA_ERR_IO, "%s: attribute 'classes' is %" PRId64 ", not 2 to 4096", path,
                        classes);
    }
    facts->classes = (int)classes;
    hid_t vocabulary;
    hsize_t symbols;
    RFA_TRY(rfa_h5_open_array(&vocabulary, file, path, "vocabulary", H5T_STRING, 1, &symbols));
    rfa_h5_close(&vocabulary);
    if (symbols < 2 || symbols > 65536) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: dataset 'vocabulary' has %" PRIuHSIZE " symbols, not 2 to 65536", path,
                        symbols);
    }
    facts->symbols = (int)symbols;
    int64_t documents = 1;
    if (rfa_h5_has_attribute(file, "documents")) {
        RFA_TRY(rfa_h5_read_int(file, path, "documents", &documents));
    }
    if (documents < 1 || documents > 2) {
        return rfa_fail(RFA_ERR_IO, "%s: attribute 'documents' is %" PRId64 ", not 1 or 2", path,
                        documents);
    }
    facts->documents = (int)documents;
    return RFA_OK;
}

// What is added to stored values. Local.
static rfa_status read_first_id(int *first_id, hid_t tokens, const char *path, const char *name)
{
    int64_t value = 0;
    if (rfa_h5_has_attribute(tokens, "first_id")) {
        RFA_TRY(rfa_h5_read_int(tokens, path, "first_id", &value));
    }
    if (value < 0 || value > 1) {
        return rfa_fail(RFA_ERR_IO, "%s: attribute 'first_id' of '%s' is %" PRId64 ", not 0 or 1",
                        path, name, value);
    }
    *first_id = (int)value;
    return RFA_OK;
}

// The number of tokens of the split; type and shape are checked, the content is not read.
static rfa_status check_tokens(int64_t *count, hid_t file, const char *path, const char *name)
{
    hid_t tokens, type;
    hsize_t shape;
    RFA_TRY(rfa_h5_open_array(&tokens, file, path, name, H5T_INTEGER, 1, &shape));
    type = H5Dget_type(tokens);
    int first_id = 0;
    rfa_status status = rfa_dataset_check_ids(type, path, name);
    if (status == RFA_OK) {
        status = read_first_id(&first_id, tokens, path, name);
    }
    rfa_h5_close(&type);
    rfa_h5_close(&tokens);
    *count = (int64_t)shape;
    return status;
}

// A whole one-dimensional integer dataset. *count < 0: any number of elements, which is returned.
static rfa_status read_column(int64_t **out,
                              int64_t *count,
                              hid_t file,
                              const char *path,
                              const char *split,
                              const char *name)
{
    char full[1024];
    hid_t column;
    hsize_t shape;
    *out = NULL;
    snprintf(full, sizeof full, "%s/%s", split, name);
    RFA_TRY(rfa_h5_open_array(&column, file, path, full, H5T_INTEGER, 1, &shape));
    rfa_status status = RFA_OK;
    if (shape >= INT_MAX) {
        status = rfa_fail(RFA_ERR_IO, "%s: dataset '%s' has %" PRIuHSIZE " elements, too many",
                          path, full, shape);
    } else if (*count >= 0 && (int64_t)shape != *count) {
        status = rfa_fail(RFA_ERR_IO,
                          "%s: dataset '%s' has %" PRIuHSIZE " elements, but the split has %" PRId64
                          " examples",
                          path, full, shape, *count);
    } else {
        *count = (int64_t)shape;
        status = rfa_alloc(out, *count > 0 ? *count : 1, sizeof **out, full);
    }
    if (status == RFA_OK && *count > 0) {
        status = rfa_h5_read_array(column, path, H5T_NATIVE_INT64, *out);
    }
    rfa_h5_close(&column);
    return status;
}

// The ending of the names of a document's datasets.
static const char *suffix(const rfa_dataset *d)
{
    return d->document > 0 ? "2" : "";
}

static rfa_status check_offsets(rfa_dataset *d, const char *split)
{
    const char *end = suffix(d);
    const int64_t n = d->facts.examples, *offsets = d->offsets;
    if (offsets[0] != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: dataset '%s/offsets%s' begins with %" PRId64 ", not 0",
                        d->path, split, end, offsets[0]);
    }
    for (int64_t i = 0; i < n; i++) {
        if (offsets[i + 1] <= offsets[i]) {
            return rfa_fail(RFA_ERR_IO,
                            "%s: dataset '%s/offsets%s' doesn't ascend at index %" PRId64
                            ": %" PRId64 " after %" PRId64,
                            d->path, split, end, i + 1, offsets[i + 1], offsets[i]);
        }
        const int64_t length = offsets[i + 1] - offsets[i];
        d->facts.longest = length > d->facts.longest ? length : d->facts.longest;
    }
    if (offsets[n] != d->facts.tokens) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: dataset '%s/offsets%s' ends with %" PRId64
                        ", but '%s/tokens%s' has %" PRId64 " tokens",
                        d->path, split, end, offsets[n], split, end, d->facts.tokens);
    }
    return RFA_OK;
}

static rfa_status check_columns(rfa_dataset *d, hid_t file, const char *split)
{
    const char *offset_name = d->document > 0 ? "offsets2" : "offsets";
    const char *length_name = d->document > 0 ? "lengths2" : "lengths";
    int64_t *lengths = NULL, *labels = NULL, n = -1;
    RFA_TRY(read_column(&d->offsets, &n, file, d->path, split, offset_name));
    if (n < 2) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: split '%s' is empty: dataset '%s/%s' has %" PRId64 " elements",
                        d->path, split, split, offset_name, n);
    }
    d->facts.examples = --n;
    RFA_TRY(check_offsets(d, split));
    rfa_status status = read_column(&lengths, &n, file, d->path, split, length_name);
    if (status == RFA_OK) {
        status = read_column(&labels, &n, file, d->path, split, "labels");
    }
    if (status == RFA_OK) {
        status = rfa_alloc(&d->labels, n, sizeof *d->labels, "labels");
    }
    for (int64_t i = 0; i < n && status == RFA_OK && lengths && labels; i++) {
        const int64_t length = d->offsets[i + 1] - d->offsets[i];
        if (lengths[i] != length) {
            status = rfa_fail(RFA_ERR_IO,
                              "%s: dataset '%s/%s' is %" PRId64 " at index %" PRId64
                              ", but the offsets give %" PRId64,
                              d->path, split, length_name, lengths[i], i, length);
        } else if (labels[i] < 0 || labels[i] >= d->facts.classes) {
            status = rfa_fail(RFA_ERR_IO,
                              "%s: dataset '%s/labels' is %" PRId64 " at index %" PRId64
                              ", not in [0, %d)",
                              d->path, split, labels[i], i, d->facts.classes);
        } else {
            d->labels[i] = (int32_t)labels[i];
        }
    }
    rfa_free(labels);
    rfa_free(lengths);
    return status;
}

static rfa_status cannot_open(const char *path)
{
    return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s%s", path, strerror(errno),
                    errno == ENOENT ? "; rfa data makes it: rfa data --help" : "");
}

// Everything that can be wrong with the file itself is found here, by one rank with a serial open,
// so that the parallel open only meets files that are whole.
static rfa_status inspect(rfa_dataset *d, const char *split)
{
    hid_t file, group;
    struct stat info;
    if (stat(d->path, &info) != 0) {
        return cannot_open(d->path);
    }
    RFA_TRY(rfa_h5_open(&file, d->path));
    rfa_status status = RFA_OK;
    if (status == RFA_OK) {
        d->facts.bytes = (int64_t)info.st_size;
        status = check_root(&d->facts, file, d->path);
    }
    if (status == RFA_OK && d->document >= d->facts.documents) {
        status = rfa_fail(RFA_ERR_IO, "%s: not a data set of pairs: it has one document an example",
                          d->path);
    }
    if (status == RFA_OK) {
        status = rfa_h5_open_group(&group, file, d->path, split);
        if (status == RFA_OK) {
            rfa_h5_close(&group);
            status = check_tokens(&d->facts.tokens, file, d->path, d->name);
        }
    }
    if (status == RFA_OK) {
        status = check_columns(d, file, split);
    }
    rfa_h5_close(&file);
    return status;
}

// Rank 0's facts and arrays to all. Collective.
static rfa_status share(rfa_dataset *d)
{
    rfa_status status = RFA_OK;
    MPI_Bcast(&d->facts, (int)sizeof d->facts, MPI_BYTE, 0, d->comm.comm);
    if (d->comm.rank > 0) {
        status = rfa_alloc(&d->offsets, d->facts.examples + 1, sizeof *d->offsets, "offsets");
        if (status == RFA_OK) {
            status = rfa_alloc(&d->labels, d->facts.examples, sizeof *d->labels, "labels");
        }
    }
    RFA_TRY(rfa_agree(&d->comm, status));
    const int n = rfa_int(d->facts.examples);
    MPI_Bcast(d->offsets, n + 1, MPI_INT64_T, 0, d->comm.comm);
    MPI_Bcast(d->labels, n, MPI_INT32_T, 0, d->comm.comm);
    return RFA_OK;
}

// A rank that doesn't see rank 0's file must say so before the collective open. Local.
static rfa_status check_visible(const rfa_dataset *d)
{
    struct stat info;
    RFA_TRY(rfa_fault("dataset.open", &d->comm, RFA_ERR_IO));
    const int descriptor = open(d->path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        return cannot_open(d->path);
    }
    const int failed = fstat(descriptor, &info);
    close(descriptor);
    if (failed || info.st_size != d->facts.bytes) {
        return rfa_fail(RFA_ERR_IO, "%s: is not the file that rank 0 sees: %lld bytes, not %lld",
                        d->path, failed ? -1LL : (long long)info.st_size,
                        (long long)d->facts.bytes);
    }
    return RFA_OK;
}

// Collective calls of HDF5; the outcome is local.
static rfa_status open_tokens(rfa_dataset *d)
{
    hsize_t shape;
    RFA_TRY(rfa_h5_open_parallel(&d->file, d->path, d->comm.comm));
    RFA_TRY(rfa_h5_open_array(&d->tokens, d->file, d->path, d->name, H5T_INTEGER, 1, &shape));
    d->type = H5Dget_type(d->tokens);
    RFA_TRY(rfa_dataset_check_ids(d->type, d->path, d->name));
    RFA_TRY(read_first_id(&d->first_id, d->tokens, d->path, d->name));
    d->id_bytes = (int)H5Tget_size(d->type);
    d->swap = d->id_bytes == 2 && H5Tget_order(d->type) != H5Tget_order(H5T_NATIVE_UINT16);
    if ((int64_t)shape != d->facts.tokens) {
        return rfa_fail(RFA_ERR_IO, "%s: dataset '%s' changed while it was opened", d->path,
                        d->name);
    }
    // Collective for HDF5, but each rank fetches its own bytes: the collective reads of Open MPI
    // 4.1.4's OMPIO return wrong data when the selections of ranks overlap in part (measured: 22 of
    // 300 on 3 ranks, 0 of 300 so; open-mpi/ompi issue 10546).
    d->transfer = H5Pcreate(H5P_DATASET_XFER);
    if (d->transfer < 0 || H5Pset_dxpl_mpio(d->transfer, H5FD_MPIO_COLLECTIVE) < 0 ||
        H5Pset_dxpl_mpio_collective_opt(d->transfer, H5FD_MPIO_INDIVIDUAL_IO) < 0) {
        return rfa_h5_fail(RFA_ERR_IO, d->path, "collective reads can't be set up");
    }
    return RFA_OK;
}

static rfa_status
open_one(rfa_dataset **out, const rfa_comm *all, const char *path, const char *split, int document)
{
    *out = NULL;
    rfa_dataset *d = NULL;
    rfa_status status = rfa_alloc(&d, 1, sizeof *d, "data set");
    if (status == RFA_OK) {
        *d = (rfa_dataset){.file = H5I_INVALID_HID,
                           .tokens = H5I_INVALID_HID,
                           .type = H5I_INVALID_HID,
                           .transfer = H5I_INVALID_HID,
                           .document = document};
        const ptrdiff_t name_size = (ptrdiff_t)(strlen(split) + sizeof "/tokens2");
        status = rfa_alloc(&d->path, (ptrdiff_t)strlen(path) + 1, 1, "path");
        if (status == RFA_OK) {
            status = rfa_alloc(&d->name, name_size, 1, "name");
        }
        if (status == RFA_OK) {
            memcpy(d->path, path, strlen(path) + 1);
            snprintf(d->name, (size_t)name_size, "%s/tokens%s", split, suffix(d));
        }
    }
    status = rfa_agree(all, status);
    if (status != RFA_OK) {
        rfa_dataset_close(&d);
        return status;
    }
    rfa_comm_create(&d->comm, all->comm);
    status = rfa_agree(&d->comm, d->comm.rank == 0 ? inspect(d, split) : RFA_OK);
    if (status == RFA_OK) {
        status = share(d);
    }
    if (status == RFA_OK) {
        status = rfa_agree(&d->comm, check_visible(d));
    }
    if (status == RFA_OK) {
        status = rfa_agree(&d->comm, open_tokens(d));
    }
    if (status != RFA_OK) {
        rfa_dataset_close(&d);
        return status;
    }
    *out = d;
    return RFA_OK;
}

// Whether both documents have the same examples: of two opens of one file. Local.
static rfa_status check_pair(const rfa_dataset *a, const rfa_dataset *b)
{
    const int64_t n = a->facts.examples;
    const bool same = b->facts.examples == n && strcmp(a->facts.digest, b->facts.digest) == 0 &&
                      memcmp(a->labels, b->labels, (size_t)n * sizeof *a->labels) == 0;
    return same ? RFA_OK
                : rfa_fail(RFA_ERR_IO,
                           "%s: changed while it was opened, or its documents differ "
                           "in number",
                           a->path);
}

rfa_status
rfa_dataset_open(rfa_dataset **out, const rfa_comm *all, const char *path, const char *split)
{
    rfa_dataset *d = NULL;
    *out = NULL;
    RFA_TRY(open_one(&d, all, path, split, 0));
    rfa_status status = RFA_OK;
    if (d->facts.documents > 1) {
        status = open_one(&d->second, all, path, split, 1);
        if (status == RFA_OK) {
            status = rfa_agree(all, check_pair(d, d->second));
        }
    }
    if (status != RFA_OK) {
        rfa_dataset_close(&d);
        return status;
    }
    *out = d;
    return RFA_OK;
}

rfa_status rfa_dataset_open_document(
    rfa_dataset **out, const rfa_comm *all, const char *path, const char *split, int document)
{
    RFA_ASSERT(document == 0 || document == 1);
    return open_one(out, all, path, split, document);
}

void rfa_dataset_close(rfa_dataset **dataset)
{
    rfa_dataset *d = *dataset;
    if (d) {
        rfa_dataset_close(&d->second);
        rfa_h5_close(&d->transfer);
        rfa_h5_close(&d->type);
        rfa_h5_close(&d->tokens);
        rfa_h5_close(&d->file);
        rfa_comm_destroy(&d->comm);
        rfa_free(d->buffer);
        rfa_free(d->pieces);
        rfa_free(d->labels);
        rfa_free(d->offsets);
        rfa_free(d->name);
        rfa_free(d->path);
        rfa_free(d);
        *dataset = NULL;
    }
}
