// Ranks: 1 2 3 4
//
// A layer of kind lara against the equations, head by head: landmarks as means of tokens or of a
// learned map of them, noise by step, layer, head and place in the batch, examples of all lengths.
// (Bits over ranks and gradients of a whole model: tests/models, of all kinds.)
#include "layers/attention_layer.h"
#include "reference/lara.h"
#include "rng/rng.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum {
    EXAMPLES = 4,
    SEGMENTS = 8,
    HEADS = 3,
    d = 6,
    E = HEADS * d,
    FIRST = 5,
    LAYER = 2,
    STEP = 9
};
static const ptrdiff_t lengths[EXAMPLES] = {150, 3, 33, 1};

static rfa_attention_options options_of(rfa_weights_kind weights, bool map)
{
    return (rfa_attention_options){.kind = RFA_ATTENTION_LARA,
                                   .layers = LAYER + 1,
                                   .width = E,
                                   .heads = HEADS,
                                   .segments = SEGMENTS,
                                   .seed = 77,
                                   .landmarks = 7,
                                   .landmark_map = map,
                                   .draws = 3,
                                   .antithetic = true,
                                   .weights = weights,
                                   .specificity = 2};
}

// Tokens of an example, the same on all ranks: [tokens][3 E].
static void fill_tokens(rfa_real *qkv, int example)
{
    test_fill(qkv, lengths[example] * 3 * E, 20 + (uint32_t)example, 1);
}

// One head's columns of one of q, k, v.
static void head_part(double *x, const rfa_real *qkv, ptrdiff_t n, int side, int head)
{
    for (ptrdiff_t t = 0; t < n; t++) {
        for (int i = 0; i < d; i++) {
            x[t * d + i] = (double)qkv[t * 3 * E + side * E + head * d + i];
        }
    }
}

// norm(x W^T + b) of each row, Ba et al. 2016 with 1e-5 beside the variance.
static void mapped(double *y,
                   const double *x,
                   ptrdiff_t n,
                   const rfa_attention *attention,
                   const rfa_real *parameters,
                   int side)
{
    const rfa_real *tensor[4];
    for (int i = 0; i < 4; i++) {
        tensor[i] = parameters + attention->tensor[4 * side + i].at;
    }
    for (ptrdiff_t t = 0; t < n; t++) {
        double row[d], mean = 0, variance = 0;
        for (int i = 0; i < d; i++) {
            row[i] = (double)tensor[1][i];
            for (int j = 0; j < d; j++) {
                row[i] += (double)tensor[0][i * d + j] * x[t * d + j];
            }
            mean += row[i] / d;
        }
        for (int i = 0; i < d; i++) {
            variance += (row[i] - mean) * (row[i] - mean) / d;
        }
        for (int i = 0; i < d; i++) {
            y[t * d + i] = (row[i] - mean) / sqrt(variance + 1e-5) * (double)tensor[2][i] +
                           (double)tensor[3][i];
        }
    }
}

// Means of n rows over C pieces, the longer ones last.
static void piece_means(double *means, const double *y, ptrdiff_t n, ptrdiff_t C)
{
    ptrdiff_t t = 0;
    for (ptrdiff_t c = 0; c < C; c++) {
        const ptrdiff_t size = n / C + (c >= C - n % C), end = t + size;
        for (int i = 0; i < d; i++) {
            means[c * d + i] = 0;
        }
        for (; t < end; t++) {
            for (int i = 0; i < d; i++) {
                means[c * d + i] += y[t * d + i] / (double)size;
            }
        }
    }
}

// out [tokens][d] of one head of one example by the equations, and how far rounding may carry.
static double expected(
    double *out, const rfa_attention *attention, const rfa_real *parameters, int example, int head)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t n = lengths[example], C = n < o->landmarks ? n : o->landmarks, size = C * d;
    rfa_real *qkv = test_reals(n * 3 * E);
    double *x = test_doubles(3 * n * d), *y = test_doubles(n * d), *means = test_doubles(2 * size);
    double *noise = test_doubles(o->draws * size), *eps = test_doubles(o->draws * size);
    fill_tokens(qkv, example);
    for (int side = 0; side < 3; side++) {
        head_part(x + side * n * d, qkv, n, side, head);
    }
    for (int side = 0; side < 2; side++) {
        memcpy(y, x + side * n * d, (size_t)(n * d) * sizeof *y);
        if (o->landmark_map) {
            mapped(y, x + side * n * d, n, attention, parameters, side);
        }
        piece_means(means + side * size, y, n, C);
    }
    const rfa_rng stream = rfa_rng_stream(o->seed, RFA_RNG_LARA, STEP, (uint32_t)(FIRST + example));
    rfa_rng_normals_at(eps, &stream, (uint64_t)(LAYER * RFA_MOST_HEADS + head) << 40, 2 * size);
    for (ptrdiff_t i = 0; i < o->draws * size; i++) { // draws eps_0, -eps_0, eps_1
        const ptrdiff_t draw = i / size;
        const double drawn = draw == 1 ? -eps[i - size] : eps[i - (draw == 2 ? size : 0)];
        noise[i] = attention->training ? drawn : 0;
    }
    const ref_lara problem = {.tokens = n,
                              .d = d,
                              .pieces = o->landmarks,
                              .draws = o->draws,
                              .weights = o->weights,
                              .specificity = o->specificity,
                              .q = x,
                              .k = x + n * d,
                              .v = x + 2 * n * d,
                              .noise = noise,
                              .q_means = means,
                              .k_means = means + size};
    ref_lara_forward(out, &problem);
    const ref_lara_sizes sizes = ref_lara_magnitudes(&problem);
    double most = 0;
    for (ptrdiff_t i = 0; i < n * d; i++) {
        most = fmax(most, fabs(problem.v[i]));
    }
    void *all[] = {qkv, x, y, means, noise, eps};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
    // As tests/attention/test_lara.c; landmarks' own errors take part in each exponent once more.
    return 2 * most * 8 * test_eps() * (sizes.exponent + d) * sizes.spread;
}

typedef struct {
    rfa_exchange *exchange;
    rfa_attention attention;
    rfa_attention_saved saved;
    rfa_plan plan;
    rfa_leaf leaves[EXAMPLES * SEGMENTS];
    rfa_real *mask, *parameters, *work;
    void *block;
} layer;

static void layer_create(layer *x, const rfa_attention_options *options)
{
    *x = (layer){.exchange = NULL};
    check_ok(rfa_exchange_create(&x->exchange, &test_world, SEGMENTS, RFA_EXCHANGE_AUTO));
    check_ok(rfa_attention_create(&x->attention, options, x->exchange, &test_world));
    const int P = test_world.size, r = test_world.rank;
    const ptrdiff_t rows = rfa_leaves_fill(x->leaves, lengths, EXAMPLES, SEGMENTS, P, r);
    x->mask = test_reals(rows + RFA_ROWS);
    x->plan = (rfa_plan){.examples = EXAMPLES,
                         .own = rfa_part_begin(SEGMENTS, P, r + 1) - rfa_part_begin(SEGMENTS, P, r),
                         .leaves = x->leaves,
                         .lengths = lengths,
                         .mask = x->mask,
                         .rows = rows,
                         .longest_leaf = 32,
                         .longest_example = 160,
                         .first = FIRST};
    rfa_arena arena = {.base = NULL};
    rfa_attention_carve(&x->attention, &arena, &x->plan);
    rfa_attention_carve_kept(&x->saved, &arena, &x->attention, &x->plan, NULL);
    rfa_attention_carve_saved(&x->saved, &arena, &x->attention, &x->plan);
    check_ok(rfa_alloc(&x->block, (ptrdiff_t)arena.used, 1, "layer"));
    arena = (rfa_arena){.base = x->block};
    rfa_attention_carve(&x->attention, &arena, &x->plan);
    rfa_attention_carve_kept(&x->saved, &arena, &x->attention, &x->plan, NULL);
    rfa_attention_carve_saved(&x->saved, &arena, &x->attention, &x->plan);
    x->work = test_reals(rfa_attention_work(&x->attention, &x->plan));
    x->parameters = test_reals(x->attention.parameters + 1);
    test_fill(x->parameters, x->attention.parameters, 3, 0.5);
    x->saved.parameters = x->parameters;
    x->saved.layer = LAYER;
    x->attention.step = STEP;
    for (int l = 0; l < EXAMPLES * x->plan.own; l++) {
        const rfa_leaf *leaf = &x->leaves[l];
        rfa_real *tokens = test_reals(lengths[leaf->example] * 3 * E);
        fill_tokens(tokens, leaf->example);
        memcpy(x->saved.qkv + leaf->row0 * 3 * E, tokens + leaf->begin * 3 * E,
               (size_t)(leaf->tokens * 3 * E) * sizeof *tokens);
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            x->mask[leaf->row0 + t] = 1;
        }
        rfa_free(tokens);
    }
}

static void layer_destroy(layer *x)
{
    rfa_free(x->block);
    rfa_free(x->work);
    rfa_free(x->parameters);
    rfa_free(x->mask);
    rfa_attention_destroy(&x->attention);
    rfa_exchange_destroy(&x->exchange);
}

static void forward(layer *x, bool training)
{
    const int leaves = EXAMPLES * x->plan.own;
    x->attention.training = training;
    rfa_attention_begin(&x->attention, &x->saved, x->work);
    for (int round = 0; round < rfa_attention_rounds(&x->attention); round++) {
        for (int l = 0; l < leaves; l++) {
            rfa_attention_local(&x->attention, &x->saved, &x->plan, round, l, NULL, x->work);
        }
        check_ok(rfa_attention_exchange(&x->attention, &x->saved, &x->plan, round, &x->work));
    }
    int64_t clamped = 0; // counted before it is checked: ranks have different numbers of leaves
    for (int l = 0; l < leaves; l++) {
        clamped += rfa_attention_read(&x->attention, &x->saved, &x->plan, l, x->work);
    }
    check(clamped == 0);
}

static void check_layer(rfa_weights_kind weights, bool map)
{
    const rfa_attention_options options = options_of(weights, map);
    layer x;
    layer_create(&x, &options);
    for (int training = 0; training < 2; training++) {
        forward(&x, training);
        for (int task = 0; task < EXAMPLES * HEADS; task++) {
            const int example = task / HEADS, h = task % HEADS;
            const ptrdiff_t n = lengths[example];
            double *want = test_doubles(n * d), *own = test_doubles(n * d);
            rfa_real *got = test_reals(n * d);
            const double bound = expected(want, &x.attention, x.parameters, example, h);
            ptrdiff_t count = 0;
            for (int l = example * x.plan.own; l < (example + 1) * x.plan.own; l++) {
                const rfa_leaf *leaf = &x.leaves[l];
                for (ptrdiff_t t = 0; t < leaf->tokens; t++, count += d) {
                    memcpy(got + count, x.saved.out + (leaf->row0 + t) * E + h * d,
                           sizeof(rfa_real) * d);
                    memcpy(own + count, want + (leaf->begin + t) * d, sizeof(double) * d);
                }
            }
            check_close("layer", got, own, count, bound);
            rfa_free(want);
            rfa_free(own);
            rfa_free(got);
        }
    }
    layer_destroy(&x);
}

static void equals_the_equations(void **state)
{
    (void)state;
    for (int w = 0; w < 3; w++) {
        check_layer((rfa_weights_kind)w, false);
        check_layer((rfa_weights_kind)w, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_the_equations),
    };
    return test_main(tests);
}
