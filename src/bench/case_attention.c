// Attention of one layer, forward and backward, with what crosses the ranks.
#include "base/mem.h"
#include "bench/check.h"
#include "bench/layer.h"
#include "bench/measure.h"
#include "bench/variant.h"
#include "train/session.h"

#include <math.h>
#include <string.h>

enum { MOST_LENGTHS = 32 };

static rfa_status run(void *context, rfa_lap *laps)
{
    rfa_bench_layer *layer = context;
    rfa_lap start = rfa_lap_start();
    RFA_TRY(rfa_bench_layer_forward(layer, 1));
    rfa_lap_add(&laps[0], start);
    start = rfa_lap_start();
    RFA_TRY(rfa_bench_layer_backward(layer));
    rfa_lap_add(&laps[1], start);
    return RFA_OK;
}

static rfa_attention_options options_of(const rfa_config *config, ptrdiff_t length)
{
    const rfa_classifier_options model = rfa_session_model(config, 2, 2, 1);
    rfa_attention_options options = model.attention;
    options.layers = 1;
    options.width = model.width;
    options.heads = model.heads;
    options.segments = model.segments;
    options.seed = model.seed;
    options.longest = length;
    if (options.landmarks > length) {
        options.landmarks = length;
    }
    return options;
}

static void add_parameters(rfa_bench_result *result,
                           const rfa_attention_options *o,
                           int examples,
                           ptrdiff_t length)
{
    const bool projected = (o->kind == RFA_ATTENTION_RFA || o->kind == RFA_ATTENTION_PERFORMER);
    rfa_bench_parameter_add(result, "N", length);
    rfa_bench_parameter_add(result, "B", examples);
    rfa_bench_parameter_add(result, "H", o->heads);
    rfa_bench_parameter_add(result, "d", o->width / o->heads);
    if (projected) {
        rfa_bench_parameter_add(result, "D", o->projections);
    }
    if (o->kind == RFA_ATTENTION_LARA || o->kind == RFA_ATTENTION_EVA) {
        rfa_bench_parameter_add(result, "C", o->landmarks);
    }
    if (o->kind == RFA_ATTENTION_EVA) {
        rfa_bench_parameter_add(result, "window", o->window);
    }
    rfa_bench_parameter_add(result, "G", o->segments);
}

static rfa_status
measure_length(rfa_bench *bench, const char *variant, const rfa_config *config, ptrdiff_t length)
{
    const rfa_attention_options options = options_of(config, length);
    const rfa_exchange_algorithm algorithm = (rfa_exchange_algorithm)config->parallel.exchange;
    const int examples = (int)config->bench.examples;
    const double tokens = (double)length * examples, row = (double)options.width * sizeof(rfa_real);
    rfa_bench_result results[2];
    rfa_bench_layer layer;
    results[0] = rfa_bench_result_of(bench, "attention", variant, tokens);
    add_parameters(&results[0], &options, examples, length);
    RFA_TRY(rfa_bench_check_attention(bench, &results[0], &options, algorithm, length));
    results[1] = results[0];
    for (int phase = 0; phase < 2; phase++) {
        rfa_bench_append(results[phase].phase, RFA_BENCH_NAME, "%s",
                         phase == 0 ? "forward" : "backward");
        results[phase].flops = rfa_attention_flops(&options, length, length, phase == 1) * examples;
        // q, k, v, out; again with dout, dq, dk, dv
        results[phase].bytes = (phase == 0 ? 4 : 8) * row * tokens;
    }
    rfa_bench_begin(bench);
    rfa_status status = rfa_bench_layer_create(&layer, &options, algorithm, bench->world,
                                               bench->threads, examples, length);
    if (status == RFA_OK) {
        status = rfa_bench_measure(bench, results, 2, run, &layer);
    }
    rfa_bench_layer_destroy(&layer);
    return status;
}

rfa_status rfa_bench_attention(rfa_bench *bench)
{
    const rfa_config *config = bench->config;
    ptrdiff_t lengths[MOST_LENGTHS];
    char word[RFA_BENCH_NAME];
    int count = 0;
    RFA_TRY(rfa_bench_numbers(lengths, &count, MOST_LENGTHS, "lengths", config->bench.lengths,
                              RFA_ROWS, 1 << 30));
    rfa_config variant;
    const char *list = config->bench.attention;
    if (strcmp(list, "all") == 0) {
        list = rfa_bench_variants();
    }
    for (const char *rest = list; rfa_bench_word(word, &rest);) { // all of them before the first
        RFA_TRY(rfa_bench_variant(&variant, config, word));
    }
    while (rfa_bench_word(word, &list)) {
        RFA_TRY(rfa_bench_variant(&variant, config, word));
        for (int i = 0; i < count; i++) {
            RFA_TRY(measure_length(bench, word, &variant, lengths[i]));
        }
    }
    return RFA_OK;
}
