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
                                  ptrdiff_t span,
                                  int segments,
                                  int parts,
                                  int part,
                                  int64_t vocabulary,
                                  int64_t classes)
{
    RFA_TRY(rfa_batch_create(batch, examples, segments, parts, part, length, span, 1));
    batch->examples = examples;
    batch->first = first;
    for (int e = 0; e < examples; e++) {
        batch->id[e] = first + e;
        batch->label[e] = (int)((first + e) % classes);
        batch->length[e] = length;
    }
    return rfa_bench_batch_show(batch, 0, vocabulary);
}

rfa_status rfa_bench_batch_show(rfa_batch *batch, int window, int64_t vocabulary)
{
    RFA_TRY(rfa_batch_lay_out(batch, batch->examples, batch->first, window,
                              rfa_batch_windows(batch, batch->max_length)));
    for (int l = 0; l < batch->leaf_count; l++) {
        const rfa_leaf *leaf = &batch->leaves[l];
        for (ptrdiff_t t = 0; t < leaf->rows; t++) {
            batch->ids[leaf->row0 + t] = t < leaf->tokens ? token_at(batch->first + leaf->example,
                                                                     leaf->begin + t, vocabulary)
                                                          : 0;
        }
    }
    return RFA_OK;
}
