// How far the states that are carried from window to window drift from sums in double: the keys and
// values of one head at every position of bench.lengths, in windows of train.window.
#include "base/log.h"
#include "base/mem.h"
#include "bench/layer.h"
#include "bench/measure.h"
#include "bench/truth.h"
#include "bench/variant.h"
#include "exchange/element.h"
#include "layers/attention_linear.h"
#include "train/session.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { MOST_LENGTHS = 32 };
#define TOLERANCE 1e-4 // what is promised of 64 M tokens

typedef struct {
    rfa_bench_layer layer;
    rfa_feature_map map;
    ptrdiff_t F, d, size; // size: F (d + 1)
    double *sums;         // [threads][size] of exp(log-weight) phi (v, 1), of this rank's tokens
    double *phi;          // [threads][F + 2 d]
    double *all;          // [size]
} drift;

static rfa_status create(drift *x, const rfa_bench *bench, ptrdiff_t span)
{
    rfa_classifier_options model = rfa_session_model(bench->config, 2, 2, 1);
    rfa_attention_options *o = &model.attention;
    o->layers = 1;
    o->width = model.width / model.heads;
    o->heads = 1;
    o->segments = model.segments;
    o->seed = model.seed;
    RFA_TRY(rfa_bench_layer_create(&x->layer, o,
                                   (rfa_exchange_algorithm)bench->config->parallel.exchange,
                                   bench->world, bench->threads, 1, span));
    x->d = o->width;
    x->map = rfa_linear_map(&x->layer.attention, NULL, NULL, 0, 0);
    x->F = rfa_feature_count(&x->map);
    x->size = x->F * (x->d + 1);
    RFA_TRY(rfa_alloc(&x->sums, bench->threads * x->size, sizeof *x->sums, "sums"));
    RFA_TRY(rfa_alloc(&x->phi, bench->threads * (x->F + 2 * x->d), sizeof *x->phi, "features"));
    return rfa_alloc(&x->all, x->size, sizeof *x->all, "sums");
}

static void destroy(drift *x)
{
    rfa_free(x->all);
    rfa_free(x->phi);
    rfa_free(x->sums);
    rfa_bench_layer_destroy(&x->layer);
}

// A token's term, in double from its key and value on.
static void add_token(drift *x, ptrdiff_t row)
{
    const ptrdiff_t F = x->F, d = x->d;
    double *restrict sums = x->sums + omp_get_thread_num() * x->size;
    double *restrict phi = x->phi + omp_get_thread_num() * (F + 2 * d);
    double *restrict k = phi + F, *restrict v = k + d, exponent = 0;
    const rfa_real *from = x->layer.saved.qkv + row * 3 * d;
    for (ptrdiff_t j = 0; j < d; j++) {
        k[j] = (double)from[d + j];
        v[j] = (double)from[2 * d + j];
    }
    const double weight = exp(rfa_truth_features(phi, &exponent, &x->map, k));
    for (ptrdiff_t f = 0; f < F; f++) {
        const double factor = weight * phi[f];
        for (ptrdiff_t j = 0; j < d; j++) {
            sums[f * d + j] += factor * v[j];
        }
        sums[F * d + f] += factor;
    }
}

// One window: its states by the layer, its terms to the sums.
static rfa_status walk(drift *x, ptrdiff_t begin)
{
    rfa_bench_layer_fill(&x->layer, begin);
    x->layer.plan.follows = begin > 0;
    x->layer.plan.is_followed = true;
    RFA_TRY(rfa_bench_layer_states(&x->layer, 0));
    x->map = rfa_linear_map(&x->layer.attention, &x->layer.saved, &x->layer.plan, 0, 0);
#pragma omp parallel for schedule(static)
    for (ptrdiff_t row = 0; row < x->layer.plan.rows; row++) {
        if (x->layer.mask[row] != 0) {
            add_token(x, row);
        }
    }
    return RFA_OK;
}

// Largest difference of S over its largest number, or of z, whichever is worse; where the carried
// state is, which is rank 0. Collective.
static double difference(drift *x, const rfa_comm *world)
{
    memset(x->all, 0, (size_t)x->size * sizeof *x->all);
    for (int t = 0; t < x->layer.threads; t++) {
        for (ptrdiff_t i = 0; i < x->size; i++) {
            x->all[i] += x->sums[t * x->size + i];
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, x->all, rfa_int(x->size), MPI_DOUBLE, MPI_SUM, world->comm);
    const double *carry = rfa_linear_own(&x->layer.saved)->carry;
    const double scale = exp(carry[0]);
    double worst = 0;
    for (int part = 0; world->rank == 0 && part < 2; part++) {
        const ptrdiff_t first = part == 0 ? 0 : x->F * x->d,
                        end = part == 0 ? x->F * x->d : x->size;
        double most = 0, off = 0;
        for (ptrdiff_t i = first; i < end; i++) {
            most = fmax(most, fabs(x->all[i]));
            off = fmax(off, fabs(scale * carry[RFA_ELEMENT_HEADER + i] - x->all[i]));
        }
        worst = fmax(worst, off / most);
    }
    return worst;
}

static rfa_status measure(rfa_bench *bench, drift *x, const ptrdiff_t *lengths, int count)
{
    const ptrdiff_t span = (ptrdiff_t)bench->config->train.window;
    char variant[RFA_BENCH_NAME];
    rfa_bench_variant_name(variant, bench->config);
    const double start = rfa_now();
    ptrdiff_t done = 0;
    for (int i = 0; i < count; i++) {
        rfa_bench_result result = rfa_bench_result_of(bench, "drift", variant, (double)lengths[i]);
        rfa_bench_parameter_add(&result, "N", lengths[i]);
        rfa_bench_parameter_add(&result, "window", span);
        rfa_bench_parameter_add(&result, "d", x->d);
        rfa_bench_parameter_add(&result, "F", x->F);
        rfa_bench_parameter_add(&result, "G", x->layer.attention.options.segments);
        for (; done < lengths[i]; done += span) {
            RFA_TRY(walk(x, done));
        }
        rfa_real off = 0;
        rfa_bench_spoil(bench, "drift", &off);
        x->sums[0] += (double)off;
        RFA_TRY(rfa_bench_check(bench, &result, difference(x, bench->world), TOLERANCE));
        result.minimum = result.median = result.maximum = rfa_now() - start; // of both sums
        result.repeats = result.calls = 1;
        result.peak = (double)(rfa_mem_peak() - bench->held);
        bench->sink->take(bench->sink->context, &result);
    }
    return RFA_OK;
}

rfa_status rfa_bench_drift(rfa_bench *bench)
{
    const rfa_config *c = bench->config;
    const ptrdiff_t span = (ptrdiff_t)c->train.window;
    ptrdiff_t lengths[MOST_LENGTHS];
    int count = 0;
    drift x = {0};
    RFA_TRY(rfa_bench_numbers(lengths, &count, MOST_LENGTHS, "lengths", c->bench.lengths, RFA_ROWS,
                              1 << 30));
    if (span == 0 || c->attention.gate != RFA_GATE_NONE) {
        return rfa_fail(RFA_ERR_USAGE, "bench drift needs train.window, and attention.gate: none");
    }
    for (int i = 0; i < count; i++) {
        if (lengths[i] % span != 0 || (i > 0 && lengths[i] < lengths[i - 1])) {
            return rfa_fail(RFA_ERR_USAGE, "bench drift: bench.lengths must be multiples of "
                                           "train.window, in ascending order");
        }
    }
    rfa_bench_begin(bench);
    rfa_status status = rfa_agree(bench->world, create(&x, bench, span));
    if (status == RFA_OK) {
        status = measure(bench, &x, lengths, count);
    }
    destroy(&x);
    return status;
}
