// Exact softmax attention of one head: the baseline that the linear kinds are measured against.
//
//   out_i = sum_j w_ij v_j,  w_ij = exp(s_ij - lse_i),  s_ij = q_i . k_j / sqrt(d),
//   lse_i = log sum_j exp(s_ij)
//
// (s_ij + b_j with a bias on keys) over the valid tokens j, and those with j <= i if causal. One
// block of queries at a time visits the blocks of keys in the order given; scores exist for at most
// 256 x 256 pairs. The bits of a block's results follow from its own tokens and from the list of
// key blocks alone: not from other query blocks, rows of padding, leading dimensions or, if causal,
// later tokens.
//
// Online softmax: Milakov, Gimelshein, arXiv 1805.02867; tiles and backward: Dao et al., arXiv
// 2205.14135. Local.
#ifndef RFA_ATTENTION_SOFTMAX_H
#define RFA_ATTENTION_SOFTMAX_H

#include "tensor/shapes.h"

#include <stdbool.h>

// Consecutive tokens of one example in an array of rows.
typedef struct {
    ptrdiff_t row0;   // its first row in the arrays; valid tokens come first
    ptrdiff_t rows;   // rows of storage, at least rfa_padded(tokens)
    ptrdiff_t tokens; // valid tokens, may be 0
    ptrdiff_t begin;  // absolute position of its first token in the example
} rfa_softmax_block;

// Keys and values of one head, v, k [rows][ld] and bias [rows], whose rows the blocks count.
typedef struct {
    const rfa_real *k, *v;
    ptrdiff_t ld_k, ld_v;
    const rfa_real *bias; // added to the scores of each key; NULL: none
    const rfa_softmax_block *blocks;
    int n;
} rfa_softmax_keys;

// What queries add to: k, v [rows][ld], which may be the same array when keys are values; bias
// [rows], NULL: not wanted.
typedef struct {
    double *k, *v;
    ptrdiff_t ld;
    double *bias;
} rfa_softmax_gradient;

// Elements of work for blocks of at most max_rows rows and heads of width d, both directions.
ptrdiff_t rfa_softmax_work_size(ptrdiff_t max_rows, ptrdiff_t d);

// Fills the rows of q_block in out (d columns) and lse; padding, and queries that see no key, get
// out = 0 and lse = -infinity. q, out, lse are the arrays that q_block->row0 counts in; a head is a
// column slice, so ld_x >= d. d >= 2. Contents of padded rows of the inputs are never used, but out
// is written up to the next whole RFA_ROWS. out NULL: lse alone, and keys->v is not read. Costs 4 d
// flops a pair (2 d without out); the diagonal blocks of a causal run cost as much as full ones.
void rfa_softmax_read(rfa_real *out,
                      ptrdiff_t ld_out,
                      rfa_real *lse,
                      const rfa_real *q,
                      ptrdiff_t ld_q,
                      const rfa_softmax_block *q_block,
                      const rfa_softmax_keys *keys,
                      ptrdiff_t d,
                      bool causal,
                      rfa_real *work);

// Given dout and the saved out and lse, overwrites the rows of q_block in dq (0 in padding) and
// adds what these queries contribute to dkeys; padded rows of dkeys are left alone. Costs 10 d
// flops a pair.
void rfa_softmax_read_backward(rfa_real *dq,
                               ptrdiff_t ld_dq,
                               const rfa_softmax_gradient *dkeys,
                               const rfa_real *dout,
                               ptrdiff_t ld_dout,
                               const rfa_real *out,
                               ptrdiff_t ld_out,
                               const rfa_real *lse,
                               const rfa_real *q,
                               ptrdiff_t ld_q,
                               const rfa_softmax_block *q_block,
                               const rfa_softmax_keys *keys,
                               ptrdiff_t d,
                               bool causal,
                               rfa_real *work);

#endif
