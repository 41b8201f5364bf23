#include "models/world.h"

#include "layers/head.h"

rfa_classifier_options world_options(rfa_attention_kind kind, bool causal, rfa_pooling pooling)
{
    return (rfa_classifier_options){
        .layers = 2,
        .width = 32,
        .heads = 2,
        .feed_forward = 48,
        .head = 24,
        .classes = WORLD_CLASSES,
        .vocabulary = WORLD_VOCABULARY,
        .max_length = 400,
        .positions = RFA_POSITIONS_LEARNED,
        .pooling = pooling,
        .dropout = 0.1,
        .attention = kind,
        .causal = causal,
        .projections = 32,
        .pool = 20,
        .bandwidth = 0.8,
        .segments = WORLD_SEGMENTS,
        .seed = 7,
    };
}

void world_load(world *w, const ptrdiff_t *lengths, int examples)
{
    rfa_batch *batch = &w->batch;
    batch->examples = examples;
    batch->leaf_count = examples * batch->own;
    batch->tokens = 0;
    for (int e = 0; e < examples; e++) {
        batch->id[e] = e;
        batch->label[e] = (3 * e + 1) % WORLD_CLASSES;
        batch->length[e] = lengths[e];
    }
    batch->rows = rfa_leaves_fill(batch->leaves, batch->length, examples, batch->segments,
                                  batch->parts, batch->part);
    for (int l = 0; l < batch->leaf_count; l++) {
        const rfa_leaf *leaf = &batch->leaves[l];
        batch->tokens += leaf->tokens;
        for (ptrdiff_t t = 0; t < leaf->rows; t++) {
            const ptrdiff_t at = leaf->begin + t;
            const bool valid = t < leaf->tokens;
            batch->mask[leaf->row0 + t] = valid;
            batch->ids[leaf->row0 + t] =
                (uint16_t)(valid ? 1 + (at * at + 7 * leaf->example) % (WORLD_VOCABULARY - 1) : 0);
        }
    }
}

void world_create(world *w,
                  MPI_Comm comm,
                  const rfa_classifier_options *options,
                  rfa_exchange_algorithm algorithm,
                  const ptrdiff_t *lengths,
                  int examples)
{
    enum { MOST_ROWS = 4096 };
    *w = (world){.exchange = NULL};
    rfa_comm_create(&w->sequence, comm);
    check_ok(rfa_exchange_create(&w->exchange, &w->sequence, options->segments, algorithm));
    check_ok(rfa_classifier_create(&w->model, options, &w->sequence, w->exchange));
    check_ok(rfa_batch_create(&w->batch, examples, options->segments, w->sequence.size,
                              w->sequence.rank, options->max_length));
    check_ok(rfa_alloc(&w->batch.ids, MOST_ROWS, sizeof *w->batch.ids, "ids"));
    check_ok(rfa_alloc(&w->batch.mask, MOST_ROWS, sizeof *w->batch.mask, "mask"));
    w->gradient = test_reals(rfa_classifier_table(w->model)->size);
    w->dlogits = test_reals((ptrdiff_t)examples * options->classes);
    world_load(w, lengths, examples);
    check(w->batch.rows <= MOST_ROWS);
}

void world_destroy(world *w)
{
    rfa_free(w->dlogits);
    rfa_free(w->gradient);
    rfa_batch_destroy(&w->batch);
    rfa_classifier_destroy(&w->model);
    rfa_exchange_destroy(&w->exchange);
    rfa_comm_destroy(&w->sequence);
}

double world_loss(world *w, int64_t step, bool gradients)
{
    const int n = w->batch.examples;
    const ptrdiff_t classes = w->model->options.classes;
    double loss = 0;
    check_ok(rfa_classifier_forward(w->model, &w->batch, step));
    for (int e = 0; e < n; e++) {
        loss += rfa_cross_entropy(w->dlogits + e * classes,
                                  rfa_classifier_logits(w->model) + e * classes, classes,
                                  w->batch.label[e], 1.0 / n);
    }
    if (gradients) {
        check_ok(rfa_classifier_backward(w->model, &w->batch, step, w->dlogits));
        check_ok(rfa_classifier_gradients(w->model, w->gradient, &w->sequence));
    }
    return loss / n;
}
