// What differs from map to map: the step between the products w_f . y and the features. A new map
// is one file with an rfa_map_parts, declared below, and its row in map.c's table.
#ifndef RFA_FEATURES_MAP_IMPL_H
#define RFA_FEATURES_MAP_IMPL_H

#include "features/map.h"

typedef struct {
    const char *name;
    ptrdiff_t features;           // of each projection; 0: d features of x itself, no projection
    double floor;                 // rfa_feature_floor
    int square_free, square_unit; // times |y|^2 / 2 is the log-weight of a key, free and unit norm

    // phi [rows][F] = factor [rows] times the features of product [rows][D] (elu: of x [rows][ld]).
    // divided [rows] = the logarithm of what it divided a row by, which a key's log-weight gives
    // back; maps without log-weights leave it alone.
    void (*forward)(rfa_real *phi,
                    rfa_real *divided,
                    const rfa_real *product,
                    ptrdiff_t ld,
                    const rfa_real *factor,
                    const rfa_feature_map *map,
                    ptrdiff_t rows);

    // dphi [F] becomes, in its first D (elu: d) elements, the adjoint of product; the factor is in
    // phi, so rows of factor 0 get 0.
    void (*backward)(rfa_real *dphi, const rfa_real *phi, const rfa_feature_map *map);

    // What dw [D][d] gets beside the products' part; dproduct [rows][ld]. NULL: nothing.
    void (*w_backward)(rfa_real *dw,
                       const rfa_real *dproduct,
                       ptrdiff_t ld,
                       const rfa_feature_map *map,
                       ptrdiff_t rows);
} rfa_map_parts;

extern const rfa_map_parts rfa_map_gaussian, rfa_map_arccos, rfa_map_positive, rfa_map_oprf,
    rfa_map_elu;

#endif
