#include "bench/layer.h"

#include "rng/rng.h"

#include <omp.h>
#include <string.h>

void rfa_bench_row(
    rfa_real *out, rfa_bench_input input, int example, ptrdiff_t position, ptrdiff_t width)
{
    enum { BLOCK = 8 };
    uint16_t words[RFA_BENCH_WIDTH];
    const ptrdiff_t blocks = (width + BLOCK - 1) / BLOCK;
    const rfa_rng stream = rfa_rng_stream(1, RFA_RNG_BENCH, (uint32_t)input, (uint32_t)example);
    RFA_ASSERT(width <= RFA_BENCH_WIDTH);
    rfa_rng_words16(words, &stream, (uint64_t)(position * blocks), blocks);
    const rfa_real unit = (rfa_real)(3.4641016151377544 / 65536); // sqrt(12)
    const bool query_or_key = input == RFA_BENCH_Q || input == RFA_BENCH_K;
    for (ptrdiff_t j = 0; j < width; j++) {
        const rfa_real u = ((rfa_real)words[j] - (rfa_real)32767.5) * unit;
        out[j] = query_or_key ? (1 + u) / 2 : u;
    }
}

void rfa_bench_layer_fill(rfa_bench_layer *l, ptrdiff_t begin)
{
    const ptrdiff_t E = l->attention.options.width;
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < l->leaf_count; i++) {
        const rfa_leaf *leaf = &l->leaves[i];
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            const ptrdiff_t row = leaf->row0 + t, position = begin + leaf->begin + t;
            rfa_real *qkv = l->saved.qkv + row * 3 * E;
            l->mask[row] = 1;
            rfa_bench_row(qkv, RFA_BENCH_Q, leaf->example, position, E);
            rfa_bench_row(qkv + E, RFA_BENCH_K, leaf->example, position, E);
            rfa_bench_row(qkv + 2 * E, RFA_BENCH_V, leaf->example, position, E);
            rfa_bench_row(l->x + row * E, RFA_BENCH_X, leaf->example, position, E);
            rfa_bench_row(l->dout + row * E, RFA_BENCH_DOUT, leaf->example, position, E);
        }
    }
}

static rfa_status initial_values(rfa_bench_layer *l)
{
    for (int i = 0; i < l->attention.tensors; i++) {
        const rfa_attention_tensor *tensor = &l->attention.tensor[i];
        const ptrdiff_t n = tensor->rows * (tensor->columns ? tensor->columns : 1);
        rfa_rng_reader reader = rfa_rng_reader_at(
            rfa_rng_stream(1, RFA_RNG_BENCH, (uint32_t)(RFA_BENCH_INPUTS + i), 0));
        for (ptrdiff_t j = 0; j < n; j++) {
            const double u =
                tensor->init == RFA_INIT_CONSTANT ? 1 : 2 * rfa_rng_uniform(&reader) - 1;
            l->values[tensor->at + j] = (rfa_real)(tensor->value * u);
        }
    }
    return rfa_attention_init(l->values, &l->attention, 0);
}

static void carve(rfa_bench_layer *l, rfa_arena *arena)
{
    double *carry = rfa_attention_carve_carry(arena, &l->attention, &l->plan);
    rfa_attention_carve_kept(&l->saved, arena, &l->attention, &l->plan, carry);
    rfa_attention_carve_saved(&l->saved, arena, &l->attention, &l->plan);
    rfa_attention_carve(&l->attention, arena, &l->plan);
}

static rfa_status allocate(rfa_bench_layer *l)
{
    const ptrdiff_t E = l->attention.options.width, rows = l->plan.rows;
    const ptrdiff_t parameters = rfa_padded(l->attention.parameters);
    rfa_arena arena = {0};
    RFA_TRY(rfa_alloc(&l->mask, rows, sizeof *l->mask, "mask"));
    RFA_TRY(rfa_alloc(&l->x, rows * E, sizeof *l->x, "input"));
    RFA_TRY(rfa_alloc(&l->dx, rows * E, sizeof *l->dx, "gradient"));
    RFA_TRY(rfa_alloc(&l->dqkv, rows * 3 * E, sizeof *l->dqkv, "gradient"));
    RFA_TRY(rfa_alloc(&l->dout, rows * E, sizeof *l->dout, "gradient"));
    RFA_TRY(rfa_alloc(&l->values, parameters, sizeof *l->values, "parameters"));
    RFA_TRY(rfa_alloc(&l->dvalues, l->threads * parameters, sizeof *l->dvalues, "gradient"));
    l->plan.mask = l->mask;
    l->saved.parameters = l->values;
    carve(l, &arena);
    RFA_TRY(rfa_alloc(&l->memory, (ptrdiff_t)arena.used, 1, "attention"));
    arena = (rfa_arena){.base = l->memory};
    carve(l, &arena);
    const ptrdiff_t work = rfa_attention_work(&l->attention, &l->plan);
    RFA_TRY(rfa_alloc(&l->works, l->threads, sizeof *l->works, "work"));
    for (int t = 0; t < l->threads; t++) {
        RFA_TRY(rfa_alloc(&l->works[t], work, sizeof(rfa_real), "work"));
    }
    return initial_values(l);
}

static rfa_status
make_plan(rfa_bench_layer *l, int segments, const rfa_comm *world, int examples, ptrdiff_t length)
{
    const int P = world->size, p = world->rank;
    rfa_plan *plan = &l->plan;
    *plan = (rfa_plan){
        .examples = examples,
        .own = rfa_part_begin(segments, P, p + 1) - rfa_part_begin(segments, P, p),
        .longest_leaf = RFA_ROWS,
        .longest_example = rfa_padded(length),
    };
    l->leaf_count = examples * plan->own;
    RFA_TRY(rfa_alloc(&l->leaves, l->leaf_count, sizeof *l->leaves, "segments"));
    RFA_TRY(rfa_alloc(&l->lengths, examples, sizeof *l->lengths, "lengths"));
    for (int e = 0; e < examples; e++) {
        l->lengths[e] = length;
    }
    plan->leaves = l->leaves;
    plan->lengths = l->lengths;
    plan->rows = rfa_leaves_fill(l->leaves, l->lengths, examples, segments, P, p);
    for (int g = 0; g < segments; g++) {
        const ptrdiff_t rows = rfa_padded(rfa_segment_begin(length, segments, g + 1) -
                                          rfa_segment_begin(length, segments, g));
        plan->longest_leaf = rows > plan->longest_leaf ? rows : plan->longest_leaf;
    }
    return RFA_OK;
}

rfa_status rfa_bench_layer_create(rfa_bench_layer *layer,
                                  const rfa_attention_options *options,
                                  rfa_exchange_algorithm algorithm,
                                  const rfa_comm *world,
                                  int threads,
                                  int examples,
                                  ptrdiff_t length)
{
    *layer = (rfa_bench_layer){.threads = threads};
    rfa_status status = rfa_agree(
        world, rfa_exchange_create(&layer->exchange, world, options->segments, algorithm));
    if (status == RFA_OK) {
        status = rfa_attention_create(&layer->attention, options, layer->exchange, world);
        if (status == RFA_OK) {
            status = make_plan(layer, options->segments, world, examples, length);
        }
        if (status == RFA_OK) {
            status = allocate(layer);
        }
        status = rfa_agree(world, status);
    }
    if (status == RFA_OK) {
        rfa_bench_layer_fill(layer, 0);
    }
    return status;
}

void rfa_bench_layer_destroy(rfa_bench_layer *layer)
{
    for (int t = 0; layer->works && t < layer->threads; t++) {
        rfa_free(layer->works[t]);
    }
    rfa_free(layer->works);
    rfa_free(layer->memory);
    rfa_free(layer->dvalues);
    rfa_free(layer->values);
    rfa_free(layer->dout);
    rfa_free(layer->dqkv);
    rfa_free(layer->dx);
    rfa_free(layer->x);
    rfa_free(layer->mask);
    rfa_free(layer->lengths);
    rfa_free(layer->leaves);
    rfa_attention_destroy(&layer->attention);
    rfa_exchange_destroy(&layer->exchange);
    *layer = (rfa_bench_layer){0};
}

static rfa_real *my_work(const rfa_bench_layer *l)
{
    return l->works[omp_get_thread_num()];
}

static rfa_real *my_gradient(const rfa_bench_layer *l)
{
    return l->dvalues + omp_get_thread_num() * rfa_padded(l->attention.parameters);
}

rfa_status rfa_bench_layer_states(rfa_bench_layer *l, int64_t step)
{
    const ptrdiff_t E = l->attention.options.width;
    l->attention.step = step;
    l->attention.training = step > 0;
    rfa_attention_begin(&l->attention, &l->saved, l->works[0]);
    for (int round = 0; round < rfa_attention_rounds(&l->attention); round++) {
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < l->leaf_count; i++) {
            rfa_attention_local(&l->attention, &l->saved, &l->plan, round, i,
                                l->x + l->leaves[i].row0 * E, my_work(l));
        }
        RFA_TRY(rfa_attention_exchange(&l->attention, &l->saved, &l->plan, round, l->works));
    }
    return RFA_OK;
}

rfa_status rfa_bench_layer_forward(rfa_bench_layer *l, int64_t step)
{
    RFA_TRY(rfa_bench_layer_states(l, step));
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < l->leaf_count; i++) {
        rfa_attention_read(&l->attention, &l->saved, &l->plan, i, my_work(l));
    }
    return RFA_OK;
}

rfa_status rfa_bench_layer_backward(rfa_bench_layer *l)
{
    const ptrdiff_t E = l->attention.options.width;
    const ptrdiff_t parameters = l->threads * rfa_padded(l->attention.parameters);
    const rfa_attention_gradient gradient = {l->dqkv, l->dout};
    memset(l->dvalues, 0, (size_t)parameters * sizeof *l->dvalues);
    memset(l->dx, 0, (size_t)(l->plan.rows * E) * sizeof *l->dx);
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < l->leaf_count; i++) {
        rfa_attention_read_backward(&gradient, my_gradient(l), &l->attention, &l->saved, &l->plan,
                                    i, my_work(l));
    }
    for (int round = rfa_attention_rounds(&l->attention) - 1; round >= 0; round--) {
        RFA_TRY(rfa_attention_exchange_backward(&gradient, &l->attention, &l->saved, &l->plan,
                                                round, l->works));
#pragma omp parallel for schedule(dynamic)
        for (int i = 0; i < l->leaf_count; i++) {
            rfa_attention_local_backward(&gradient, my_gradient(l), &l->attention, &l->saved,
                                         &l->plan, round, i, my_work(l));
        }
    }
#pragma omp parallel for schedule(dynamic)
    for (int i = 0; i < l->leaf_count; i++) {
        const ptrdiff_t at = l->leaves[i].row0 * E;
        rfa_attention_input_backward(l->dx + at, my_gradient(l), &l->attention, &l->saved, &l->plan,
                                     i, l->x + at);
    }
    return RFA_OK;
}
