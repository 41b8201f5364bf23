// Factorisations of distributed matrices: solutions, singular values, orthogonal bases.
#ifndef RFA_LINALG_SOLVE_H
#define RFA_LINALG_SOLVE_H

#include "linalg/matrix.h"

// Solves a x = b for symmetric positive definite a [n][n], whose lower triangle is read and becomes
// its Cholesky factor; b [n][right-hand sides] becomes x. By PDPOSV; by LAPACK on a grid of one.
// n^3 / 3 + 2 n^2 columns(b) flops over the grid. Errors, alike on all ranks: RFA_ERR_NUMERIC where
// a or b holds NaN or infinity, or a is not positive definite (the text says from which order on).
// Collective.
RFA_NODISCARD rfa_status rfa_linalg_posv(rfa_matrix *a, rfa_matrix *b);

// s [min(m, n)] = singular values of a [m][n] in falling order, on every rank; a is used up. By
// PDGESVD; by LAPACK's divide and conquer on a grid of one. About 8/3 n^3 flops for m = n, half of
// them at the speed of memory. Errors as above; RFA_ERR_USAGE where the workspace passes 2^31.
// Collective.
RFA_NODISCARD rfa_status rfa_linalg_singular_values(double *s, rfa_matrix *a);

// a [m][n], m >= n, becomes an orthonormal basis of its columns' space, by PDGEQRF and PDORGQR. 4 m
// n^2 flops over the grid. Collective.
RFA_NODISCARD rfa_status rfa_linalg_orthonormal(rfa_matrix *a);

// s [count] = estimates from below of the largest singular values of a, on every rank: those of Q^T
// a, Q an orthonormal basis of (a a^T)^POWERS a X with count + OVERSAMPLING Gaussian columns X, a
// function of seed (Halko, Martinsson, Tropp, SIAM Review 53, 2011, algorithm 4.4). Exact where
// that many columns are all of a. a is kept. Collective.
enum { RFA_RANGE_OVERSAMPLING = 16, RFA_RANGE_POWERS = 2 };
RFA_NODISCARD rfa_status rfa_linalg_leading_values(double *s,
                                                   ptrdiff_t count,
                                                   const rfa_matrix *a,
                                                   uint64_t seed);

// The size to allocate for a workspace that a query called `wanted`: the number comes back through
// a double and is a little short at times, and inner routines need more than they say.
// RFA_ERR_USAGE beyond 32 bits. Local.
RFA_NODISCARD rfa_status rfa_linalg_workspace(int *size, double wanted);

#endif
