// Ranks: 1 2 3 4
//
// Cross attention: targets and sources of different lengths, each cut over the ranks: against the
// quadratic form, its differences, and to the bit against one rank.
#include "layers/attention_layer.h"
#include "reference/differences.h"
#include "reference/features.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { E = 16, H = 2, d = E / H, D = 24, SEGMENTS = 8, EXAMPLES = 3, MOST = 1024, LONGEST = 66 };
static const ptrdiff_t target_length[EXAMPLES] = {40, 1, 19}, source_length[EXAMPLES] = {17, 66, 1};

static double number(int example, ptrdiff_t position, ptrdiff_t channel)
{
    const double x = (double)(1 + example) * 12.9898 + (double)position * 78.233;
    return 0.7 * sin(x + 3.7 * (double)channel);
}

// One side of the batch on this rank.
typedef struct {
    rfa_plan plan;
    rfa_leaf leaves[EXAMPLES * SEGMENTS];
} side;

typedef struct {
    rfa_comm sequence;
    rfa_exchange *exchange;
    rfa_attention attention;
    rfa_attention_saved saved;
    rfa_arena arena;
    side target, source;
    rfa_real *mask, *dqkv, *dout, *work, *parameters, *dparameters;
    double *sums; // of dparameters over leaves, by leaf in order
} cross;

static void lay_out(side *s, const cross *c, const ptrdiff_t *lengths, ptrdiff_t row0)
{
    const int P = c->sequence.size, p = c->sequence.rank;
    const int own = rfa_part_begin(SEGMENTS, P, p + 1) - rfa_part_begin(SEGMENTS, P, p);
    const ptrdiff_t rows = rfa_leaves_fill(s->leaves, lengths, EXAMPLES, SEGMENTS, P, p);
    s->plan = (rfa_plan){.examples = EXAMPLES,
                         .own = own,
                         .leaves = s->leaves,
                         .lengths = lengths,
                         .mask = c->mask,
                         .rows = MOST,
                         .longest_leaf = rfa_padded(LONGEST),
                         .longest_example = SEGMENTS * RFA_ROWS + rfa_padded(LONGEST)};
    check(row0 + rows <= MOST);
    for (int l = 0; l < EXAMPLES * own; l++) {
        rfa_leaf *leaf = &s->leaves[l];
        leaf->row0 += row0;
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            c->mask[leaf->row0 + t] = 1;
        }
    }
}

static void carve(cross *c, rfa_arena *arena)
{
    rfa_attention_carve_kept(&c->saved, arena, &c->attention, &c->target.plan, NULL);
    rfa_attention_carve_saved(&c->saved, arena, &c->attention, &c->target.plan);
    rfa_attention_carve(&c->attention, arena, &c->target.plan);
}

static void cross_create(cross *c, MPI_Comm comm, const rfa_attention_options *options)
{
    *c = (cross){
        .mask = test_reals(MOST), .dqkv = test_reals(MOST * 3 * E), .dout = test_reals(MOST * E)};
    rfa_comm_create(&c->sequence, comm);
    check_ok(rfa_exchange_create(&c->exchange, &c->sequence, SEGMENTS, RFA_EXCHANGE_AUTO));
    check_ok(rfa_attention_create(&c->attention, options, c->exchange, &c->sequence));
    lay_out(&c->target, c, target_length, 0);
    lay_out(&c->source, c, source_length, MOST / 2);
    c->target.plan.source = &c->source.plan;
    rfa_arena measure = {0};
    carve(c, &measure);
    check_ok(rfa_alloc(&c->arena.base, (ptrdiff_t)measure.used, 1, "arena"));
    carve(c, &c->arena);
    c->work = test_reals(rfa_attention_work(&c->attention, &c->target.plan));
    c->parameters = test_reals(c->attention.parameters + 1);
    c->dparameters = test_reals(c->attention.parameters + 1);
    c->sums = test_doubles(c->attention.parameters + 1);
    for (ptrdiff_t i = 0; i < c->attention.parameters; i++) {
        c->parameters[i] = (rfa_real)(0.6 + 0.01 * (double)i);
    }
    c->saved.parameters = c->parameters;
    for (int part = 0; part < 2; part++) {
        const side *s = part ? &c->source : &c->target;
        for (int l = 0; l < EXAMPLES * s->plan.own; l++) {
            const rfa_leaf *leaf = &s->leaves[l];
            for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
                for (ptrdiff_t j = 0; j < 3 * E; j++) {
                    c->saved.qkv[(leaf->row0 + t) * 3 * E + j] =
                        (rfa_real)(float)number(leaf->example, leaf->begin + t, j);
                }
                for (ptrdiff_t j = 0; j < E && !part; j++) {
                    c->dout[(leaf->row0 + t) * E + j] =
                        (rfa_real)(float)number(leaf->example, leaf->begin + t, 100 + j);
                }
            }
        }
    }
}

static void cross_destroy(cross *c)
{
    rfa_free(c->arena.base);
    rfa_attention_destroy(&c->attention);
    rfa_exchange_destroy(&c->exchange);
    rfa_comm_destroy(&c->sequence);
    rfa_free(c->sums);
    rfa_real *all[] = {c->mask, c->dqkv, c->dout, c->work, c->parameters, c->dparameters};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

static void cross_run(cross *c)
{
    const rfa_plan *target = &c->target.plan, *source = &c->source.plan;
    const rfa_attention_gradient gradient = {c->dqkv, c->dout};
    rfa_attention *attention = &c->attention;
    check(rfa_attention_rounds(attention) == 1);
    rfa_attention_begin(attention, &c->saved, c->work);
    for (int l = 0; l < EXAMPLES * source->own; l++) {
        rfa_attention_local(attention, &c->saved, source, 0, l, NULL, c->work);
    }
    check_ok(rfa_attention_exchange(attention, &c->saved, target, 0, &c->work));
    for (int l = 0; l < EXAMPLES * target->own; l++) {
        rfa_attention_read(attention, &c->saved, target, l, c->work);
    }
    for (int l = 0; l < EXAMPLES * target->own; l++) {
        rfa_attention_read_backward(&gradient, c->dparameters, attention, &c->saved, target, l,
                                    c->work);
    }
    check_ok(rfa_attention_exchange_backward(&gradient, attention, &c->saved, target, 0, &c->work));
    for (int l = 0; l < EXAMPLES * source->own; l++) {
        rfa_attention_local_backward(&gradient, c->dparameters, attention, &c->saved, source, 0, l,
                                     c->work);
    }
}

// Rows of a side of `many` against those of `one`, columns [first, end) of width.
static bool same_rows(const cross *many,
                      const cross *one,
                      bool source,
                      const rfa_real *a,
                      const rfa_real *b,
                      ptrdiff_t width,
                      ptrdiff_t first,
                      ptrdiff_t end)
{
    const side *x = source ? &many->source : &many->target;
    const side *y = source ? &one->source : &one->target;
    bool same = true;
    for (int l = 0; l < EXAMPLES * x->plan.own; l++) {
        const rfa_leaf *leaf = &x->leaves[l];
        const rfa_leaf *other = &y->leaves[leaf->example * y->plan.own + leaf->segment];
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            same = same && memcmp(a + (leaf->row0 + t) * width + first,
                                  b + (other->row0 + t) * width + first,
                                  (size_t)(end - first) * sizeof *a) == 0;
        }
    }
    return same;
}

// The quadratic form on all numbers of one head of one example.
typedef struct {
    const rfa_attention *attention;
    double q[LONGEST * d], k[LONGEST * d], v[LONGEST * d], dout[LONGEST * d], out[LONGEST * d];
    double w[D * d], sigma[d];
    ptrdiff_t n, m;
} definition;

static double definition_loss(const void *context)
{
    definition *x = (definition *)context;
    const rfa_attention_options *o = &x->attention->options;
    const ref_map map = {.kind = o->map,
                         .unit_norm = o->unit_norm,
                         .d = d,
                         .D = D,
                         .w = x->w,
                         .sigma = o->kind == RFA_ATTENTION_RFA ? x->sigma : NULL};
    const bool exact = o->kind == RFA_ATTENTION_SOFTMAX;
    const ptrdiff_t F = exact ? 0 : ref_map_count(&map);
    static double phi_k[LONGEST][2 * D];
    double loss = 0, phi_q[2 * D];
    for (ptrdiff_t i = 0; i < x->m && !exact; i++) {
        ref_map_features(phi_k[i], x->k + i * d, true, 0, &map);
    }
    for (ptrdiff_t t = 0; t < x->n; t++) {
        double den = 0, *out = x->out + t * d;
        if (!exact) {
            ref_map_features(phi_q, x->q + t * d, false, 0, &map);
        }
        memset(out, 0, d * sizeof *out);
        for (ptrdiff_t i = 0; i < x->m; i++) {
            double kappa = 0;
            if (exact) {
                for (int j = 0; j < d; j++) {
                    kappa += x->q[t * d + j] * x->k[i * d + j] / sqrt(d);
                }
                kappa = exp(kappa);
            }
            for (ptrdiff_t f = 0; f < F; f++) {
                kappa += phi_q[f] * phi_k[i][f];
            }
            den += kappa;
            for (int j = 0; j < d; j++) {
                out[j] += kappa * x->v[i * d + j];
            }
        }
        for (int j = 0; j < d; j++) {
            out[j] /= den;
            loss += out[j] * x->dout[t * d + j];
        }
    }
    return loss;
}

// One rank, which holds everything, against the definition.
static void check_definition(const cross *c)
{
    static definition x;
    static double slope[LONGEST * d];
    // Differences: the curvature of elu jumps at 0, so its step is short and rounding shows.
    const bool jumps = c->attention.options.map == RFA_MAP_ELU;
    const double unit = 1e3 * test_eps(), step = jumps ? 1e-6 : 1e-3;
    const double bound = unit + (jumps ? 1e-7 : 1e-10);
    x.attention = &c->attention;
    for (int e = 0; e < EXAMPLES; e++) {
        for (int h = 0; h < H; h++) {
            x.n = target_length[e];
            x.m = source_length[e];
            for (ptrdiff_t t = 0; t < LONGEST; t++) {
                for (int j = 0; j < d; j++) {
                    x.q[t * d + j] = (double)(float)number(e, t, h * d + j);
                    x.k[t * d + j] = (double)(float)number(e, t, E + h * d + j);
                    x.v[t * d + j] = (double)(float)number(e, t, 2 * E + h * d + j);
                    x.dout[t * d + j] = (double)(float)number(e, t, 100 + h * d + j);
                }
            }
            for (int i = 0; i < D * d && c->attention.pool.w; i++) {
                x.w[i] = (double)rfa_pool_matrix(&c->attention.pool, h)[i];
            }
            for (int j = 0; j < d && c->attention.parameters > 0; j++) {
                x.sigma[j] = (double)c->parameters[h * d + j];
            }
            definition_loss(&x);
            double out[LONGEST * d];
            memcpy(out, x.out, sizeof out);
            double *part[] = {x.q, x.k, x.v};
            for (int p = 0; p < 3; p++) {
                const side *s = p ? &c->source : &c->target;
                const ptrdiff_t n = p ? x.m : x.n;
                ref_differences(slope, part[p], n * d, step, definition_loss, &x);
                for (int g = 0; g < SEGMENTS; g++) {
                    const rfa_leaf *leaf = &s->leaves[e * SEGMENTS + g];
                    for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
                        const ptrdiff_t row = leaf->row0 + t, at = (leaf->begin + t) * d;
                        if (p == 0) {
                            check_close("out", c->saved.out + row * E + h * d, out + at, d, unit);
                        }
                        check_close("gradient", c->dqkv + row * 3 * E + p * E + h * d, slope + at,
                                    d, bound);
                    }
                }
            }
        }
    }
}

static void cross_attention_is_its_definition(void **state)
{
    (void)state;
    const rfa_attention_options base = {.layers = 1,
                                        .width = E,
                                        .heads = H,
                                        .segments = SEGMENTS,
                                        .seed = 3,
                                        .projections = D,
                                        .pool = 4,
                                        .redraw = 1,
                                        .bandwidth = 1};
    rfa_attention_options kinds[4] = {base, base, base, base};
    kinds[0].unit_norm = true;
    kinds[1].bandwidth_kind = RFA_BANDWIDTH_FIXED;
    kinds[1].kind = RFA_ATTENTION_PERFORMER;
    kinds[1].map = RFA_MAP_POSITIVE;
    kinds[2].kind = RFA_ATTENTION_ELU;
    kinds[2].map = RFA_MAP_ELU;
    kinds[3].kind = RFA_ATTENTION_SOFTMAX;
    for (int i = 0; i < 4; i++) {
        cross many, one;
        cross_create(&many, test_world.comm, &kinds[i]);
        cross_create(&one, MPI_COMM_SELF, &kinds[i]);
        cross_run(&many);
        cross_run(&one);
        check(same_rows(&many, &one, false, many.saved.out, one.saved.out, E, 0, E));
        check(same_rows(&many, &one, false, many.dqkv, one.dqkv, 3 * E, 0, E));
        check(same_rows(&many, &one, true, many.dqkv, one.dqkv, 3 * E, E, 3 * E));
        check_definition(&one);
        cross_destroy(&many);
        cross_destroy(&one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cross_attention_is_its_definition)};
    return test_main(tests);
}
