// One head of softmax attention through memory as a rank holds it: segments, padding, columns of
// other heads; everything that must not matter holds garbage.
#ifndef TESTS_SUPPORT_SOFTMAX_HEAD_H
#define TESTS_SUPPORT_SOFTMAX_HEAD_H

#include "attention/softmax.h"

enum { MOST_BLOCKS = 16 };

// One head of one example, and how it lies in memory.
typedef struct {
    ptrdiff_t len, d;
    int segments;
    bool causal;
    double scale;      // of q and k
    ptrdiff_t extra;   // rows of padding beyond whole RFA_ROWS in every segment
    ptrdiff_t columns; // ld - d
    double garbage;    // what padding and foreign columns hold
} layout;

// Token-major [len][d], lse [len].
typedef struct {
    rfa_real *q, *k, *v, *dout;         // inputs
    rfa_real *out, *lse, *dq, *dk, *dv; // results
} head;

head head_create(const layout *at, uint32_t seed);
void head_destroy(head *x);

// Cuts the example into segments in whole RFA_ROWS; returns the total of rows.
ptrdiff_t head_cut(rfa_softmax_block *blocks, const layout *at);

// Forward and backward of the query segments in mask, through memory laid out as in at; checks that
// padding gets 0 and that nothing else is written.
void head_run(head *x, const layout *at, unsigned mask);

// What dkv holds before head_run adds to it: its part of the error of dk and dv is that of a sum
// with this number.
static const double untouched = 123;

#endif
