// Random rows of projections, W [D][d], for feature maps.
//
// iid: entries N(0, 1). orthogonal: blocks of d rows, each a Haar-distributed orthogonal matrix
// whose rows are scaled by independent lengths with chi(d) distribution, so that each row alone is
// N(0, I); the last block is cut (Yu et al., "Orthogonal random features", NIPS 2016). simplex: as
// orthogonal, with the corners of a regular simplex in place of the axes, pairwise cosine -1 / (d -
// 1) (Reid et al., "Simplex random features", ICML 2023).
#ifndef RFA_FEATURES_DRAW_H
#define RFA_FEATURES_DRAW_H

#include "base/kinds.h"
#include "base/mem.h"
#include "rng/rng.h"
#include "tensor/shapes.h"

// Elements of work, in doubles, for draws of width d.
ptrdiff_t rfa_draw_work(ptrdiff_t d);

// w [projections][width], a function of stream and kind alone; all rows of the stream are drawn
// anew for each call. Costs 2 d^2 flops a row. Local.
void rfa_draw_rows(rfa_real *w,
                   rfa_rows_kind kind,
                   const rfa_rng *stream,
                   ptrdiff_t projections,
                   ptrdiff_t width,
                   double *work);

#endif
