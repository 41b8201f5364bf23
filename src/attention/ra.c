#include "attention/ra.h"

#include "attention/softmax_impl.h"
#include "tensor/gemm.h"
#include "tensor/vmath.h"

#include <math.h>
#include <string.h>

// Blocks of random words of one draw: one for the index, and one for each pair of normals.
static uint64_t first_word(const rfa_ra *ra, ptrdiff_t position, ptrdiff_t s)
{
    return (uint64_t)(position * ra->draws + s) * (uint64_t)(1 + (ra->d + 1) / 2);
}

double rfa_ra_uniform(const rfa_ra *ra, ptrdiff_t position, ptrdiff_t s)
{
    uint32_t word[4];
    rfa_rng_block(word, &ra->stream, first_word(ra, position, s));
    const uint64_t bits = (uint64_t)word[0] << 32 | word[1];
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

void rfa_ra_normals(double *out, const rfa_ra *ra, ptrdiff_t position, ptrdiff_t s)
{
    rfa_rng_normals_at(out, &ra->stream, 2 * (first_word(ra, position, s) + 1), ra->d);
}

static ptrdiff_t draws_of(const rfa_ra *ra)
{
    return ra->noise ? ra->draws : 1;
}

// Parts of the workspace; arrays of queries count from the block's first row.
typedef struct {
    rfa_real *w, *dw, *dread, *prior; // [rows][d], prior [rows]
    rfa_real *bias;                   // [rows of keys]
    double *dbias;                    // [rows of keys], of a backward
    rfa_real *rest;                   // of the softmax kernels
} parts;

static parts lay_out(rfa_real *work, ptrdiff_t rows, ptrdiff_t keys, ptrdiff_t d)
{
    parts part;
    part.w = take(&work, rows * d);
    part.dw = take(&work, rows * d);
    part.dread = take(&work, rows * d);
    part.prior = take(&work, rows);
    part.bias = take(&work, keys);
    part.dbias = take_doubles(&work, keys);
    part.rest = work;
    return part;
}

ptrdiff_t rfa_ra_work(ptrdiff_t max_rows, ptrdiff_t max_block, ptrdiff_t max_keys, const rfa_ra *ra)
{
    const ptrdiff_t rows = rfa_padded(max_rows), most = rows > max_block ? rows : max_block;
    return 3 * taken(rows * ra->d) + taken(rows) + taken(max_keys) + taken(max_keys * DOUBLE) +
           rfa_softmax_work_size(most, ra->d);
}

static ptrdiff_t key_rows(const rfa_softmax_keys *keys)
{
    ptrdiff_t end = 0;
    for (int j = 0; j < keys->n; j++) {
        const rfa_softmax_block *block = &keys->blocks[j];
        end = block->row0 + block->rows > end ? block->row0 + block->rows : end;
    }
    return end;
}

// bias_m = -|k_m|^2 / (2 sqrt(d)).
static void norm_bias(rfa_real *bias, const rfa_softmax_keys *keys, ptrdiff_t d)
{
    const double factor = -0.5 / sqrt((double)d);
    for (int j = 0; j < keys->n; j++) {
        const rfa_softmax_block *block = &keys->blocks[j];
        for (ptrdiff_t row = block->row0; row < block->row0 + block->tokens; row++) {
            double sum = 0;
            for (ptrdiff_t c = 0; c < d; c++) {
                const double x = (double)keys->k[row * keys->ld_k + c];
                sum += x * x;
            }
            bias[row] = (rfa_real)(factor * sum);
        }
    }
}

// Weight of the keys so far, of each query of a piece.
typedef struct {
    double weight[PIECE];
} passed;

// The last key with a weight, or -1.
static int32_t last_key(const rfa_real *weights, ptrdiff_t count, ptrdiff_t row)
{
    while (count > 0 && !(weights[count - 1] > 0)) {
        count--;
    }
    return count > 0 ? (int32_t)(row + count - 1) : -1;
}

// The first key at which the sum of weights from before on exceeds u; the last one with a weight
// where rounding leaves the sum below u.
static int32_t
key_at(const rfa_real *weights, ptrdiff_t count, ptrdiff_t row, double before, double u)
{
    for (ptrdiff_t j = 0; j < count; j++) {
        before += (double)weights[j];
        if (before > u) {
            return (int32_t)(row + j);
        }
    }
    return last_key(weights, count, row);
}

// Moves the draws of query i into or past the next count keys, whose weights add up to sum.
static void find_keys(int32_t *index,
                      ptrdiff_t ld,
                      double *before,
                      const rfa_ra *ra,
                      ptrdiff_t position,
                      const rfa_real *weights,
                      ptrdiff_t count,
                      double sum,
                      ptrdiff_t row)
{
    for (ptrdiff_t s = 0; s < ra->draws; s++) {
        const double u = rfa_ra_uniform(ra, position, s);
        if (u < *before) { // found in an earlier piece
            continue;
        }
        // Past these keys: the last one stays if no other follows.
        const int32_t found = u < *before + sum ? key_at(weights, count, row, *before, u)
                                                : last_key(weights, count, row);
        index[s * ld] = found < 0 ? index[s * ld] : found;
    }
    *before += sum;
}

// index of all draws of q_block, given prior, the log-sum-exp of its scores.
static void draw_keys(int32_t *index,
                      ptrdiff_t ld,
                      const rfa_real *prior,
                      const rfa_real *q,
                      ptrdiff_t ld_q,
                      const rfa_softmax_block *q_block,
                      const rfa_softmax_keys *keys,
                      const rfa_ra *ra,
                      rfa_real *work)
{
    const ptrdiff_t q_pieces = pieces_of(q_block);
    for (ptrdiff_t s = 0; s < ra->draws; s++) {
        for (ptrdiff_t row = q_block->row0; row < q_block->row0 + q_block->rows; row++) {
            index[s * ld + row] = -1;
        }
    }
    for (ptrdiff_t a = 0; a < q_pieces; a++) {
        const piece queries = piece_of(q_block, a, q_pieces);
        passed before = {0};
        for (int j = 0; j < keys->n; j++) {
            const ptrdiff_t k_pieces = pieces_of(&keys->blocks[j]);
            for (ptrdiff_t b = 0; b < k_pieces; b++) {
                const piece part = piece_of(&keys->blocks[j], b, k_pieces);
                if (!any_seen(&queries, &part, ra->causal)) {
                    continue;
                }
                // The scores' bits are those behind prior.
                rfa_gemm(RFA_N, RFA_T, queries.rows, part.rows, ra->d, score_scale(ra->d),
                         q + queries.row * ld_q, ld_q, keys->k + part.row * keys->ld_k, keys->ld_k,
                         0, work, part.rows);
                for (ptrdiff_t i = 0; i < queries.tokens; i++) {
                    rfa_real *row = work + i * part.rows;
                    const ptrdiff_t count = seen(&queries, &part, i, ra->causal);
                    const rfa_real sum =
                        rfa_vexp_sum(row, row, prior[queries.row + i - q_block->row0], count);
                    find_keys(index + queries.row + i, ld, &before.weight[i], ra, queries.begin + i,
                              row, count, (double)sum, part.row);
                }
            }
        }
    }
}

// The block of rows that begins at row 0 of the workspace.
static rfa_softmax_block block_at_0(const rfa_softmax_block *block)
{
    rfa_softmax_block moved = *block;
    moved.row0 = 0;
    return moved;
}

// w [rows][d] of draw s: the query, its key and the noise.
static void directions(rfa_real *w,
                       const int32_t *index,
                       const rfa_real *q,
                       ptrdiff_t ld_q,
                       const rfa_softmax_block *q_block,
                       const rfa_softmax_keys *keys,
                       const rfa_ra *ra,
                       ptrdiff_t s)
{
    enum { NORMALS = 64 };
    const double scale = sqrt(sqrt((double)ra->d));
    const ptrdiff_t d = ra->d;
    for (ptrdiff_t i = 0; i < q_block->tokens; i++) {
        const ptrdiff_t m = index[q_block->row0 + i];
        const rfa_real *query = q + (q_block->row0 + i) * ld_q;
        const rfa_real *key = m < 0 ? NULL : keys->k + m * keys->ld_k;
        const uint64_t first = 2 * (first_word(ra, q_block->begin + i, s) + 1);
        for (ptrdiff_t at = 0; at < d; at += NORMALS) {
            double normals[NORMALS];
            const ptrdiff_t n = d - at < NORMALS ? d - at : NORMALS;
            rfa_rng_normals_at(normals, &ra->stream, first + (uint64_t)at, n);
            for (ptrdiff_t c = 0; c < n; c++) {
                const double mean = (double)query[at + c] + (key ? (double)key[at + c] : 0);
                w[i * d + at + c] = (rfa_real)(mean + scale * normals[c]);
            }
        }
    }
    memset(w + q_block->tokens * d, 0, (size_t)((q_block->rows - q_block->tokens) * d) * sizeof *w);
}

// w [rows][d] without noise: the query and the mean of keys, which is left in mean [rows][d].
static void mean_directions(rfa_real *w,
                            rfa_real *mean,
                            rfa_real *prior,
                            const rfa_real *q,
                            ptrdiff_t ld_q,
                            const rfa_softmax_block *q_block,
                            const rfa_softmax_keys *keys,
                            const rfa_ra *ra,
                            rfa_real *work)
{
    const ptrdiff_t d = ra->d;
    const rfa_softmax_block block = block_at_0(q_block);
    const rfa_softmax_keys mixed = {.k = keys->k,
                                    .v = keys->k,
                                    .ld_k = keys->ld_k,
                                    .ld_v = keys->ld_k,
                                    .blocks = keys->blocks,
                                    .n = keys->n};
    rfa_softmax_read(mean, d, prior, q + q_block->row0 * ld_q, ld_q, &block, &mixed, d, ra->causal,
                     work);
    for (ptrdiff_t i = 0; i < block.rows; i++) {
        const rfa_real *query = q + (q_block->row0 + i) * ld_q;
        for (ptrdiff_t c = 0; c < d; c++) {
            w[i * d + c] = i < block.tokens ? query[c] + mean[i * d + c] : 0;
        }
    }
}

void rfa_ra_forward(rfa_real *out,
                    const rfa_ra_saved *saved,
                    const rfa_real *q,
                    ptrdiff_t ld_q,
                    const rfa_softmax_block *q_block,
                    const rfa_softmax_keys *keys,
                    const rfa_ra *ra,
                    rfa_real *work)
{
    const ptrdiff_t d = ra->d, S = draws_of(ra), row0 = q_block->row0, ld = saved->ld;
    const parts part = lay_out(work, q_block->rows, key_rows(keys), d);
    const rfa_softmax_block block = block_at_0(q_block);
    rfa_softmax_keys biased = *keys;
    biased.bias = part.bias;
    norm_bias(part.bias, keys, d);
    if (ra->noise) {
        rfa_softmax_keys plain = *keys;
        plain.bias = NULL;
        rfa_softmax_read(NULL, 0, part.prior, q + row0 * ld_q, ld_q, &block, &plain, d, ra->causal,
                         part.rest);
        draw_keys(saved->index, saved->rows, part.prior, q, ld_q, q_block, keys, ra, part.rest);
    }
    for (ptrdiff_t s = 0; s < S; s++) {
        rfa_real *read = saved->read + s * saved->rows * ld;
        if (ra->noise) {
            directions(part.w, saved->index + s * saved->rows, q, ld_q, q_block, keys, ra, s);
        } else {
            mean_directions(part.w, part.dw, part.prior, q, ld_q, q_block, keys, ra, part.rest);
        }
        rfa_softmax_read(read + row0 * ld, ld, saved->lse + s * saved->rows + row0, part.w, d,
                         &block, &biased, d, ra->causal, part.rest);
    }
    for (ptrdiff_t row = row0; saved->read != out && row < row0 + q_block->rows; row++) {
        for (ptrdiff_t c = 0; c < d; c++) {
            double sum = 0;
            for (ptrdiff_t s = 0; s < S; s++) {
                sum += (double)saved->read[(s * saved->rows + row) * ld + c];
            }
            out[row * ld + c] = (rfa_real)(sum / (double)S);
        }
    }
}

// The bias depends on keys: dk_m -= dbias_m k_m / sqrt(d).
static void norm_bias_backward(const rfa_softmax_gradient *dkeys,
                               const double *dbias,
                               const rfa_softmax_keys *keys,
                               ptrdiff_t d)
{
    const double factor = 1 / sqrt((double)d);
    for (int j = 0; j < keys->n; j++) {
        const rfa_softmax_block *block = &keys->blocks[j];
        for (ptrdiff_t row = block->row0; row < block->row0 + block->tokens; row++) {
            const double scaled = dbias[row] * factor;
            for (ptrdiff_t c = 0; c < d; c++) {
                dkeys->k[row * dkeys->ld + c] -= scaled * (double)keys->k[row * keys->ld_k + c];
            }
        }
    }
}

// What dw brings to queries and keys by w of draw s; dq [rows][ld_dq] of the block accumulates.
static void directions_backward(rfa_real *dq,
                                ptrdiff_t ld_dq,
                                const rfa_softmax_gradient *dkeys,
                                const rfa_real *dw,
                                const int32_t *index,
                                const rfa_softmax_block *q_block,
                                ptrdiff_t d)
{
    for (ptrdiff_t i = 0; i < q_block->tokens; i++) {
        const ptrdiff_t m = index[q_block->row0 + i];
        for (ptrdiff_t c = 0; c < d; c++) {
            dq[i * ld_dq + c] += dw[i * d + c];
        }
        for (ptrdiff_t c = 0; m >= 0 && c < d; c++) {
            dkeys->k[m * dkeys->ld + c] += (double)dw[i * d + c];
        }
    }
}

// The same without noise: through the mean of keys, which is softmax attention to values k.
static void mean_directions_backward(rfa_real *dq,
                                     ptrdiff_t ld_dq,
                                     const rfa_softmax_gradient *dkeys,
                                     const parts *part,
                                     const rfa_real *q,
                                     ptrdiff_t ld_q,
                                     const rfa_softmax_block *q_block,
                                     const rfa_softmax_keys *keys,
                                     const rfa_ra *ra)
{
    const ptrdiff_t d = ra->d;
    const rfa_softmax_block block = block_at_0(q_block);
    const rfa_softmax_keys mixed = {.k = keys->k,
                                    .v = keys->k,
                                    .ld_k = keys->ld_k,
                                    .ld_v = keys->ld_k,
                                    .blocks = keys->blocks,
                                    .n = keys->n};
    const rfa_softmax_gradient dmixed = {.k = dkeys->k, .v = dkeys->k, .ld = dkeys->ld};
    const rfa_real *query = q + q_block->row0 * ld_q;
    rfa_real *mean = part->w, *dmean = part->dread; // both have served their turn
    rfa_softmax_read(mean, d, part->prior, query, ld_q, &block, &mixed, d, ra->causal, part->rest);
    rfa_softmax_read_backward(dmean, d, &dmixed, part->dw, d, mean, d, part->prior, query, ld_q,
                              &block, &mixed, d, ra->causal, part->rest);
    for (ptrdiff_t i = 0; i < block.tokens; i++) {
        for (ptrdiff_t c = 0; c < d; c++) {
            dq[i * ld_dq + c] += part->dw[i * d + c] + dmean[i * d + c];
        }
    }
}

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
                     rfa_real *work)
{
    const ptrdiff_t d = ra->d, S = draws_of(ra), row0 = q_block->row0, ld = saved->ld;
    const parts part = lay_out(work, q_block->rows, key_rows(keys), d);
    const rfa_softmax_block block = block_at_0(q_block);
    rfa_softmax_keys biased = *keys;
    biased.bias = part.bias;
    norm_bias(part.bias, keys, d);
    const rfa_softmax_gradient dbiased = {
        .k = dkeys->k, .v = dkeys->v, .ld = dkeys->ld, .bias = part.dbias};
    memset(part.dbias, 0, (size_t)key_rows(keys) * sizeof *part.dbias);
    rfa_real *dq_rows = dq + row0 * ld_dq;
    for (ptrdiff_t i = 0; i < q_block->rows; i++) {
        memset(dq_rows + i * ld_dq, 0, (size_t)d * sizeof *dq);
    }
    for (ptrdiff_t s = 0; s < S; s++) {
        const int32_t *index = ra->noise ? saved->index + s * saved->rows : NULL;
        if (ra->noise) {
            directions(part.w, index, q, ld_q, q_block, keys, ra, s);
        } else {
            mean_directions(part.w, part.dw, part.prior, q, ld_q, q_block, keys, ra, part.rest);
        }
        for (ptrdiff_t i = 0; i < q_block->rows; i++) {
            for (ptrdiff_t c = 0; c < d; c++) {
                part.dread[i * d + c] = dout[(row0 + i) * ld + c] / (rfa_real)S;
            }
        }
        rfa_softmax_read_backward(part.dw, d, &dbiased, part.dread, d,
                                  saved->read + (s * saved->rows + row0) * ld, ld,
                                  saved->lse + s * saved->rows + row0, part.w, d, &block, &biased,
                                  d, ra->causal, part.rest);
        if (ra->noise) {
            directions_backward(dq_rows, ld_dq, dkeys, part.dw, index, q_block, d);
        } else {
            mean_directions_backward(dq_rows, ld_dq, dkeys, &part, q, ld_q, q_block, keys, ra);
        }
    }
    norm_bias_backward(dkeys, part.dbias, keys, d);
}
