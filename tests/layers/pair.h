// Inputs of layers in both precisions, and the step of their differences.
#ifndef TESTS_LAYERS_PAIR_H
#define TESTS_LAYERS_PAIR_H

#include "support/support.h"

// Fourth-order differences at this step are good to about 1e-11 for functions of order one.
static const double step = 1e-3, differences = 1e-10;

// The same numbers, as the library takes them and in double.
typedef struct {
    rfa_real *x;
    double *wide;
} pair;

static inline pair pair_create(ptrdiff_t n, uint32_t seed, double scale)
{
    pair a = {test_reals(n), test_doubles(n)};
    test_fill(a.x, n, seed, scale);
    for (ptrdiff_t i = 0; i < n; i++) {
        a.wide[i] = (double)a.x[i];
    }
    return a;
}

static inline void pair_destroy(pair *a)
{
    rfa_free(a->x);
    rfa_free(a->wide);
}

static inline double weighted(const double *c, const double *y, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += c[i] * y[i];
    }
    return sum;
}

#endif
