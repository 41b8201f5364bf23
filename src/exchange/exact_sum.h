// Sums whose value does not depend on the order of their terms: each term is rounded to multiples
// of 2^-18 and the rest to multiples of 2^-51; sums of such multiples are exact in double, so any
// order, thread and rank count gives the same bits. (The bins of Demmel and Nguyen, "Parallel
// reproducible summation", IEEE Trans. Computers 64, 2015, with two fixed bins.)
//
// Holds for up to 2^20 terms of magnitude below 2^14; a term beyond, NaN or Inf marks the sum as
// out of range: it is never silently wrong. Absolute resolution 2^-52 a term.
#ifndef RFA_EXCHANGE_EXACT_SUM_H
#define RFA_EXCHANGE_EXACT_SUM_H

#include "base/status.h"
#include "tensor/shapes.h"

#include <stdbool.h>

// size sums. high and low are separate arrays so that one MPI_SUM over both is the reduction.
typedef struct {
    ptrdiff_t size;
    double *bins; // [2][size]: high bins, then low bins; [2 size] holds the count of bad terms
} rfa_exact_sum;

RFA_NODISCARD rfa_status rfa_exact_sum_create(rfa_exact_sum *sum, ptrdiff_t size, const char *what);
void rfa_exact_sum_destroy(rfa_exact_sum *sum); // idempotent
void rfa_exact_sum_clear(rfa_exact_sum *sum);

// sum[at + i] += x[i] for i < n. About 0.3 ns an element. Local.
void rfa_exact_sum_add(rfa_exact_sum *sum, ptrdiff_t at, const rfa_real *x, ptrdiff_t n);
void rfa_exact_sum_add_double(rfa_exact_sum *sum, ptrdiff_t at, const double *x, ptrdiff_t n);

// into += from, exactly (bins of two threads). Local.
void rfa_exact_sum_merge(rfa_exact_sum *into, const rfa_exact_sum *from);

// Sums over the ranks of comm, in place; every rank gets the same bits. Collective; 16 size bytes.
void rfa_exact_sum_reduce(rfa_exact_sum *sum, const rfa_comm *comm);

// False when a term was out of range.
bool rfa_exact_sum_is_good(const rfa_exact_sum *sum);

// The value of sum i, rounded once.
static inline double rfa_exact_sum_value(const rfa_exact_sum *sum, ptrdiff_t i)
{
    return sum->bins[i] + sum->bins[sum->size + i];
}

#endif
