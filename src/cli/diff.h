// rfa diff in parts, which print to stdout, on rank 0; and what it means to be the same.
#ifndef RFA_CLI_DIFF_H
#define RFA_CLI_DIFF_H

#include "storage/runfile.h"

#include <string.h>

// NaN is the same as itself, 0 and -0 are not.
static inline bool rfa_same_bits(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

typedef struct {
    const char *path;
    rfa_run_view view;
} rfa_diff_side;

// Configurations, data, program: a line for each thing that differs, none for what is the same.
RFA_NODISCARD rfa_status rfa_diff_origins(const rfa_diff_side *a, const rfa_diff_side *b);

// The newest checkpoints, tensor by tensor. *differ is set when they do, and left when they are of
// different steps, which is said.
RFA_NODISCARD rfa_status rfa_diff_tensors(bool *differ,
                                          const rfa_diff_side *a,
                                          const rfa_diff_side *b);

#endif
