#include "attention/softmax.h"

#include "tensor/gemm.h"
#include "tensor/vmath.h"

#include <math.h>

// Rows of a piece: 256 x 256 scores in float are 256 KiB, which stay in the second-level cache.
enum { PIECE = 256 };

// A piece of a block: rows [row, row + rows) of the arrays, of which the first tokens are valid.
typedef struct {
    ptrdiff_t row, rows, tokens, begin;
} piece;

// Padding beyond the last whole RFA_ROWS is no part of any piece.
static ptrdiff_t pieces_of(const rfa_softmax_block *block)
{
    return (rfa_padded(block->tokens) + PIECE - 1) / PIECE;
}

// Piece p of count: the block's groups of RFA_ROWS rows are dealt evenly.
static piece piece_of(const rfa_softmax_block *block, ptrdiff_t p, ptrdiff_t count)
{
    const ptrdiff_t groups = rfa_padded(block->tokens) / RFA_ROWS;
    const ptrdiff_t first = groups * p / count * RFA_ROWS;
    const ptrdiff_t rows = groups * (p + 1) / count * RFA_ROWS - first;
    const ptrdiff_t left = block->tokens - first;
    return (piece){block->row0 + first, rows, left < rows ? left : rows, block->begin + first};
}

// How many of the keys query i sees: always the first ones.
static ptrdiff_t seen(const piece *queries, const piece *keys, ptrdiff_t i, bool causal)
{
    const ptrdiff_t past = queries->begin + i - keys->begin + 1;
    if (!causal || past >= keys->tokens) {
        return keys->tokens;
    }
    return past > 0 ? past : 0;
}

static bool any_seen(const piece *queries, const piece *keys, bool causal)
{
    return seen(queries, keys, queries->tokens - 1, causal) > 0;
}

static void zero(rfa_real *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] = 0;
    }
}

static rfa_real score_scale(ptrdiff_t d)
{
    return (rfa_real)(1 / sqrt((double)d));
}

ptrdiff_t rfa_softmax_work_size(ptrdiff_t max_rows, ptrdiff_t d)
{
    const ptrdiff_t rows = rfa_padded(max_rows) < PIECE ? rfa_padded(max_rows) : PIECE;
    return rows * (2 * rows + d);
}

// Running maximum and sum of exp(score - maximum) of the queries of one piece.
typedef struct {
    rfa_real most[PIECE];
    double sum[PIECE];
} statistics;

// scores [queries][keys] become exp(score - maximum); where the maximum rises, the sum and the row
// of out so far shrink to it.
static void absorb_scores(rfa_real *scores,
                          statistics *stat,
                          rfa_real *out,
                          ptrdiff_t ld_out,
                          const piece *queries,
                          const piece *keys,
                          ptrdiff_t d,
                          bool causal)
{
    for (ptrdiff_t i = 0; i < queries->tokens; i++) {
        rfa_real *row = scores + i * keys->rows;
        const ptrdiff_t count = seen(queries, keys, i, causal);
        const rfa_real most = rfa_vmax(row, count);
        if (most > stat->most[i]) {
            const double shrink = exp((double)stat->most[i] - (double)most);
            stat->most[i] = most;
            stat->sum[i] *= shrink;
            for (ptrdiff_t c = 0; c < d; c++) {
                out[i * ld_out + c] *= (rfa_real)shrink;
            }
        }
        stat->sum[i] += (double)rfa_vexp_sum(row, row, stat->most[i], count);
        zero(row + count, keys->tokens - count);
    }
}

// out / sum and the log-sum-exp; 0 for queries without keys. A sum of NaN stays NaN.
static void normalise(rfa_real *out,
                      ptrdiff_t ld_out,
                      rfa_real *lse,
                      const statistics *stat,
                      ptrdiff_t rows,
                      ptrdiff_t d)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        const bool empty = stat->sum[i] == 0;
        const rfa_real factor = empty ? 0 : (rfa_real)(1 / stat->sum[i]);
        lse[i] =
            empty ? (rfa_real)-INFINITY : (rfa_real)((double)stat->most[i] + log(stat->sum[i]));
        for (ptrdiff_t c = 0; c < d; c++) {
            out[i * ld_out + c] *= factor;
        }
    }
}

void rfa_softmax_forward(rfa_real *out,
                         ptrdiff_t ld_out,
                         rfa_real *lse,
                         const rfa_real *q,
                         ptrdiff_t ld_q,
                         const rfa_softmax_block *q_block,
                         const rfa_real *k,
                         ptrdiff_t ld_k,
                         const rfa_real *v,
                         ptrdiff_t ld_v,
                         const rfa_softmax_block *blocks,
                         int n,
                         ptrdiff_t d,
                         bool causal,
                         rfa_real *work)
{
    const ptrdiff_t q_pieces = pieces_of(q_block);
    for (ptrdiff_t a = 0; a < q_pieces; a++) {
        const piece queries = piece_of(q_block, a, q_pieces);
        rfa_real *out_rows = out + queries.row * ld_out;
        statistics stat;
        for (ptrdiff_t i = 0; i < queries.tokens; i++) {
            stat.most[i] = (rfa_real)-INFINITY;
            stat.sum[i] = 0;
            zero(out_rows + i * ld_out, d);
        }
        for (int j = 0; j < n; j++) {
            const ptrdiff_t k_pieces = pieces_of(&blocks[j]);
            for (ptrdiff_t b = 0; b < k_pieces; b++) {
                const piece keys = piece_of(&blocks[j], b, k_pieces);
                if (!any_seen(&queries, &keys, causal)) {
                    continue;
                }
                rfa_gemm(RFA_N, RFA_T, queries.rows, keys.rows, d, score_scale(d),
                         q + queries.row * ld_q, ld_q, k + keys.row * ld_k, ld_k, 0, work,
                         keys.rows);
                absorb_scores(work, &stat, out_rows, ld_out, &queries, &keys, d, causal);
                rfa_gemm(RFA_N, RFA_N, queries.rows, d, keys.tokens, 1, work, keys.rows,
                         v + keys.row * ld_v, ld_v, 1, out_rows, ld_out);
            }
        }
        normalise(out_rows, ld_out, lse + queries.row, &stat, queries.tokens, d);
    }
    for (ptrdiff_t row = q_block->row0 + q_block->tokens; row < q_block->row0 + q_block->rows;
         row++) {
        zero(out + row * ld_out, d);
        lse[row] = (rfa_real)-INFINITY;
    }
}

// Scores become weights.
static void weigh_scores(
    rfa_real *scores, const rfa_real *lse, const piece *queries, const piece *keys, bool causal)
{
    for (ptrdiff_t i = 0; i < queries->tokens; i++) {
        rfa_real *row = scores + i * keys->rows;
        const ptrdiff_t count = seen(queries, keys, i, causal);
        rfa_vexp_sum(row, row, lse[i], count);
        zero(row + count, keys->tokens - count);
    }
}

// Gradients of the weights become gradients of the products q . k.
static void score_gradients(rfa_real *dweights,
                            const rfa_real *weights,
                            const rfa_real *delta,
                            rfa_real scale,
                            const piece *queries,
                            const piece *keys,
                            bool causal)
{
    for (ptrdiff_t i = 0; i < queries->tokens; i++) {
        rfa_real *row = dweights + i * keys->rows;
        const rfa_real *weight = weights + i * keys->rows;
        const ptrdiff_t count = seen(queries, keys, i, causal);
#pragma omp simd
        for (ptrdiff_t j = 0; j < count; j++) {
            row[j] = weight[j] * (row[j] - delta[i]) * scale;
        }
        zero(row + count, keys->tokens - count);
    }
}

// delta_i = dout_i . out_i, the weighted mean of row i's weight gradients.
static void mean_gradients(rfa_real *delta,
                           const rfa_real *dout,
                           ptrdiff_t ld_dout,
                           const rfa_real *out,
                           ptrdiff_t ld_out,
                           ptrdiff_t rows,
                           ptrdiff_t d)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
        double sum = 0;
        for (ptrdiff_t c = 0; c < d; c++) {
            sum += (double)dout[i * ld_dout + c] * (double)out[i * ld_out + c];
        }
        delta[i] = (rfa_real)sum;
    }
}

static void add_rows(double *sum, ptrdiff_t ld_sum, const rfa_real *x, ptrdiff_t rows, ptrdiff_t d)
{
    for (ptrdiff_t i = 0; i < rows; i++) {
#pragma omp simd
        for (ptrdiff_t c = 0; c < d; c++) {
            sum[i * ld_sum + c] += (double)x[i * d + c];
        }
    }
}

void rfa_softmax_backward(rfa_real *dq,
                          ptrdiff_t ld_dq,
                          double *dkv,
                          const rfa_real *dout,
                          ptrdiff_t ld_dout,
                          const rfa_real *out,
                          ptrdiff_t ld_out,
                          const rfa_real *lse,
                          const rfa_real *q,
                          ptrdiff_t ld_q,
                          const rfa_softmax_block *q_block,
                          const rfa_real *k,
                          ptrdiff_t ld_k,
                          const rfa_real *v,
                          ptrdiff_t ld_v,
                          const rfa_softmax_block *blocks,
                          int n,
                          ptrdiff_t d,
                          bool causal,
                          rfa_real *work)
{
    const rfa_real scale = score_scale(d);
    const ptrdiff_t q_pieces = pieces_of(q_block);
    for (ptrdiff_t a = 0; a < q_pieces; a++) {
        const piece queries = piece_of(q_block, a, q_pieces);
        const rfa_real *q_rows = q + queries.row * ld_q;
        const rfa_real *dout_rows = dout + queries.row * ld_dout;
        rfa_real *dq_rows = dq + queries.row * ld_dq;
        rfa_real delta[PIECE];
        mean_gradients(delta, dout_rows, ld_dout, out + queries.row * ld_out, ld_out,
                       queries.tokens, d);
        for (ptrdiff_t i = 0; i < queries.tokens; i++) {
            zero(dq_rows + i * ld_dq, d);
        }
        for (int j = 0; j < n; j++) {
            const ptrdiff_t k_pieces = pieces_of(&blocks[j]);
            for (ptrdiff_t b = 0; b < k_pieces; b++) {
                const piece keys = piece_of(&blocks[j], b, k_pieces);
                if (!any_seen(&queries, &keys, causal)) {
                    continue;
                }
                const rfa_real *k_rows = k + keys.row * ld_k, *v_rows = v + keys.row * ld_v;
                double *dkv_rows = dkv + keys.row * 2 * d;
                const ptrdiff_t ld = keys.rows;
                rfa_real *weights = work, *dweights = weights + queries.rows * ld;
                rfa_real *part = dweights + queries.rows * ld; // [keys][d]

                rfa_gemm(RFA_N, RFA_T, queries.rows, keys.rows, d, scale, q_rows, ld_q, k_rows,
                         ld_k, 0, weights, ld);
                weigh_scores(weights, lse + queries.row, &queries, &keys, causal);
                rfa_gemm(RFA_T, RFA_N, keys.rows, d, queries.tokens, 1, weights, ld, dout_rows,
                         ld_dout, 0, part, d);
                add_rows(dkv_rows + d, 2 * d, part, keys.tokens, d);

                rfa_gemm(RFA_N, RFA_T, queries.rows, keys.rows, d, 1, dout_rows, ld_dout, v_rows,
                         ld_v, 0, dweights, ld);
                score_gradients(dweights, weights, delta, scale, &queries, &keys, causal);
                rfa_gemm(RFA_N, RFA_N, queries.rows, d, keys.tokens, 1, dweights, ld, k_rows, ld_k,
                         1, dq_rows, ld_dq);
                rfa_gemm(RFA_T, RFA_N, keys.rows, d, queries.tokens, 1, dweights, ld, q_rows, ld_q,
                         0, part, d);
                add_rows(dkv_rows, 2 * d, part, keys.tokens, d);
            }
        }
    }
    for (ptrdiff_t row = q_block->row0 + q_block->tokens; row < q_block->row0 + q_block->rows;
         row++) {
        zero(dq + row * ld_dq, d);
    }
}
