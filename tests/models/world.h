// A small model and batch on a communicator, made without files.
#ifndef TESTS_MODELS_WORLD_H
#define TESTS_MODELS_WORLD_H

#include "models/classifier_impl.h"
#include "support/support.h"

enum { WORLD_CLASSES = 5, WORLD_VOCABULARY = 11, WORLD_SEGMENTS = 8 };

typedef struct {
    rfa_comm sequence;
    rfa_exchange *exchange;
    rfa_classifier *model;
    rfa_batch batch;
    rfa_real *gradient, *dlogits;
    int early, late; // ids that stand at the begin of the first, the end of the last window alone
} world;

// Two layers, width 32, two heads, dropout 0.1.
rfa_classifier_options world_options(rfa_attention_kind kind, bool causal, rfa_pooling pooling);

// The table of all kinds of attention with their options; NULL behind the last one.
typedef struct {
    const char *name;
    bool free_norm, plain_landmarks;
    rfa_attention_options attention; // what differs from world_options(kind, causal, ...)
} world_variant;
const world_variant *world_variants(void);
rfa_classifier_options world_variant_options(const world_variant *variant);

void world_create(world *w,
                  MPI_Comm comm,
                  const rfa_classifier_options *options,
                  rfa_exchange_algorithm algorithm,
                  const ptrdiff_t *lengths,
                  int examples);
// The same in windows of span tokens.
void world_create_windows(world *w,
                          MPI_Comm comm,
                          const rfa_classifier_options *options,
                          rfa_exchange_algorithm algorithm,
                          const ptrdiff_t *lengths,
                          int examples,
                          ptrdiff_t span);
void world_destroy(world *w);

// Tokens and labels are functions of sequence and position; lengths [examples * documents].
void world_load(world *w, const ptrdiff_t *lengths, int examples);

// Goes to a window of the batch.
void world_show(world *w, int examples, int window, int windows);

// Mean loss of the batch in training step step (0: evaluation); with gradients: also backward.
double world_loss(world *w, int64_t step, bool gradients);

#endif
