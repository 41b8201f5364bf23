// What a confusion matrix says about a classifier. All local.
#ifndef RFA_BASE_METRICS_H
#define RFA_BASE_METRICS_H

#include <stdint.h>

typedef struct {
    double low, high;
} rfa_interval;

// The 95 % interval of a share of correct out of n > 0 (Wilson 1927, eq. 3; z = 1.96).
rfa_interval rfa_wilson(int64_t correct, int64_t n);

// Mean over classes of the harmonic mean of precision and recall, of confusion [classes][classes],
// rows true: 2 hits / (row + column). A class that neither is there nor is guessed is left out.
double rfa_macro_f1(const int64_t *confusion, int classes);

// Examples of the most frequent class: right guesses of one who always names it.
int64_t rfa_majority(const int64_t *confusion, int classes);

#endif
