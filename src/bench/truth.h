// One head of attention of one example in double, by plain loops over pairs: what rfa bench holds
// the kernels against before it times them. Evaluation passes, without noise. Not fast: n pairs a
// row.
#ifndef RFA_BENCH_TRUTH_H
#define RFA_BENCH_TRUTH_H

#include "features/map.h"
#include "layers/attention_layer.h"
#include "layers/landmark_map.h"

enum { RFA_BENCH_HEAD = 8192 }; // the most channels of a head

typedef struct {
    const rfa_attention_options *options;
    ptrdiff_t n, d, width; // tokens, of a head, of the layer's input
    ptrdiff_t h;
    bool reverse;
    double *q, *k, *v; // [n][d]
    double *x;         // [n][width] what a gate reads
    // The layer's own numbers, borrowed.
    rfa_feature_map map;
    const rfa_real *gate_weight; // [width]; NULL: no learned gate
    double gate_bias;
    rfa_landmark_map map_q, map_k;
    // What follows from them: rfa_truth_prepare.
    double *phi, *weight;            // [n][F] of keys, [n] log-weights with a gate's input
    double *decay;                   // [n + 1] sums of log-decays of tokens before
    ptrdiff_t C;                     // landmarks, chunks
    double *q_mean, *k_mean, *w, *f; // [C][d]
    double *own, *lse;               // [C]
    double *row;                     // [n + F + C + 2 d] scratch
    // How large what was added is, over all rows so far.
    double exponent; // sum of |terms| of a score or of the argument of a feature
    double spread;   // sum of |terms| of a denominator over itself
} rfa_truth;

// Allocates all arrays. Local.
RFA_NODISCARD rfa_status rfa_truth_create(rfa_truth *truth,
                                          const rfa_attention_options *options,
                                          ptrdiff_t n,
                                          ptrdiff_t h);
void rfa_truth_destroy(rfa_truth *truth); // idempotent

// After q, k, v, x have changed. Local.
void rfa_truth_prepare(rfa_truth *truth);

// out [d] of token t. Local.
void rfa_truth_row(double *out, rfa_truth *truth, ptrdiff_t t);

// Bound of the relative rounding error of a row, of values of magnitude 1.
double rfa_truth_bound(const rfa_truth *truth);

// phi [F] of x [d]; returns the log-weight of a key. exponent: as in rfa_truth. Local.
double
rfa_truth_features(double *phi, double *exponent, const rfa_feature_map *map, const double *x);

// Parts, private to truth*.c.
double rfa_truth_dot(const double *a, const double *b, ptrdiff_t n, double *magnitude);
// out [d] = sum of exp(logits) factors rows over sum of exp(logits) factors; factors NULL: 1.
void rfa_truth_average(double *out,
                       double *logits,
                       const double *factors,
                       const double *rows,
                       ptrdiff_t n,
                       ptrdiff_t d);
void rfa_truth_linear_prepare(rfa_truth *truth);
void rfa_truth_linear_row(double *out, rfa_truth *truth, ptrdiff_t t);
void rfa_truth_landmarks_prepare(rfa_truth *truth);
void rfa_truth_lara_row(double *out, rfa_truth *truth, ptrdiff_t t);
void rfa_truth_eva_row(double *out, rfa_truth *truth, ptrdiff_t t);

#endif
