// Feature maps as the table of features/map.h reads, in double, a row at a time.
#ifndef TESTS_REFERENCE_FEATURES_H
#define TESTS_REFERENCE_FEATURES_H

#include "base/kinds.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    rfa_map_kind kind;
    bool unit_norm;
    ptrdiff_t d, D;
    const double *w, *sigma; // [D][d]; [d] or NULL
    double a;
} ref_map;

// F.
ptrdiff_t ref_map_count(const ref_map *map);

// y [d] of x [d]; elu: x.
void ref_map_scaled(double *y, const double *x, const ref_map *map);

// w_f . y [D]; elu: x [d].
void ref_map_products(double *product, const double *x, const ref_map *map);

// The greatest exponent l_f of positive and oprf; 0 of other maps.
double ref_map_greatest(const double *x, const ref_map *map);

// feature [F] = exp(-shift) times exp(log-weight) phi of a key, exp(max_f) phi of a query.
void ref_map_features(
    double *feature, const double *x, bool is_key, double shift, const ref_map *map);

#endif
