// What a forward leaves behind in a model, for those who look at what it has learned. All of the
// batch in one window that was run last; rows are those of its leaves, of this rank. Local.
#ifndef RFA_MODELS_CLASSIFIER_VIEW_H
#define RFA_MODELS_CLASSIFIER_VIEW_H

#include "models/classifier.h"

// From the next forward on every layer is read out for every token, also where pooling reads the
// first one alone. Not for models that train.
void rfa_classifier_read_all(rfa_classifier *model);

// [rows][E] output of block layer - 1, the residual stream before the next norm; 0: the embedding.
const rfa_real *rfa_classifier_output(const rfa_classifier *model, ptrdiff_t layer);

// [rows][3 E] q | k | v of a layer, head h at column h d of each; [rows][E] what attention made of
// them, before its output projection. Without recomputation alone, where layers share this memory.
const rfa_real *rfa_classifier_qkv(const rfa_classifier *model, ptrdiff_t layer);
const rfa_real *rfa_classifier_attended(const rfa_classifier *model, ptrdiff_t layer);

#endif
