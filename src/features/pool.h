// The pool of projections (Peng et al. 2021, appendix): drawn once from the seed; a training step
// takes a distinct matrix for each layer and head, evaluation takes matrix h for head h of every
// layer.
#ifndef RFA_FEATURES_POOL_H
#define RFA_FEATURES_POOL_H

#include "base/kinds.h"
#include "base/mem.h"
#include "tensor/shapes.h"

typedef struct {
    ptrdiff_t matrices, projections, width; // M, D, d
    rfa_real *w;                            // [M][D][d], rows N(0, I)
    uint64_t seed;
} rfa_pool;

// Matrix m is the rows of kind of stream m of the pool.
RFA_NODISCARD rfa_status rfa_pool_create(rfa_pool *pool,
                                         rfa_rows_kind kind,
                                         uint64_t seed,
                                         ptrdiff_t matrices,
                                         ptrdiff_t projections,
                                         ptrdiff_t width);
void rfa_pool_destroy(rfa_pool *pool); // idempotent

// index[i] for i < n: distinct matrices of training step step (n <= M), a function of seed and
// step. Local.
void rfa_pool_pick(int *index, ptrdiff_t n, const rfa_pool *pool, int64_t step);

static inline const rfa_real *rfa_pool_matrix(const rfa_pool *pool, ptrdiff_t index)
{
    return pool->w + index * pool->projections * pool->width;
}

#endif
