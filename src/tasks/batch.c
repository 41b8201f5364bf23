#include "tasks/batch.h"

#include "base/profile.h"
#include "rng/rng.h"

#include <string.h>

rfa_status rfa_sampler_create(rfa_sampler *sampler, uint64_t seed, int64_t examples)
{
    *sampler = (rfa_sampler){.seed = seed, .examples = examples, .epoch = -1};
    return rfa_alloc(&sampler->order, examples, sizeof *sampler->order, "order of examples");
}

void rfa_sampler_destroy(rfa_sampler *sampler)
{
    rfa_free(sampler->order);
    *sampler = (rfa_sampler){0};
}

// Fisher-Yates, keyed by the epoch.
static void shuffle(rfa_sampler *sampler, int64_t epoch)
{
    rfa_rng_reader reader =
        rfa_rng_reader_at(rfa_rng_stream(sampler->seed, RFA_RNG_SHUFFLE, (uint32_t)epoch, 0));
    int32_t *order = sampler->order;
    for (int64_t i = 0; i < sampler->examples; i++) {
        order[i] = (int32_t)i;
    }
    for (int64_t i = sampler->examples - 1; i > 0; i--) {
        const uint32_t j = rfa_rng_below(&reader, (uint32_t)i + 1);
        const int32_t swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    sampler->epoch = epoch;
}

int64_t rfa_sampler_at(rfa_sampler *sampler, int64_t index)
{
    if (index / sampler->examples != sampler->epoch) {
        shuffle(sampler, index / sampler->examples);
    }
    return sampler->order[index % sampler->examples];
}

rfa_status rfa_batch_create(rfa_batch *batch,
                            int capacity,
                            int segments,
                            int parts,
                            int part,
                            ptrdiff_t max_length,
                            ptrdiff_t span,
                            int documents)
{
    const ptrdiff_t sequences = (ptrdiff_t)capacity * documents;
    RFA_ASSERT(span % RFA_ROWS == 0);
    *batch = (rfa_batch){
        .capacity = capacity,
        .documents = documents,
        .segments = segments,
        .parts = parts,
        .part = part,
        .max_length = max_length,
        .span = span,
        .own = rfa_part_begin(segments, parts, part + 1) - rfa_part_begin(segments, parts, part),
    };
    RFA_TRY(rfa_alloc(&batch->id, sequences, sizeof *batch->id, "batch"));
    RFA_TRY(rfa_alloc(&batch->label, capacity, sizeof *batch->label, "batch"));
    RFA_TRY(rfa_alloc(&batch->length, sequences, sizeof *batch->length, "batch"));
    RFA_TRY(rfa_alloc(&batch->present, sequences, sizeof *batch->present, "batch"));
    return rfa_alloc(&batch->leaves, sequences * batch->own, sizeof *batch->leaves, "batch");
}

void rfa_batch_destroy(rfa_batch *batch)
{
    rfa_free(batch->id);
    rfa_free(batch->label);
    rfa_free(batch->length);
    rfa_free(batch->present);
    rfa_free(batch->leaves);
    rfa_free(batch->ids);
    rfa_free(batch->mask);
    *batch = (rfa_batch){0};
}

static rfa_status reserve_rows(rfa_batch *batch)
{
    if (batch->rows <= batch->row_capacity) {
        return RFA_OK;
    }
    rfa_free(batch->ids);
    rfa_free(batch->mask);
    batch->ids = NULL;
    batch->mask = NULL;
    batch->row_capacity = 0;
    RFA_TRY(rfa_alloc(&batch->ids, batch->rows, sizeof *batch->ids, "batch tokens"));
    RFA_TRY(rfa_alloc(&batch->mask, batch->rows, sizeof *batch->mask, "batch mask"));
    batch->row_capacity = batch->rows;
    return RFA_OK;
}

int rfa_batch_windows(const rfa_batch *batch, ptrdiff_t length)
{
    const ptrdiff_t cut = length < batch->max_length ? length : batch->max_length;
    return batch->span > 0 && cut > 0 ? (int)((cut + batch->span - 1) / batch->span) : 1;
}

rfa_status rfa_batch_lay_out(rfa_batch *batch, int n, int first, int window, int windows)
{
    RFA_ASSERT(n <= batch->capacity && window < windows);
    const ptrdiff_t begin = window * batch->span;
    batch->examples = n;
    batch->sequences = n * batch->documents;
    batch->first = first * batch->documents;
    batch->window = window;
    batch->windows = windows;
    batch->leaf_count = batch->sequences * batch->own;
    batch->tokens = 0;
    for (int s = 0; s < batch->sequences; s++) {
        const ptrdiff_t left = batch->length[s] > begin ? batch->length[s] - begin : 0;
        batch->present[s] = batch->span > 0 && batch->span < left ? batch->span : left;
    }
    batch->rows = rfa_leaves_fill(batch->leaves, batch->present, batch->sequences, batch->segments,
                                  batch->parts, batch->part);
    RFA_TRY(reserve_rows(batch));
    for (int l = 0; l < batch->leaf_count; l++) {
        rfa_leaf *leaf = &batch->leaves[l];
        leaf->begin += begin;
        batch->tokens += leaf->tokens;
        for (ptrdiff_t t = 0; t < leaf->rows; t++) {
            batch->mask[leaf->row0 + t] = t < leaf->tokens;
        }
    }
    return RFA_OK;
}

void rfa_batch_describe(rfa_batch *batch, const rfa_dataset *dataset, const int64_t *id, int n)
{
    for (int s = 0; s < n * batch->documents; s++) {
        const int64_t example = id[s / batch->documents];
        batch->id[s] = example * batch->documents + s % batch->documents;
        const ptrdiff_t length = rfa_dataset_length(dataset, batch->id[s]);
        batch->label[s / batch->documents] = rfa_dataset_label(dataset, example);
        batch->length[s] = length < batch->max_length ? length : batch->max_length;
    }
}

rfa_status rfa_batch_load(rfa_batch *batch,
                          rfa_dataset *dataset,
                          const rfa_comm *all,
                          const int64_t *id,
                          int n,
                          int first,
                          int window,
                          int windows)
{
    RFA_PROFILE(RFA_PHASE_DATA);
    rfa_batch_describe(batch, dataset, id, n);
    RFA_TRY(rfa_agree(all, rfa_batch_lay_out(batch, n, first, window, windows)));
    return rfa_dataset_read(dataset, batch->ids, batch->id, batch->leaves, batch->leaf_count);
}
