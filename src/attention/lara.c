#include "attention/lara_impl.h"

#include "tensor/gemm.h"
#include "tensor/vmath.h"

#include <string.h>

ptrdiff_t rfa_lara_samples_size(const rfa_lara *lara)
{
    return 2 * lara_padded_landmarks(lara) * lara->d + lara_padded_count(lara) * (2 * lara->d + 3);
}

rfa_lara_samples rfa_lara_samples_at(rfa_real *values, const rfa_lara *lara)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), J = lara_padded_count(lara), d = lara->d;
    rfa_real *w = values + 2 * C * d, *own = w + 2 * J * d;
    return (rfa_lara_samples){
        .q_mean = values,
        .mu = values + C * d,
        .w = w,
        .f = w + J * d,
        .own = own,
        .pool = own + J,
        .lse = own + 2 * J,
    };
}

ptrdiff_t rfa_lara_work(const rfa_lara *lara, ptrdiff_t rows)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), J = lara_padded_count(lara), d = lara->d;
    const ptrdiff_t n = chunk_rows(rows, LARA_CHUNK), pieces = 16; // at most, for their alignment
    const ptrdiff_t samples = chunk_rows(J, LARA_CHUNK) * C + C + J * d * DOUBLE + 2 * J;
    const ptrdiff_t chunk = 2 * n * (J + C) + 2 * n + 2 * J * d + C * d + 4 * J;
    return (samples > chunk ? samples : chunk) + pieces * RFA_ALIGN_ELEMENTS;
}

void rfa_lara_density(rfa_real *density,
                      rfa_real *half,
                      const rfa_lara_samples *samples,
                      const rfa_lara *lara,
                      ptrdiff_t j,
                      ptrdiff_t n)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), d = lara->d;
    rfa_gemm(RFA_N, RFA_T, n, C, d, 1, samples->w + j * d, d, samples->mu, d, 0, density, C);
    for (ptrdiff_t c = 0; c < C; c++) {
        const rfa_real *mu = samples->mu + c * d;
        half[c] = c < lara->landmarks ? dot(mu, mu, d) / 2 : (rfa_real)INFINITY;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        axpy(density + i * C, -1, half, C);
    }
}

// mu + noise; samples of one landmark stand C rows apart.
static void draw(const rfa_lara_samples *samples,
                 const rfa_lara *lara,
                 const rfa_lara_noise *noise,
                 rfa_real *work)
{
    const ptrdiff_t size = lara->landmarks * lara->d;
    double *eps = take_doubles(&work, lara->draws * size);
    if (noise) {
        const ptrdiff_t pairs = lara->antithetic ? (lara->draws + 1) / 2 : lara->draws;
        rfa_rng_normals_at(eps, &noise->stream, noise->first, pairs * size);
    }
    for (ptrdiff_t s = 0; s < lara->draws; s++) {
        const double sign = lara->antithetic && s % 2 == 1 ? -1 : 1;
        const double *from = eps + (lara->antithetic ? s / 2 : s) * size;
        for (ptrdiff_t i = 0; i < size; i++) {
            const double mu = (double)samples->mu[i];
            samples->w[s * size + i] = (rfa_real)(noise ? mu + sign * from[i] : mu);
        }
    }
}

void rfa_lara_propose(const rfa_lara_samples *samples,
                      const rfa_lara *lara,
                      const double *q_means,
                      const double *k_means,
                      ptrdiff_t ld,
                      const rfa_lara_noise *noise,
                      rfa_real *work)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), J = lara_padded_count(lara), d = lara->d;
    const ptrdiff_t most = chunk_rows(J, LARA_CHUNK);
    const double temper = pow((double)d, -0.25);
    memset(samples->q_mean, 0, (size_t)rfa_lara_samples_size(lara) * sizeof *samples->q_mean);
    for (ptrdiff_t c = 0; c < lara->landmarks; c++) {
        for (ptrdiff_t i = 0; i < d; i++) {
            const double q = q_means[c * ld + i], k = k_means[c * ld + i];
            samples->q_mean[c * d + i] = (rfa_real)(temper * q);
            samples->mu[c * d + i] = (rfa_real)(temper * (q + k));
        }
    }
    draw(samples, lara, noise, work);
    rfa_real *density = take(&work, most * C), *half = take(&work, C);
    for (ptrdiff_t from = 0; from < J; from += most) {
        const ptrdiff_t n = least(most, J - from);
        rfa_lara_density(density, half, samples, lara, from, n);
        for (ptrdiff_t j = from; j < least(from + n, rfa_lara_count(lara)); j++) {
            rfa_real *row = density + (j - from) * C;
            const rfa_real top = rfa_vmax(row, C);
            samples->own[j] = row[j % lara->landmarks];
            samples->pool[j] = top + (rfa_real)log((double)rfa_vexp_sum(row, row, top, C));
        }
    }
}

void rfa_lara_scores(rfa_real *scores,
                     rfa_real *half,
                     const rfa_lara_samples *samples,
                     const rfa_lara *lara,
                     const rfa_head *head,
                     ptrdiff_t t,
                     ptrdiff_t n)
{
    const ptrdiff_t J = lara_padded_count(lara), d = lara->d;
    const rfa_real temper = lara_temper(lara);
    rfa_gemm(RFA_N, RFA_T, J, n, d, temper, samples->w, d, head->k + t * head->ld, head->ld, 0,
             scores, n);
    for (ptrdiff_t m = 0; m < n; m++) {
        const rfa_real *k = head->k + (t + m) * head->ld;
        half[m] =
            head->mask[t + m] != 0 ? dot(k, k, d) * (temper * temper / 2) : (rfa_real)INFINITY;
    }
    for (ptrdiff_t j = 0; j < J; j++) {
        axpy(scores + j * n, -1, half, n);
    }
}

// An element takes a chunk: weights that are relative to exp(most), their sum z, and S.
static void
merge(double *element, rfa_real most, rfa_real z, const rfa_real *restrict S, ptrdiff_t d)
{
    const double m = (double)most > element[0] ? (double)most : element[0];
    const double before = exp(element[0] - m), here = exp((double)most - m);
    double *restrict sum = element + 2;
    for (ptrdiff_t i = 0; i < d; i++) {
        sum[i] = sum[i] * before + (double)S[i] * here;
    }
    sum[d] = sum[d] * before + (double)z * here;
    element[0] = m;
}

void rfa_lara_keys(double *elements,
                   const rfa_lara_samples *samples,
                   const rfa_lara *lara,
                   const rfa_head *head,
                   rfa_real *work)
{
    const ptrdiff_t J = lara_padded_count(lara), d = lara->d, unit = rfa_lara_unit(d);
    const ptrdiff_t count = rfa_lara_count(lara), most_rows = chunk_rows(head->rows, LARA_CHUNK);
    rfa_real *scores = take(&work, J * most_rows), *half = take(&work, most_rows);
    rfa_real *most = take(&work, J), *z = take(&work, J), *S = take(&work, J * d);
    memset(elements, 0, (size_t)(count * unit) * sizeof *elements);
    for (ptrdiff_t j = 0; j < count; j++) {
        elements[j * unit] = -INFINITY;
    }
    for (ptrdiff_t t = 0; t < head->rows; t += most_rows) {
        const ptrdiff_t n = least(most_rows, head->rows - t);
        rfa_lara_scores(scores, half, samples, lara, head, t, n);
        for (ptrdiff_t j = 0; j < J; j++) {
            rfa_real *row = scores + j * n;
            most[j] = rfa_vmax(row, n);
            z[j] = rfa_vexp_sum(row, row, isinf(most[j]) ? 0 : most[j], n);
        }
        rfa_gemm(RFA_N, RFA_N, J, d, n, 1, scores, n, head->v + t * head->ld, head->ld, 0, S, d);
        for (ptrdiff_t j = 0; j < count; j++) {
            if (z[j] > 0) {
                merge(elements + j * unit, most[j], z[j], S + j * d, d);
            }
        }
    }
}

void rfa_lara_collect(const rfa_lara_samples *samples, const rfa_lara *lara, const double *elements)
{
    const ptrdiff_t d = lara->d, unit = rfa_lara_unit(d);
    for (ptrdiff_t j = 0; j < rfa_lara_count(lara); j++) {
        const double *element = elements + j * unit, z = element[2 + d];
        for (ptrdiff_t i = 0; i < d; i++) {
            samples->f[j * d + i] = (rfa_real)(element[2 + i] / z);
        }
        samples->lse[j] = (rfa_real)(element[0] + log(z));
    }
}

rfa_lara_readout
rfa_lara_readout_of(const rfa_lara_samples *samples, const rfa_lara *lara, rfa_real **work)
{
    const ptrdiff_t J = lara_padded_count(lara), count = rfa_lara_count(lara), d = lara->d;
    const bool specific = lara->weights == RFA_WEIGHTS_SPECIFIC;
    const rfa_lara_readout readout = {
        .u = samples->w, .base = take(work, J), .balance = take(work, J)};
    for (ptrdiff_t j = 0; j < J; j++) {
        const rfa_real relative = specific ? samples->own[j] : samples->pool[j];
        readout.base[j] = j < count ? samples->lse[j] - relative : (rfa_real)-INFINITY;
        readout.balance[j] = samples->own[j] - samples->pool[j];
    }
    rfa_vexp(readout.balance, readout.balance, J);
    if (lara->weights != RFA_WEIGHTS_BIASED) {
        return readout;
    }
    rfa_real *u = take(work, J * d);
    memcpy(u, samples->w, (size_t)(J * d) * sizeof *u);
    for (ptrdiff_t s = 0; s < lara->draws; s++) {
        axpy(u + s * lara->landmarks * d, 1, samples->mu, lara->landmarks * d);
    }
    return (rfa_lara_readout){.u = u, .base = readout.base, .balance = readout.balance};
}

// p holds weights without alpha; r becomes a softmax. Returns the sum of the new p.
static rfa_real specify(rfa_real *restrict p,
                        rfa_real *restrict r,
                        const rfa_real *restrict balance,
                        const rfa_lara *lara)
{
    const ptrdiff_t C = lara->landmarks;
    const rfa_real a = (rfa_real)lara->specificity, mean = 1 / (rfa_real)C;
    const rfa_real all = rfa_vexp_sum(r, r, rfa_vmax(r, C), C);
    for (ptrdiff_t c = 0; c < C; c++) {
        r[c] /= all;
    }
    rfa_real sum = 0;
    for (ptrdiff_t j = 0; j < C * lara->draws; j += C) {
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t c = 0; c < C; c++) {
            const rfa_real alpha = balance[j + c] + a * (r[c] - mean);
            p[j + c] *= alpha > LARA_CLAMP ? alpha : LARA_CLAMP;
            sum += p[j + c];
        }
    }
    return sum;
}

void rfa_lara_weigh(rfa_real *p,
                    rfa_real *r,
                    const rfa_lara_readout *readout,
                    const rfa_lara_samples *samples,
                    const rfa_lara *lara,
                    const rfa_head *head,
                    ptrdiff_t t,
                    ptrdiff_t n)
{
    const ptrdiff_t C = lara_padded_landmarks(lara), J = lara_padded_count(lara), d = lara->d;
    const bool specific = lara->weights == RFA_WEIGHTS_SPECIFIC;
    const rfa_real *q = head->q + t * head->ld, temper = lara_temper(lara);
    rfa_gemm(RFA_N, RFA_T, n, J, d, temper, q, head->ld, readout->u, d, 0, p, J);
    if (specific) {
        rfa_gemm(RFA_N, RFA_T, n, C, d, temper, q, head->ld, samples->q_mean, d, 0, r, C);
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        rfa_real *row = p + i * J;
        if (head->mask[t + i] == 0) {
            memset(row, 0, (size_t)J * sizeof *row);
            continue;
        }
        axpy(row, 1, readout->base, J);
        rfa_real sum = rfa_vexp_sum(row, row, rfa_vmax(row, J), J);
        if (specific) {
            sum = specify(row, r + i * C, readout->balance, lara);
        }
        const rfa_real factor = 1 / sum;
#pragma omp simd
        for (ptrdiff_t j = 0; j < J; j++) {
            row[j] *= factor;
        }
    }
}

void rfa_lara_read(rfa_real *out,
                   ptrdiff_t ld_out,
                   const rfa_lara_samples *samples,
                   const rfa_lara *lara,
                   const rfa_head *head,
                   rfa_real *work)
{
    const ptrdiff_t J = lara_padded_count(lara), d = lara->d;
    const ptrdiff_t most_rows = chunk_rows(head->rows, LARA_CHUNK);
    const rfa_lara_readout readout = rfa_lara_readout_of(samples, lara, &work);
    rfa_real *p = take(&work, most_rows * J);
    rfa_real *r = take(&work, most_rows * lara_padded_landmarks(lara));
    for (ptrdiff_t t = 0; t < head->rows; t += most_rows) {
        const ptrdiff_t n = least(most_rows, head->rows - t);
        rfa_lara_weigh(p, r, &readout, samples, lara, head, t, n);
        rfa_gemm(RFA_N, RFA_N, n, d, J, 1, p, J, samples->f, d, 0, out + t * ld_out, ld_out);
    }
}
