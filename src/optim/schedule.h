// Learning rates over the steps of a run, and what else moves with them.
#ifndef RFA_OPTIM_SCHEDULE_H
#define RFA_OPTIM_SCHEDULE_H

#include "base/kinds.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    rfa_schedule_kind kind;
    double peak; // learning rate
    int64_t warmup, steps;
    double beta1;
    bool cycle_beta1; // one_cycle: beta1 goes .95, .85, .95, against the rate
} rfa_schedule;

// What a step works with.
typedef struct {
    double rate, beta1;
} rfa_scheduled;

// Of step t = 1, 2, ..., steps; w = warmup, T = steps, r = rate / peak. Up to w all but one_cycle
// rise as t / w; then
//
//   linear     r = (T - t + 1) / (T - w + 1)
//   rsqrt      r = (max(w, 1) / t)^(1/2)                  (Tay et al. 2021, code)
//   cosine     r = (1 + cos(pi (t - w - 1) / T)) / 2      (the same; their cycle is all steps)
//   one_cycle  from 1/25 to 1 at w, on to 1/250000 at T, in straight lines (Smith and Topin 2019,
//   as
//              in PyTorch and in the code of Xiong et al. 2021)
//
// Never 0. Local.
rfa_scheduled rfa_schedule_at(const rfa_schedule *schedule, int64_t step);

#endif
