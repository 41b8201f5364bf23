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

#endif
