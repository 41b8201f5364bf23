#include "bench/synthetic.h"

#include "rng/rng.h"

static uint16_t token_at(int example, ptrdiff_t position, int64_t vocabulary)
{
    const rfa_rng stream = rfa_rng_stream(1, RFA_RNG_BENCH, 1U << 16, (uint32_t)example);
    uint32_t words[4];
    rfa_rng_block(words, &stream, (uint64_t)position);
    return (uint16_t)(1 + words[0] % (uint64_t)(vocabulary - 1));
}

rfa_status rfa_bench_batch_create(rfa_batch *batch,
                                  int first,
                                  int examples,
                                  ptrdiff_t length,
                                  int segments,
                                  int parts,
                                  int part,
                                  int64_t vocabulary,
                                  int64_t classes)
{
    RFA_TRY(rfa_batch_create(batch, examples, segments, parts, part, length));
    batch->examples = examples;
    batch->first = first;
    batch->leaf_count = examples * batch->own;
    for (int e = 0; e < examples; e++) {
        batch->id[e] = first + e;
        batch->label[e] = (int)((first + e) % classes);
        batch->length[e] = length;
    }
    batch->rows = batch->row_capacity =
        rfa_leaves_fill(batch->leaves, batch->length, examples, segments, parts, part);
    RFA_TRY(rfa_alloc(&batch->ids, batch->rows, sizeof *batch->ids, "batch tokens"));
    RFA_TRY(rfa_alloc(&batch->mask, batch->rows, sizeof *batch->mask, "batch mask"));
    for (int l = 0; l < batch->leaf_count; l++) {
        const rfa_leaf *leaf = &batch->leaves[l];
        batch->tokens += leaf->tokens;
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            batch->ids[leaf->row0 + t] =
                token_at(first + leaf->example, leaf->begin + t, vocabulary);
            batch->mask[leaf->row0 + t] = 1;
        }
    }
    return RFA_OK;
}
