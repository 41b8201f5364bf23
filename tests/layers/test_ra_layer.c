// Ranks: 1 2 3 4
//
// A layer of randomised attention on 1 to 4 ranks: without noise against its definition, outputs
// and gradients; with noise, that steps, examples and heads have draws of their own and that more
// draws come closer to softmax attention.
#include "layers/layer_case.h"
#include "reference/differences.h"
#include "reference/ra.h"
#include "reference/softmax.h"

static const ptrdiff_t lengths[CASE_EXAMPLES] = {40, 17, 1};

static rfa_attention_options options_of(ptrdiff_t draws, bool causal)
{
    return (rfa_attention_options){.kind = RFA_ATTENTION_RA,
                                   .layers = 2,
                                   .width = CASE_WIDTH,
                                   .heads = CASE_HEADS,
                                   .longest = CASE_LONGEST,
                                   .segments = CASE_SEGMENTS,
                                   .seed = 11,
                                   .causal = causal,
                                   .draws = draws};
}

typedef struct {
    ref_ra ra;
    double *x[4], *out;
} mirror;

static mirror mirror_create(const layer *l, int number, ptrdiff_t h)
{
    const ptrdiff_t d = CASE_WIDTH / CASE_HEADS, len = l->plan.lengths[number];
    example e = example_create(number, len);
    mirror m = {.out = test_doubles(len * d)};
    for (int i = 0; i < 4; i++) {
        m.x[i] = example_head(&e, i, h);
    }
    m.ra = (ref_ra){.tokens = len,
                    .d = d,
                    .draws = 1,
                    .causal = l->attention.options.causal,
                    .q = m.x[0],
                    .k = m.x[1],
                    .v = m.x[2]};
    example_destroy(&e);
    return m;
}

static void mirror_destroy(mirror *m)
{
    for (int i = 0; i < 4; i++) {
        rfa_free(m->x[i]);
    }
    rfa_free(m->out);
}

static double loss(const void *context)
{
    const mirror *m = context;
    double sum = 0;
    ref_ra_forward(m->out, &m->ra);
    for (ptrdiff_t i = 0; i < m->ra.tokens * m->ra.d; i++) {
        sum += m->out[i] * m->x[3][i];
    }
    return sum;
}

// As in test_eva_layer.c: scores of q + mean k are below sqrt(d) 2 x 4^2, and 4^2 of the norms.
static void test_evaluation_equals_reference(void **state)
{
    (void)state;
    const double bound = test_eps() * 2 * (2 + 2 * 16 * 3 + sqrt(CASE_LONGEST)) * 4;
    for (int kind = 0; kind < 4; kind++) {
        const rfa_attention_options options = options_of(1 + kind / 2 * 3, kind % 2);
        layer l;
        layer_create(&l, &options, lengths);
        layer_run(&l, 3, false);
        for (int e = 0; e < CASE_EXAMPLES; e++) {
            for (ptrdiff_t h = 0; h < CASE_HEADS; h++) {
                mirror m = mirror_create(&l, e, h);
                ref_ra_forward(m.out, &m.ra);
                check(layer_distance(&l, e, h, l.saved.out, CASE_WIDTH, 0, m.out) <= bound);
                double *want = test_doubles(m.ra.tokens * m.ra.d);
                for (int which = 0; which < 3 && sizeof(rfa_real) == sizeof(double); which++) {
                    ref_differences(want, m.x[which], m.ra.tokens * m.ra.d, 1e-3, loss, &m);
                    check(layer_distance(&l, e, h, l.dqkv, 3 * CASE_WIDTH, which * CASE_WIDTH,
                                         want) <= 1e-8);
                }
                rfa_free(want);
                mirror_destroy(&m);
            }
        }
        layer_destroy(&l);
    }
}

static double sum_over_ranks(double x)
{
    MPI_Allreduce(MPI_IN_PLACE, &x, 1, MPI_DOUBLE, MPI_SUM, test_world.comm);
    return x;
}

// Mean square distance of the first example to softmax attention.
static double error_of(const layer *l)
{
    double sum = 0;
    for (ptrdiff_t h = 0; h < CASE_HEADS; h++) {
        mirror m = mirror_create(l, 0, h);
        double *lse = test_doubles(m.ra.tokens);
        const ref_softmax exact = {m.ra.tokens, m.ra.d, m.ra.causal, m.ra.q, m.ra.k, m.ra.v};
        ref_softmax_forward(m.out, lse, &exact);
        for (int i = 0; i < l->plan.own; i++) {
            const rfa_leaf *leaf = &l->leaves[i];
            for (ptrdiff_t e = 0; e < leaf->tokens * m.ra.d; e++) {
                const ptrdiff_t t = e / m.ra.d, c = e % m.ra.d;
                const double gap =
                    (double)l->saved.out[(leaf->row0 + t) * CASE_WIDTH + h * m.ra.d + c] -
                    m.out[(leaf->begin + t) * m.ra.d + c];
                sum += gap * gap;
            }
        }
        rfa_free(lse);
        mirror_destroy(&m);
    }
    return sum_over_ranks(sum) / (double)(lengths[0] * CASE_WIDTH);
}

// An unbiased mean of S independent draws has 1 / S of the variance: of 320 numbers in 80
// independent groups, a ratio of 64 is measured within a factor of two and a half.
static void test_draws_average(void **state)
{
    (void)state;
    double error[2];
    for (int i = 0; i < 2; i++) {
        const rfa_attention_options options = options_of(i ? 256 : 4, false);
        layer l;
        layer_create(&l, &options, lengths);
        layer_run(&l, 3, true);
        error[i] = error_of(&l);
        layer_destroy(&l);
    }
    check(error[0] > 64 / 2.5 * error[1] && error[0] < 64 * 2.5 * error[1]);
}

// Outputs with other keys of the draws differ; with the same they don't.
static void test_draws_have_their_keys(void **state)
{
    (void)state;
    const rfa_attention_options options = options_of(1, true);
    layer l, other;
    layer_create(&l, &options, lengths);
    layer_create(&other, &options, lengths);
    layer_run(&l, 3, true);
    const ptrdiff_t n = l.plan.rows * CASE_WIDTH;
    for (int change = 0; change < 5; change++) {
        other.saved.layer = change == 1;
        other.plan.first = change == 2;
        other.attention.options.seed = change == 3 ? 12 : 11;
        layer_run(&other, change == 4 ? 4 : 3, true);
        double moved = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            moved += l.saved.out[i] != other.saved.out[i];
        }
        check((sum_over_ranks(moved) > 0) == (change > 0));
    }
    layer_destroy(&l);
    layer_destroy(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_evaluation_equals_reference),
        cmocka_unit_test(test_draws_average),
        cmocka_unit_test(test_draws_have_their_keys),
    };
    return test_main(tests);
}
