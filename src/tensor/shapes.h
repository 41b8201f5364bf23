// The scalar type and the letters that all rooms use for shapes.
//
//   B  examples of a batch          H  heads                 P  ranks that share a sequence
//   N  tokens of an example         d  width of a head       G  segments of an example
//   R  rows: tokens of a segment, padded to whole ROWS       D  projections of a feature map
//   E  width of the model           M  feed-forward width    F  features: 2 D for sin and cos
//
// All matrices are row-major; "x [R][E]" has E contiguous numbers per row.
#ifndef RFA_TENSOR_SHAPES_H
#define RFA_TENSOR_SHAPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef RFA_DOUBLE
typedef double rfa_real; // tests prove the formulas in double
#else
typedef float rfa_real;
#endif

// Segments begin at multiples of this many tokens and are stored in whole multiples of it, so that
// vector loops have no tails and no GEMM has fewer rows.
enum { RFA_ROWS = 16 };

// Elements of a cache line, to which parts of a workspace are aligned.
enum { RFA_ALIGN_ELEMENTS = 64 / sizeof(rfa_real) };

static inline ptrdiff_t rfa_padded(ptrdiff_t n)
{
    return (n + RFA_ROWS - 1) / RFA_ROWS * RFA_ROWS;
}

#endif
