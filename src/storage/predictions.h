// What a model says of each example of a split, as HDF5, written once, whole, under a temporary
// name.
//
//   /            attributes: schema, written, and those of the caller (run, split, step, task,
//   digest, ...) /config      the run's configuration /index       [n] scale: the example's place
//   in the split /label, /prediction  [n] classes /class       [classes] scale /logits [n][classes]
//   float32
#ifndef RFA_STORAGE_PREDICTIONS_H
#define RFA_STORAGE_PREDICTIONS_H

#include "storage/attributes.h"

#include <stddef.h>

// RFA_ERR_IO. Local: one rank writes.
RFA_NODISCARD rfa_status rfa_predictions_write(const char *path,
                                               const rfa_attributes *attributes,
                                               const char *config_text,
                                               int64_t examples,
                                               int classes,
                                               const int32_t *labels,
                                               const int32_t *guesses,
                                               const float *logits);

#endif
