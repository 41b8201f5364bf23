// rfa fidelity: every kind, number of features and trial against the exact answer.
#ifndef RFA_FIDELITY_RUN_H
#define RFA_FIDELITY_RUN_H

#include "config/config.h"
#include "fidelity/exact.h"
#include "storage/heads.h"

// What is known of an estimate on one head; NaN where it was not asked for.
typedef enum {
    RFA_FIDELITY_OUTPUT_ERROR, // mean square of the difference over mean square of the exact output
    RFA_FIDELITY_OUTPUT_MOST,  // largest difference over the root mean square of the exact output
    RFA_FIDELITY_FROBENIUS,    // of matrices: |A - B| / |A|
    RFA_FIDELITY_MATRIX_MOST,  // largest |A - B| of an element
    RFA_FIDELITY_ROW_MEDIAN,   // of rows: |a_i - b_i| / |a_i|
    RFA_FIDELITY_ROW_TENTH,    // 9 of 10 rows are better
    RFA_FIDELITY_ROW_WORST,
    RFA_FIDELITY_NEGATIVE, // share of denominators that are not positive
    RFA_FIDELITY_FLOORED,  // share that was clamped
    RFA_FIDELITY_STATISTICS
} rfa_fidelity_statistic;

extern const char *const rfa_fidelity_statistics[RFA_FIDELITY_STATISTICS];

enum { RFA_FIDELITY_MOST_GROUPS = RFA_ENSEMBLES };

// Arrays in the order of their sizes; cases are norms of an ensemble, or heads of a file.
typedef struct {
    int groups, kinds, features, trials, cases; // groups: ensembles, or 1 for a file
    ptrdiff_t n, d, values;                     // values: singular values that are kept
    bool captured;
    const char *group[RFA_FIDELITY_MOST_GROUPS];
    rfa_fidelity_kind kind[RFA_FIDELITY_LIST];
    double feature[RFA_FIDELITY_LIST];
    double *scale;      // [cases] norms; of heads: their number in the file
    double *norm;       // [groups][cases] root of the mean norms of queries and keys, tempered
    double *error;      // [groups][kinds][features][trials][cases][statistics]
    double *power;      // [groups][trials][cases] mean square of the exact output
    double *exact;      // [groups][cases][values] singular values of the exact matrix
    double *exact_rank; // [groups][cases] effective rank
    double *best;       // [groups][features][cases] least |A - B| / |A| of rank F
    double *estimated;  // [groups][kinds][features][cases][values] of the estimates
    double *rank;       // [groups][kinds][features][cases]
    double ceiling;     // flops/s of PDGEMM on the grid, all ranks
    int rows, columns;  // of the grid
    rfa_fidelity_clock clock; // seconds of the slowest rank
    rfa_heads heads;          // of a file: what it says
} rfa_fidelity;

// Where a statistic of an estimate stands in error.
double *
rfa_fidelity_error(const rfa_fidelity *f, int group, int kind, int feature, int trial, int c);

// Runs config->fidelity; the result is the same on all ranks. note: called on every rank as a case
// ends. RFA_ERR_USAGE for lists and sizes that don't fit, RFA_ERR_IO for the file, RFA_ERR_NUMERIC
// where it holds NaN. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_fidelity_run(rfa_fidelity *f,
                                          const rfa_config *config,
                                          const rfa_comm *world);
void rfa_fidelity_destroy(rfa_fidelity *f); // idempotent

// Over trials, of one statistic: mean, its 95 % confidence band by Student's t (NaN with one
// trial), and median. Local.
typedef struct {
    double mean, low, high, median;
} rfa_fidelity_summary;
rfa_fidelity_summary rfa_fidelity_summarise(const rfa_fidelity *f,
                                            int group,
                                            int kind,
                                            int feature,
                                            int c,
                                            rfa_fidelity_statistic statistic);

// The q quantile of n numbers, which are sorted. Local.
double rfa_fidelity_quantile(double *numbers, ptrdiff_t n, double q);

// The effective rank of a matrix, the exponential of the entropy of its singular values over their
// sum (Roy and Vetterli 2007). Local.
double rfa_effective_rank(const double *values, ptrdiff_t n);

#endif
