// Feature maps of keys, forward and backward, in chunks as attention walks them.
#include "base/mem.h"
#include "bench/layer.h"
#include "bench/measure.h"
#include "bench/truth.h"
#include "features/draw.h"
#include "features/map.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { MOST_LENGTHS = 32, CHUNK = 128, CHECKED = 64 };

typedef struct {
    rfa_feature_map map;
    ptrdiff_t rows, F;       // rows: whole chunks
    rfa_real *x, *dx;        // [rows][d]
    rfa_real *w, *w_squares; // [D][d], [D]
    rfa_real *dphi;          // [CHUNK][F] the adjoint of every chunk's features
    rfa_real *spaces;        // [threads][space]
    ptrdiff_t space;         // phi, a copy of dphi, log-weights, work
    double *draw_work;
} features_case;

typedef struct {
    rfa_real *phi, *dphi, *weight, *work;
} space_parts;

static space_parts my_space(const features_case *c)
{
    rfa_real *phi = c->spaces + omp_get_thread_num() * c->space, *dphi = phi + CHUNK * c->F;
    return (space_parts){phi, dphi, dphi + CHUNK * c->F, dphi + CHUNK * c->F + CHUNK};
}

static void forward_chunk(const features_case *c, const space_parts *s, ptrdiff_t row)
{
    rfa_features_forward(s->phi, rfa_feature_is_weighted(&c->map) ? s->weight : NULL,
                         c->x + row * c->map.width, c->map.width, NULL, &c->map, CHUNK, 0, s->work);
}

static void backward_chunk(const features_case *c, const space_parts *s, ptrdiff_t row)
{
    const rfa_map_gradient none = {NULL, NULL};
    memcpy(s->dphi, c->dphi, (size_t)(CHUNK * c->F) * sizeof *s->dphi);
    rfa_features_backward(c->dx + row * c->map.width, c->map.width, &none, s->dphi, s->phi, true,
                          c->x + row * c->map.width, c->map.width, &c->map, CHUNK, s->work);
}

static rfa_status run(void *context, rfa_lap *laps)
{
    const features_case *c = context;
    rfa_lap start = rfa_lap_start();
#pragma omp parallel
    {
        const space_parts s = my_space(c);
#pragma omp for schedule(static)
        for (ptrdiff_t row = 0; row < c->rows; row += CHUNK) {
            forward_chunk(c, &s, row);
        }
    }
    rfa_lap_add(&laps[0], start);
    start = rfa_lap_start();
#pragma omp parallel
    {
        const space_parts s = my_space(c); // the features of a thread's last chunk stand for all
#pragma omp for schedule(static)
        for (ptrdiff_t row = 0; row < c->rows; row += CHUNK) {
            backward_chunk(c, &s, row);
        }
    }
    rfa_lap_add(&laps[1], start);
    return RFA_OK;
}

static rfa_status create(features_case *c, const rfa_config *config, int threads)
{
    const ptrdiff_t d = c->map.width, D = c->map.projections;
    c->F = rfa_feature_count(&c->map);
    c->space = 2 * CHUNK * c->F + CHUNK + rfa_feature_work(&c->map, CHUNK) + RFA_ALIGN_ELEMENTS;
    c->space = rfa_padded(c->space);
    RFA_TRY(rfa_alloc(&c->x, c->rows * d, sizeof *c->x, "keys"));
    RFA_TRY(rfa_alloc(&c->dx, c->rows * d, sizeof *c->dx, "gradient"));
    RFA_TRY(rfa_alloc(&c->w, D * d, sizeof *c->w, "projections"));
    RFA_TRY(rfa_alloc(&c->w_squares, D, sizeof *c->w_squares, "projections"));
    RFA_TRY(rfa_alloc(&c->dphi, CHUNK * c->F, sizeof *c->dphi, "gradient"));
    RFA_TRY(rfa_alloc(&c->spaces, threads * c->space, sizeof *c->spaces, "features"));
    RFA_TRY(rfa_alloc(&c->draw_work, rfa_draw_work(d), sizeof *c->draw_work, "projections"));
    if (D > 0) {
        const rfa_rng stream = rfa_rng_stream((uint64_t)config->train.seed, RFA_RNG_POOL, 0, 0);
        rfa_draw_rows(c->w, RFA_ROWS_ORTHOGONAL, &stream, D, d, c->draw_work);
        c->map.w = c->w;
        c->map.w_squares = c->w_squares;
        c->map.a = c->map.kind == RFA_MAP_OPRF ? -0.0625 : 0;
    }
    for (ptrdiff_t f = 0; f < D; f++) {
        for (ptrdiff_t j = 0; j < d; j++) {
            c->w_squares[f] += c->w[f * d + j] * c->w[f * d + j];
        }
    }
    for (ptrdiff_t t = 0; t < c->rows; t++) {
        rfa_bench_row(c->x + t * d, RFA_BENCH_K, 0, t, d);
    }
    for (ptrdiff_t t = 0; t < CHUNK; t++) {
        rfa_bench_row(c->dphi + t * c->F, RFA_BENCH_DOUT, 0, t, c->F);
    }
    return RFA_OK;
}

static void destroy(features_case *c)
{
    rfa_free(c->draw_work);
    rfa_free(c->spaces);
    rfa_free(c->dphi);
    rfa_free(c->w_squares);
    rfa_free(c->w);
    rfa_free(c->dx);
    rfa_free(c->x);
}

// What a key's weighted features give, relative to its weight at x: sum_f e^(weight - weight_0)
// phi_f dphi_f, with x moved by step times a direction.
static double loss_at(const features_case *c, ptrdiff_t t, double step, double weight0, double *phi)
{
    const ptrdiff_t d = c->map.width;
    double x[RFA_BENCH_HEAD], loss = 0, ignored = 0;
    rfa_real direction[RFA_BENCH_WIDTH];
    rfa_bench_row(direction, RFA_BENCH_K, -1, t, d);
    for (ptrdiff_t j = 0; j < d; j++) {
        x[j] = (double)c->x[t * d + j] + step * (double)direction[j];
    }
    const double weight = rfa_truth_features(phi, &ignored, &c->map, x);
    for (ptrdiff_t f = 0; f < c->F; f++) {
        loss += exp(weight - weight0) * phi[f] * (double)c->dphi[t * c->F + f];
    }
    return loss;
}

// Features, log-weights and slopes of the first tokens. An argument has d + 2 roundings of its
// terms, which are those of the features relative to the largest; a slope sums F and d terms more.
static void
check(const rfa_bench *bench, const features_case *c, double *phi, double *error, double *tolerance)
{
    const ptrdiff_t d = c->map.width, F = c->F;
    const double step = ldexp(1, -20), unit = ldexp(1, -24);
    const space_parts s = my_space(c);
    double exponent = 1, squares = 0, slope_gap = 0, gap = 0, largest = 0;
    forward_chunk(c, &s, 0);
    rfa_bench_spoil(bench, "features", s.phi);
    backward_chunk(c, &s, 0);
    for (ptrdiff_t t = 0; t < CHECKED; t++) {
        double x[RFA_BENCH_HEAD], slope = 0;
        rfa_real direction[RFA_BENCH_WIDTH];
        for (ptrdiff_t j = 0; j < d; j++) {
            x[j] = (double)c->x[t * d + j];
        }
        const double weight = rfa_truth_features(phi, &exponent, &c->map, x);
        for (ptrdiff_t f = 0; f < F; f++) {
            gap = fmax(gap, fabs((double)s.phi[t * F + f] - phi[f]));
            gap = isnan(s.phi[t * F + f]) ? INFINITY : gap;
            largest = fmax(largest, fabs(phi[f]));
        }
        if (rfa_feature_is_weighted(&c->map)) {
            gap = fmax(gap, largest * fabs((double)s.weight[t] - weight));
        }
        rfa_bench_row(direction, RFA_BENCH_K, -1, t, d);
        for (ptrdiff_t j = 0; j < d; j++) {
            const double term = (double)c->dx[t * d + j] * (double)direction[j];
            slope += term;
            squares += term * term;
        }
        slope_gap +=
            slope -
            (loss_at(c, t, step, weight, phi) - loss_at(c, t, -step, weight, phi)) / (2 * step);
    }
    const double bound = 2 * unit * ((double)d + 4) * exponent;
    const double slope_bound = 2 * (bound + unit * (double)(F + d)) * sqrt(squares);
    // Of two comparisons the worse one; features of elu grow beyond 1.
    const bool of_slope = !(fabs(slope_gap) / slope_bound <= gap / (bound * fmax(largest, 1e-3)));
    *error = of_slope ? fabs(slope_gap) : gap;
    *tolerance = of_slope ? slope_bound : bound * fmax(largest, 1e-3);
}

static rfa_status measure_map(rfa_bench *bench, rfa_map_kind kind, ptrdiff_t length)
{
    const rfa_config *config = bench->config;
    const ptrdiff_t d = (ptrdiff_t)(config->model.width / config->model.heads);
    const ptrdiff_t D = kind == RFA_MAP_ELU ? 0 : (ptrdiff_t)config->attention.features;
    const bool exponential = kind == RFA_MAP_POSITIVE || kind == RFA_MAP_OPRF;
    features_case c = {
        .map = {.kind = kind, .unit_norm = !exponential, .width = d, .projections = D},
        .rows = (length + CHUNK - 1) / CHUNK * CHUNK,
    };
    const double tokens = (double)c.rows * bench->world->size, real = sizeof(rfa_real);
    rfa_bench_result results[2] = {
        rfa_bench_result_of(bench, "features", rfa_map_name(kind), tokens)};
    double *phi = NULL, error = 0, tolerance = 0;
    rfa_bench_begin(bench);
    rfa_status status = create(&c, config, bench->threads);
    if (status == RFA_OK) {
        status = rfa_alloc(&phi, c.F, sizeof *phi, "reference");
    }
    status = rfa_agree(bench->world, status);
    if (status == RFA_OK) {
        RFA_ASSERT(phi);
        check(bench, &c, phi, &error, &tolerance);
        rfa_bench_parameter_add(&results[0], "N", c.rows);
        rfa_bench_parameter_add(&results[0], "d", d);
        rfa_bench_parameter_add(&results[0], "F", c.F);
        rfa_bench_parameter_add(&results[0], "rows", CHUNK);
        status = rfa_bench_check(bench, &results[0], error, tolerance);
    }
    if (status == RFA_OK) {
        results[1] = results[0];
        for (int phase = 0; phase < 2; phase++) {
            rfa_bench_append(results[phase].phase, RFA_BENCH_NAME, "%s",
                             phase == 0 ? "forward" : "backward");
            results[phase].flops = 2 * tokens * (double)d * (double)D;
            results[phase].bytes = (phase == 0 ? 1 : 2) * tokens * (double)(d + c.F) * real;
        }
        status = rfa_bench_measure(bench, results, 2, run, &c);
    }
    rfa_free(phi);
    destroy(&c);
    return status;
}

rfa_status rfa_bench_features(rfa_bench *bench)
{
    ptrdiff_t lengths[MOST_LENGTHS];
    int count = 0;
    RFA_TRY(rfa_bench_numbers(lengths, &count, MOST_LENGTHS, "lengths",
                              bench->config->bench.lengths, RFA_ROWS, 1 << 30));
    for (rfa_map_kind kind = RFA_MAP_GAUSSIAN; kind <= RFA_MAP_ELU; kind++) {
        for (int i = 0; i < count; i++) {
            RFA_TRY(measure_map(bench, kind, lengths[i]));
        }
    }
    return RFA_OK;
}
