// EVA of one head (Zheng, Yuan, Wang, Kong 2023, "Efficient attention via control variates", sec.
// 4): exact attention to the window of the query, jointly with one summary of each chunk of tokens
// outside it,
//
//   out_n = softmax over { q_n . k_m : m in E_n } and { q_n . k~_c + b_c : P_c outside E_n }
//           applied to v_m and beta_c,
//   beta_c = sum_{m in P_c} softmax_m(log xi(k_m, w_c)) v_m,  w_c = mu_c + d^(1/4) e,  e ~ N(0, I),
//   mu_c = (q~_c + k~_c) / 2, causal q~_c + k~_c,  log xi(k, w) = (w . k - |k|^2 / 2) / sqrt(d),
//
// products of queries and keys over sqrt(d). q~_c, k~_c stand for the chunk's queries and keys;
// where they are plain means, b_c = log |P_c|, else 0. Causal: of E_n the keys up to n, of the
// chunks those before the window.
//
// E is window b, tokens [b w, (b + 1) w), of the query's own position; chunk c is tokens [c s, (c +
// 1) s), and w is a whole number of chunks, so that each key counts once. s and w are constants of
// a model: neither borders nor the number of tokens of a chunk that is seen depend on later tokens.
//
// These are the parts of one head of one segment. Local kernels: no MPI, no allocation.
#ifndef RFA_ATTENTION_EVA_H
#define RFA_ATTENTION_EVA_H

#include "rng/rng.h"
#include "tensor/shapes.h"

#include <stdbool.h>

typedef struct {
    ptrdiff_t d;
    ptrdiff_t chunks;        // C, of the longest example; arrays of chunks have that many rows
    ptrdiff_t chunk, window; // s and w, tokens
    bool causal;
} rfa_eva;

// Chunks of ceil(longest / chunks) tokens, the window rounded up to whole chunks; chunks becomes
// the number of them that the longest example needs.
rfa_eva
rfa_eva_cut(ptrdiff_t longest, ptrdiff_t chunks, ptrdiff_t window, ptrdiff_t d, bool causal);

// Chunks of an example of length tokens.
static inline ptrdiff_t rfa_eva_count(const rfa_eva *eva, ptrdiff_t length)
{
    return (length + eva->chunk - 1) / eva->chunk;
}

// Tokens of chunk c of such an example.
static inline ptrdiff_t rfa_eva_tokens(const rfa_eva *eva, ptrdiff_t length, ptrdiff_t c)
{
    const ptrdiff_t left = length - c * eva->chunk;
    return left <= 0 ? 0 : left < eva->chunk ? left : eva->chunk;
}

// One head of one segment of an example of length tokens: rows [tokens][ld], and keys and values of
// the example's rows [reach_begin, begin) and, behind those in halo_k and halo_v, [begin + tokens,
// reach_end) of other segments (exchange/halo.h).
typedef struct {
    const rfa_real *q, *k, *v;
    ptrdiff_t ld;
    const rfa_real *halo_k, *halo_v;
    ptrdiff_t ld_halo;
    ptrdiff_t begin, tokens, length, reach_begin, reach_end;
    ptrdiff_t read; // the first queries that are read out, at most tokens
} rfa_eva_head;

// Summaries of the chunks of an example.
typedef struct {
    const rfa_real *k, *v; // [C][ld] k~ and beta
    ptrdiff_t ld;
    const rfa_real *bias; // [C] b; NULL: 0
} rfa_eva_summary;

// Gradients, double. k, v [tokens][ld], halo_k, halo_v in the layout of the head's, chunk_k,
// chunk_v [C][ld_chunk].
typedef struct {
    double *k, *v;
    ptrdiff_t ld;
    double *halo_k, *halo_v;
    ptrdiff_t ld_halo;
    double *chunk_k, *chunk_v;
    ptrdiff_t ld_chunk;
} rfa_eva_gradient;

// sums [C][ld_sums] (double) = sums of x [tokens][ld] by chunk, over width columns; 0 for chunks
// that have no token here.
void rfa_eva_sums(double *sums,
                  ptrdiff_t ld_sums,
                  const rfa_real *x,
                  ptrdiff_t ld,
                  ptrdiff_t width,
                  ptrdiff_t begin,
                  ptrdiff_t tokens,
                  const rfa_eva *eva);

// w [C][ld] from q~ and k~ [C][ld]; noise: the stream of this example, layer and head, of which
// chunk c takes d normals from number c (d + d % 2) on; NULL: none.
void rfa_eva_directions(rfa_real *w,
                        const rfa_real *q_bar,
                        const rfa_real *k_bar,
                        ptrdiff_t ld,
                        const rfa_rng *noise,
                        const rfa_eva *eva);

// What reaches q~ and k~ by w: this factor times dw.
static inline double rfa_eva_direction_factor(const rfa_eva *eva)
{
    return eva->causal ? 1 : 0.5;
}

// elements [C][rfa_eva_unit]: this segment's part of the sums behind beta, as scaled elements
// (exchange/element.h) with numbers sum p v [d], sum p. w [C][ld_w]. 4 tokens d flops.
static inline ptrdiff_t rfa_eva_unit(ptrdiff_t d)
{
    return d + 3;
}
void rfa_eva_values(double *elements,
                    const rfa_eva_head *head,
                    const rfa_real *w,
                    ptrdiff_t ld_w,
                    const rfa_eva *eva,
                    rfa_real *work);

// beta [C][ld] and lse [C], the logarithm of sum p, from the total of elements; 0 for no token.
void rfa_eva_close(
    rfa_real *beta, ptrdiff_t ld, rfa_real *lse, const double *elements, const rfa_eva *eva);

// gradient->k and v accumulate, dw [C][d] (double) = this segment's part; dbeta, beta, w [C][ld].
void rfa_eva_values_backward(const rfa_eva_gradient *gradient,
                             double *dw,
                             const rfa_real *dbeta,
                             const rfa_real *beta,
                             const rfa_real *w,
                             ptrdiff_t ld,
                             const rfa_real *lse,
                             const rfa_eva_head *head,
                             const rfa_eva *eva,
                             rfa_real *work);

// Elements of work of any call on segments of at most max_rows rows of examples of at most longest
// tokens.
ptrdiff_t rfa_eva_work(ptrdiff_t max_rows, ptrdiff_t longest, const rfa_eva *eva);

// out [tokens][ld_out] and lse [tokens] of the head's first read queries. 4 (w + C) read d flops.
void rfa_eva_read(rfa_real *out,
                  ptrdiff_t ld_out,
                  rfa_real *lse,
                  const rfa_eva_head *head,
                  const rfa_eva_summary *summary,
                  const rfa_eva *eva,
                  rfa_real *work);

// dq [tokens][ld_dq] of the first read queries, and all of gradient overwritten by what these
// queries give. 10 (w + C) read d flops.
void rfa_eva_read_backward(rfa_real *dq,
                           ptrdiff_t ld_dq,
                           const rfa_eva_gradient *gradient,
                           const rfa_real *dout,
                           const rfa_real *out,
                           ptrdiff_t ld_out,
                           const rfa_real *lse,
                           const rfa_eva_head *head,
                           const rfa_eva_summary *summary,
                           const rfa_eva *eva,
                           rfa_real *work);

#endif
