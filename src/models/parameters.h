// The parameter table of a model: one list gives offsets, initial values, checkpoint names, decay
// and the cases of the gradient tests. Parameters, gradients and moments are the same offsets in
// different arrays.
#ifndef RFA_MODELS_PARAMETERS_H
#define RFA_MODELS_PARAMETERS_H

#include "base/kinds.h"
#include "base/mem.h"
#include "tensor/shapes.h"

#include <stdbool.h>

typedef struct {
    char name[64];
    ptrdiff_t shape[2]; // {n, 0}: a vector
    rfa_init init;
    double value;
    bool decay; // weight decay applies (matrices)
    ptrdiff_t offset, count;
} rfa_parameter;

typedef struct {
    rfa_parameter *list;
    int count, capacity;
    ptrdiff_t size;    // elements of the array, alignment gaps included
    ptrdiff_t learned; // elements that are parameters
} rfa_parameters;

// Appends one tensor and writes its offset. rows x columns, columns 0 for a vector. Local.
RFA_NODISCARD rfa_status rfa_parameters_add(rfa_parameters *table,
                                            ptrdiff_t *offset,
                                            ptrdiff_t rows,
                                            ptrdiff_t columns,
                                            rfa_init init,
                                            double value,
                                            const char *name_format,
                                            ...) __attribute__((format(printf, 7, 8)));
void rfa_parameters_destroy(rfa_parameters *table); // idempotent

// values [size] = initial values, a function of the seed and each tensor's place in the table; gaps
// 0. Local.
RFA_NODISCARD rfa_status rfa_parameters_init(rfa_real *values,
                                             const rfa_parameters *table,
                                             uint64_t seed);

#endif
