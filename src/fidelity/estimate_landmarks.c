// Kinds with summaries of pieces of the sequence, or with a direction a query: lara, eva, ra.
#include "attention/landmarks.h"
#include "fidelity/estimate_impl.h"

#include <math.h>
#include <string.h>

// ---- lara ----

static rfa_status propose(rfa_estimate *e)
{
    const ptrdiff_t d = e->x->d, n = e->x->n, C = e->lara.landmarks;
    const rfa_landmark_span span = {.begin = 0, .tokens = n, .n = n, .pieces = C};
    double *means = NULL;
    RFA_TRY(rfa_alloc(&means, 2 * C * d, sizeof *means, "landmarks"));
    rfa_landmark_sums(means, d, e->x->q, d, d, span);
    rfa_landmark_sums(means + C * d, d, e->x->k, d, d, span);
    rfa_landmark_means(means, d, d, n, C);
    rfa_landmark_means(means + C * d, d, d, n, C);
    const rfa_lara_noise noise = {.stream = e->stream};
    rfa_lara_propose(&e->samples, &e->lara, means, means + C * d, d, e->kind->noise ? &noise : NULL,
                     e->work);
    rfa_free(means);
    return RFA_OK;
}

rfa_status rfa_estimate_lara_open(rfa_estimate *e)
{
    const ptrdiff_t d = e->x->d;
    e->lara = (rfa_lara){.weights = e->kind->weights,
                         .specificity = 1,
                         .d = d,
                         .landmarks = rfa_landmark_count(e->x->n, e->size),
                         .draws = e->kind->antithetic ? 2 : 1,
                         .antithetic = e->kind->antithetic};
    const ptrdiff_t J = rfa_lara_count(&e->lara), size = rfa_lara_samples_size(&e->lara);
    e->rank = J;
    RFA_TRY(rfa_alloc(&e->sample_values, size, sizeof *e->sample_values, "samples"));
    RFA_TRY(rfa_alloc(&e->pick_values, size, sizeof *e->pick_values, "samples"));
    RFA_TRY(
        rfa_alloc(&e->elements, rfa_padded(J) * rfa_lara_unit(d), sizeof *e->elements, "samples"));
    RFA_TRY(rfa_alloc(&e->work, rfa_lara_work(&e->lara, rfa_padded(e->x->n)), sizeof *e->work,
                      "samples"));
    e->samples = rfa_lara_samples_at(e->sample_values, &e->lara);
    e->pick = rfa_lara_samples_at(e->pick_values, &e->lara);
    return propose(e);
}

void rfa_estimate_lara_values(rfa_estimate *e, const rfa_real *v)
{
    const rfa_head head = rfa_estimate_head(e, v, 0, e->x->n);
    rfa_lara_keys(e->elements, &e->samples, &e->lara, &head, e->work);
    rfa_lara_collect(&e->samples, &e->lara, e->elements);
}

void rfa_estimate_lara_read(rfa_real *out, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const rfa_head head = rfa_estimate_head(e, NULL, begin, rows);
    rfa_lara_read(out, e->x->d, &e->samples, &e->lara, &head, e->work);
}

// What queries read where the samples' f are unit vectors, d samples at a time.
void rfa_estimate_lara_left(double *left, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t d = e->x->d, J = e->rank;
    const rfa_head head = rfa_estimate_head(e, NULL, begin, rows);
    rfa_real *out = e->out + begin * d;
    memcpy(e->pick_values, e->sample_values,
           (size_t)rfa_lara_samples_size(&e->lara) * sizeof *e->pick_values);
    memset(e->pick.f, 0, (size_t)(J * d) * sizeof *e->pick.f);
    for (ptrdiff_t from = 0; from < J; from += d) {
        const ptrdiff_t count = J - from < d ? J - from : d;
        for (ptrdiff_t j = 0; j < count; j++) {
            e->pick.f[(from + j) * d + j] = 1;
        }
        rfa_lara_read(out, d, &e->pick, &e->lara, &head, e->work);
        for (ptrdiff_t t = 0; t < rows; t++) {
            for (ptrdiff_t j = 0; j < count; j++) {
                left[t * J + from + j] = (double)out[t * d + j];
            }
        }
        for (ptrdiff_t j = 0; j < count; j++) {
            e->pick.f[(from + j) * d + j] = 0;
        }
    }
}

void rfa_estimate_lara_right(double *right, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t d = e->x->d, J = e->rank;
    const double temper = 1 / sqrt(sqrt((double)d));
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *k = e->x->k + (begin + t) * d;
        double square = 0;
        for (ptrdiff_t i = 0; i < d; i++) {
            square += temper * temper * (double)k[i] * (double)k[i];
        }
        for (ptrdiff_t j = 0; j < J; j++) {
            double dot = 0;
            for (ptrdiff_t i = 0; i < d; i++) {
                dot += temper * (double)k[i] * (double)e->samples.w[j * d + i];
            }
            right[t * J + j] = exp(dot - square / 2 - (double)e->samples.lse[j]);
        }
    }
}

// ---- eva ----

static rfa_eva_head eva_head(const rfa_estimate *e, const rfa_real *v)
{
    const ptrdiff_t n = e->x->n, d = e->x->d;
    return (rfa_eva_head){.q = e->x->q,
                          .k = e->x->k,
                          .v = v,
                          .ld = d,
                          .ld_halo = d,
                          .tokens = n,
                          .length = n,
                          .reach_end = n,
                          .read = n};
}

// Plain means as k~ and q~; the logarithm of a chunk's size as its bias.
static rfa_status summarise(rfa_estimate *e)
{
    const ptrdiff_t d = e->x->d, C = e->eva.chunks;
    double *sums = NULL;
    rfa_real *q_bar = NULL;
    RFA_TRY(rfa_alloc(&q_bar, rfa_padded(C) * d, sizeof *q_bar, "chunks"));
    rfa_status status = rfa_alloc(&sums, 2 * C * d, sizeof *sums, "chunks");
    if (status == RFA_OK) {
        rfa_eva_sums(sums, d, e->x->q, d, d, 0, e->x->n, &e->eva);
        rfa_eva_sums(sums + C * d, d, e->x->k, d, d, 0, e->x->n, &e->eva);
        for (ptrdiff_t c = 0; c < C; c++) {
            const ptrdiff_t tokens = rfa_eva_tokens(&e->eva, e->x->n, c);
            const double count = tokens > 0 ? (double)tokens : 1;
            e->bias[c] = (rfa_real)log(count);
            for (ptrdiff_t j = 0; j < d; j++) {
                q_bar[c * d + j] = (rfa_real)(sums[c * d + j] / count);
                e->summary_k[c * d + j] = (rfa_real)(sums[(C + c) * d + j] / count);
            }
        }
        rfa_eva_directions(e->directions, q_bar, e->summary_k, d,
                           e->kind->noise ? &e->stream : NULL, &e->eva);
    }
    rfa_free(sums);
    rfa_free(q_bar);
    return status;
}

rfa_status rfa_estimate_eva_open(rfa_estimate *e)
{
    enum { LEAST_WINDOW = 16 };
    const ptrdiff_t n = e->x->n, d = e->x->d, window = n / e->size;
    e->eva = rfa_eva_cut(n, e->size, window > LEAST_WINDOW ? window : LEAST_WINDOW, d, false);
    const ptrdiff_t C = rfa_padded(e->eva.chunks);
    RFA_TRY(rfa_alloc(&e->summary_k, C * d, sizeof *e->summary_k, "chunks"));
    RFA_TRY(rfa_alloc(&e->summary_v, C * d, sizeof *e->summary_v, "chunks"));
    RFA_TRY(rfa_alloc(&e->directions, C * d, sizeof *e->directions, "chunks"));
    RFA_TRY(rfa_alloc(&e->bias, C, sizeof *e->bias, "chunks"));
    RFA_TRY(rfa_alloc(&e->lse, C, sizeof *e->lse, "chunks"));
    RFA_TRY(rfa_alloc(&e->row_lse, rfa_padded(n), sizeof *e->row_lse, "chunks"));
    RFA_TRY(rfa_alloc(&e->elements, C * rfa_eva_unit(d), sizeof *e->elements, "chunks"));
    RFA_TRY(
        rfa_alloc(&e->work, rfa_eva_work(rfa_padded(n), n, &e->eva), sizeof *e->work, "chunks"));
    return summarise(e);
}

void rfa_estimate_eva_values(rfa_estimate *e, const rfa_real *v)
{
    const rfa_eva_head head = eva_head(e, v);
    rfa_eva_values(e->elements, &head, e->directions, e->x->d, &e->eva, e->work);
    rfa_eva_close(e->summary_v, e->x->d, e->lse, e->elements, &e->eva);
}

// The window of a query lies anywhere, so all queries are read; rows are what the caller takes.
void rfa_estimate_eva_read(
    rfa_real *out, rfa_estimate *e, const rfa_real *v, ptrdiff_t begin, ptrdiff_t rows)
{
    const rfa_eva_head head = eva_head(e, v);
    const rfa_eva_summary summary = {
        .k = e->summary_k, .v = e->summary_v, .ld = e->x->d, .bias = e->bias};
    RFA_ASSERT(out == e->out + begin * e->x->d && begin + rows <= e->x->n);
    rfa_eva_read(e->out, e->x->d, e->row_lse, &head, &summary, &e->eva, e->work);
}

// ---- ra ----

rfa_status rfa_estimate_ra_open(rfa_estimate *e)
{
    const ptrdiff_t rows = rfa_padded(e->x->n);
    e->ra = (rfa_ra){.d = e->x->d, .draws = 1, .noise = e->kind->noise, .stream = e->stream};
    RFA_TRY(rfa_alloc(&e->row_lse, rows, sizeof *e->row_lse, "samples"));
    RFA_TRY(rfa_alloc(&e->index, rows, sizeof *e->index, "samples"));
    RFA_TRY(rfa_alloc(&e->normals, e->x->d, sizeof *e->normals, "samples"));
    return rfa_alloc(&e->work, rfa_ra_work(rows, rows, rows, &e->ra), sizeof *e->work, "samples");
}

void rfa_estimate_ra_read(
    rfa_real *out, rfa_estimate *e, const rfa_real *v, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t n = e->x->n, d = e->x->d;
    const rfa_softmax_block all = {.rows = rfa_padded(n), .tokens = n};
    const rfa_softmax_block block = {
        .row0 = begin, .rows = rfa_padded(rows), .tokens = rows, .begin = begin};
    const rfa_softmax_keys keys = {
        .k = e->x->k, .v = v, .ld_k = d, .ld_v = d, .blocks = &all, .n = 1};
    const rfa_ra_saved saved = {
        .read = e->out, .lse = e->row_lse, .index = e->index, .ld = d, .rows = rfa_padded(n)};
    RFA_ASSERT(out == e->out + begin * d);
    rfa_ra_forward(e->out, &saved, e->x->q, d, &block, &keys, &e->ra, e->work);
}

void rfa_estimate_ra_directions(double *w, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t n = e->x->n, d = e->x->d;
    const double spread = sqrt(sqrt((double)d));
    if (!e->kind->noise) { // the mean key
        const rfa_softmax_block all = {.rows = rfa_padded(n), .tokens = n};
        const rfa_softmax_block block = {
            .row0 = begin, .rows = rfa_padded(rows), .tokens = rows, .begin = begin};
        const rfa_softmax_keys keys = {
            .k = e->x->k, .v = e->x->k, .ld_k = d, .ld_v = d, .blocks = &all, .n = 1};
        rfa_softmax_read(e->out, d, e->row_lse, e->x->q, d, &block, &keys, d, false, e->work);
    }
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real *q = e->x->q + (begin + t) * d;
        const rfa_real *k =
            e->kind->noise ? e->x->k + e->index[begin + t] * d : e->out + (begin + t) * d;
        if (e->kind->noise) {
            rfa_ra_normals(e->normals, &e->ra, begin + t, 0);
        }
        for (ptrdiff_t j = 0; j < d; j++) {
            w[t * d + j] =
                (double)q[j] + (double)k[j] + (e->kind->noise ? spread * e->normals[j] : 0);
        }
    }
}
