// Ranks: 1 2 3 4
// Precision: f64
//
// What the program counts as sent in a training step, layer by layer, forward and backward, against
// the table in layers/attention_layer.h and the costs of each exchange in exchange/states.h.
#include "models/world.h"

#include "exchange/halo.h"
#include "layers/attention_eva.h"

static const ptrdiff_t lengths[] = {300, 17, 1, 128, 129, 96};
enum { EXAMPLES = 6, G = WORLD_SEGMENTS };

// Nodes of the tree over [lo, hi) that lie in [begin, end) while their parents do not.
static int subtrees(int lo, int hi, int begin, int end)
{
    if (end <= lo || hi <= begin) {
        return 0;
    }
    const int mid = (lo + hi) / 2;
    return begin <= lo && hi <= end ? 1
                                    : subtrees(lo, mid, begin, end) + subtrees(mid, hi, begin, end);
}

static int roots_of(int rank)
{
    const int P = test_world.size;
    return subtrees(0, G, rfa_part_begin(G, P, rank), rfa_part_begin(G, P, rank + 1));
}

// One exchange of n numbers in elements of unit.
static void add_exchange(
    rfa_exchange_cost *cost, const world *w, rfa_exchange_kind kind, ptrdiff_t n, ptrdiff_t unit)
{
    const int P = test_world.size, r = test_world.rank;
    if (P == 1) {
        return;
    }
    cost->calls++;
    if (unit == 1 && rfa_exchange_choice(w->exchange, kind) == RFA_EXCHANGE_EXSCAN) {
        const bool sends = kind == RFA_PREFIX ? r < P - 1 : r > 0;
        cost->messages += sends;
        cost->bytes_sent += sends * n * 8;
        return;
    }
    int all = 0;
    for (int p = 0; p < P; p++) {
        all += roots_of(p);
    }
    const ptrdiff_t mine = (n / unit * (r + 1) / P - n / unit * r / P) * unit;
    const ptrdiff_t others = kind == RFA_TOTAL ? P - 1 : all - roots_of(r);
    cost->messages += 2 * (int64_t)(P - 1);
    cost->bytes_sent += 8 * (roots_of(r) * (n - mine) + others * mine);
}

// One message to each other rank with the given numbers of rfa_real and of double in all.
static void add_messages(rfa_exchange_cost *cost, ptrdiff_t reals, ptrdiff_t doubles)
{
    const int P = test_world.size;
    cost->calls += P > 1;
    cost->messages += P - 1;
    cost->bytes_sent += reals * (ptrdiff_t)sizeof(rfa_real) + doubles * 8;
}

static int owner(ptrdiff_t length, ptrdiff_t token, int *segment)
{
    int g = 0, p = 0;
    while (rfa_segment_begin(length, G, g + 1) <= token) {
        g++;
    }
    while (rfa_part_begin(G, test_world.size, p + 1) <= g) {
        p++;
    }
    *segment = g;
    return p;
}

// Tokens that windows of other ranks' segments reach in this rank's (given), or the other way.
static ptrdiff_t reached(const rfa_halo *halo, bool given)
{
    const int r = test_world.rank;
    ptrdiff_t count = 0;
    for (int e = 0; e < EXAMPLES; e++) {
        for (int g = 0; g < G; g++) {
            const rfa_halo_reach reach = rfa_halo_reach_of(halo, e, g);
            for (ptrdiff_t t = reach.begin; t < reach.end; t++) {
                int reader = 0, unused = 0;
                while (rfa_part_begin(G, test_world.size, reader + 1) <= g) {
                    reader++;
                }
                const int holder = owner(lengths[e], t, &unused);
                count += holder != reader && (given ? holder : reader) == r;
            }
        }
    }
    return count;
}

static ptrdiff_t features(const rfa_attention_options *o)
{
    switch (o->map) {
    case RFA_MAP_GAUSSIAN: return 2 * o->projections;
    case RFA_MAP_ELU: return o->width / o->heads;
    default: return o->projections;
    }
}

// The linear kinds: B H (2 + F (d + 1)) numbers a direction; whether they are scaled elements.
static void
linear(rfa_exchange_cost *cost, const world *w, const rfa_attention_options *o, bool backward)
{
    const ptrdiff_t H = o->heads, d = o->width / H, state = 2 + features(o) * (d + 1);
    const bool positive = o->map == RFA_MAP_POSITIVE || o->map == RFA_MAP_OPRF;
    const bool weighted = o->gate != RFA_GATE_NONE || positive ||
                          ((o->map == RFA_MAP_GAUSSIAN || o->map == RFA_MAP_ARCCOS) &&
                           o->kind == RFA_ATTENTION_RFA && !o->unit_norm);
    const ptrdiff_t unit = weighted ? state : 1;
    if (o->map == RFA_MAP_OPRF && !backward) {
        add_exchange(cost, w, RFA_TOTAL, EXAMPLES * H * (2 + 2 * d), 1);
    }
    if (!o->causal) {
        add_exchange(cost, w, RFA_TOTAL, EXAMPLES * H * state, backward ? 1 : unit);
        return;
    }
    const ptrdiff_t forward = o->direction == RFA_FORWARD   ? H
                              : o->direction == RFA_REVERSE ? 0
                                                            : (H + 1) / 2;
    if (forward > 0) {
        add_exchange(cost, w, backward ? RFA_SUFFIX : RFA_PREFIX, EXAMPLES * forward * state, unit);
    }
    if (forward < H) {
        add_exchange(cost, w, backward ? RFA_PREFIX : RFA_SUFFIX, EXAMPLES * (H - forward) * state,
                     unit);
    }
}

static void
gathered(rfa_exchange_cost *cost, const world *w, const rfa_attention_options *o, bool backward)
{
    const int P = test_world.size, r = test_world.rank;
    for (int e = 0; e < EXAMPLES; e++) {
        ptrdiff_t rows = 0, all = 0;
        for (int g = 0; g < G; g++) {
            const ptrdiff_t own = rfa_padded(rfa_segment_begin(lengths[e], G, g + 1) -
                                             rfa_segment_begin(lengths[e], G, g));
            const bool mine = rfa_part_begin(G, P, r) <= g && g < rfa_part_begin(G, P, r + 1);
            rows += mine ? own : 0;
            all += own;
        }
        add_messages(cost, rows * 2 * o->width * (P - 1), 0);
        if (backward) {
            add_exchange(cost, w, RFA_TOTAL, all * 2 * o->width, 1);
        }
    }
}

static void
lara(rfa_exchange_cost *cost, const world *w, const rfa_attention_options *o, bool backward)
{
    const ptrdiff_t B = EXAMPLES, E = o->width, H = o->heads, d = E / H, C = o->landmarks;
    const ptrdiff_t J = C * o->draws;
    const bool specific = o->weights == RFA_WEIGHTS_SPECIFIC;
    if (!backward) {
        add_exchange(cost, w, RFA_TOTAL, B * C * 2 * E, 1);
        add_exchange(cost, w, RFA_TOTAL, B * H * J * (d + 3), d + 3);
    } else {
        add_exchange(cost, w, RFA_TOTAL, B * H * (J * (2 * d + 1) + (specific ? J + C * d : 0)), 1);
        add_exchange(cost, w, RFA_TOTAL, B * H * J * d, 1);
    }
}

static void
eva(rfa_exchange_cost *cost, const world *w, const rfa_attention_options *o, bool backward)
{
    const rfa_eva shape = rfa_eva_layer_shape(o);
    const ptrdiff_t B = EXAMPLES, E = o->width, H = o->heads, C = shape.chunks;
    const rfa_halo halo = {lengths, EXAMPLES, G, shape.window, !o->causal};
    add_messages(cost, reached(&halo, true) * 2 * E, 0);
    add_exchange(cost, w, RFA_TOTAL, B * C * 2 * E, 1);
    if (backward) {
        add_messages(cost, 0, reached(&halo, false) * 2 * E);
        add_exchange(cost, w, RFA_TOTAL, B * C * E, 1);
    } else {
        add_exchange(cost, w, RFA_TOTAL, B * H * C * (E / H + 3), E / H + 3);
    }
}

static bool is_linear(const rfa_attention_options *o)
{
    return o->kind == RFA_ATTENTION_RFA || o->kind == RFA_ATTENTION_ELU ||
           o->kind == RFA_ATTENTION_PERFORMER;
}

static rfa_exchange_cost expected(const world *w, bool backward)
{
    const rfa_attention_options *o = &w->model->attention.options;
    rfa_exchange_cost cost = {0};
    switch (o->kind) {
    case RFA_ATTENTION_SOFTMAX:
    case RFA_ATTENTION_RA: gathered(&cost, w, o, backward); break;
    case RFA_ATTENTION_LARA: lara(&cost, w, o, backward); break;
    case RFA_ATTENTION_EVA: eva(&cost, w, o, backward); break;
    default: linear(&cost, w, o, backward); break;
    }
    return cost;
}

static bool check_layer(const char *name, const world *w, ptrdiff_t layer, bool backward, int steps)
{
    const rfa_exchange_cost *got = rfa_attention_cost(&w->model->attention, layer, backward);
    const rfa_exchange_cost want = expected(w, backward);
    const bool good = got->calls == steps * want.calls && got->messages == steps * want.messages &&
                      got->bytes_sent == steps * want.bytes_sent &&
                      (want.calls > 0 ? got->seconds > 0 : got->seconds >= 0);
    if (!good) {
        print_error("rank %d: %s, layer %td, %s: %lld calls, %lld messages, %lld bytes; expected "
                    "%lld, %lld, %lld a step in %d steps\n",
                    test_world.rank, name, layer, backward ? "backward" : "forward",
                    (long long)got->calls, (long long)got->messages, (long long)got->bytes_sent,
                    (long long)want.calls, (long long)want.messages, (long long)want.bytes_sent,
                    steps);
    }
    return good;
}

// All layers, both directions, and that nothing else crosses in a step than the pooled vectors.
static void check_step(const char *name,
                       const rfa_classifier_options *options,
                       rfa_exchange_algorithm algorithm,
                       int steps)
{
    world w;
    world_create(&w, test_world.comm, options, algorithm, lengths, EXAMPLES);
    for (int step = 1; step <= steps; step++) {
        world_loss(&w, step, true);
    }
    rfa_exchange_cost sum = {0};
    add_exchange(&sum, &w, RFA_TOTAL, EXAMPLES * options->width, 1); // pooled
    bool good = true;
    for (int backward = 0; backward < 2; backward++) {
        const rfa_exchange_cost layer = expected(&w, backward);
        for (ptrdiff_t l = 0; l < options->layers; l++) {
            good &= check_layer(name, &w, l, backward, steps);
            sum.calls += layer.calls;
            sum.messages += layer.messages;
            sum.bytes_sent += layer.bytes_sent;
        }
    }
    check(good);
    const rfa_exchange_cost *a = rfa_exchange_costs(w.exchange);
    const rfa_exchange_cost b = rfa_classifier_gather_cost(w.model);
    check(a->calls + b.calls == steps * sum.calls);
    check(a->messages + b.messages == steps * sum.messages);
    check(a->bytes_sent + b.bytes_sent == steps * sum.bytes_sent);
    world_destroy(&w);
}

static void each_kind_sends_what_its_table_says(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        const rfa_classifier_options options = world_variant_options(variant);
        check_step(variant->name, &options, RFA_EXCHANGE_AUTO, 1);
        if (is_linear(&options.attention)) {
            check_step(variant->name, &options, RFA_EXCHANGE_TRANSPOSED, 1);
        }
    }
}

// One forward and one backward a layer and step, also when blocks are run again for the backward.
static void linear_kinds_exchange_twice(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options = world_variant_options(variant);
        const rfa_attention_options *o = &options.attention;
        if (!is_linear(o) || o->map == RFA_MAP_OPRF || o->direction == RFA_BOTH) {
            continue; // oprf sends its statistics too, both directions are two halves
        }
        enum { STEPS = 3 };
        options.recompute = !o->causal || o->direction == RFA_REVERSE;
        world w;
        world_create(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, EXAMPLES);
        for (int step = 1; step <= STEPS; step++) {
            world_loss(&w, step, true);
        }
        int64_t calls = 0, least = STEPS, most = 0;
        for (ptrdiff_t i = 0; i < 2 * options.layers; i++) {
            const int64_t n = rfa_attention_cost(&w.model->attention, i / 2, i % 2)->calls;
            calls += n;
            least = n < least ? n : least;
            most = n > most ? n : most;
        }
        const int64_t each = test_world.size > 1 ? STEPS : 0;
        check(least == each && most == each && calls == 2 * options.layers * each);
        world_destroy(&w);
        check_step(variant->name, &options, RFA_EXCHANGE_AUTO, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_sends_what_its_table_says),
        cmocka_unit_test(linear_kinds_exchange_twice),
    };
    return test_main(tests);
}
