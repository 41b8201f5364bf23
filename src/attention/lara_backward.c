#include "attention/lara_impl.h"

#include "tensor/gemm.h"
#include "tensor/vmath.h"

#include <string.h>

// What the queries give the samples, plain sums: u [J][d], f [J][d], base [J] (the logarithm of
// p_nj); of specific weights, in addition, balance [J] and q_mean [C][d]. Views.
typedef struct {
    double *u, *f, *base, *balance, *q_mean;
} sample_sums;

static sample_sums sums_at(double *sums, const rfa_lara *lara)
{
    const ptrdiff_t J = rfa_lara_count(lara), d = lara->d;
    return (sample_sums){
        .u = sums,
        .f = sums + J * d,
        .base = sums + 2 * J * d,
        .balance = sums + 2 * J * d + J,
        .q_mean = sums + 2 * J * d + 2 * J,
    };
}

ptrdiff_t rfa_lara_sums_size(const rfa_lara *lara)
{
    const ptrdiff_t J = rfa_lara_count(lara), d = lara->d;
    return J * (2 * d + 1) + (lara->weights == RFA_WEIGHTS_SPECIFIC ? J + lara->landmarks * d : 0);
}

ptrdiff_t rfa_lara_adjoint_size(const rfa_lara *lara)
{
    return 2 * lara_padded_landmarks(lara) * lara->d + lara_padded_count(lara) * (2 * lara->d + 1);
}

rfa_lara_adjoint rfa_lara_adjoint_at(rfa_real *values, const rfa_lara *lara)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), J = lara_padded_count(lara), d = lara->d;
    rfa_real *w = values + 2 * C * d;
    return (rfa_lara_adjoint){
        .q_mean = values,
        .mu = values + C * d,
        .w = w,
        .f = w + J * d,
        .score = w + 2 * J * d,
    };
}

static void accumulate(double *restrict sum, const rfa_real *restrict x, ptrdiff_t n)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        sum[i] += (double)x[i];
    }
}

// column [n] += sum of the rows of x [rows][n].
static void add_rows(
    double *column, rfa_real *scratch, const rfa_real *x, ptrdiff_t rows, ptrdiff_t ld, ptrdiff_t n)
{
    memset(scratch, 0, (size_t)n * sizeof *scratch);
    for (ptrdiff_t i = 0; i < rows; i++) {
        axpy(scratch, 1, x + i * ld, n);
    }
    accumulate(column, scratch, n);
}

// From g [J], the adjoint of log p, to that of r's scores, in place of r [C]; dbalance [J]
// accumulates.
static void specify_backward(rfa_real *restrict r,
                             rfa_real *restrict dbalance,
                             const rfa_real *restrict g,
                             const rfa_real *restrict balance,
                             rfa_real *restrict dr,
                             const rfa_lara *lara)
{
    const ptrdiff_t C = lara->landmarks;
    const rfa_real a = (rfa_real)lara->specificity, mean = 1 / (rfa_real)C;
    memset(dr, 0, (size_t)C * sizeof *dr);
    for (ptrdiff_t j = 0; j < C * lara->draws; j += C) {
#pragma omp simd
        for (ptrdiff_t c = 0; c < C; c++) {
            const rfa_real alpha = balance[j + c] + a * (r[c] - mean);
            const rfa_real dalpha = alpha > LARA_CLAMP ? g[j + c] / alpha : 0;
            dbalance[j + c] += dalpha;
            dr[c] += a * dalpha;
        }
    }
    const rfa_real along = dot(r, dr, C);
#pragma omp simd
    for (ptrdiff_t c = 0; c < C; c++) {
        r[c] *= dr[c] - along;
    }
}

void rfa_lara_read_backward(rfa_real *dq,
                            ptrdiff_t ld_dq,
                            double *sums,
                            const rfa_real *dout,
                            const rfa_real *out,
                            ptrdiff_t ld_out,
                            const rfa_lara_samples *samples,
                            const rfa_lara *lara,
                            const rfa_head *head,
                            rfa_real *work)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), J = lara_padded_count(lara), d = lara->d;
    const ptrdiff_t count = rfa_lara_count(lara), most_rows = chunk_rows(head->rows, LARA_CHUNK);
    const bool specific = lara->weights == RFA_WEIGHTS_SPECIFIC;
    const rfa_real temper = lara_temper(lara);
    const sample_sums sum = sums_at(sums, lara);
    const rfa_lara_readout readout = rfa_lara_readout_of(samples, lara, &work);
    rfa_real *p = take(&work, most_rows * J), *g = take(&work, most_rows * J);
    rfa_real *r = take(&work, most_rows * C), *dr = take(&work, C);
    rfa_real *part = take(&work, J * d), *dbalance = take(&work, J);
    memset(sums, 0, (size_t)rfa_lara_sums_size(lara) * sizeof *sums);
    for (ptrdiff_t t = 0; t < head->rows; t += most_rows) {
        const ptrdiff_t n = least(most_rows, head->rows - t);
        const rfa_real *q = head->q + t * head->ld, *dout_rows = dout + t * ld_out;
        rfa_real *dq_rows = dq + t * ld_dq;
        rfa_lara_weigh(p, r, &readout, samples, lara, head, t, n);
        rfa_gemm(RFA_T, RFA_N, J, d, n, 1, p, J, dout_rows, ld_out, 0, part, d);
        accumulate(sum.f, part, count * d);

        rfa_gemm(RFA_N, RFA_T, n, J, d, 1, dout_rows, ld_out, samples->f, d, 0, g, J);
        memset(dbalance, 0, (size_t)J * sizeof *dbalance);
        for (ptrdiff_t i = 0; i < n; i++) {
            const rfa_real *restrict weight = p + i * J;
            rfa_real *restrict row = g + i * J;
            const rfa_real mean = dot(dout_rows + i * ld_out, out + (t + i) * ld_out, d);
#pragma omp simd
            for (ptrdiff_t j = 0; j < J; j++) {
                row[j] = weight[j] * (row[j] - mean);
            }
            if (!specific) {
                continue;
            }
            if (head->mask[t + i] != 0) {
                specify_backward(r + i * C, dbalance, row, readout.balance, dr, lara);
            } else {
                memset(r + i * C, 0, (size_t)C * sizeof *r);
            }
        }
        rfa_gemm(RFA_N, RFA_N, n, d, J, temper, g, J, readout.u, d, 0, dq_rows, ld_dq);
        rfa_gemm(RFA_T, RFA_N, J, d, n, temper, g, J, q, head->ld, 0, part, d);
        accumulate(sum.u, part, count * d);
        if (specific) {
            accumulate(sum.balance, dbalance, count);
            rfa_gemm(RFA_N, RFA_N, n, d, C, temper, r, C, samples->q_mean, d, 1, dq_rows, ld_dq);
            rfa_gemm(RFA_T, RFA_N, C, d, n, temper, r, C, q, head->ld, 0, part, d);
            accumulate(sum.q_mean, part, lara->landmarks * d);
        }
        add_rows(sum.base, dbalance, g, n, J, count);
    }
}

// dmu and dw through own_j = w_j . mu_c - |mu_c|^2 / 2, weighted by down [J].
static void own_backward(const rfa_lara_adjoint *adjoint,
                         const rfa_real *down,
                         const rfa_lara_samples *samples,
                         const rfa_lara *lara)
{
    const ptrdiff_t d = lara->d;
    for (ptrdiff_t j = 0; j < rfa_lara_count(lara); j++) {
        const ptrdiff_t c = j % lara->landmarks;
        axpy(adjoint->w + j * d, down[j], samples->mu + c * d, d);
        axpy(adjoint->mu + c * d, down[j], samples->w + j * d, d);
        axpy(adjoint->mu + c * d, -down[j], samples->mu + c * d, d);
    }
}

// The same through pool_j, whose derivatives are the shares of the proposals.
static void pool_backward(const rfa_lara_adjoint *adjoint,
                          const rfa_real *dpool,
                          const rfa_lara_samples *samples,
                          const rfa_lara *lara,
                          rfa_real *work)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), J = lara_padded_count(lara), d = lara->d;
    const ptrdiff_t most = chunk_rows(J, LARA_CHUNK);
    rfa_real *share = take(&work, most * C), *column = take(&work, C), *half = take(&work, C);
    memset(column, 0, (size_t)C * sizeof *column);
    for (ptrdiff_t from = 0; from < J; from += most) {
        const ptrdiff_t n = least(most, J - from);
        rfa_lara_density(share, half, samples, lara, from, n);
        for (ptrdiff_t j = from; j < from + n; j++) {
            rfa_real *restrict row = share + (j - from) * C;
            rfa_vexp_sum(row, row, samples->pool[j], C);
#pragma omp simd
            for (ptrdiff_t c = 0; c < C; c++) {
                row[c] *= dpool[j];
                column[c] += row[c];
            }
        }
        const rfa_real *w = samples->w + from * d;
        rfa_gemm(RFA_N, RFA_N, n, d, C, 1, share, C, samples->mu, d, 1, adjoint->w + from * d, d);
        rfa_gemm(RFA_T, RFA_N, C, d, n, 1, share, C, w, d, 1, adjoint->mu, d);
    }
    for (ptrdiff_t c = 0; c < lara->landmarks; c++) {
        axpy(adjoint->mu + c * d, -column[c], samples->mu + c * d, d);
    }
}

void rfa_lara_samples_backward(const rfa_lara_adjoint *adjoint,
                               const double *sums,
                               const rfa_lara_samples *samples,
                               const rfa_lara *lara,
                               rfa_real *work)
{
    const ptrdiff_t J = lara_padded_count(lara), count = rfa_lara_count(lara), d = lara->d;
    const ptrdiff_t C = lara->landmarks;
    const bool specific = lara->weights == RFA_WEIGHTS_SPECIFIC;
    const sample_sums sum = sums_at((double *)sums, lara);
    rfa_real *down = take(&work, J), *dpool = take(&work, J);
    memset(adjoint->q_mean, 0, (size_t)rfa_lara_adjoint_size(lara) * sizeof *adjoint->q_mean);
    memset(down, 0, (size_t)J * sizeof *down);
    memset(dpool, 0, (size_t)J * sizeof *dpool);
    narrow(adjoint->w, sum.u, count * d);
    narrow(adjoint->f, sum.f, count * d);
    if (specific) {
        narrow(adjoint->q_mean, sum.q_mean, C * d);
    }
    if (lara->weights == RFA_WEIGHTS_BIASED) { // u_j = w_j + mu_c
        for (ptrdiff_t s = 0; s < lara->draws; s++) {
            axpy(adjoint->mu, 1, adjoint->w + s * C * d, C * d);
        }
    }
    for (ptrdiff_t j = 0; j < count; j++) {
        const double balance = exp((double)samples->own[j] - (double)samples->pool[j]);
        const double through = specific ? balance * sum.balance[j] : 0;
        down[j] = (rfa_real)(specific ? through - sum.base[j] : 0);
        dpool[j] = (rfa_real)(specific ? -through : -sum.base[j]);
        adjoint->score[j] = (rfa_real)sum.base[j] - dot(adjoint->f + j * d, samples->f + j * d, d);
    }
    if (specific) {
        own_backward(adjoint, down, samples, lara);
    }
    pool_backward(adjoint, dpool, samples, lara, work);
}

void rfa_lara_keys_backward(rfa_real *dk,
                            rfa_real *dv,
                            ptrdiff_t ld_dk,
                            double *dw,
                            const rfa_lara_adjoint *adjoint,
                            const rfa_lara_samples *samples,
                            const rfa_lara *lara,
                            const rfa_head *head,
                            rfa_real *work)
{
    const ptrdiff_t J = lara_padded_count(lara), count = rfa_lara_count(lara), d = lara->d;
    const ptrdiff_t most_rows = chunk_rows(head->rows, LARA_CHUNK);
    const rfa_real temper = lara_temper(lara);
    rfa_real *weights = take(&work, J * most_rows), *g = take(&work, J * most_rows);
    rfa_real *column = take(&work, most_rows), *part = take(&work, J * d);
    memset(dw, 0, (size_t)(count * d) * sizeof *dw);
    for (ptrdiff_t t = 0; t < head->rows; t += most_rows) {
        const ptrdiff_t n = least(most_rows, head->rows - t);
        const rfa_real *k = head->k + t * head->ld, *v = head->v + t * head->ld;
        rfa_real *dk_rows = dk + t * ld_dk;
        rfa_lara_scores(weights, column, samples, lara, head, t, n);
        rfa_gemm(RFA_N, RFA_T, J, n, d, 1, adjoint->f, d, v, head->ld, 0, g, n);
        memset(column, 0, (size_t)n * sizeof *column);
        memset(weights + count * n, 0, (size_t)((J - count) * n) * sizeof *weights);
        for (ptrdiff_t j = 0; j < J; j++) {
            rfa_real *restrict weight = weights + j * n, *restrict row = g + j * n;
            if (j < count) {
                rfa_vexp_sum(weight, weight, samples->lse[j], n);
            }
#pragma omp simd
            for (ptrdiff_t m = 0; m < n; m++) {
                row[m] = weight[m] * (row[m] + adjoint->score[j]);
                column[m] += row[m];
            }
        }
        rfa_gemm(RFA_T, RFA_N, n, d, J, 1, weights, n, adjoint->f, d, 0, dv + t * ld_dk, ld_dk);
        rfa_gemm(RFA_T, RFA_N, n, d, J, temper, g, n, samples->w, d, 0, dk_rows, ld_dk);
        for (ptrdiff_t m = 0; m < n; m++) {
            axpy(dk_rows + m * ld_dk, -column[m] * temper * temper, k + m * head->ld, d);
        }
        rfa_gemm(RFA_N, RFA_N, J, d, n, temper, g, n, k, head->ld, 0, part, d);
        accumulate(dw, part, count * d);
    }
}

void rfa_lara_propose_backward(rfa_real *dq_means,
                               rfa_real *dk_means,
                               ptrdiff_t ld,
                               const double *dw,
                               const rfa_lara_adjoint *adjoint,
                               const rfa_lara *lara)
{
    const ptrdiff_t C = lara->landmarks, d = lara->d;
    const double temper = pow((double)d, -0.25);
    for (ptrdiff_t c = 0; c < C; c++) {
        for (ptrdiff_t i = 0; i < d; i++) {
            double dmu = (double)adjoint->mu[c * d + i];
            for (ptrdiff_t s = 0; s < lara->draws; s++) {
                const ptrdiff_t at = (s * C + c) * d + i;
                dmu += (double)adjoint->w[at] + dw[at];
            }
            dk_means[c * ld + i] = (rfa_real)(temper * dmu);
            dq_means[c * ld + i] = (rfa_real)(temper * (dmu + (double)adjoint->q_mean[c * d + i]));
        }
    }
}
