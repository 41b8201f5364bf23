#include "exchange/exact_sum.h"

#include "base/mem.h"
#include "base/profile.h"

#include <math.h>
#include <string.h>

// x + M - M rounds x to a multiple of 2^-q for M = 1.5 * 2^(52 - q): the last bit of a double near
// M is worth 2^-q.
#define HIGH 0x1.8p34 // q = 18
#define LOW 0x1.8p1   // q = 51
#define RANGE 0x1p14

enum { PIECE = 1 << 27 }; // doubles a reduction: MPI counts and many libraries' byte counts are int

rfa_status rfa_exact_sum_create(rfa_exact_sum *sum, ptrdiff_t size, const char *what)
{
    *sum = (rfa_exact_sum){.size = size};
    return rfa_alloc(&sum->bins, 2 * size + 1, sizeof *sum->bins, what);
}

void rfa_exact_sum_destroy(rfa_exact_sum *sum)
{
    rfa_free(sum->bins);
    *sum = (rfa_exact_sum){0};
}

void rfa_exact_sum_clear(rfa_exact_sum *sum)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    memset(sum->bins, 0, (size_t)(2 * sum->size + 1) * sizeof *sum->bins);
}

// Returns 1 for a term out of range, NaN included. An integer, as a sum of doubles would have an
// order and keep the caller's loop from being a vector loop.
static inline int64_t add_term(double x, double *high, double *low)
{
    const double h = x + HIGH - HIGH;
    const double rest = x - h;
    *high += h;
    *low += rest + LOW - LOW;
    return !(fabs(x) < RANGE);
}

void rfa_exact_sum_add_double(rfa_exact_sum *sum, ptrdiff_t at, const double *x, ptrdiff_t n)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    RFA_ASSERT(at >= 0 && n >= 0 && at <= sum->size - n);
    double *restrict high = sum->bins + at;
    double *restrict low = sum->bins + sum->size + at;
    int64_t bad = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        bad += add_term(x[i], high + i, low + i);
    }
    sum->bins[2 * sum->size] += (double)bad;
}

void rfa_exact_sum_add(rfa_exact_sum *sum, ptrdiff_t at, const rfa_real *x, ptrdiff_t n)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
#ifdef RFA_DOUBLE
    rfa_exact_sum_add_double(sum, at, x, n);
#else
    RFA_ASSERT(at >= 0 && n >= 0 && at <= sum->size - n);
    double *restrict high = sum->bins + at;
    double *restrict low = sum->bins + sum->size + at;
    int64_t bad = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        bad += add_term((double)x[i], high + i, low + i);
    }
    sum->bins[2 * sum->size] += (double)bad;
#endif
}

void rfa_exact_sum_merge(rfa_exact_sum *into, const rfa_exact_sum *from)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    RFA_ASSERT(into->size == from->size);
    double *restrict to = into->bins;
    const double *restrict bins = from->bins;
    for (ptrdiff_t i = 0; i < 2 * into->size + 1; i++) {
        to[i] += bins[i];
    }
}

void rfa_exact_sum_reduce(rfa_exact_sum *sum, const rfa_comm *comm)
{
    RFA_PROFILE(RFA_PHASE_REDUCE);
    const ptrdiff_t count = 2 * sum->size + 1;
    if (comm->size == 1) {
        return;
    }
    for (ptrdiff_t at = 0; at < count; at += PIECE) {
        const ptrdiff_t n = count - at < PIECE ? count - at : PIECE;
        MPI_Allreduce(MPI_IN_PLACE, sum->bins + at, rfa_int(n), MPI_DOUBLE, MPI_SUM, comm->comm);
    }
}

bool rfa_exact_sum_is_good(const rfa_exact_sum *sum)
{
    return sum->bins[2 * sum->size] == 0;
}
