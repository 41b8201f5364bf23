// N x N matrices of attention, dealt over a grid: the exact one, those of estimates, and how far
// they are apart. No matrix is ever gathered; N d numbers are.
#ifndef RFA_FIDELITY_EXACT_H
#define RFA_FIDELITY_EXACT_H

#include "fidelity/estimate.h"
#include "linalg/matrix.h"

// Where the time goes.
typedef enum {
    RFA_FIDELITY_SCORES,  // Q K^T by PDGEMM
    RFA_FIDELITY_SOFTMAX, // exponentials, maxima and sums of rows
    RFA_FIDELITY_OUTPUT,  // A V by PDGEMM
    RFA_FIDELITY_READ,    // outputs of estimates, by the kernels
    RFA_FIDELITY_FACTORS, // features and the like, by the kernels
    RFA_FIDELITY_PRODUCT, // L R^T by PDGEMM
    RFA_FIDELITY_COMPARE, // differences of matrices
    RFA_FIDELITY_VALUES,  // singular values
    RFA_FIDELITY_PHASES
} rfa_fidelity_phase;

typedef struct {
    double seconds[RFA_FIDELITY_PHASES]; // of this rank
    double flops[RFA_FIDELITY_PHASES];   // of products, over all ranks
} rfa_fidelity_clock;

const char *rfa_fidelity_phase_name(rfa_fidelity_phase phase);

// a [n][n] = softmax over keys of q . k / sqrt(d), in double. Collective.
RFA_NODISCARD rfa_status rfa_exact_weights(rfa_matrix *a,
                                           const rfa_vectors *x,
                                           rfa_fidelity_clock *clock);

// out [n][d] = a v, on every rank. Collective.
RFA_NODISCARD rfa_status rfa_exact_output(double *out,
                                          const rfa_matrix *a,
                                          const rfa_vectors *x,
                                          rfa_fidelity_clock *clock);

// b [n][n] = the matrix of an estimate. The grid's block is a multiple of RFA_ROWS. Collective.
RFA_NODISCARD rfa_status rfa_estimate_matrix(rfa_matrix *b,
                                             rfa_estimate *estimate,
                                             rfa_fidelity_clock *clock);

// out [n][d] of an estimate, rows dealt over all ranks of the grid's communicator, on every rank;
// *clamped: denominators that were. Collective.
RFA_NODISCARD rfa_status rfa_estimate_output(double *out,
                                             int64_t *clamped,
                                             rfa_estimate *estimate,
                                             const rfa_comm *comm,
                                             rfa_fidelity_clock *clock);

// Share of the raw denominators of an estimate that are not positive. Local.
double rfa_estimate_negative(rfa_estimate *estimate, double *work);
ptrdiff_t rfa_estimate_negative_work(const rfa_estimate *estimate);

// Of b against a: rows [n] = |a_i - b_i| / |a_i| of each row, on every rank; *frobenius = |a - b| /
// |a|, *most = the largest difference, *norm = |a| in Frobenius' norm. b NULL: *norm alone.
// Collective.
RFA_NODISCARD rfa_status rfa_matrix_compare(double *rows,
                                            double *frobenius,
                                            double *most,
                                            double *norm,
                                            const rfa_matrix *a,
                                            const rfa_matrix *b);

#endif
