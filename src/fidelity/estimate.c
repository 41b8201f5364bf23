#include "fidelity/estimate_impl.h"

static rfa_status check_size(const rfa_fidelity_kind *kind, ptrdiff_t features, ptrdiff_t n)
{
    const bool halves =
        (kind->kind == RFA_ATTENTION_RFA && kind->map == RFA_MAP_GAUSSIAN) || kind->antithetic;
    const ptrdiff_t least = halves ? 4 : 2;
    if (features < least || (halves && features % 2 != 0)) {
        return rfa_fail(RFA_ERR_USAGE, "fidelity.features: %td is not %s %td or more, as %s needs",
                        features, halves ? "an even number," : "a number,", least, kind->name);
    }
    if ((kind->kind == RFA_ATTENTION_LARA || kind->kind == RFA_ATTENTION_EVA) && features > n) {
        return rfa_fail(RFA_ERR_USAGE, "fidelity.features: %td are more landmarks than %td tokens",
                        features, n);
    }
    return RFA_OK;
}

static rfa_status open_kind(rfa_estimate *e, uint64_t seed, int draw)
{
    switch (e->kind->kind) {
    case RFA_ATTENTION_LARA: return rfa_estimate_lara_open(e);
    case RFA_ATTENTION_EVA: return rfa_estimate_eva_open(e);
    case RFA_ATTENTION_RA: return rfa_estimate_ra_open(e);
    default: return rfa_estimate_linear_open(e, seed, draw);
    }
}

// What belongs to all keys and these values.
static void take_values(rfa_estimate *e, const rfa_real *v)
{
    switch (e->kind->kind) {
    case RFA_ATTENTION_LARA: rfa_estimate_lara_values(e, v); break;
    case RFA_ATTENTION_EVA: rfa_estimate_eva_values(e, v); break;
    case RFA_ATTENTION_RA: break;
    default: rfa_estimate_linear_values(e, v);
    }
}

rfa_status rfa_estimate_create(rfa_estimate *e,
                               const rfa_fidelity_kind *kind,
                               const rfa_vectors *x,
                               ptrdiff_t features,
                               uint64_t seed,
                               int draw)
{
    static const rfa_rng_purpose purposes[] = {[RFA_ATTENTION_RA] = RFA_RNG_RA,
                                               [RFA_ATTENTION_LARA] = RFA_RNG_LARA,
                                               [RFA_ATTENTION_EVA] = RFA_RNG_EVA};
    const ptrdiff_t rows = rfa_padded(x->n);
    *e = (rfa_estimate){.kind = kind, .x = x, .size = rfa_fidelity_kind_size(kind, features)};
    RFA_TRY(check_size(kind, features, x->n));
    if (kind->kind == RFA_ATTENTION_RA || kind->kind == RFA_ATTENTION_LARA ||
        kind->kind == RFA_ATTENTION_EVA) {
        e->stream = rfa_rng_stream(seed, purposes[kind->kind], (uint32_t)draw + 1, 0);
    }
    rfa_status status = rfa_alloc(&e->unit, rows * x->d, sizeof *e->unit, "unit vectors");
    if (status == RFA_OK) {
        status = rfa_alloc(&e->out, rows * x->d, sizeof *e->out, "an estimate");
    }
    if (status == RFA_OK) {
        status = rfa_alloc(&e->den, rows, sizeof *e->den, "denominators");
    }
    if (status == RFA_OK && !kind->is_mean) {
        status = open_kind(e, seed, draw);
    }
    if (status != RFA_OK) {
        rfa_estimate_destroy(e);
        return status;
    }
    e->rank = kind->is_mean ? 1 : e->rank;
    if (!kind->is_mean) {
        take_values(e, x->v);
    }
    return RFA_OK;
}

void rfa_estimate_destroy(rfa_estimate *e)
{
    void *const arrays[] = {
        e->state,         e->w,           e->sigma,     e->w_squares,  e->total,
        e->sample_values, e->summary_k,   e->bias,      e->directions, e->lse,
        e->elements,      e->pick_values, e->summary_v, e->unit,       e->row_lse,
        e->index,         e->out,         e->den,       e->work,       e->normals,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        rfa_free(arrays[i]);
    }
    *e = (rfa_estimate){.kind = NULL};
}

rfa_estimate_form rfa_estimate_form_of(const rfa_estimate *e)
{
    return e->kind->kind == RFA_ATTENTION_RA    ? RFA_ESTIMATE_SCORES
           : e->kind->kind == RFA_ATTENTION_EVA ? RFA_ESTIMATE_COLUMNS
                                                : RFA_ESTIMATE_FACTORS;
}

// Mean over keys in order, the same for all queries.
static void read_mean(rfa_real *out, const rfa_vectors *x, const rfa_real *v, ptrdiff_t rows)
{
    for (ptrdiff_t j = 0; j < x->d; j++) {
        double sum = 0;
        for (ptrdiff_t t = 0; t < x->n; t++) {
            sum += (double)v[t * x->d + j];
        }
        for (ptrdiff_t t = 0; t < rows; t++) {
            out[t * x->d + j] = (rfa_real)(sum / (double)x->n);
        }
    }
}

// out [rows][d] where values are v.
static int64_t
read_with(rfa_real *out, rfa_estimate *e, const rfa_real *v, ptrdiff_t begin, ptrdiff_t rows)
{
    if (e->kind->is_mean) {
        read_mean(out, e->x, v, rows);
        return 0;
    }
    switch (e->kind->kind) {
    case RFA_ATTENTION_LARA: rfa_estimate_lara_read(out, e, begin, rows); return 0;
    case RFA_ATTENTION_EVA: rfa_estimate_eva_read(out, e, v, begin, rows); return 0;
    case RFA_ATTENTION_RA: rfa_estimate_ra_read(out, e, v, begin, rows); return 0;
    default: return rfa_estimate_linear_read(out, e, begin, rows);
    }
}

int64_t rfa_estimate_read(rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    const ptrdiff_t left = e->x->n - begin, count = rows < left ? rows : left;
    if (count <= 0) {
        return 0;
    }
    RFA_ASSERT(begin % RFA_ROWS == 0);
    return read_with(e->out + begin * e->x->d, e, e->x->v, begin, count);
}

void rfa_estimate_left(double *left, double *den, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    for (ptrdiff_t t = 0; den && t < rows; t++) {
        den[t] = 1; // of kinds whose weights are all positive
    }
    if (e->kind->is_mean) {
        for (ptrdiff_t t = 0; t < rows; t++) {
            left[t] = 1 / (double)e->x->n;
        }
    } else if (e->kind->kind == RFA_ATTENTION_LARA) {
        rfa_estimate_lara_left(left, e, begin, rows);
    } else {
        rfa_estimate_linear_left(left, den, e, begin, rows);
    }
}

void rfa_estimate_right(double *right, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    if (e->kind->is_mean) {
        for (ptrdiff_t t = 0; t < rows; t++) {
            right[t] = 1;
        }
    } else if (e->kind->kind == RFA_ATTENTION_LARA) {
        rfa_estimate_lara_right(right, e, begin, rows);
    } else {
        rfa_estimate_linear_right(right, e, begin, rows);
    }
}

void rfa_estimate_directions(double *w, rfa_estimate *e, ptrdiff_t begin, ptrdiff_t rows)
{
    rfa_estimate_ra_directions(w, e, begin, rows);
}

void rfa_estimate_columns(rfa_estimate *e, ptrdiff_t begin, ptrdiff_t columns)
{
    const ptrdiff_t d = e->x->d;
    RFA_ASSERT(columns <= d && begin + columns <= e->x->n);
    for (ptrdiff_t j = 0; j < columns; j++) {
        e->unit[(begin + j) * d + j] = 1;
    }
    if (!e->kind->is_mean) {
        take_values(e, e->unit);
    }
    read_with(e->out, e, e->unit, 0, e->x->n);
    for (ptrdiff_t j = 0; j < columns; j++) {
        e->unit[(begin + j) * d + j] = 0;
    }
    if (!e->kind->is_mean) {
        take_values(e, e->x->v);
    }
}
