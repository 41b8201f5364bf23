// Sums whose value does not depend on the order of their terms: each term is rounded to a multiple
// of 2^-51, and sums of such multiples are exact, so any order, thread and rank count gives the
// same bits. (Fixed bins as in Demmel and Nguyen, "Parallel reproducible summation", IEEE Trans.
// Computers 64, 2015.) A sum has a low part, an integer, which holds terms below 1/2 alone until it
// may overflow; its multiples of 2^-18 then go to a high part, and so do those of greater terms.
// Most blocks of sums never need it.
//
// Holds for up to 2^20 terms of magnitude below 2^14; a term beyond, NaN or Inf marks the sum as
// out of range: it is never silently wrong. Absolute resolution 2^-52 a term.
#ifndef RFA_EXCHANGE_EXACT_SUM_H
#define RFA_EXCHANGE_EXACT_SUM_H

#include "base/status.h"
#include "tensor/shapes.h"

#include <stdbool.h>
#include <stdint.h>

// size sums.
typedef struct {
    ptrdiff_t size;
    int64_t *low;  // [size + 1] in units of 2^-51; [size]: count of bad terms
    double *high;  // [size] multiples of 2^-18
    double *bound; // [blocks of RFA_EXACT_BLOCK sums] no |low| of the block is greater
    uint8_t *used; // [blocks] whether high holds something
} rfa_exact_sum;

enum { RFA_EXACT_BLOCK = 1024 };

RFA_NODISCARD rfa_status rfa_exact_sum_create(rfa_exact_sum *sum, ptrdiff_t size, const char *what);
void rfa_exact_sum_destroy(rfa_exact_sum *sum); // idempotent
void rfa_exact_sum_clear(rfa_exact_sum *sum);

// sum[at + i] += x[i] for i < n. Terms below 1/2 move 20 bytes an element in float, others 36.
// Local.
void rfa_exact_sum_add(rfa_exact_sum *sum, ptrdiff_t at, const rfa_real *x, ptrdiff_t n);
void rfa_exact_sum_add_double(rfa_exact_sum *sum, ptrdiff_t at, const double *x, ptrdiff_t n);

// into += from, exactly (sums of two threads). Local.
void rfa_exact_sum_merge(rfa_exact_sum *into, const rfa_exact_sum *from);

// Sums over the ranks of comm, in place; every rank gets the same bits. Collective; 8 size bytes,
// and 8 for each sum of the blocks that any rank uses high of.
void rfa_exact_sum_reduce(rfa_exact_sum *sum, const rfa_comm *comm);

// False when a term was out of range.
bool rfa_exact_sum_is_good(const rfa_exact_sum *sum);

// The value of sum i, rounded once; of all, then rounded to rfa_real.
double rfa_exact_sum_value(const rfa_exact_sum *sum, ptrdiff_t i);
void rfa_exact_sum_values(rfa_real *values, const rfa_exact_sum *sum);

#endif
