// Ranks: 1 2 3 4
//
// A layer of eva on 1 to 4 ranks against its definition: outputs with and without noise, and
// gradients against differences (the map of landmarks: models/test_gradients.c).
#include "layers/layer_case.h"
#include "reference/differences.h"
#include "reference/eva.h"
#include "rng/rng.h"

static const ptrdiff_t lengths[][CASE_EXAMPLES] = {{50, 17, 1}, {140, 15, 97}, {33, 128, 16}};
static const struct {
    ptrdiff_t landmarks, window;
} cuts[] = {{140, 24}, {20, 10}, {6, 1}, {9, 40}, {50, 5000}};

static rfa_attention_options options_of(size_t cut, bool causal)
{
    return (rfa_attention_options){.kind = RFA_ATTENTION_EVA,
                                   .layers = 1,
                                   .width = CASE_WIDTH,
                                   .heads = CASE_HEADS,
                                   .longest = CASE_LONGEST,
                                   .segments = CASE_SEGMENTS,
                                   .seed = 11,
                                   .causal = causal,
                                   .landmarks = cuts[cut].landmarks,
                                   .window = cuts[cut].window};
}

typedef struct {
    ref_eva eva;
    double *x[4], *noise, *out;
} mirror;

static mirror mirror_create(const layer *l, int number, ptrdiff_t h, bool training)
{
    const rfa_attention_options *o = &l->attention.options;
    const ptrdiff_t d = CASE_WIDTH / CASE_HEADS, len = l->plan.lengths[number];
    const ptrdiff_t chunk = (CASE_LONGEST + o->landmarks - 1) / o->landmarks;
    const ptrdiff_t least = o->window < CASE_LONGEST ? o->window : CASE_LONGEST;
    example e = example_create(number, len);
    mirror m = {.out = test_doubles(len * d), .noise = test_doubles(CASE_LONGEST * d)};
    for (int i = 0; i < 4; i++) {
        m.x[i] = example_head(&e, i, h);
    }
    const rfa_rng stream =
        rfa_rng_stream(o->seed, RFA_RNG_EVA, (uint32_t)l->attention.step,
                       (uint32_t)(number * RFA_MOST_LAYERS * RFA_MOST_HEADS + h));
    rfa_rng_normals(m.noise, &stream, CASE_LONGEST * d);
    m.eva = (ref_eva){.tokens = len,
                      .d = d,
                      .chunk = chunk,
                      .window = (least + chunk - 1) / chunk * chunk,
                      .causal = o->causal,
                      .q = m.x[0],
                      .k = m.x[1],
                      .v = m.x[2],
                      .noise = training ? m.noise : NULL};
    example_destroy(&e);
    return m;
}

static void mirror_destroy(mirror *m)
{
    for (int i = 0; i < 4; i++) {
        rfa_free(m->x[i]);
    }
    rfa_free(m->noise);
    rfa_free(m->out);
}

static double loss(const void *context)
{
    const mirror *m = context;
    double sum = 0;
    ref_eva_forward(m->out, &m->eva);
    for (ptrdiff_t i = 0; i < m->eva.tokens * m->eva.d; i++) {
        sum += m->out[i] * m->x[3][i];
    }
    return sum;
}

// Scores are below sqrt(d) 4^2 of inputs below 4, directions with noise below 2.5 times as large;
// a rounding error of a score is one of a value, once for beta and once for out.
static double bound(void)
{
    const double score = 2 * 16 * 2.5;
    return test_eps() * 2 * (2 + score + sqrt(CASE_LONGEST)) * 4;
}

static void test_equals_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t cut = 0; cut < sizeof cuts / sizeof *cuts; cut++) {
            for (int kind = 0; kind < 4; kind++) {
                const rfa_attention_options options = options_of(cut, kind % 2);
                layer l;
                layer_create(&l, &options, lengths[i]);
                layer_run(&l, 3, kind / 2);
                for (int e = 0; e < CASE_EXAMPLES; e++) {
                    for (ptrdiff_t h = 0; h < CASE_HEADS; h++) {
                        mirror m = mirror_create(&l, e, h, kind / 2);
                        ref_eva_forward(m.out, &m.eva);
                        check(layer_distance(&l, e, h, l.saved.out, CASE_WIDTH, 0, m.out) <=
                              bound());
                        mirror_destroy(&m);
                    }
                }
                layer_destroy(&l);
            }
        }
    }
}

// Differences: 1e-12 / 30 of the fifth derivative, some hundreds here, and 2^-52 loss / 1e-3.
static void test_gradients(void **state)
{
    (void)state;
    if (sizeof(rfa_real) == sizeof(float)) {
        return; // its rounding would hide what differences can see
    }
    for (size_t cut = 0; cut < sizeof cuts / sizeof *cuts; cut++) {
        for (int kind = (int)cut % 2; kind < 4; kind += cut % 2 ? 2 : 3) { // 1, 3 or 0, 3
            const rfa_attention_options options = options_of(cut, kind % 2);
            layer l;
            layer_create(&l, &options, lengths[0]);
            layer_run(&l, 3, kind / 2);
            for (int e = 0; e < CASE_EXAMPLES; e++) {
                const ptrdiff_t h = e % CASE_HEADS;
                mirror m = mirror_create(&l, e, h, kind / 2);
                double *want = test_doubles(m.eva.tokens * m.eva.d);
                for (int which = 0; which < 3; which++) {
                    ref_differences(want, m.x[which], m.eva.tokens * m.eva.d, 1e-3, loss, &m);
                    check(layer_distance(&l, e, h, l.dqkv, 3 * CASE_WIDTH, which * CASE_WIDTH,
                                         want) <= 2e-9);
                }
                rfa_free(want);
                mirror_destroy(&m);
            }
            layer_destroy(&l);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_reference),
        cmocka_unit_test(test_gradients),
    };
    return test_main(tests);
}
