// Ranks: 1 4
// Precision: f64
//
// Every parameter tensor of the model against central differences, in double: each attention kind,
// each direction, each pooling, dropout on; one rank and several.
#include "models/world.h"

#include <math.h>
#include <string.h>

static const ptrdiff_t lengths[] = {150, 37, 1, 16};
enum { EXAMPLES = 4, STEP = 3 };

static double loss_at(world *w, const rfa_parameter *p, const rfa_real *direction, double move)
{
    rfa_real *values = rfa_classifier_values(w->model) + p->offset;
    for (ptrdiff_t i = 0; i < p->count; i++) {
        values[i] += (rfa_real)move * direction[i];
    }
    const double loss = world_loss(w, STEP, false);
    for (ptrdiff_t i = 0; i < p->count; i++) {
        values[i] -= (rfa_real)move * direction[i];
    }
    return loss;
}

// The slope of the loss along a direction in tensor p: central differences of fourth order.
static double slope(world *w, const rfa_parameter *p, const rfa_real *direction, double h)
{
    const double near = loss_at(w, p, direction, h) - loss_at(w, p, direction, -h);
    const double far = loss_at(w, p, direction, 2 * h) - loss_at(w, p, direction, -2 * h);
    return (8 * near - far) / (12 * h);
}

static void check_model(const char *name, const rfa_classifier_options *options, ptrdiff_t span)
{
    world w;
    world_create_windows(&w, test_world.comm, options, RFA_EXCHANGE_AUTO, lengths,
                         EXAMPLES / options->documents, span);
    // Away from the initial values, where biases and shifts are alike for all channels.
    const rfa_parameters *table = rfa_classifier_table(w.model);
    rfa_real *noise = test_reals(table->size);
    test_fill(noise, table->size, 5, 0.1);
    for (ptrdiff_t i = 0; i < table->size; i++) {
        rfa_classifier_values(w.model)[i] += noise[i];
    }
    world_loss(&w, STEP, true);
    // Where the floor acts on weighted keys, the largest weight counts as a constant.
    check(rfa_classifier_guards(w.model) == 0 || options->attention.map == RFA_MAP_ARCCOS);
    for (int p = 0; p < table->count; p++) {
        const rfa_parameter *entry = &table->list[p];
        test_fill(noise, entry->count, 11 + (uint32_t)p, 1);
        double along = 0, norm = 0;
        for (ptrdiff_t i = 0; i < entry->count; i++) {
            along += w.gradient[entry->offset + i] * noise[i];
            norm += w.gradient[entry->offset + i] * w.gradient[entry->offset + i];
        }
        // Truncation h^4 and rounding eps / h, over the size of a typical slope. A kink of the
        // head's relu may lie within h; arccos features have as many as h is long.
        const bool kinks = options->attention.map == RFA_MAP_ARCCOS;
        const double bound = (kinks ? 4e-6 : 2e-7) * (sqrt(norm) + 1e-3);
        double h = kinks ? 1e-8 : 1e-5, measured = slope(&w, entry, noise, h);
        while (fabs(along - measured) > bound && h > 2e-7) {
            h /= 8;
            measured = slope(&w, entry, noise, h);
        }
        if (!(fabs(along - measured) <= bound)) {
            print_error("%s, %s: gradient %.10g, difference quotient %.10g, bound %.2g\n", name,
                        entry->name, along, measured, bound);
        }
        check(fabs(along - measured) <= bound);
        check(norm > 0); // a tensor without influence would pass any comparison
    }
    rfa_free(noise);
    world_destroy(&w);
}

static void every_kind_has_the_slopes_of_its_loss(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        const rfa_classifier_options options = world_variant_options(variant);
        if (options.attention.map != RFA_MAP_OPRF) { // its shape is a constant to the backward
            check_model(variant->name, &options, 0);
        }
    }
}

static void other_parts_have_them_too(void **state)
{
    (void)state;
    rfa_classifier_options options = world_options(RFA_ATTENTION_RFA, false, RFA_POOLING_MEAN);
    options.positions = RFA_POSITIONS_SINUSOIDAL;
    check_model("mean, sinusoids", &options, 0);
    options = world_options(RFA_ATTENTION_RFA, true, RFA_POOLING_MEAN);
    options.positions = RFA_POSITIONS_NONE;
    options.dropout = 0;
    check_model("no positions, no dropout", &options, 0);
    options = world_options(RFA_ATTENTION_RFA, true, RFA_POOLING_LAST);
    options.attention.gate = RFA_GATE_LEARNED;
    check_model("last token", &options, 0);
    check_model("last token, windows", &options, 48);
    options.documents = 2;
    options.match = RFA_MATCH_NLI;
    check_model("pairs, windows", &options, 48);
}

// Heads of pairs and with another layer.
static void heads_have_them_too(void **state)
{
    (void)state;
    static const rfa_pooling poolings[] = {RFA_POOLING_MEAN, RFA_POOLING_FIRST, RFA_POOLING_LAST,
                                           RFA_POOLING_PADDED_MEAN};
    for (int i = 0; i < 8; i++) {
        rfa_classifier_options options = world_options(
            i < 4 ? RFA_ATTENTION_RFA : RFA_ATTENTION_SOFTMAX, false, poolings[i % 4]);
        options.documents = 2;
        options.match = i % 2 ? RFA_MATCH_NLI : RFA_MATCH_CONCAT;
        options.head2 = i % 3 ? 0 : 20;
        check_model("pairs", &options, 0);
    }
    rfa_classifier_options options = world_options(RFA_ATTENTION_ELU, true, RFA_POOLING_LAST);
    options.head2 = 20;
    options.vocabulary = 32; // more rows than ids
    check_model("two hidden layers", &options, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_the_slopes_of_its_loss),
        cmocka_unit_test(other_parts_have_them_too),
        cmocka_unit_test(heads_have_them_too),
    };
    return test_main(tests);
}
