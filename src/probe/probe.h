// rfa probe: how well the labels can be read off each layer's output by a linear rule.
#ifndef RFA_PROBE_PROBE_H
#define RFA_PROBE_PROBE_H

#include "probe/features.h"

enum { RFA_PROBE_RIDGES = 16 };

typedef enum { RFA_PROBE_VAL, RFA_PROBE_TEST, RFA_PROBE_SPLITS } rfa_probe_split;

// Of one model. Sets are (layer, pooling): set = layer * RFA_PROBE_POOLINGS + pooling.
typedef struct {
    ptrdiff_t layers, sets; // outputs: the embedding and each block
    int ridges;
    bool last;        // pooling 1 is the last token, not the first
    int64_t examples; // of training
    int majority;     // most frequent class among them
    int64_t seen[RFA_PROBE_SPLITS];
    double baseline[RFA_PROBE_SPLITS]; // accuracy of the majority class
    double *accuracy;                  // [sets][ridges][splits]
    int *chosen;                       // [sets] the ridge of best validation, the largest of equals
} rfa_probe_result;

// data [splits]: validation and test. examples: of the session's split, which is for training; 0:
// all. ridge [ridges]: ascending, above 0. Each example is read once and not kept: memory is that
// of a batch, and of the sums, 16 sets E (E / 2 + K) bytes. Features, sums and counts have the same
// bits for any number of ranks; so has the result, while one process solves (probe/ridge.h).
// RFA_ERR_USAGE for more examples than the sums hold; RFA_ERR_NUMERIC. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_probe_run(rfa_probe_result *result,
                                       rfa_session *session,
                                       rfa_dataset *const *data,
                                       int64_t examples,
                                       const double *ridge,
                                       int ridges);
void rfa_probe_destroy(rfa_probe_result *result); // idempotent

#endif
