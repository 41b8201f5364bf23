// Token and position embedding.
#ifndef RFA_LAYERS_EMBEDDING_H
#define RFA_LAYERS_EMBEDDING_H

#include "tensor/shapes.h"

// x [rows][E] = tokens[ids[t]] + positions[begin + t]; rows from count on are 0. positions NULL:
// none.
void rfa_embedding_forward(rfa_real *x,
                           const uint16_t *ids,
                           const rfa_real *tokens,
                           const rfa_real *positions,
                           ptrdiff_t begin,
                           ptrdiff_t count,
                           ptrdiff_t rows,
                           ptrdiff_t width);

// dtokens [V][E] overwritten with this leaf's gradient. (That of positions is dx itself.)
void rfa_embedding_backward(rfa_real *dtokens,
                            const rfa_real *dx,
                            const uint16_t *ids,
                            ptrdiff_t count,
                            ptrdiff_t vocabulary,
                            ptrdiff_t width);

// The fixed sinusoids of Vaswani et al. 2017, section 3.5: sin in even and cos in odd channels, E
// even. The table holds the first positions and those of the begins of blocks, in double; a row is
// the sum of two angles, so millions of positions take little memory.
enum { RFA_SINUSOID_BLOCK = 4096 };
ptrdiff_t rfa_sinusoids_size(ptrdiff_t length, ptrdiff_t width); // numbers of a table
void rfa_sinusoids_fill(double *table, ptrdiff_t length, ptrdiff_t width);

// x [count][E] += the rows of positions begin on, below the table's length.
void rfa_sinusoids_add(
    rfa_real *x, const double *table, ptrdiff_t begin, ptrdiff_t count, ptrdiff_t width);

#endif
