// Who owns which tokens: an example is cut into G segments, rank r of P owns segments
// [r G / P, (r + 1) G / P) of every example. Both cuts follow from the example's own length, G and
// P, so neither padding nor batch size nor rank count enters what a segment computes.
#ifndef RFA_EXCHANGE_PARTITION_H
#define RFA_EXCHANGE_PARTITION_H

#include "tensor/shapes.h"

// First token of segment g of an example of len tokens, for g in [0, segments]: its blocks of
// RFA_ROWS tokens are dealt evenly, segment g gets blocks [g n / G, (g + 1) n / G). Segments differ
// by at most one block and may be empty.
ptrdiff_t rfa_segment_begin(ptrdiff_t len, int segments, int g);

// First segment of part p of parts, for p in [0, parts].
int rfa_part_begin(int segments, int parts, int p);

// One leaf of all sums: the tokens of one segment of one example of the batch.
typedef struct {
    int example;      // index in the local batch
    int segment;      // global index in [0, G)
    ptrdiff_t begin;  // absolute position of its first token in the example
    ptrdiff_t tokens; // valid tokens, may be 0
    ptrdiff_t rows;   // rfa_padded(tokens): rows of storage
    ptrdiff_t row0;   // first row in the packed arrays of this rank
} rfa_leaf;

// Fills leaves[examples * own] (own = segments of part p), example-major, for examples of lengths[]
// and returns the total of rows. Local.
ptrdiff_t rfa_leaves_fill(
    rfa_leaf *leaves, const ptrdiff_t *lengths, int examples, int segments, int parts, int p);

#endif
