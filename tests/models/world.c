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
        .documents = 1,
        .classes = WORLD_CLASSES,
        .vocabulary = WORLD_VOCABULARY,
        .max_length = 400,
        .positions = RFA_POSITIONS_LEARNED,
        .pooling = pooling,
        .dropout = 0.1,
        .attention = {.kind = kind,
                      .causal = causal,
                      .map = kind == RFA_ATTENTION_ELU         ? RFA_MAP_ELU
                             : kind == RFA_ATTENTION_PERFORMER ? RFA_MAP_POSITIVE
                                                               : RFA_MAP_GAUSSIAN,
                      .unit_norm = kind == RFA_ATTENTION_RFA,
                      .projections = 32,
                      .pool = 20,
                      .redraw = 1,
                      .bandwidth = 0.8,
                      .gate_bias = 2,
                      .landmarks = 6,
                      .landmark_map = true,
                      .draws = 1,
                      .specificity = 1,
                      .window = 24},
        .segments = WORLD_SEGMENTS,
        .seed = 7,
    };
}

const world_variant *world_variants(void)
{
#define RFA .kind = RFA_ATTENTION_RFA
#define ELU .kind = RFA_ATTENTION_ELU
#define PERFORMER .kind = RFA_ATTENTION_PERFORMER
#define LARA .kind = RFA_ATTENTION_LARA
#define BOTH .causal = true, .direction = RFA_BOTH
#define V(title, ...)                                                                              \
    {                                                                                              \
        .name = (title), .attention = { __VA_ARGS__ }                                              \
    }
    static const world_variant variants[] = {
        V("rfa", RFA),
        V("rfa causal", RFA, .causal = true),
        V("rfa reverse", RFA, .causal = true, .direction = RFA_REVERSE),
        V("rfa arccos", RFA, .map = RFA_MAP_ARCCOS),
        V("rfa temperature", RFA, .bandwidth_kind = RFA_BANDWIDTH_TEMPERATURE),
        V("rfa fixed", RFA, .bandwidth_kind = RFA_BANDWIDTH_FIXED, .rows = RFA_ROWS_ORTHOGONAL),
        {.name = "rfa free", .free_norm = true, .attention = {RFA}},
        {.name = "rfa free, causal, simplex",
         .free_norm = true,
         .attention = {RFA, .causal = true, .rows = RFA_ROWS_SIMPLEX}},
        V("rfa fastfood", RFA, .rows = RFA_ROWS_FASTFOOD),
        V("rfa gate", RFA, .causal = true, .gate = RFA_GATE_LEARNED),
        V("rfa gate, reverse", RFA, .causal = true, .direction = RFA_REVERSE,
          .gate = RFA_GATE_LEARNED),
        V("rfa gate, both", RFA, BOTH, .gate = RFA_GATE_LEARNED),
        V("rfa decay, both", RFA, BOTH, .gate = RFA_GATE_DECAY),
        V("rfa both", RFA, BOTH),
        {.name = "rfa arccos, free, gate",
         .free_norm = true,
         .attention = {RFA, .map = RFA_MAP_ARCCOS, .causal = true, .gate = RFA_GATE_LEARNED}},
        V("elu", ELU),
        V("elu causal", ELU, .causal = true),
        V("elu gate, both", ELU, BOTH, .gate = RFA_GATE_LEARNED),
        V("performer", PERFORMER),
        V("performer causal, redrawn", PERFORMER, .causal = true, .redraw = 5),
        V("performer gate, both", PERFORMER, BOTH, .gate = RFA_GATE_LEARNED),
        V("oprf", PERFORMER, .map = RFA_MAP_OPRF),
        V("oprf fastfood, both", PERFORMER, BOTH, .map = RFA_MAP_OPRF, .rows = RFA_ROWS_FASTFOOD),
        V("softmax", .kind = RFA_ATTENTION_SOFTMAX),
        V("softmax causal", .kind = RFA_ATTENTION_SOFTMAX, .causal = true),
        V("lara", LARA),
        V("lara specific, antithetic", LARA, .weights = RFA_WEIGHTS_SPECIFIC, .draws = 2,
          .antithetic = true),
        V("lara biased, many", LARA, .weights = RFA_WEIGHTS_BIASED, .draws = 2, .landmarks = 40),
        {.name = "lara means",
         .plain_landmarks = true,
         .attention = {LARA, .weights = RFA_WEIGHTS_SPECIFIC, .landmarks = 7}},
        V("eva", .kind = RFA_ATTENTION_EVA),
        V("eva causal, many", .kind = RFA_ATTENTION_EVA, .causal = true, .landmarks = 100),
        {.name = "eva means",
         .plain_landmarks = true,
         .attention = {.kind = RFA_ATTENTION_EVA, .landmarks = 57}},
        V("ra", .kind = RFA_ATTENTION_RA),
        V("ra causal, 3 draws", .kind = RFA_ATTENTION_RA, .causal = true, .draws = 3),
        {.name = NULL},
    };
#undef V
#undef RFA
#undef ELU
#undef PERFORMER
#undef BOTH
#undef LARA
    return variants;
}

rfa_classifier_options world_variant_options(const world_variant *variant)
{
    const rfa_attention_options *a = &variant->attention;
    const bool first_sees_all = !a->causal || a->direction != RFA_FORWARD;
    rfa_classifier_options options =
        world_options(a->kind, a->causal, first_sees_all ? RFA_POOLING_FIRST : RFA_POOLING_MEAN);
    rfa_attention_options *b = &options.attention;
    b->map = a->map ? a->map : b->map;
    b->unit_norm = b->unit_norm && !variant->free_norm;
    b->bandwidth = variant->free_norm ? 0.3 : b->bandwidth; // free norms are near 2
    b->direction = a->direction;
    b->bandwidth_kind = a->bandwidth_kind;
    b->rows = a->rows;
    b->gate = a->gate;
    b->landmark_map = !variant->plain_landmarks;
    b->landmarks = a->landmarks ? a->landmarks : b->landmarks;
    b->draws = a->draws ? a->draws : b->draws;
    b->antithetic = a->antithetic;
    b->weights = a->weights;
    b->redraw = a->redraw ? a->redraw : b->redraw;
    return options;
}

// Lays out a window; tokens are functions of example and position.
void world_show(world *w, int examples, int window, int windows)
{
    rfa_batch *batch = &w->batch;
    check_ok(rfa_batch_lay_out(batch, examples, 0, window, windows));
    for (int l = 0; l < batch->leaf_count; l++) {
        const rfa_leaf *leaf = &batch->leaves[l];
        for (ptrdiff_t t = 0; t < leaf->rows; t++) {
            const ptrdiff_t at = leaf->begin + t;
            const bool valid = t < leaf->tokens;
            batch->ids[leaf->row0 + t] =
                (uint16_t)(valid ? 1 + (at * at + 7 * leaf->example) % (WORLD_VOCABULARY - 1) : 0);
            if (valid && w->early > 0) {
                const bool last = at + 1 == batch->length[leaf->example];
                const int between = 1 + (int)(at % 2);
                batch->ids[leaf->row0 + t] = (uint16_t)(at == 0 ? w->early
                                                        : last  ? w->late
                                                                : between);
            }
        }
    }
}

void world_load(world *w, const ptrdiff_t *lengths, int examples)
{
    rfa_batch *batch = &w->batch;
    int windows = 1;
    for (int s = 0; s < examples * batch->documents; s++) {
        const int own = rfa_batch_windows(batch, lengths[s]), e = s / batch->documents;
        windows = own > windows ? own : windows;
        batch->id[s] = s;
        batch->label[e] = (3 * e + 1) % WORLD_CLASSES;
        batch->length[s] = lengths[s];
    }
    world_show(w, examples, 0, windows);
}

void world_create(world *w,
                  MPI_Comm comm,
                  const rfa_classifier_options *options,
                  rfa_exchange_algorithm algorithm,
                  const ptrdiff_t *lengths,
                  int examples)
{
    world_create_windows(w, comm, options, algorithm, lengths, examples, 0);
}

void world_create_windows(world *w,
                          MPI_Comm comm,
                          const rfa_classifier_options *options,
                          rfa_exchange_algorithm algorithm,
                          const ptrdiff_t *lengths,
                          int examples,
                          ptrdiff_t span)
{
    *w = (world){.exchange = NULL};
    rfa_comm_create(&w->sequence, comm);
    check_ok(rfa_exchange_create(&w->exchange, &w->sequence, options->segments, algorithm));
    check_ok(rfa_classifier_create(&w->model, options, &w->sequence, w->exchange));
    check_ok(rfa_batch_create(&w->batch, examples, options->segments, w->sequence.size,
                              w->sequence.rank, options->max_length, span, options->documents));
    w->gradient = test_reals(rfa_classifier_table(w->model)->size);
    w->dlogits = test_reals((ptrdiff_t)examples * options->classes);
    world_load(w, lengths, examples);
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
    const int windows = w->batch.windows;
    double loss = 0;
    for (int window = 0; window < windows; window++) {
        if (windows > 1) {
            world_show(w, n, window, windows);
        }
        check_ok(rfa_classifier_forward(w->model, &w->batch, step, step > 0));
    }
    for (int e = 0; e < n; e++) {
        loss += rfa_cross_entropy(w->dlogits + e * classes,
                                  rfa_classifier_logits(w->model) + e * classes, classes,
                                  w->batch.label[e], 1.0 / n);
    }
    if (gradients) {
        for (int window = windows - 1; window >= 0; window--) {
            if (window + 1 < windows) {
                world_show(w, n, window, windows);
            }
            check_ok(rfa_classifier_backward(w->model, &w->batch, w->dlogits));
        }
        check_ok(rfa_classifier_gradients(w->model, w->gradient, &w->sequence));
    }
    return loss / n;
}
