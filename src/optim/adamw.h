// AdamW (Loshchilov and Hutter, ICLR 2019), clipping by the global norm. Every
// rank holds all parameters and does the same arithmetic on the same gradient.
#ifndef RFA_OPTIM_ADAMW_H
#define RFA_OPTIM_ADAMW_H

#include "models/parameters.h"

typedef struct {
    double beta1; // a schedule may move it between steps
    double beta2, epsilon, weight_decay;
    double clip; // largest global L2 norm of the gradient; 0: off
} rfa_adamw_options;

typedef struct {
    rfa_adamw_options options;
    rfa_real *moment1, *moment2; // [table->size]
} rfa_adamw;

RFA_NODISCARD rfa_status rfa_adamw_create(rfa_adamw *optimiser,
                                          const rfa_adamw_options *options,
                                          ptrdiff_t size);
void rfa_adamw_destroy(rfa_adamw *optimiser); // idempotent

// One step (step >= 1) of values along gradient with the given rate; weight decay on matrices only.
// Returns the gradient's global L2 norm before clipping, which may be NaN: then nothing is changed.
// Local.
double rfa_adamw_step(rfa_adamw *optimiser,
                      rfa_real *values,
                      const rfa_real *gradient,
                      const rfa_parameters *table,
                      int64_t step,
                      double rate);

#endif
