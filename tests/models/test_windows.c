// Ranks: 1 2 3 4
//
// A sequence that is walked window by window has the loss and the gradient of the whole sequence,
// on any number of ranks with the same bits; so have models that keep less and compute it again.
#include "layers/head.h"
#include "models/world.h"

#include <math.h>
#include <string.h>

static const ptrdiff_t lengths[] = {150, 37, 1, 96};
enum { EXAMPLES = 4, STEP = 3 };

typedef struct {
    double loss;
    rfa_real *gradient, *logits;
    ptrdiff_t size;
} outcome;

static outcome
run(MPI_Comm comm, const rfa_classifier_options *options, ptrdiff_t span, int64_t step)
{
    world w;
    const int examples = EXAMPLES / options->documents;
    world_create_windows(&w, comm, options, RFA_EXCHANGE_AUTO, lengths, examples, span);
    outcome o = {.size = rfa_classifier_table(w.model)->size};
    o.gradient = test_reals(o.size);
    o.logits = test_reals(EXAMPLES * WORLD_CLASSES);
    world_loss(&w, step, true); // twice: nothing may be left of the first time
    o.loss = world_loss(&w, step, true);
    memcpy(o.gradient, w.gradient, (size_t)o.size * sizeof *o.gradient);
    memcpy(o.logits, rfa_classifier_logits(w.model),
           (size_t)examples * WORLD_CLASSES * sizeof *o.logits);
    world_destroy(&w);
    return o;
}

static void outcome_destroy(outcome *o)
{
    rfa_free(o->gradient);
    rfa_free(o->logits);
}

static bool same(const outcome *a, const outcome *b)
{
    return a->loss == b->loss &&
           memcmp(a->gradient, b->gradient, (size_t)a->size * sizeof *a->gradient) == 0;
}

// The largest difference of two gradients over the norm of one.
static double distance(const outcome *a, const outcome *b)
{
    double most = 0, square = 0;
    for (ptrdiff_t i = 0; i < a->size; i++) {
        most = fmax(most, fabs((double)a->gradient[i] - (double)b->gradient[i]));
        square += (double)a->gradient[i] * (double)a->gradient[i];
    }
    return most / sqrt(square);
}

// Fills options with the variant, pooled at the mean or the last token; false where it can't be
// walked in windows.
static bool
can_be_walked(rfa_classifier_options *options, const world_variant *variant, rfa_pooling pooling)
{
    const rfa_attention_options *a = &variant->attention;
    const bool linear = a->kind == RFA_ATTENTION_RFA || a->kind == RFA_ATTENTION_ELU ||
                        a->kind == RFA_ATTENTION_PERFORMER;
    *options = world_variant_options(variant);
    options->pooling = pooling;
    return linear && a->causal && a->direction == RFA_FORWARD;
}

static void windows_are_the_whole(void **state)
{
    (void)state;
    // Rounding of float states, features and read-outs over the 150 tokens of two layers; in double
    // the bound that windows are promised to keep.
    const double bound = sizeof(rfa_real) == 8 ? 1e-10 : 150 * test_eps();
    int walked = 0;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options;
        if (!can_be_walked(&options, variant, walked % 2 ? RFA_POOLING_LAST : RFA_POOLING_MEAN)) {
            continue;
        }
        options.documents = 1 + walked / 2 % 2;
        options.match = RFA_MATCH_NLI;
        walked++;
        outcome whole = run(test_world.comm, &options, 0, STEP);
        static const ptrdiff_t spans[] = {16, 64, 80, 160};
        for (int s = 0; s < 4; s++) {
            outcome parts = run(test_world.comm, &options, spans[s], STEP);
            const double off = distance(&whole, &parts);
            if (!(off <= bound && fabs(whole.loss - parts.loss) <= bound * whole.loss)) {
                print_error("%s, windows of %td: gradient off by %.2g, loss %.17g for %.17g\n",
                            variant->name, spans[s], off, parts.loss, whole.loss);
            }
            check(off <= bound && fabs(whole.loss - parts.loss) <= bound * whole.loss);
            check(spans[s] < lengths[0] || same(&whole, &parts)); // one window changes nothing
            outcome alone = run(MPI_COMM_SELF, &options, spans[s], STEP);
            check(same(&alone, &parts));
            outcome_destroy(&alone);
            outcome_destroy(&parts);
        }
        outcome_destroy(&whole);
    }
    check(walked >= 5);
}

static void evaluations_too(void **state)
{
    (void)state;
    rfa_classifier_options options = world_options(RFA_ATTENTION_RFA, true, RFA_POOLING_MEAN);
    outcome whole = run(test_world.comm, &options, 0, 0),
            parts = run(test_world.comm, &options, 48, 0);
    for (ptrdiff_t i = 0; i < EXAMPLES * WORLD_CLASSES; i++) {
        check(fabs((double)(whole.logits[i] - parts.logits[i])) <= 150 * test_eps());
    }
    outcome_destroy(&parts);
    outcome_destroy(&whole);
}

// The embedding's gradient of one token id.
static double moved(const outcome *a, const outcome *b, const world *w, int id)
{
    const ptrdiff_t E = w->model->options.width;
    double most = 0;
    for (ptrdiff_t j = 0; j < E; j++) {
        const ptrdiff_t at = w->model->at.tokens + id * E + j;
        most = fmax(most, fabs((double)a->gradient[at] - (double)b->gradient[at]));
    }
    return most;
}

// Detached, a token's gradient lacks what comes through later windows: nothing for those of the
// last window, something for those before; the loss is the same.
static void detached_adjoints_stop_at_borders(void **state)
{
    (void)state;
    enum { EARLY = 3, LATE = 4, SPAN = 64, LENGTH = 128 };
    const ptrdiff_t length[] = {LENGTH};
    outcome out[2];
    rfa_classifier_options options = world_options(RFA_ATTENTION_RFA, true, RFA_POOLING_MEAN);
    options.positions = RFA_POSITIONS_NONE;
    world w[2];
    for (int detach = 0; detach < 2; detach++) {
        options.carry = detach ? RFA_CARRY_DETACH : RFA_CARRY_EXACT;
        world *x = &w[detach];
        world_create_windows(x, test_world.comm, &options, RFA_EXCHANGE_AUTO, length, 1, SPAN);
        x->early = EARLY;
        x->late = LATE;
        out[detach].loss = world_loss(x, STEP, true);
        out[detach].gradient = x->gradient;
    }
    check(out[0].loss == out[1].loss);
    check(moved(&out[0], &out[1], &w[0], LATE) == 0);
    check(moved(&out[0], &out[1], &w[0], EARLY) > 1e-6);
    world_destroy(&w[0]);
    world_destroy(&w[1]);
}

// The loss of one window of a model that carries states, with its gradient.
static double window_loss(world *w, int window, bool gradients)
{
    enum { WINDOWS = 2 };
    world_show(w, 1, window, WINDOWS);
    check_ok(rfa_classifier_forward(w->model, &w->batch, STEP, true));
    const double loss = rfa_cross_entropy(w->dlogits, rfa_classifier_logits(w->model),
                                          WORLD_CLASSES, w->batch.label[0], 1);
    if (gradients) {
        check_ok(rfa_classifier_backward(w->model, &w->batch, w->dlogits));
        check_ok(rfa_classifier_gradients(w->model, w->gradient, &w->sequence));
    }
    return loss;
}

// Stateful, a window's logits are those of the sequence up to its end, and its gradient is that of
// its loss with the state that enters it held fixed.
static void a_carried_state_is_a_constant(void **state)
{
    (void)state;
    enum { SPAN = 64, LENGTH = 112 };
    static const ptrdiff_t length[] = {LENGTH}, begin[] = {SPAN};
    const double bound = sizeof(rfa_real) == 8 ? 1e-10 : 150 * test_eps();
    rfa_classifier_options options = world_options(RFA_ATTENTION_RFA, true, RFA_POOLING_LAST);
    options.attention.gate = RFA_GATE_LEARNED;
    world whole, first, w;
    world_create(&whole, test_world.comm, &options, RFA_EXCHANGE_AUTO, length, 1);
    world_create(&first, test_world.comm, &options, RFA_EXCHANGE_AUTO, begin, 1);
    options.carry = RFA_CARRY_STATEFUL;
    world_create_windows(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, length, 1, SPAN);
    const double wanted = world_loss(&first, STEP, true);
    check(fabs(window_loss(&w, 0, true) - wanted) <= bound * wanted);
    const ptrdiff_t size = rfa_classifier_table(w.model)->size;
    for (ptrdiff_t i = 0; i < size; i++) { // nothing was carried into the first window
        check(fabs((double)(w.gradient[i] - first.gradient[i])) <= bound);
    }
    const double both = world_loss(&whole, STEP, false);
    check(fabs(window_loss(&w, 1, true) - both) <= bound * both);
    // The second is the last one: it leaves what was carried in, so it can be run again and again.
    rfa_real *direction = test_reals(size), *values = rfa_classifier_values(w.model);
    test_fill(direction, size, 8, 1);
    double along = 0, norm = 0, losses[4];
    for (ptrdiff_t i = 0; i < size; i++) {
        along += (double)w.gradient[i] * (double)direction[i];
        norm += (double)w.gradient[i] * (double)w.gradient[i];
    }
    const double h = sizeof(rfa_real) == 8 ? 1e-6 : 1e-3;
    static const double at[] = {1, -1, 2, -2};
    for (int k = 0; k < 4; k++) {
        for (ptrdiff_t i = 0; i < size; i++) {
            values[i] += (rfa_real)(at[k] * h) * direction[i];
        }
        losses[k] = window_loss(&w, 1, false);
        for (ptrdiff_t i = 0; i < size; i++) {
            values[i] -= (rfa_real)(at[k] * h) * direction[i];
        }
    }
    const double slope = (8 * (losses[0] - losses[1]) - (losses[2] - losses[3])) / (12 * h);
    // Rounding of a loss over h, for the double build; in float only the size is looked at.
    const double off = sizeof(rfa_real) == 8 ? 1e-6 : 0.1;
    if (!(fabs(slope - along) <= off * sqrt(norm))) {
        print_error("slope %.10g, gradient %.10g, norm %.3g\n", slope, along, sqrt(norm));
    }
    check(fabs(slope - along) <= off * sqrt(norm));
    rfa_free(direction);
    world_destroy(&w);
    world_destroy(&first);
    world_destroy(&whole);
}

static void recomputation_changes_no_bit(void **state)
{
    (void)state;
    int documents = 1;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options = world_variant_options(variant);
        options.documents = documents;
        outcome kept = run(test_world.comm, &options, 0, STEP);
        options.recompute = true;
        outcome again = run(test_world.comm, &options, 0, STEP);
        if (!same(&kept, &again)) {
            print_error("%s: recomputation changes the gradient\n", variant->name);
        }
        check(same(&kept, &again));
        outcome_destroy(&again);
        outcome_destroy(&kept);
        if (can_be_walked(&options, variant, RFA_POOLING_MEAN)) {
            again = run(test_world.comm, &options, 64, STEP);
            options.recompute = false;
            kept = run(test_world.comm, &options, 64, STEP);
            check(same(&kept, &again));
            outcome_destroy(&again);
            outcome_destroy(&kept);
        }
        documents = 3 - documents;
    }
}

// Linear kinds: two exchanges a layer and step, windows two each and their hand-overs; none is
// added by recomputation.
static int64_t exchanges(const rfa_classifier_options *options, ptrdiff_t span)
{
    world w;
    world_create_windows(&w, test_world.comm, options, RFA_EXCHANGE_AUTO, lengths, 1, span);
    const int64_t before = rfa_exchange_costs(w.exchange)->calls;
    world_loss(&w, STEP, true);
    const int64_t calls = rfa_exchange_costs(w.exchange)->calls - before;
    world_destroy(&w);
    return calls;
}

static void recomputation_exchanges_nothing(void **state)
{
    (void)state;
    if (test_world.size == 1) {
        return; // nothing crosses
    }
    enum { LAYERS = 2, POOLED = 1, WINDOWS = 3 };
    for (int causal = 0; causal < 2; causal++) {
        rfa_classifier_options options = world_options(RFA_ATTENTION_RFA, causal, RFA_POOLING_MEAN);
        check(exchanges(&options, 0) == 2 * LAYERS + POOLED);
        options.recompute = true;
        check(exchanges(&options, 0) == 2 * LAYERS + POOLED);
        if (causal) {
            check(exchanges(&options, 64) == WINDOWS * 2 * LAYERS + POOLED);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_the_whole),
        cmocka_unit_test(evaluations_too),
        cmocka_unit_test(detached_adjoints_stop_at_borders),
        cmocka_unit_test(a_carried_state_is_a_constant),
        cmocka_unit_test(recomputation_changes_no_bit),
        cmocka_unit_test(recomputation_exchanges_nothing),
    };
    return test_main(tests);
}
