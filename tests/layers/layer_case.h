// One layer of attention on given queries, keys and values, cut over the ranks of the world.
#ifndef TESTS_LAYERS_LAYER_CASE_H
#define TESTS_LAYERS_LAYER_CASE_H

#include "layers/attention_layer.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { CASE_WIDTH = 8, CASE_HEADS = 2, CASE_SEGMENTS = 8, CASE_EXAMPLES = 3, CASE_LONGEST = 140 };

// q, k, v and dout of an example as a function of its number, [len][CASE_WIDTH] each.
typedef struct {
    double *x[4];
    ptrdiff_t len;
} example;

static inline example example_create(int number, ptrdiff_t len)
{
    example e = {.len = len};
    rfa_real *values = test_reals(len * CASE_WIDTH);
    for (int i = 0; i < 4; i++) {
        e.x[i] = test_doubles(len * CASE_WIDTH);
        test_fill(values, len * CASE_WIDTH, (uint32_t)(100 * number + i), 1);
        for (ptrdiff_t j = 0; j < len * CASE_WIDTH; j++) {
            e.x[i][j] = (double)values[j];
        }
    }
    rfa_free(values);
    return e;
}

static inline void example_destroy(example *e)
{
    for (int i = 0; i < 4; i++) {
        rfa_free(e->x[i]);
    }
}

// Columns of head h.
static inline double *example_head(const example *e, int which, ptrdiff_t h)
{
    const ptrdiff_t d = CASE_WIDTH / CASE_HEADS;
    double *out = test_doubles(e->len * d);
    for (ptrdiff_t i = 0; i < e->len * d; i++) {
        out[i] = e->x[which][i / d * CASE_WIDTH + h * d + i % d];
    }
    return out;
}

typedef struct {
    rfa_exchange *exchange;
    rfa_attention attention;
    rfa_attention_saved saved;
    rfa_plan plan;
    rfa_leaf leaves[CASE_EXAMPLES * CASE_SEGMENTS];
    rfa_real *mask, *dqkv, *dout, *parameters, *work;
    void *memory;
} layer;

static inline void layer_fill(layer *l)
{
    const ptrdiff_t E = CASE_WIDTH;
    for (int i = 0; i < l->plan.examples * l->plan.own; i++) {
        const rfa_leaf *leaf = &l->leaves[i];
        example e = example_create(leaf->example, l->plan.lengths[leaf->example]);
        for (ptrdiff_t t = 0; t < leaf->rows; t++) {
            const ptrdiff_t row = leaf->row0 + t, at = (leaf->begin + t) * E;
            l->mask[row] = t < leaf->tokens;
            for (ptrdiff_t j = 0; j < E; j++) {
                for (ptrdiff_t which = 0; which < 3; which++) {
                    l->saved.qkv[row * 3 * E + which * E + j] =
                        t < leaf->tokens ? (rfa_real)e.x[which][at + j] : (rfa_real)NAN;
                }
                l->dout[row * E + j] = t < leaf->tokens ? (rfa_real)e.x[3][at + j] : 0;
            }
        }
        example_destroy(&e);
    }
}

static inline void
layer_create(layer *l, const rfa_attention_options *options, const ptrdiff_t *lengths)
{
    const int P = test_world.size, me = test_world.rank;
    *l = (layer){.exchange = NULL};
    check_ok(rfa_exchange_create(&l->exchange, &test_world, CASE_SEGMENTS, RFA_EXCHANGE_AUTO));
    check_ok(rfa_attention_create(&l->attention, options, l->exchange, &test_world));
    l->plan = (rfa_plan){
        .examples = CASE_EXAMPLES,
        .own = rfa_part_begin(CASE_SEGMENTS, P, me + 1) - rfa_part_begin(CASE_SEGMENTS, P, me),
        .leaves = l->leaves,
        .lengths = lengths,
        .longest_leaf = RFA_ROWS,
    };
    l->plan.rows = rfa_leaves_fill(l->leaves, lengths, CASE_EXAMPLES, CASE_SEGMENTS, P, me);
    for (int e = 0; e < CASE_EXAMPLES; e++) {
        for (int g = 0; g < CASE_SEGMENTS; g++) {
            const ptrdiff_t n = rfa_padded(rfa_segment_begin(lengths[e], CASE_SEGMENTS, g + 1) -
                                           rfa_segment_begin(lengths[e], CASE_SEGMENTS, g));
            l->plan.longest_leaf = n > l->plan.longest_leaf ? n : l->plan.longest_leaf;
        }
        const ptrdiff_t rows = rfa_padded(lengths[e]);
        l->plan.longest_example = rows > l->plan.longest_example ? rows : l->plan.longest_example;
    }
    l->mask = test_reals(l->plan.rows);
    l->plan.mask = l->mask;
    l->dqkv = test_reals(l->plan.rows * 3 * CASE_WIDTH);
    l->dout = test_reals(l->plan.rows * CASE_WIDTH);
    l->parameters = test_reals(l->attention.parameters + 1);
    l->saved.parameters = l->parameters;
    rfa_arena arena = {0};
    rfa_attention_carve_kept(&l->saved, &arena, &l->attention, &l->plan, NULL);
    rfa_attention_carve_saved(&l->saved, &arena, &l->attention, &l->plan);
    rfa_attention_carve(&l->attention, &arena, &l->plan);
    check_ok(rfa_alloc(&l->memory, (ptrdiff_t)arena.used, 1, "layer"));
    memset(l->memory, 0xFF, arena.used); // NaN: nothing is used before it is written
    arena = (rfa_arena){.base = l->memory};
    rfa_attention_carve_kept(&l->saved, &arena, &l->attention, &l->plan, NULL);
    rfa_attention_carve_saved(&l->saved, &arena, &l->attention, &l->plan);
    rfa_attention_carve(&l->attention, &arena, &l->plan);
    l->work = test_reals(rfa_attention_work(&l->attention, &l->plan));
    layer_fill(l);
}

static inline void layer_destroy(layer *l)
{
    rfa_free(l->work);
    rfa_free(l->memory);
    rfa_free(l->mask);
    rfa_free(l->dqkv);
    rfa_free(l->dout);
    rfa_free(l->parameters);
    rfa_attention_destroy(&l->attention);
    rfa_exchange_destroy(&l->exchange);
}

// Forward and backward. The world's tests run with one thread.
static inline void layer_run(layer *l, int64_t step, bool training)
{
    const rfa_attention_gradient gradient = {l->dqkv, l->dout};
    const int leaves = l->plan.examples * l->plan.own;
    rfa_real *dparameters = test_reals(l->attention.parameters + 1);
    l->attention.step = step;
    l->attention.training = training;
    rfa_attention_begin(&l->attention, &l->saved, l->work);
    for (int round = 0; round < rfa_attention_rounds(&l->attention); round++) {
        for (int leaf = 0; leaf < leaves; leaf++) {
            rfa_attention_local(&l->attention, &l->saved, &l->plan, round, leaf, NULL, l->work);
        }
        check_ok(rfa_attention_exchange(&l->attention, &l->saved, &l->plan, round, &l->work));
    }
    for (int leaf = 0; leaf < leaves; leaf++) {
        rfa_attention_read(&l->attention, &l->saved, &l->plan, leaf, l->work);
    }
    for (int leaf = 0; leaf < leaves; leaf++) {
        rfa_attention_read_backward(&gradient, dparameters, &l->attention, &l->saved, &l->plan,
                                    leaf, l->work);
    }
    for (int round = rfa_attention_rounds(&l->attention) - 1; round >= 0; round--) {
        check_ok(rfa_attention_exchange_backward(&gradient, &l->attention, &l->saved, &l->plan,
                                                 round, &l->work));
        for (int leaf = 0; leaf < leaves; leaf++) {
            rfa_attention_local_backward(&gradient, dparameters, &l->attention, &l->saved, &l->plan,
                                         round, leaf, l->work);
        }
    }
    rfa_free(dparameters);
}

// Largest distance of head h of an example, in an array of rows [rows][ld] from column, to want
// [len][d]; infinite where something is no number.
static inline double layer_distance(const layer *l,
                                    int number,
                                    ptrdiff_t h,
                                    const rfa_real *rows,
                                    ptrdiff_t ld,
                                    ptrdiff_t column,
                                    const double *want)
{
    const ptrdiff_t d = CASE_WIDTH / CASE_HEADS;
    double worst = 0;
    for (int i = 0; i < l->plan.own; i++) {
        const rfa_leaf *leaf = &l->leaves[number * l->plan.own + i];
        for (ptrdiff_t e = 0; e < leaf->rows * d; e++) {
            const ptrdiff_t t = e / d;
            const double got = (double)rows[(leaf->row0 + t) * ld + column + h * d + e % d];
            const double gap =
                fabs(got - (t < leaf->tokens ? want[(leaf->begin + t) * d + e % d] : 0));
            worst = isnan(gap) ? INFINITY : fmax(worst, gap);
        }
    }
    return worst;
}

#endif
