// Hints to the cache. They change no results and access nothing.
#ifndef RFA_TENSOR_FETCH_H
#define RFA_TENSOR_FETCH_H

#include "tensor/shapes.h"

// The n elements at x will be read soon.
static inline void rfa_fetch(const rfa_real *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += RFA_ALIGN_ELEMENTS) {
        __builtin_prefetch(x + i, 0, 2);
    }
}

// The n elements at x will be written soon.
static inline void rfa_fetch_to_write(rfa_real *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i += RFA_ALIGN_ELEMENTS) {
        __builtin_prefetch(x + i, 1, 2);
    }
}

#endif
