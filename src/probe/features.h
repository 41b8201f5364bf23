// Pooled features of a pass: what a linear read-out of each layer's output sees.
#ifndef RFA_PROBE_FEATURES_H
#define RFA_PROBE_FEATURES_H

#include "train/session.h"

// The mean over all tokens, and one token: the last where the run reads that one, else the first.
enum { RFA_PROBE_POOLINGS = 2 };

typedef struct {
    ptrdiff_t layers, width; // outputs: the embedding and each block; E
    ptrdiff_t size;          // layers * RFA_PROBE_POOLINGS * width, of an example
    bool last;               // the last token, not the first
    double *parts;           // [own][examples][size]
    ptrdiff_t room;
} rfa_features;

void rfa_features_create(rfa_features *features, const rfa_session *session); // allocates nothing
void rfa_features_destroy(rfa_features *features);                            // idempotent

// After rfa_session_forward of a pass: *out [examples of the pass][layers][poolings][width], on
// every rank of the sequence, until the next call. Sums over tokens are in double, by segments and
// then by the exchange: the same bits for any number of ranks. Collective over the sequence; not
// agreed.
RFA_NODISCARD rfa_status rfa_features_pool(const double **out,
                                           rfa_features *features,
                                           rfa_session *session);

#endif
