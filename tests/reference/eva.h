// EVA of one head as its definition reads: double, no blocks.
#ifndef TESTS_REFERENCE_EVA_H
#define TESTS_REFERENCE_EVA_H

#include <stdbool.h>
#include <stddef.h>

// q, k, v [tokens][d]; noise [chunks][d] of unit variance, NULL: none. Chunks are represented by
// plain means.
typedef struct {
    ptrdiff_t tokens, d, chunk, window; // window: whole chunks
    bool causal;
    const double *q, *k, *v, *noise;
} ref_eva;

// Its parts: means [chunks][d] of x; w of means; beta of w; out of summaries and their bias.
void ref_eva_means(double *means, const double *x, const ref_eva *eva);
void ref_eva_directions(double *w, const double *q_bar, const double *k_bar, const ref_eva *eva);
void ref_eva_values(double *beta, const double *w, const ref_eva *eva);
void ref_eva_read(
    double *out, const double *k_bar, const double *beta, const double *bias, const ref_eva *eva);

void ref_eva_forward(double *out, const ref_eva *eva);

#endif
