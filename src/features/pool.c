#include "features/pool.h"

#include "features/draw.h"
#include "rng/rng.h"

#include <stdbool.h>

rfa_status rfa_pool_create(rfa_pool *pool,
                           rfa_rows_kind kind,
                           uint64_t seed,
                           ptrdiff_t matrices,
                           ptrdiff_t projections,
                           ptrdiff_t width)
{
    const ptrdiff_t size = projections * width;
    *pool =
        (rfa_pool){.matrices = matrices, .projections = projections, .width = width, .seed = seed};
    double *work = NULL;
    rfa_status status = rfa_alloc(&pool->w, matrices * size, sizeof *pool->w, "projection pool");
    if (status == RFA_OK) {
        status = rfa_alloc(&work, rfa_draw_work(width), sizeof *work, "projection");
    }
    for (ptrdiff_t m = 0; status == RFA_OK && m < matrices; m++) {
        const rfa_rng stream = rfa_rng_stream(seed, RFA_RNG_POOL, (uint32_t)m, 0);
        rfa_draw_rows(pool->w + m * size, kind, &stream, projections, width, work);
    }
    rfa_free(work);
    return status;
}

void rfa_pool_destroy(rfa_pool *pool)
{
    rfa_free(pool->w);
    *pool = (rfa_pool){0};
}

// n is a few layers and heads out of a pool of hundreds: draw again what is taken.
void rfa_pool_pick(int *index, ptrdiff_t n, const rfa_pool *pool, int64_t step)
{
    RFA_ASSERT(n <= pool->matrices);
    rfa_rng_reader reader =
        rfa_rng_reader_at(rfa_rng_stream(pool->seed, RFA_RNG_PICK, (uint32_t)step, 0));
    for (ptrdiff_t i = 0; i < n; i++) {
        bool taken = true;
        while (taken) {
            index[i] = (int)rfa_rng_below(&reader, (uint32_t)pool->matrices);
            taken = false;
            for (ptrdiff_t j = 0; j < i; j++) {
                taken = taken || index[j] == index[i];
            }
        }
    }
}
