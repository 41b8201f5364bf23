// Examples without a data file: every token and label is a function of its place.
#ifndef RFA_BENCH_SYNTHETIC_H
#define RFA_BENCH_SYNTHETIC_H

#include "tasks/batch.h"

// A batch of examples of length tokens each, in windows of span tokens (0: one window), cut for
// part of parts; ids in [1, vocabulary), labels in [0, classes). Example e here is number first + e
// of the whole batch. Shows the first window. Local.
RFA_NODISCARD rfa_status rfa_bench_batch_create(rfa_batch *batch,
                                                int first,
                                                int examples,
                                                ptrdiff_t length,
                                                ptrdiff_t span,
                                                int segments,
                                                int parts,
                                                int part,
                                                int64_t vocabulary,
                                                int64_t classes);

// Goes to a window of the batch. Local.
RFA_NODISCARD rfa_status rfa_bench_batch_show(rfa_batch *batch, int window, int64_t vocabulary);

#endif
