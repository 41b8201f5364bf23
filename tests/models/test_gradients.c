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

static void check_model(const rfa_classifier_options *options)
{
    world w;
    world_create(&w, test_world.comm, options, RFA_EXCHANGE_AUTO, lengths, EXAMPLES);
    // Away from the initial values, where biases and shifts are alike for all channels.
    const rfa_parameters *table = rfa_classifier_table(w.model);
    rfa_real *noise = test_reals(table->size);
    test_fill(noise, table->size, 5, 0.1);
    for (ptrdiff_t i = 0; i < table->size; i++) {
        rfa_classifier_values(w.model)[i] += noise[i];
    }
    world_loss(&w, STEP, true);
    for (int p = 0; p < table->count; p++) {
        const rfa_parameter *entry = &table->list[p];
        test_fill(noise, entry->count, 11 + (uint32_t)p, 1);
        double along = 0, norm = 0;
        for (ptrdiff_t i = 0; i < entry->count; i++) {
            along += w.gradient[entry->offset + i] * noise[i];
            norm += w.gradient[entry->offset + i] * w.gradient[entry->offset + i];
        }
        const double measured = slope(&w, entry, noise, 1e-5);
        // Truncation h^4 and rounding eps / h, over the size of a typical slope.
        const double bound = 2e-7 * (sqrt(norm) + 1e-3);
        if (!(fabs(along - measured) <= bound)) {
            print_error("%s: gradient %.10g, difference quotient %.10g, bound %.2g\n", entry->name,
                        along, measured, bound);
        }
        check(fabs(along - measured) <= bound);
        check(norm > 0); // a tensor without influence would pass any comparison
    }
    rfa_free(noise);
    world_destroy(&w);
}

static void test_rfa(void **state)
{
    (void)state;
    rfa_classifier_options options = world_options(RFA_ATTENTION_RFA, false, RFA_POOLING_FIRST);
    check_model(&options);
    options.pooling = RFA_POOLING_MEAN;
    options.positions = RFA_POSITIONS_SINUSOIDAL;
    check_model(&options);
}

static void test_rfa_causal(void **state)
{
    (void)state;
    rfa_classifier_options options = world_options(RFA_ATTENTION_RFA, true, RFA_POOLING_MEAN);
    check_model(&options);
    options.positions = RFA_POSITIONS_NONE;
    options.dropout = 0;
    check_model(&options);
}

static void test_softmax(void **state)
{
    (void)state;
    rfa_classifier_options options = world_options(RFA_ATTENTION_SOFTMAX, false, RFA_POOLING_FIRST);
    check_model(&options);
    options.causal = true;
    options.pooling = RFA_POOLING_MEAN;
    check_model(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfa),
        cmocka_unit_test(test_rfa_causal),
        cmocka_unit_test(test_softmax),
    };
    return test_main(tests);
}
