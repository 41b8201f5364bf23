#include "bench/check.h"

#include "base/mem.h"
#include "bench/truth.h"
#include "layers/attention_landmarks.h"
#include "layers/attention_linear.h"

#include <math.h>
#include <string.h>

enum { SHORT = 336, LONG = 1 << 17 };

// The worst of several comparisons.
typedef struct {
    double error, tolerance;
    double bound; // relative, of single numbers of short sequences
} verdict;

static void judge(verdict *worst, double error, double tolerance)
{
    // The first, a worse one, or one that is no number.
    if (worst->tolerance == 0 || !(error / tolerance <= worst->error / worst->tolerance)) {
        worst->error = error;
        worst->tolerance = tolerance;
    }
}

static bool has_input(const rfa_truth *truth, rfa_bench_input input)
{
    return input != RFA_BENCH_X || truth->options->gate == RFA_GATE_LEARNED;
}

// The array of an input and its width.
static double *array_of(const rfa_truth *truth, rfa_bench_input input, ptrdiff_t *width)
{
    *width = input == RFA_BENCH_X ? truth->width : truth->d;
    switch (input) {
    case RFA_BENCH_Q: return truth->q;
    case RFA_BENCH_K: return truth->k;
    case RFA_BENCH_V: return truth->v;
    case RFA_BENCH_X: return truth->x;
    case RFA_BENCH_DOUT:
    case RFA_BENCH_INPUTS: break;
    }
    return NULL;
}

// q, k, v, x of head h of an example, moved by step times a direction, which is the input of
// example -1.
static void load(rfa_truth *truth, double step)
{
    const ptrdiff_t E = truth->width;
    rfa_real row[RFA_BENCH_WIDTH], direction[RFA_BENCH_WIDTH];
    for (rfa_bench_input input = RFA_BENCH_Q; input <= RFA_BENCH_X; input++) {
        ptrdiff_t width = 0;
        double *array = array_of(truth, input, &width);
        const ptrdiff_t column = input == RFA_BENCH_X ? 0 : truth->h * truth->d;
        for (ptrdiff_t t = 0; has_input(truth, input) && t < truth->n; t++) {
            rfa_bench_row(row, input, 0, t, E);
            if (step != 0) {
                rfa_bench_row(direction, input, -1, t, E);
            }
            for (ptrdiff_t j = 0; j < width; j++) {
                array[t * width + j] = (double)row[column + j];
                if (step != 0) {
                    array[t * width + j] += step * (double)direction[column + j];
                }
            }
        }
    }
    rfa_truth_prepare(truth);
}

// The layer's own numbers of the truth's head, after a forward.
static void borrow(rfa_truth *truth, const rfa_bench_layer *layer)
{
    const rfa_attention *attention = &layer->attention;
    const rfa_attention_options *o = &attention->options;
    switch (o->kind) {
    case RFA_ATTENTION_RFA:
    case RFA_ATTENTION_ELU:
    case RFA_ATTENTION_PERFORMER:
        truth->map = rfa_linear_map(attention, &layer->saved, &layer->plan, 0, truth->h);
        truth->reverse = rfa_linear_is_reverse(o, truth->h);
        if (o->gate == RFA_GATE_LEARNED) {
            const rfa_linear_tensors at = rfa_linear_tensor_places(o);
            truth->gate_weight = rfa_attention_values(attention, &layer->saved, at.gate_weight) +
                                 truth->h * o->width;
            truth->gate_bias =
                (double)rfa_attention_values(attention, &layer->saved, at.gate_bias)[truth->h];
        }
        break;
    case RFA_ATTENTION_LARA:
    case RFA_ATTENTION_EVA:
        if (o->landmark_map) {
            truth->map_q = rfa_landmarks_map(attention, &layer->saved, 0);
            truth->map_k = rfa_landmarks_map(attention, &layer->saved, 1);
        }
        break;
    case RFA_ATTENTION_SOFTMAX:
    case RFA_ATTENTION_RA: break;
    }
}

// A row of the layer's output against the reference's.
static void compare_row(verdict *worst,
                        rfa_truth *truth,
                        const rfa_bench_layer *layer,
                        const rfa_leaf *leaf,
                        ptrdiff_t t)
{
    const ptrdiff_t d = truth->d, E = truth->width;
    const rfa_real *out = layer->saved.out + (leaf->row0 + t) * E + truth->h * d;
    double want[RFA_BENCH_HEAD], error = 0;
    rfa_truth_row(want, truth, leaf->begin + t);
    for (ptrdiff_t j = 0; j < d; j++) {
        const double gap = fabs((double)out[j] - want[j]);
        error = gap <= error ? error : gap;
    }
    judge(worst, error, sqrt(3.0) * rfa_truth_bound(truth)); // |v| <= 3^(1/2)
}

// The loss of one head over all tokens, sum out dout, with inputs moved by step.
static double loss_at(rfa_truth *truth, double step)
{
    const ptrdiff_t d = truth->d;
    double out[RFA_BENCH_HEAD], loss = 0;
    rfa_real dout[RFA_BENCH_WIDTH];
    load(truth, step);
    for (ptrdiff_t t = 0; t < truth->n; t++) {
        rfa_truth_row(out, truth, t);
        rfa_bench_row(dout, RFA_BENCH_DOUT, 0, t, truth->width);
        for (ptrdiff_t j = 0; j < d; j++) {
            loss += out[j] * (double)dout[truth->h * d + j];
        }
    }
    return loss;
}

// slopes[2]: the sum over this rank's inputs of gradient times direction, and of its terms'
// squares.
static void layer_slope(double slopes[2], const rfa_bench_layer *layer)
{
    const ptrdiff_t E = layer->attention.options.width;
    const bool gated = layer->attention.options.gate == RFA_GATE_LEARNED;
    rfa_real direction[RFA_BENCH_WIDTH];
    for (int i = 0; i < layer->leaf_count; i++) {
        const rfa_leaf *leaf = &layer->leaves[i];
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            for (rfa_bench_input input = RFA_BENCH_Q; input <= (gated ? RFA_BENCH_X : RFA_BENCH_V);
                 input++) {
                const ptrdiff_t row = leaf->row0 + t;
                const rfa_real *g = input == RFA_BENCH_X ? layer->dx + row * E
                                                         : layer->dqkv + (3 * row + input) * E;
                rfa_bench_row(direction, input, -1, leaf->begin + t, E);
                for (ptrdiff_t j = 0; j < E; j++) {
                    const double term = (double)g[j] * (double)direction[j];
                    slopes[0] += term;
                    slopes[1] += term * term;
                }
            }
        }
    }
}

// Every row, and the slope. Rounding errors of single gradients are those of a row, times 2 for the
// quotient's two sides; independent of each other, they add up like the root of squares.
static rfa_status check_short(verdict *worst,
                              const rfa_bench *bench,
                              const rfa_attention_options *options,
                              rfa_exchange_algorithm algorithm,
                              ptrdiff_t length)
{
    const double step = ldexp(1, -18); // few features of arccos pass their kink
    const ptrdiff_t n = length < SHORT ? length : SHORT;
    rfa_attention_options o = *options;
    rfa_bench_layer layer;
    double slopes[2] = {0}, want = 0;
    o.segments = 2;
    while (o.segments < bench->world->size) {
        o.segments *= 2;
    }
    o.longest = n;
    o.landmarks = o.landmarks < n ? o.landmarks : n;
    rfa_status status =
        rfa_bench_layer_create(&layer, &o, algorithm, bench->world, bench->threads, 1, n);
    if (status == RFA_OK) {
        status = rfa_bench_layer_forward(&layer, 0);
    }
    if (status == RFA_OK) {
        rfa_bench_spoil(bench, "attention", layer.saved.out);
        status = rfa_bench_layer_backward(&layer);
    }
    if (status == RFA_OK) {
        layer_slope(slopes, &layer);
    }
    for (ptrdiff_t h = 0; status == RFA_OK && h < o.heads; h++) {
        rfa_truth truth;
        status = rfa_truth_create(&truth, &o, n, h);
        if (status == RFA_OK) {
            borrow(&truth, &layer);
            load(&truth, 0);
            for (int i = 0; i < layer.leaf_count; i++) {
                for (ptrdiff_t t = 0; t < layer.leaves[i].tokens; t++) {
                    compare_row(worst, &truth, &layer, &layer.leaves[i], t);
                }
            }
            if (bench->world->rank == h % bench->world->size) { // heads are shared out
                want += (8 * (loss_at(&truth, step) - loss_at(&truth, -step)) -
                         (loss_at(&truth, 2 * step) - loss_at(&truth, -2 * step))) /
                        (12 * step);
            }
            worst->bound = fmax(worst->bound, rfa_truth_bound(&truth));
        }
        rfa_truth_destroy(&truth);
    }
    status = rfa_agree(bench->world, status);
    if (status == RFA_OK) {
        double sums[3] = {slopes[0], slopes[1], want};
        MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, bench->world->comm);
        judge(worst, fabs(sums[0] - sums[2]), 4 * worst->bound * sqrt(sums[1]));
    }
    rfa_bench_layer_destroy(&layer);
    return status;
}

// First and last row of this rank, of the first and the last head.
static rfa_status check_rows(verdict *worst, const rfa_bench_layer *layer, ptrdiff_t length)
{
    const rfa_attention_options *o = &layer->attention.options;
    for (ptrdiff_t h = 0; h<o->heads; h += o->heads> 1 ? o->heads - 1 : 1) {
        rfa_truth truth;
        const rfa_status status = rfa_truth_create(&truth, o, length, h);
        if (status == RFA_OK) {
            const rfa_leaf *first = &layer->leaves[0], *last = &layer->leaves[layer->plan.own - 1];
            borrow(&truth, layer);
            load(&truth, 0);
            if (first->tokens > 0) {
                compare_row(worst, &truth, layer, first, 0);
            }
            if (last->tokens > 0) {
                compare_row(worst, &truth, layer, last, last->tokens - 1);
            }
        }
        rfa_truth_destroy(&truth);
        if (status != RFA_OK) {
            return status;
        }
    }
    return RFA_OK;
}

// sum out dout and sum v dv over all ranks, and the root of the sums of their terms' squares.
static void compare_sums(verdict *worst, const rfa_bench *bench, const rfa_bench_layer *layer)
{
    const ptrdiff_t E = layer->attention.options.width;
    double sums[3] = {0};
    for (ptrdiff_t i = 0; i < layer->plan.rows; i++) {
        for (ptrdiff_t j = 0; j < E && layer->mask[i] != 0; j++) {
            const double out = (double)layer->saved.out[i * E + j] * (double)layer->dout[i * E + j];
            const double v = (double)layer->saved.qkv[(3 * i + 2) * E + j] *
                             (double)layer->dqkv[(3 * i + 2) * E + j];
            sums[0] += out;
            sums[1] += v;
            sums[2] += out * out + v * v;
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, bench->world->comm);
    judge(worst, fabs(sums[0] - sums[1]), 4 * worst->bound * sqrt(sums[2]));
}

static bool is_noisy(const rfa_attention_options *o)
{
    return o->kind == RFA_ATTENTION_RA || o->kind == RFA_ATTENTION_LARA ||
           o->kind == RFA_ATTENTION_EVA;
}

static rfa_status check_long(verdict *worst,
                             const rfa_bench *bench,
                             const rfa_attention_options *options,
                             rfa_exchange_algorithm algorithm,
                             ptrdiff_t length)
{
    rfa_bench_layer layer;
    rfa_status status =
        rfa_bench_layer_create(&layer, options, algorithm, bench->world, bench->threads, 1, length);
    if (status == RFA_OK) {
        status = rfa_bench_layer_forward(&layer, is_noisy(options) ? 0 : 1);
    }
    if (status == RFA_OK && length <= LONG) {
        status = rfa_agree(bench->world, check_rows(worst, &layer, length));
    }
    if (status == RFA_OK && is_noisy(options)) {
        status = rfa_bench_layer_forward(&layer, 1);
    }
    if (status == RFA_OK) {
        status = rfa_bench_layer_backward(&layer);
    }
    if (status == RFA_OK) {
        compare_sums(worst, bench, &layer);
    }
    rfa_bench_layer_destroy(&layer);
    return status;
}

rfa_status rfa_bench_check_attention(const rfa_bench *bench,
                                     rfa_bench_result *result,
                                     const rfa_attention_options *options,
                                     rfa_exchange_algorithm algorithm,
                                     ptrdiff_t length)
{
    verdict worst = {0};
    RFA_TRY(check_short(&worst, bench, options, algorithm, length));
    RFA_TRY(check_long(&worst, bench, options, algorithm, length));
    return rfa_bench_check(bench, result, worst.error, worst.tolerance);
}
