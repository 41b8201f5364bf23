// Kinds of estimates; private to fidelity/estimate*.c.
#ifndef RFA_FIDELITY_ESTIMATE_IMPL_H
#define RFA_FIDELITY_ESTIMATE_IMPL_H

#include "fidelity/estimate.h"

// What follows from queries and keys alone; then from values v [rows][d].
RFA_NODISCARD rfa_status rfa_estimate_linear_open(rfa_estimate *e, uint64_t seed, int draw);
void rfa_estimate_linear_values(rfa_estimate *e, const rfa_real *v);
int64_t rfa_estimate_linear_read(rfa_real *out, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);
void rfa_estimate_linear_left(
    double *left, double *den, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);
void rfa_estimate_linear_right(double *right, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);

RFA_NODISCARD rfa_status rfa_estimate_lara_open(rfa_estimate *e);
void rfa_estimate_lara_values(rfa_estimate *e, const rfa_real *v);
void rfa_estimate_lara_read(rfa_real *out, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);
void rfa_estimate_lara_left(double *left, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);
void rfa_estimate_lara_right(double *right, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);

RFA_NODISCARD rfa_status rfa_estimate_eva_open(rfa_estimate *e);
void rfa_estimate_eva_values(rfa_estimate *e, const rfa_real *v);
void rfa_estimate_eva_read(
    rfa_real *out, rfa_estimate *e, const rfa_real *v, ptrdiff_t begin, ptrdiff_t rows);

RFA_NODISCARD rfa_status rfa_estimate_ra_open(rfa_estimate *e);
void rfa_estimate_ra_read(
    rfa_real *out, rfa_estimate *e, const rfa_real *v, ptrdiff_t begin, ptrdiff_t rows);
void rfa_estimate_ra_directions(double *w, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows);

// A head of rows [begin, begin + rows) of queries, and all of keys.
static inline rfa_head
rfa_estimate_head(const rfa_estimate *e, const rfa_real *v, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t at = begin * e->x->d;
    return (rfa_head){.q = e->x->q + at,
                      .k = e->x->k + at,
                      .v = v ? v + at : NULL,
                      .ld = e->x->d,
                      .rows = rfa_padded(rows),
                      .mask = e->x->mask + begin,
                      .map = &e->map};
}

#endif
