#include "attention/softmax_impl.h"

#include "tensor/gemm.h"
#include "tensor/vmath.h"

static void zero(rfa_real *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] = 0;
    }
}

ptrdiff_t rfa_softmax_work_size(ptrdiff_t max_rows, ptrdiff_t d)
{
    const ptrdiff_t rows = rfa_padded(max_rows) < PIECE ? rfa_padded(max_rows) : PIECE;
    return rows * (2 * rows + 2 * d);
}

static void add_bias(rfa_real *scores, const rfa_real *bias, ptrdiff_t count)
{
#pragma omp simd
    for (ptrdiff_t j = 0; j < count; j++) {
        scores[j] += bias[j];
    }
}

// Running maximum and sum of exp(score - maximum) of the queries of one piece.
typedef struct {
    rfa_real most[PIECE];
    double sum[PIECE];
} statistics;

// scores [queries][keys] become exp(score - maximum); where the maximum rises, the sum and the row
// of out so far shrink to it. bias, out: NULL when there is none.
static void absorb_scores(rfa_real *scores,
                          statistics *stat,
                          rfa_real *out,
                          ptrdiff_t ld_out,
                          const rfa_real *bias,
                          const piece *queries,
                          const piece *keys,
                          ptrdiff_t d,
                          bool causal)
{
    for (ptrdiff_t i = 0; i < queries->tokens; i++) {
        rfa_real *row = scores + i * keys->rows;
        const ptrdiff_t count = seen(queries, keys, i, causal);
        if (bias) {
            add_bias(row, bias + keys->row, count);
        }
        const rfa_real most = rfa_vmax(row, count);
        if (most > stat->most[i]) {
            const double shrink = exp((double)stat->most[i] - (double)most);
            stat->most[i] = most;
            stat->sum[i] *= shrink;
            for (ptrdiff_t c = 0; out && c < d; c++) {
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
        for (ptrdiff_t c = 0; out && c < d; c++) {
            out[i * ld_out + c] *= factor;
        }
    }
}

void rfa_softmax_read(rfa_real *out,
                      ptrdiff_t ld_out,
                      rfa_real *lse,
                      const rfa_real *q,
                      ptrdiff_t ld_q,
                      const rfa_softmax_block *q_block,
                      const rfa_softmax_keys *keys,
                      ptrdiff_t d,
                      bool causal,
                      rfa_real *work)
{
    const ptrdiff_t q_pieces = pieces_of(q_block);
    for (ptrdiff_t a = 0; a < q_pieces; a++) {
        const piece queries = piece_of(q_block, a, q_pieces);
        rfa_real *out_rows = out ? out + queries.row * ld_out : NULL;
        statistics stat;
        for (ptrdiff_t i = 0; i < queries.tokens; i++) {
            stat.most[i] = (rfa_real)-INFINITY;
            stat.sum[i] = 0;
            if (out) {
                zero(out_rows + i * ld_out, d);
            }
        }
        for (int j = 0; j < keys->n; j++) {
            const ptrdiff_t k_pieces = pieces_of(&keys->blocks[j]);
            for (ptrdiff_t b = 0; b < k_pieces; b++) {
                const piece part = piece_of(&keys->blocks[j], b, k_pieces);
                if (!any_seen(&queries, &part, causal)) {
                    continue;
                }
                const rfa_real *k_rows = keys->k + part.row * keys->ld_k;
                const rfa_real *transpose =
                    rfa_gemm_transpose(work + queries.rows * part.rows, k_rows, keys->ld_k,
                                       part.rows, d, queries.rows);
                rfa_gemm_nt(queries.rows, part.rows, d, score_scale(d), q + queries.row * ld_q,
                            ld_q, k_rows, keys->ld_k, transpose, work, part.rows);
                absorb_scores(work, &stat, out_rows, ld_out, keys->bias, &queries, &part, d,
                              causal);
                if (out) {
                    rfa_gemm(RFA_N, RFA_N, queries.rows, d, part.tokens, 1, work, part.rows,
                             keys->v + part.row * keys->ld_v, keys->ld_v, 1, out_rows, ld_out);
                }
            }
        }
        normalise(out_rows, ld_out, lse + queries.row, &stat, queries.tokens, d);
    }
    for (ptrdiff_t row = q_block->row0 + q_block->tokens; row < q_block->row0 + q_block->rows;
         row++) {
        if (out) {
            zero(out + row * ld_out, d);
        }
        lse[row] = (rfa_real)-INFINITY;
    }
}

// Scores become weights.
static void weigh_scores(rfa_real *scores,
                         const rfa_real *lse,
                         const rfa_real *bias,
                         const piece *queries,
                         const piece *keys,
                         bool causal)
{
    for (ptrdiff_t i = 0; i < queries->tokens; i++) {
        rfa_real *row = scores + i * keys->rows;
        const ptrdiff_t count = seen(queries, keys, i, causal);
        if (bias) {
            add_bias(row, bias + keys->row, count);
        }
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

// dbias_j += the sum of column j of the gradients of products, which carry 1 / factor.
static void add_columns(double *dbias,
                        const rfa_real *dproducts,
                        double factor,
                        const piece *queries,
                        const piece *keys)
{
    for (ptrdiff_t i = 0; i < queries->tokens; i++) {
        const rfa_real *row = dproducts + i * keys->rows;
#pragma omp simd
        for (ptrdiff_t j = 0; j < keys->tokens; j++) {
            dbias[j] += (double)row[j] * factor;
        }
    }
}

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
        for (int j = 0; j < keys->n; j++) {
            const ptrdiff_t k_pieces = pieces_of(&keys->blocks[j]);
            for (ptrdiff_t b = 0; b < k_pieces; b++) {
                const piece part = piece_of(&keys->blocks[j], b, k_pieces);
                if (!any_seen(&queries, &part, causal)) {
                    continue;
                }
                const rfa_real *k_rows = keys->k + part.row * keys->ld_k;
                const ptrdiff_t ld = part.rows;
                rfa_real *weights = work, *dweights = weights + queries.rows * ld;
                rfa_real *sum = dweights + queries.rows * ld; // [keys][d]
                rfa_real *scratch = sum + ld * d;             // [d][keys]
                const rfa_real *v_rows = keys->v + part.row * keys->ld_v;

                rfa_gemm_nt(queries.rows, ld, d, scale, q_rows, ld_q, k_rows, keys->ld_k,
                            rfa_gemm_transpose(scratch, k_rows, keys->ld_k, ld, d, queries.rows),
                            weights, ld);
                weigh_scores(weights, lse + queries.row, keys->bias, &queries, &part, causal);
                rfa_gemm(RFA_T, RFA_N, part.rows, d, queries.tokens, 1, weights, ld, dout_rows,
                         ld_dout, 0, sum, d);
                add_rows(dkeys->v + part.row * dkeys->ld, dkeys->ld, sum, part.tokens, d);

                rfa_gemm_nt(queries.rows, ld, d, 1, dout_rows, ld_dout, v_rows, keys->ld_v,
                            rfa_gemm_transpose(scratch, v_rows, keys->ld_v, ld, d, queries.rows),
                            dweights, ld);
                score_gradients(dweights, weights, delta, scale, &queries, &part, causal);
                rfa_gemm(RFA_N, RFA_N, queries.rows, d, part.tokens, 1, dweights, ld, k_rows,
                         keys->ld_k, 1, dq_rows, ld_dq);
                rfa_gemm(RFA_T, RFA_N, part.rows, d, queries.tokens, 1, dweights, ld, q_rows, ld_q,
                         0, sum, d);
                add_rows(dkeys->k + part.row * dkeys->ld, dkeys->ld, sum, part.tokens, d);
                if (dkeys->bias) {
                    add_columns(dkeys->bias + part.row, dweights, 1 / (double)scale, &queries,
                                &part);
                }
            }
        }
    }
    for (ptrdiff_t row = q_block->row0 + q_block->tokens; row < q_block->row0 + q_block->rows;
         row++) {
        zero(dq + row * ld_dq, d);
    }
}
