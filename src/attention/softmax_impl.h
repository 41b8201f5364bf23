// What kernels of exact softmax share: pieces of blocks, and who sees whom.
#ifndef RFA_ATTENTION_SOFTMAX_IMPL_H
#define RFA_ATTENTION_SOFTMAX_IMPL_H

#include "attention/softmax.h"

#include <math.h>

// Rows of a piece: 256 x 256 scores in float are 256 KiB, which stay in the second-level cache.
enum { PIECE = 256 };

// A piece of a block: rows [row, row + rows) of the arrays, of which the first tokens are valid.
typedef struct {
    ptrdiff_t row, rows, tokens, begin;
} piece;

// Padding beyond the last whole RFA_ROWS is no part of any piece.
static inline ptrdiff_t pieces_of(const rfa_softmax_block *block)
{
    return (rfa_padded(block->tokens) + PIECE - 1) / PIECE;
}

// Piece p of count: the block's groups of RFA_ROWS rows are dealt evenly.
static inline piece piece_of(const rfa_softmax_block *block, ptrdiff_t p, ptrdiff_t count)
{
    const ptrdiff_t groups = rfa_padded(block->tokens) / RFA_ROWS;
    const ptrdiff_t first = groups * p / count * RFA_ROWS;
    const ptrdiff_t rows = groups * (p + 1) / count * RFA_ROWS - first;
    const ptrdiff_t left = block->tokens - first;
    return (piece){block->row0 + first, rows, left < rows ? left : rows, block->begin + first};
}

// How many of the keys query i sees: always the first ones.
static inline ptrdiff_t seen(const piece *queries, const piece *keys, ptrdiff_t i, bool causal)
{
    const ptrdiff_t past = queries->begin + i - keys->begin + 1;
    if (!causal || past >= keys->tokens) {
        return keys->tokens;
    }
    return past > 0 ? past : 0;
}

static inline bool any_seen(const piece *queries, const piece *keys, bool causal)
{
    return seen(queries, keys, queries->tokens - 1, causal) > 0;
}

static inline rfa_real score_scale(ptrdiff_t d)
{
    return (rfa_real)(1 / sqrt((double)d));
}

// Hands out aligned pieces of a workspace.
static inline ptrdiff_t taken(ptrdiff_t n)
{
    return (n + RFA_ALIGN_ELEMENTS - 1) / RFA_ALIGN_ELEMENTS * RFA_ALIGN_ELEMENTS;
}

static inline rfa_real *take(rfa_real **work, ptrdiff_t n)
{
    rfa_real *part = *work;
    *work += taken(n);
    return part;
}

enum { DOUBLE = RFA_ALIGN_ELEMENTS / 8 }; // rfa_reals in a double

static inline double *take_doubles(rfa_real **work, ptrdiff_t n)
{
    return (double *)(void *)take(work, n * DOUBLE);
}

#endif
