#include "fidelity/source.h"

#include "rng/rng.h"

#include <math.h>
#include <string.h>

// Arrays of a trial.
enum { Q, K, V, BASE, COMMON, ARRAYS = 8 };

static const double CORRELATION = 0.95, SHARED = 0.75, OWN = 0.5;

rfa_status rfa_vectors_create(rfa_vectors *x, ptrdiff_t n, ptrdiff_t d)
{
    const ptrdiff_t rows = rfa_padded(n);
    *x = (rfa_vectors){.n = n, .d = d};
    RFA_TRY(rfa_alloc(&x->q, rows * d, sizeof *x->q, "queries"));
    RFA_TRY(rfa_alloc(&x->k, rows * d, sizeof *x->k, "keys"));
    RFA_TRY(rfa_alloc(&x->v, rows * d, sizeof *x->v, "values"));
    RFA_TRY(rfa_alloc(&x->mask, rows, sizeof *x->mask, "mask"));
    for (ptrdiff_t t = 0; t < n; t++) {
        x->mask[t] = 1;
    }
    return RFA_OK;
}

void rfa_vectors_destroy(rfa_vectors *x)
{
    rfa_free(x->q);
    rfa_free(x->k);
    rfa_free(x->v);
    rfa_free(x->mask);
    *x = (rfa_vectors){.n = 0};
}

const char *rfa_ensemble_name(rfa_ensemble ensemble)
{
    static const char *const names[] = {"iid", "shared", "smooth"};
    return names[ensemble];
}

static double normal(const rfa_rng *stream, ptrdiff_t number)
{
    double out = 0;
    rfa_rng_normals_at(&out, stream, (uint64_t)number, 1);
    return out;
}

// One column: numbers j, j + d, ... of a stream, walked from token to token where they are smooth.
typedef struct {
    rfa_rng stream;
    double last;
} column;

static double next(column *c, ptrdiff_t t, ptrdiff_t j, ptrdiff_t d, bool smooth)
{
    const double fresh = normal(&c->stream, t * d + j);
    c->last = !smooth || t == 0
                  ? fresh
                  : CORRELATION * c->last + sqrt(1 - CORRELATION * CORRELATION) * fresh;
    return c->last;
}

// x [rows][d] = norm times the unit rows.
static void scale_rows(rfa_real *x, ptrdiff_t n, ptrdiff_t d, double norm)
{
    for (ptrdiff_t t = 0; t < n; t++) {
        double square = 0;
        for (ptrdiff_t j = 0; j < d; j++) {
            square += (double)x[t * d + j] * (double)x[t * d + j];
        }
        for (ptrdiff_t j = 0; j < d; j++) {
            x[t * d + j] = (rfa_real)(norm / sqrt(square) * (double)x[t * d + j]);
        }
    }
}

void rfa_vectors_fill(rfa_vectors *x, rfa_ensemble ensemble, double norm, uint64_t seed, int trial)
{
    const ptrdiff_t n = x->n, d = x->d;
    const bool smooth = ensemble == RFA_ENSEMBLE_SMOOTH;
    const rfa_rng common = rfa_rng_stream(seed, RFA_RNG_FIDELITY,
                                          (uint32_t)(ensemble * ARRAYS + COMMON), (uint32_t)trial);
    double square = 0;
    for (ptrdiff_t j = 0; j < d; j++) {
        square += normal(&common, j) * normal(&common, j);
    }
    for (ptrdiff_t j = 0; j < d; j++) {
        column c[BASE + 1];
        for (int a = 0; a <= BASE; a++) {
            c[a].stream = rfa_rng_stream(seed, RFA_RNG_FIDELITY, (uint32_t)(ensemble * ARRAYS + a),
                                         (uint32_t)trial);
        }
        const double lean = ensemble == RFA_ENSEMBLE_SHARED
                                ? SHARED * sqrt((double)d / square) * normal(&common, j)
                                : 0;
        for (ptrdiff_t t = 0; t < n; t++) {
            const double base = smooth ? next(&c[BASE], t, j, d, true) : 0;
            const double own = smooth ? OWN : 1;
            x->q[t * d + j] = (rfa_real)(base + own * next(&c[Q], t, j, d, smooth) + lean);
            x->k[t * d + j] = (rfa_real)(base + own * next(&c[K], t, j, d, smooth) + lean);
            x->v[t * d + j] = (rfa_real)next(&c[V], t, j, d, smooth);
        }
    }
    const double raw = norm * sqrt(sqrt((double)d));
    scale_rows(x->q, n, d, raw);
    scale_rows(x->k, n, d, raw);
}

static double mean_norm(const rfa_real *x, ptrdiff_t n, ptrdiff_t d)
{
    double sum = 0;
    for (ptrdiff_t t = 0; t < n; t++) {
        double square = 0;
        for (ptrdiff_t j = 0; j < d; j++) {
            square += (double)x[t * d + j] * (double)x[t * d + j];
        }
        sum += sqrt(square);
    }
    return sum / (double)n;
}

double rfa_vectors_norm(const rfa_vectors *x)
{
    return sqrt(mean_norm(x->q, x->n, x->d) * mean_norm(x->k, x->n, x->d) / sqrt((double)x->d));
}
