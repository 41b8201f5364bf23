#include "storage/dataset.h"

#include "base/mem.h"
#include "storage/dataset_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int64_t rfa_dataset_examples(const rfa_dataset *dataset)
{
    return dataset->facts.examples;
}

int rfa_dataset_classes(const rfa_dataset *dataset)
{
    return dataset->facts.classes;
}

int rfa_dataset_vocabulary(const rfa_dataset *dataset)
{
    return dataset->facts.symbols;
}

int rfa_dataset_documents(const rfa_dataset *dataset)
{
    return dataset->facts.documents;
}

int rfa_dataset_sequences(const rfa_dataset *dataset)
{
    return dataset->second ? 2 : 1;
}

ptrdiff_t rfa_dataset_longest(const rfa_dataset *dataset)
{
    const ptrdiff_t second = dataset->second ? dataset->second->facts.longest : 0;
    return dataset->facts.longest > second ? dataset->facts.longest : second;
}

const char *rfa_dataset_task(const rfa_dataset *dataset)
{
    return dataset->facts.task;
}

const char *rfa_dataset_validation(const rfa_dataset *dataset)
{
    return dataset->facts.validation;
}

const char *rfa_dataset_digest(const rfa_dataset *dataset)
{
    return dataset->facts.digest;
}

const char *rfa_dataset_path(const rfa_dataset *dataset)
{
    return dataset->path;
}

ptrdiff_t rfa_dataset_length(const rfa_dataset *dataset, int64_t sequence)
{
    const int64_t each = rfa_dataset_sequences(dataset), example = sequence / each;
    const rfa_dataset *d = sequence % each > 0 ? dataset->second : dataset;
    RFA_ASSERT(sequence >= 0 && example < d->facts.examples);
    return d->offsets[example + 1] - d->offsets[example];
}

int rfa_dataset_label(const rfa_dataset *dataset, int64_t example)
{
    RFA_ASSERT(example >= 0 && example < dataset->facts.examples);
    return dataset->labels[example];
}

static int by_begin(const void *a, const void *b)
{
    const rfa_dataset_piece *p = a, *q = b;
    return (p->begin > q->begin) - (p->begin < q->begin);
}

static rfa_status reserve(void *memory, ptrdiff_t *capacity, ptrdiff_t count, size_t size)
{
    void **block = memory;
    if (count > *capacity) {
        rfa_free(*block);
        *block = NULL;
        *capacity = 0;
        RFA_TRY(rfa_alloc(block, count + count / 4, size, "data set reads"));
        *capacity = count + count / 4;
    }
    return RFA_OK;
}

// What a read is about: leaves, and which sequence each one's example is; each: sequences an
// example, of which this document is one.
typedef struct {
    const int64_t *sequences;
    const rfa_leaf *leaves;
    int leaf_count, each;
} wish;

// What the leaves want of d's document as pieces in file order. Leaves without tokens want nothing.
static rfa_status list_pieces(rfa_dataset *d, ptrdiff_t *pieces, ptrdiff_t *tokens, const wish *of)
{
    const rfa_leaf *leaves = of->leaves;
    *pieces = *tokens = 0;
    RFA_TRY(reserve(&d->pieces, &d->piece_capacity, of->leaf_count, sizeof *d->pieces));
    for (int l = 0; l < of->leaf_count; l++) {
        const int64_t sequence = of->sequences[leaves[l].example], example = sequence / of->each;
        if (leaves[l].tokens > 0 && (of->each == 1 || sequence % of->each == d->document)) {
            RFA_ASSERT(leaves[l].begin >= 0 && example < d->facts.examples &&
                       leaves[l].begin + leaves[l].tokens <=
                           d->offsets[example + 1] - d->offsets[example]);
            d->pieces[(*pieces)++] =
                (rfa_dataset_piece){.begin = d->offsets[example] + leaves[l].begin,
                                    .count = leaves[l].tokens,
                                    .leaf = l};
            *tokens += leaves[l].tokens;
        }
    }
    if (*pieces > 1) {
        qsort(d->pieces, (size_t)*pieces, sizeof *d->pieces, by_begin);
    }
    return reserve(&d->buffer, &d->buffer_capacity, *tokens > 0 ? *tokens : 1, (size_t)d->id_bytes);
}

// Adds tokens [begin, end) to the selection.
static herr_t add_run(hid_t space, bool first, int64_t begin, int64_t end)
{
    const hsize_t from = (hsize_t)begin, count = (hsize_t)(end - begin);
    return H5Sselect_hyperslab(space, first ? H5S_SELECT_SET : H5S_SELECT_OR, &from, NULL, &count,
                               NULL);
}

// Selects the union of the pieces, and sets where in the buffer each begins. Pieces that touch or
// overlap (an example twice in the batch) become one run. *total: tokens of the union.
static rfa_status
select_pieces(const rfa_dataset *d, hid_t space, ptrdiff_t pieces, ptrdiff_t *total)
{
    herr_t failed = pieces == 0 ? H5Sselect_none(space) : 0;
    int64_t begin = 0, end = 0; // of the current run
    ptrdiff_t before = 0;       // tokens of the runs before it
    bool first = true;
    for (ptrdiff_t p = 0; p < pieces && failed >= 0; p++) {
        rfa_dataset_piece *piece = &d->pieces[p];
        if (p == 0) {
            begin = end = piece->begin;
        } else if (piece->begin > end) {
            failed = add_run(space, first, begin, end);
            first = false;
            before += end - begin;
            begin = end = piece->begin;
        }
        piece->source = before + (piece->begin - begin);
        end = piece->begin + piece->count > end ? piece->begin + piece->count : end;
    }
    if (pieces > 0 && failed >= 0) {
        failed = add_run(space, first, begin, end);
        before += end - begin;
    }
    *total = before;
    return failed >= 0
               ? RFA_OK
               : rfa_h5_fail(RFA_ERR_IO, d->path, "dataset '%s': selection failed", d->name);
}

// Buffer to rows, with a check of every id.
static rfa_status scatter(const rfa_dataset *d, uint16_t *ids, const wish *of, ptrdiff_t pieces)
{
    for (ptrdiff_t p = 0; p < pieces; p++) {
        const rfa_leaf *leaf = &of->leaves[d->pieces[p].leaf];
        const uint8_t *from = d->buffer + d->pieces[p].source * d->id_bytes;
        uint16_t *to = ids + leaf->row0;
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            int id;
            if (d->id_bytes == 1) {
                id = from[t];
            } else {
                uint16_t stored;
                memcpy(&stored, from + 2 * t, 2);
                id = d->swap ? __builtin_bswap16(stored) : stored;
            }
            id += d->first_id;
            if (id >= d->facts.symbols) {
                return rfa_fail(RFA_ERR_IO,
                                "%s: dataset '%s': example %" PRId64 ", token %td: id %d is not in "
                                "the vocabulary of %d",
                                d->path, d->name, of->sequences[leaf->example] / of->each,
                                leaf->begin + t, id, d->facts.symbols);
            }
            to[t] = (uint16_t)id;
        }
    }
    return RFA_OK;
}

static rfa_status read_document(rfa_dataset *d, uint16_t *ids, const wish *of)
{
    ptrdiff_t pieces = 0, wanted = 0, total = 0;
    hid_t memory = H5I_INVALID_HID, file = H5I_INVALID_HID;
    rfa_status status = rfa_fault("dataset.read", &d->comm, RFA_ERR_IO);
    if (status == RFA_OK) {
        status = list_pieces(d, &pieces, &wanted, of);
    }
    if (status == RFA_OK) {
        file = H5Dget_space(d->tokens);
        status = select_pieces(d, file, pieces, &total);
    }
    if (status == RFA_OK) {
        const hsize_t size = total > 0 ? (hsize_t)total : 1;
        memory = H5Screate_simple(1, &size, NULL);
        if (memory < 0 || (total == 0 && H5Sselect_none(memory) < 0)) {
            status = rfa_h5_fail(RFA_ERR_IO, d->path, "dataset '%s': selection failed", d->name);
        }
    }
    status = rfa_agree(&d->comm, status);
    if (status == RFA_OK) {
        // Memory has the file's own type: a conversion would make the read independent.
        if (H5Dread(d->tokens, d->type, memory, file, d->transfer, d->buffer) < 0) {
            status = rfa_h5_fail(RFA_ERR_IO, d->path, "dataset '%s' can't be read", d->name);
        } else {
            status = scatter(d, ids, of, pieces);
        }
        status = rfa_agree(&d->comm, status);
    }
    rfa_h5_close(&memory);
    rfa_h5_close(&file);
    return status;
}

rfa_status rfa_dataset_read(rfa_dataset *dataset,
                            uint16_t *ids,
                            const int64_t *sequences,
                            const rfa_leaf *leaves,
                            int leaf_count)
{
    const wish of = {sequences, leaves, leaf_count, rfa_dataset_sequences(dataset)};
    for (int l = 0; l < leaf_count; l++) {
        if (leaves[l].rows > 0) { // ids may be NULL without any
            memset(ids + leaves[l].row0, 0, (size_t)leaves[l].rows * sizeof *ids);
        }
    }
    RFA_TRY(read_document(dataset, ids, &of));
    return dataset->second ? read_document(dataset->second, ids, &of) : RFA_OK;
}
