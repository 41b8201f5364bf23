// Randomised attention of one head (Zheng, Wang, Kong 2022, "Linear complexity randomized
// self-attention mechanism", sec. 3): an unbiased estimate of softmax attention that reads the
// values by a random direction instead of the query.
//
//   out_n = 1/S sum_s f(w_ns),  f(w) = sum_m softmax_m(log xi(k_m, w)) v_m,
//   log xi(k, w) = w . k / sqrt(d) - |k|^2 / (2 sqrt(d)),
//   w_ns = q_n + k_m + d^(1/4) e,  m ~ softmax_m(q_n . k_m / sqrt(d)),  e ~ N(0, I),
//
// (in x' = x d^(-1/4) that is log xi = w'.k' - |k'|^2 / 2 with unit noise). E f(w) is exact softmax
// attention. Without noise, w_n = q_n + sum_m softmax_m k_m and S = 1. The index m passes no
// gradient, w passes it on to q_n and k_m.
//
// m is the first key, in the order of blocks, at which the sum of weights exceeds a uniform number.
// Both random numbers are functions of (stream, position of the query, s). Bits follow from the
// query block and the list of key blocks, as those of attention/softmax.h. Quadratic in time,
// linear in memory. Local.
#ifndef RFA_ATTENTION_RA_H
#define RFA_ATTENTION_RA_H

#include "attention/softmax.h"
#include "rng/rng.h"

typedef struct {
    ptrdiff_t d, draws; // S
    bool causal, noise; // noise false: draws counts as 1
    rfa_rng stream;     // of this example, layer and head
} rfa_ra;

// What a forward leaves for its backward, in the arrays that the query block's row0 counts in.
typedef struct {
    rfa_real *read; // [draws][rows][ld] f(w); with one draw it may be out itself
    rfa_real *lse;  // [draws][rows] of read's scores
    int32_t *index; // [draws][rows] row m in the keys' arrays; not used without noise
    ptrdiff_t ld, rows;
} rfa_ra_saved;

// The uniform number in (0, 1) and the normals [d] of draw s of the query at position.
double rfa_ra_uniform(const rfa_ra *ra, ptrdiff_t position, ptrdiff_t s);
void rfa_ra_normals(double *out, const rfa_ra *ra, ptrdiff_t position, ptrdiff_t s);

// Elements of work for query blocks of at most max_rows rows, key blocks of at most max_block rows
// that stand in at most max_keys rows.
ptrdiff_t
rfa_ra_work(ptrdiff_t max_rows, ptrdiff_t max_block, ptrdiff_t max_keys, const rfa_ra *ra);

// Fills the rows of q_block in out [rows][saved->ld] and saved; padding, and queries that see no
// key, get out = 0. keys->bias is not read. d >= 2. Costs (4 + 4 S) d flops a pair.
void rfa_ra_forward(rfa_real *out,
                    const rfa_ra_saved *saved,
                    const rfa_real *q,
                    ptrdiff_t ld_q,
                    const rfa_softmax_block *q_block,
                    const rfa_softmax_keys *keys,
                    const rfa_ra *ra,
                    rfa_real *work);

// Given dout [rows][saved->ld], overwrites the rows of q_block in dq (0 in padding) and adds what
// these queries contribute to dkeys, whose bias is not used. Costs 10 S d flops a pair.
void rfa_ra_backward(rfa_real *dq,
                     ptrdiff_t ld_dq,
                     const rfa_softmax_gradient *dkeys,
                     const rfa_real *dout,
                     const rfa_ra_saved *saved,
                     const rfa_real *q,
                     ptrdiff_t ld_q,
                     const rfa_softmax_block *q_block,
                     const rfa_softmax_keys *keys,
                     const rfa_ra *ra,
                     rfa_real *work);

#endif
