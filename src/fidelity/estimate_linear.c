// Kinds with a state: rfa, performer, elu.
#include "features/draw.h"
#include "fidelity/estimate_impl.h"

#include <math.h>
#include <string.h>

static rfa_status draw_rows(rfa_estimate *e, uint64_t seed, int draw)
{
    const ptrdiff_t d = e->x->d, D = e->size;
    double *work = NULL;
    RFA_TRY(rfa_alloc(&e->w, D * d, sizeof *e->w, "projections"));
    RFA_TRY(rfa_alloc(&e->w_squares, D, sizeof *e->w_squares, "projections"));
    RFA_TRY(rfa_alloc(&work, rfa_draw_work(d), sizeof *work, "projections"));
    const rfa_rng stream = rfa_rng_stream(seed, RFA_RNG_POOL, (uint32_t)draw, 0);
    rfa_draw_rows(e->w, e->kind->rows, &stream, D, d, work);
    rfa_free(work);
    for (ptrdiff_t f = 0; f < D; f++) {
        double square = 0;
        for (ptrdiff_t j = 0; j < d; j++) {
            square += (double)e->w[f * d + j] * (double)e->w[f * d + j];
        }
        e->w_squares[f] = (rfa_real)square;
    }
    e->map.w = e->w;
    e->map.w_squares = e->w_squares;
    return RFA_OK;
}

// The sigma with which unit vectors stand for these queries and keys: exact where all have the same
// norm.
static rfa_status fit_sigma(rfa_estimate *e)
{
    RFA_TRY(rfa_alloc(&e->sigma, e->x->d, sizeof *e->sigma, "bandwidths"));
    const rfa_real sigma = (rfa_real)rfa_vectors_norm(e->x);
    for (ptrdiff_t j = 0; j < e->x->d; j++) {
        e->sigma[j] = sigma;
    }
    e->map.sigma = e->sigma;
    return RFA_OK;
}

static rfa_status fit_a(rfa_estimate *e)
{
    double *sums = NULL;
    RFA_TRY(rfa_alloc(&sums, rfa_oprf_statistics_size(e->x->d), sizeof *sums, "statistics"));
    rfa_oprf_statistics(sums, e->x->q, e->x->k, e->x->d, e->x->mask, &e->map, rfa_padded(e->x->n),
                        e->work);
    e->map.a = rfa_oprf_a(sums, e->x->n, e->x->d);
    rfa_free(sums);
    return RFA_OK;
}

rfa_status rfa_estimate_linear_open(rfa_estimate *e, uint64_t seed, int draw)
{
    const ptrdiff_t rows = rfa_padded(e->x->n), d = e->x->d;
    e->map = (rfa_feature_map){
        .kind = e->kind->map, .unit_norm = e->kind->unit_norm, .width = d, .projections = e->size};
    const ptrdiff_t size = rfa_linear_state_size(&e->map);
    const ptrdiff_t F = rfa_feature_count(&e->map), strip = RFA_ESTIMATE_STRIP;
    e->rank = F;
    if (e->kind->kind != RFA_ATTENTION_ELU) {
        RFA_TRY(draw_rows(e, seed, draw));
    }
    if (e->kind->unit_norm) {
        RFA_TRY(fit_sigma(e));
    }
    ptrdiff_t work = rfa_linear_work(&e->map, rows);
    const ptrdiff_t features =
        strip * (F + 1) + 2 * RFA_ALIGN_ELEMENTS + rfa_feature_work(&e->map, strip);
    const ptrdiff_t statistics = rfa_feature_work(&e->map, rows);
    work = work > features ? work : features;
    work = work > statistics ? work : statistics;
    RFA_TRY(rfa_alloc(&e->work, work, sizeof *e->work, "features"));
    RFA_TRY(rfa_alloc(&e->state, size, sizeof *e->state, "a state"));
    RFA_TRY(rfa_alloc(&e->total, size, sizeof *e->total, "a state"));
    return e->kind->map == RFA_MAP_OPRF ? fit_a(e) : RFA_OK;
}

void rfa_estimate_linear_values(rfa_estimate *e, const rfa_real *v)
{
    const rfa_head head = rfa_estimate_head(e, v, 0, e->x->n);
    rfa_linear_state(e->state, &head, e->work);
    for (ptrdiff_t i = 0; i < rfa_linear_state_size(&e->map); i++) {
        e->total[i] = (rfa_real)e->state[i];
    }
}

int64_t rfa_estimate_linear_read(rfa_real *out, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const rfa_head head = rfa_estimate_head(e, NULL, begin, rows);
    const rfa_reading reading = {.out = out, .ld = e->x->d, .den = e->den + begin};
    return rfa_linear_read(&reading, &head, e->total, e->work);
}

// Features of up to RFA_ESTIMATE_STRIP rows of x, in e->work; their log-weights behind.
static const rfa_real *
strip_features(rfa_real **log_weight, rfa_estimate *e, const rfa_real *x, ptrdiff_t begin)
{
    const ptrdiff_t strip = RFA_ESTIMATE_STRIP, left = rfa_padded(e->x->n) - begin;
    RFA_ASSERT(e->work);
    rfa_real *phi = e->work, *weights = phi + strip * e->rank;
    const bool weighted = log_weight && rfa_feature_is_weighted(&e->map);
    rfa_features_forward(phi, weighted ? weights : NULL, x + begin * e->x->d, e->x->d,
                         e->x->mask + begin, &e->map, left < strip ? left : strip, 0,
                         weights + strip);
    if (log_weight) {
        *log_weight = weighted ? weights : NULL;
    }
    return phi;
}

void rfa_estimate_linear_left(
    double *left, double *den, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t F = e->rank;
    const double floor = rfa_feature_floor(&e->map);
    const double *z = e->state + RFA_STATE_HEADER + F * e->x->d;
    const rfa_real *phi = strip_features(NULL, e, e->x->q, begin);
    for (ptrdiff_t t = 0; t < rows; t++) {
        double sum = 0;
        for (ptrdiff_t f = 0; f < F; f++) {
            sum += (double)phi[t * F + f] * z[f];
        }
        for (ptrdiff_t f = 0; f < F; f++) {
            left[t * F + f] = (double)phi[t * F + f] / (sum > floor ? sum : floor);
        }
        if (den) {
            den[t] = sum;
        }
    }
}

void rfa_estimate_linear_right(double *right, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t F = e->rank;
    rfa_real *log_weight = NULL;
    const rfa_real *phi = strip_features(&log_weight, e, e->x->k, begin);
    for (ptrdiff_t t = 0; t < rows; t++) {
        const double weight = log_weight ? exp((double)log_weight[t] - e->state[0]) : 1;
        for (ptrdiff_t f = 0; f < F; f++) {
            right[t * F + f] = weight * (double)phi[t * F + f];
        }
    }
}
