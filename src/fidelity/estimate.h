// One draw of an estimator on one head, by the kernels that train: what it gives for each query,
// and the N x N matrix that stands behind it, out = A v with rows that sum to 1.
//
//   kinds                 matrix
//   rfa, performer, elu   A = L R^T, L = phi(q) over its denominator, R = weights times phi(k)
//   lara                  A = L R^T, L [N][J] weights of the samples, R [N][J] = softmax over keys
//   mean                  A = L R^T, L = 1 / N, R = 1
//   ra                    A = softmax over keys of w_n . k / sqrt(d) - |k|^2 / (2 sqrt(d))
//   eva                   by columns: what queries read where the values are unit vectors
//
// All is local: what belongs to all keys (a state, samples, summaries) is computed by every rank,
// so that bits don't depend on ranks; rows are asked for as they are dealt.
#ifndef RFA_FIDELITY_ESTIMATE_H
#define RFA_FIDELITY_ESTIMATE_H

#include "attention/eva.h"
#include "attention/lara.h"
#include "attention/ra.h"
#include "fidelity/kind.h"
#include "fidelity/source.h"

typedef enum { RFA_ESTIMATE_FACTORS, RFA_ESTIMATE_SCORES, RFA_ESTIMATE_COLUMNS } rfa_estimate_form;

typedef struct {
    const rfa_fidelity_kind *kind;
    const rfa_vectors *x; // borrowed
    ptrdiff_t size, rank; // D, C or chunks; columns of the factors
    rfa_rng stream;       // of noise
    // linear
    rfa_feature_map map;
    double *state;
    rfa_real *w, *sigma, *w_squares, *total;
    // lara
    rfa_lara lara;
    rfa_lara_samples samples, pick; // pick: with unit vectors for f
    rfa_real *sample_values, *pick_values;
    // eva
    rfa_eva eva;
    rfa_real *summary_k, *summary_v, *bias, *directions, *lse; // [chunks][d], [chunks]
    double *elements;
    // ra
    rfa_ra ra;
    rfa_real *row_lse;
    int32_t *index;
    double *normals; // [d]
    rfa_real *unit;  // [rows][d] values that are unit vectors
    rfa_real *out;   // [rows][d]
    rfa_real *den;   // [rows]
    rfa_real *work;
} rfa_estimate;

// kind and x must outlive it. features: F; draw: number of the draw. RFA_ERR_USAGE where F does not
// fit the kind (odd for sines and cosines, more landmarks than tokens); RFA_ERR_MEMORY.
RFA_NODISCARD rfa_status rfa_estimate_create(rfa_estimate *estimate,
                                             const rfa_fidelity_kind *kind,
                                             const rfa_vectors *x,
                                             ptrdiff_t features,
                                             uint64_t seed,
                                             int draw);
void rfa_estimate_destroy(rfa_estimate *estimate); // idempotent

rfa_estimate_form rfa_estimate_form_of(const rfa_estimate *estimate);

// Fills rows [begin, begin + rows) of estimate->out [n][d], begin a multiple of RFA_ROWS; rows that
// pass n are left alone. Returns how many denominators were clamped.
int64_t rfa_estimate_read(rfa_estimate *estimate, ptrdiff_t begin, ptrdiff_t rows);

// Rows [begin, begin + rows), rows <= RFA_ESTIMATE_STRIP, of L [rows][rank] and R [rows][rank], and
// the raw denominators of L's (NULL: not wanted), which only sines and cosines may have negative.
enum { RFA_ESTIMATE_STRIP = 64 };
void rfa_estimate_left(
    double *left, double *denominators, rfa_estimate *estimate, ptrdiff_t begin, ptrdiff_t rows);
void rfa_estimate_right(double *right, rfa_estimate *estimate, ptrdiff_t begin, ptrdiff_t rows);

// SCORES: w [rows][d] of queries, after rfa_estimate_read of the same rows.
void rfa_estimate_directions(double *w, rfa_estimate *estimate, ptrdiff_t begin, ptrdiff_t rows);

// Columns [begin, begin + columns) of A, columns <= d, of every row, in estimate->out [n][d] until
// the next call. Any kind.
void rfa_estimate_columns(rfa_estimate *estimate, ptrdiff_t begin, ptrdiff_t columns);

#endif
