// Ridge regression with one-hot targets, from sums over examples that come once: the examples
// themselves are never kept.
//
// W, b minimise sum |y - b - W s(x)|^2 / n + ridge |W|^2, where s makes each column's mean 0 and
// its variance 1 over the training examples, and y is one-hot of classes K. Sums are exact
// (exchange/exact_sum.h): independent of the order of examples and of ranks to the bit.
#ifndef RFA_PROBE_RIDGE_H
#define RFA_PROBE_RIDGE_H

#include "exchange/exact_sum.h"
#include "linalg/solve.h"

// `sets` regressions over the same examples, of width columns each.
typedef struct {
    ptrdiff_t sets, width, classes;
    double *shift;     // [sets][width] is subtracted, so that little cancels
    double *scale;     // [sets] a power of two, as exact sums have a range
    double *term;      // [one set's sums]
    rfa_exact_sum sum; // [sets]: z [E], z z^T [E (E + 1) / 2], z y^T [E][K]
    int64_t *count;    // [classes] examples
} rfa_ridge;

RFA_NODISCARD rfa_status rfa_ridge_create(rfa_ridge *ridge,
                                          ptrdiff_t sets,
                                          ptrdiff_t width,
                                          ptrdiff_t classes);
void rfa_ridge_destroy(rfa_ridge *ridge); // idempotent

// Sets shift and scale from x [n][sets][width], the first examples, before any is added. The same x
// on all ranks, or the sums mean nothing. Local.
void rfa_ridge_start(rfa_ridge *ridge, const double *x, ptrdiff_t n);

// One example x [sets][width]. Local; sets (E^2 / 2 + E K) additions.
void rfa_ridge_add(rfa_ridge *ridge, const double *x, int label);

// Sums over the ranks of comm. RFA_ERR_NUMERIC, on all ranks, where a feature was not finite or 128
// times as far from the first example as any of the first ones. Collective.
RFA_NODISCARD rfa_status rfa_ridge_reduce(rfa_ridge *ridge, const rfa_comm *comm);

// A read-out: score of class k = bias[k] + weight[k] . x.
typedef struct {
    double *weight; // [K][E]
    double *bias;   // [K]
} rfa_readout;

// Solves set by PDPOSV for one ridge > 0; columns without variance get weight 0. The bits don't
// depend on ranks where one process solves (E < 4 RFA_BLOCK); above, to rounding. readout is the
// caller's memory. RFA_ERR_NUMERIC. Agreed. Collective over grid's ranks.
RFA_NODISCARD rfa_status rfa_ridge_solve(rfa_readout *readout,
                                         const rfa_ridge *ridge,
                                         ptrdiff_t set,
                                         double penalty,
                                         const rfa_linalg_grid *grid);

// The class of highest score for x [E]; the first of equals. Local.
int rfa_readout_class(const rfa_readout *readout,
                      const double *x,
                      ptrdiff_t width,
                      ptrdiff_t classes);

#endif
