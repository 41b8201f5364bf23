// Queries, keys and values of one head: seeded ensembles, or what was captured from a run.
#ifndef RFA_FIDELITY_SOURCE_H
#define RFA_FIDELITY_SOURCE_H

#include "base/mem.h"
#include "tensor/shapes.h"

#include <stdbool.h>

// Every rank holds all of them: 12 N d bytes in float. Rows are padded to rfa_padded(n), the
// padding is 0. The score of a pair is q . k / sqrt(d).
typedef struct {
    ptrdiff_t n, d;
    rfa_real *q, *k, *v; // [rows][d]
    rfa_real *mask;      // [rows] 1 for a token
} rfa_vectors;

RFA_NODISCARD rfa_status rfa_vectors_create(rfa_vectors *x, ptrdiff_t n, ptrdiff_t d);
void rfa_vectors_destroy(rfa_vectors *x); // idempotent

typedef enum { RFA_ENSEMBLE_IID, RFA_ENSEMBLE_SHARED, RFA_ENSEMBLE_SMOOTH } rfa_ensemble;
enum { RFA_ENSEMBLES = 3 };
const char *rfa_ensemble_name(rfa_ensemble ensemble);

// Queries and keys whose norm times d^(-1/4) is `norm`, values N(0, 1):
//   iid     independent directions
//   shared  all of them lean, at a cosine of about 0.6, on one common direction
//   smooth  b + 0.5 x, with b and x autoregressive along the sequence (coefficient 0.95, variance
//           1), b common to query and key, and values likewise autoregressive
// Function of (seed, trial, ensemble) and place: direction and values don't change with norm, nor a
// token with n. Local.
void rfa_vectors_fill(rfa_vectors *x, rfa_ensemble ensemble, double norm, uint64_t seed, int trial);

// Square root of the product of the mean norms of queries and keys, times d^(-1/4). Local.
double rfa_vectors_norm(const rfa_vectors *x);

#endif
