#include "attention/eva.h"

#include "attention/softmax_impl.h"
#include "tensor/vmath.h"

#include <math.h>
#include <string.h>

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

rfa_eva rfa_eva_cut(ptrdiff_t longest, ptrdiff_t chunks, ptrdiff_t window, ptrdiff_t d, bool causal)
{
    const ptrdiff_t chunk = (longest + chunks - 1) / chunks;
    const ptrdiff_t whole = (least(window, longest) + chunk - 1) / chunk;
    return (rfa_eva){.d = d,
                     .chunks = (longest + chunk - 1) / chunk,
                     .chunk = chunk,
                     .window = whole * chunk,
                     .causal = causal};
}

// The rows [from, to) of a segment that lie in chunk c.
typedef struct {
    ptrdiff_t c, from, to;
} run;

// Run after run; false behind the last one. Begins with {.to = 0}.
static bool next_run(run *x, ptrdiff_t begin, ptrdiff_t tokens, const rfa_eva *eva)
{
    if (x->to >= tokens) {
        return false;
    }
    x->from = x->to;
    x->c = (begin + x->from) / eva->chunk;
    x->to = least((x->c + 1) * eva->chunk - begin, tokens);
    return true;
}

void rfa_eva_sums(double *sums,
                  ptrdiff_t ld_sums,
                  const rfa_real *x,
                  ptrdiff_t ld,
                  ptrdiff_t width,
                  ptrdiff_t begin,
                  ptrdiff_t tokens,
                  const rfa_eva *eva)
{
    for (ptrdiff_t c = 0; c < eva->chunks; c++) {
        memset(sums + c * ld_sums, 0, (size_t)width * sizeof *sums);
    }
    for (run r = {0}; next_run(&r, begin, tokens, eva);) {
        double *restrict sum = sums + r.c * ld_sums;
        for (ptrdiff_t t = r.from; t < r.to; t++) {
            const rfa_real *restrict row = x + t * ld;
#pragma omp simd
            for (ptrdiff_t j = 0; j < width; j++) {
                sum[j] += (double)row[j];
            }
        }
    }
}

void rfa_eva_directions(rfa_real *w,
                        const rfa_real *q_bar,
                        const rfa_real *k_bar,
                        ptrdiff_t ld,
                        const rfa_rng *noise,
                        const rfa_eva *eva)
{
    enum { NORMALS = 64 };
    const ptrdiff_t d = eva->d;
    const double factor = rfa_eva_direction_factor(eva), scale = sqrt(sqrt((double)d));
    for (ptrdiff_t c = 0; c < eva->chunks; c++) {
        for (ptrdiff_t at = 0; at < d; at += NORMALS) {
            double normals[NORMALS] = {0};
            const ptrdiff_t n = least(d - at, NORMALS);
            if (noise) {
                rfa_rng_normals_at(normals, noise, (uint64_t)(c * (d + d % 2) + at), n);
            }
            for (ptrdiff_t j = 0; j < n; j++) {
                const ptrdiff_t i = c * ld + at + j;
                w[i] =
                    (rfa_real)(factor * ((double)q_bar[i] + (double)k_bar[i]) + scale * normals[j]);
            }
        }
    }
}

// logits [tokens] = log xi(k, w) of each row and its chunk's direction.
static void log_xi(rfa_real *logits,
                   const rfa_eva_head *head,
                   const rfa_real *w,
                   ptrdiff_t ld_w,
                   const rfa_eva *eva)
{
    const rfa_real scale = score_scale(eva->d);
    for (run r = {0}; next_run(&r, head->begin, head->tokens, eva);) {
        const rfa_real *restrict direction = w + r.c * ld_w;
        for (ptrdiff_t t = r.from; t < r.to; t++) {
            const rfa_real *restrict key = head->k + t * head->ld;
            rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (ptrdiff_t j = 0; j < eva->d; j++) {
                sum += key[j] * (direction[j] - (rfa_real)0.5 * key[j]);
            }
            logits[t] = sum * scale;
        }
    }
}

void rfa_eva_values(double *elements,
                    const rfa_eva_head *head,
                    const rfa_real *w,
                    ptrdiff_t ld_w,
                    const rfa_eva *eva,
                    rfa_real *work)
{
    const ptrdiff_t d = eva->d, unit = rfa_eva_unit(d);
    memset(elements, 0, (size_t)(eva->chunks * unit) * sizeof *elements);
    for (ptrdiff_t c = 0; c < eva->chunks; c++) {
        elements[c * unit] = -INFINITY;
    }
    log_xi(work, head, w, ld_w, eva);
    for (run r = {0}; next_run(&r, head->begin, head->tokens, eva);) {
        double *element = elements + r.c * unit, *restrict sum = element + 2;
        const rfa_real most = rfa_vmax(work + r.from, r.to - r.from);
        element[0] = (double)most;
        sum[d] = (double)rfa_vexp_sum(work + r.from, work + r.from, most, r.to - r.from);
        for (ptrdiff_t t = r.from; t < r.to; t++) {
            const rfa_real *restrict value = head->v + t * head->ld;
            const double p = (double)work[t];
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                sum[j] += p * (double)value[j];
            }
        }
    }
}

void rfa_eva_close(
    rfa_real *beta, ptrdiff_t ld, rfa_real *lse, const double *elements, const rfa_eva *eva)
{
    const ptrdiff_t d = eva->d, unit = rfa_eva_unit(d);
    for (ptrdiff_t c = 0; c < eva->chunks; c++) {
        const double *element = elements + c * unit, z = element[2 + d];
        const bool empty = element[0] == -INFINITY;
        lse[c] = empty ? 0 : (rfa_real)(element[0] + log(z));
        for (ptrdiff_t j = 0; j < d; j++) {
            beta[c * ld + j] = empty ? 0 : (rfa_real)(element[2 + j] / z);
        }
    }
}

static double dot(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

void rfa_eva_values_backward(const rfa_eva_gradient *gradient,
                             double *dw,
                             const rfa_real *dbeta,
                             const rfa_real *beta,
                             const rfa_real *w,
                             ptrdiff_t ld,
                             const rfa_real *lse,
                             const rfa_eva_head *head,
                             const rfa_eva *eva,
                             rfa_real *work)
{
    const ptrdiff_t d = eva->d;
    const double scale = 1 / sqrt((double)d);
    memset(dw, 0, (size_t)(eva->chunks * d) * sizeof *dw);
    log_xi(work, head, w, ld, eva);
    for (run r = {0}; next_run(&r, head->begin, head->tokens, eva);) {
        const rfa_real *restrict given = dbeta + r.c * ld, *restrict direction = w + r.c * ld;
        const double mean = dot(given, beta + r.c * ld, d);
        double *restrict dsum = dw + r.c * d;
        rfa_vexp_sum(work + r.from, work + r.from, lse[r.c], r.to - r.from);
        for (ptrdiff_t t = r.from; t < r.to; t++) {
            const rfa_real *restrict key = head->k + t * head->ld;
            const double p = (double)work[t];
            const double dlogit = p * (dot(given, head->v + t * head->ld, d) - mean) * scale;
            double *restrict dk = gradient->k + t * gradient->ld;
            double *restrict dv = gradient->v + t * gradient->ld;
#pragma omp simd
            for (ptrdiff_t j = 0; j < d; j++) {
                dk[j] += dlogit * ((double)direction[j] - (double)key[j]);
                dv[j] += p * (double)given[j];
                dsum[j] += dlogit * (double)key[j];
            }
        }
    }
}
