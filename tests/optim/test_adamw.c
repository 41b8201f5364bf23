#include "optim/adamw.h"

#include "support/support.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MATRIX = 24, VECTOR = 5, STEPS = 20 };

// A matrix [4][6] and a vector [5], with gaps behind both.
typedef struct {
    rfa_parameters table;
    ptrdiff_t matrix, vector;
    rfa_real *values, *gradient;
    rfa_adamw optimiser;
} world;

static void world_create(world *a, const rfa_adamw_options *options)
{
    *a = (world){0};
    check_ok(rfa_parameters_add(&a->table, &a->matrix, 4, 6, RFA_INIT_NORMAL, 1, "matrix"));
    check_ok(rfa_parameters_add(&a->table, &a->vector, VECTOR, 0, RFA_INIT_NORMAL, 1, "vector"));
    a->values = test_reals(a->table.size);
    a->gradient = test_reals(a->table.size);
    check_ok(rfa_parameters_init(a->values, &a->table, 5));
    check_ok(rfa_adamw_create(&a->optimiser, options, a->table.size));
}

static void world_destroy(world *a)
{
    rfa_adamw_destroy(&a->optimiser);
    rfa_adamw_destroy(&a->optimiser); // idempotent
    rfa_parameters_destroy(&a->table);
    rfa_free(a->values);
    rfa_free(a->gradient);
}

// Gradient of a step: normal numbers of length factor; element 3 is always 0.
static void fill_gradient(world *a, int step, double factor)
{
    double square = 0;
    rfa_real normals[MATRIX + VECTOR];
    test_fill(normals, MATRIX + VECTOR, 100 + (uint32_t)step, 1);
    normals[3] = 0;
    for (int i = 0; i < MATRIX + VECTOR; i++) {
        square += (double)normals[i] * (double)normals[i];
    }
    for (int i = 0; i < MATRIX + VECTOR; i++) {
        rfa_real *g = a->gradient + (i < MATRIX ? a->matrix + i : a->vector + i - MATRIX);
        *g = (rfa_real)(float)((double)normals[i] * factor / sqrt(square));
    }
}

// Algorithm 2 of Loshchilov and Hutter, with eta alpha as the rate: one number.
typedef struct {
    double x, m, v;
} scalar;

static void
ref_step(scalar *s, double g, bool decay, const rfa_adamw_options *o, int step, double rate)
{
    s->m = o->beta1 * s->m + (1 - o->beta1) * g;
    s->v = o->beta2 * s->v + (1 - o->beta2) * g * g;
    const double m_hat = s->m / (1 - pow(o->beta1, step));
    const double v_hat = s->v / (1 - pow(o->beta2, step));
    s->x -= rate * (m_hat / (sqrt(v_hat) + o->epsilon) + (decay ? o->weight_decay * s->x : 0));
}

// Twenty steps against one scalar reference for each number; the norm is half of, twice, four
// times... the clip by turns.
static void run_against_reference(rfa_adamw_options options)
{
    static const double factors[] = {0.5, 2, 1, 4, 1e-3};
    world a;
    world_create(&a, &options);
    scalar want[MATRIX + VECTOR];
    for (int i = 0; i < MATRIX + VECTOR; i++) {
        want[i] =
            (scalar){.x = (double)a.values[i < MATRIX ? a.matrix + i : a.vector + i - MATRIX]};
    }
    for (int step = 1; step <= STEPS; step++) {
        const double rate = 0.01 * step, norm = factors[step % 5];
        fill_gradient(&a, step, norm);
        const double got = rfa_adamw_step(&a.optimiser, a.values, a.gradient, &a.table, step, rate);
        check(fabs(got - norm) <= 4 * FLT_EPSILON * norm); // the gradient is one of floats
        const double shrink = options.clip > 0 && got > options.clip ? options.clip / got : 1;
        for (int i = 0; i < MATRIX + VECTOR; i++) {
            const ptrdiff_t at = i < MATRIX ? a.matrix + i : a.vector + i - MATRIX;
            ref_step(&want[i], (double)a.gradient[at] * shrink, i < MATRIX, &options, step, rate);
            // Each step rounds x, and moves it by at most about 5 rates of a few units more;
            // 1 - beta2 is a thousandth that a float has lost up to half a unit of 1 of.
            const double unit = test_eps() * (1 + 0.1 / (1 - options.beta2));
            const double bound = unit * step * (fabs(want[i].x) + 5 * rate);
            check_close("value", a.values + at, &want[i].x, 1, bound);
            check_close("moment1", a.optimiser.moment1 + at, &want[i].m, 1, 8 * test_eps() * 4);
            check_close("moment2", a.optimiser.moment2 + at, &want[i].v, 1, 8 * unit * 16);
        }
    }
    // Gaps stay 0.
    for (ptrdiff_t i = 0; i < a.table.size; i++) {
        const bool gap = (i >= a.matrix + MATRIX && i < a.vector) || i >= a.vector + VECTOR;
        check(!gap ||
              (a.values[i] == 0 && a.optimiser.moment1[i] == 0 && a.optimiser.moment2[i] == 0));
    }
    world_destroy(&a);
}

static void twenty_steps_are_the_definition(void **state)
{
    (void)state;
    const rfa_adamw_options plain = {0.9, 0.98, 1e-9, 0, 0};
    rfa_adamw_options options = plain;
    run_against_reference(options);
    options.weight_decay = 0.1;
    run_against_reference(options);
    options.clip = 1;
    run_against_reference(options);
    options.beta2 = 0.999;
    options.epsilon = 1e-6;
    run_against_reference(options);
}

// The first step moves each number by the rate against its gradient's sign, whatever its size.
static void first_step_is_the_rate(void **state)
{
    (void)state;
    const double rate = 0.25, epsilon = 1e-12;
    world a;
    world_create(&a, &(rfa_adamw_options){0.9, 0.999, epsilon, 0, 0});
    fill_gradient(&a, 1, 0.01);
    rfa_real before[MATRIX];
    memcpy(before, a.values + a.matrix, sizeof before);
    rfa_adamw_step(&a.optimiser, a.values, a.gradient, &a.table, 1, rate);
    for (int i = 0; i < MATRIX; i++) {
        const double g = (double)a.gradient[a.matrix + i];
        const double want = (double)before[i] - rate * g / (fabs(g) + epsilon);
        // 1 - beta2 in float is off by up to 60 units.
        check_close("first step", a.values + a.matrix + i, &want, 1, 64 * test_eps());
    }
    world_destroy(&a);
}

static void decay_is_one_of_matrices_alone(void **state)
{
    (void)state;
    world a;
    world_create(&a, &(rfa_adamw_options){0.9, 0.999, 1e-8, 0.5, 0});
    rfa_real before[64];
    assert_true(a.table.size <= 64);
    memcpy(before, a.values, (size_t)a.table.size * sizeof *before);
    check(rfa_adamw_step(&a.optimiser, a.values, a.gradient, &a.table, 1, 0.1) == 0); // no gradient
    for (int i = 0; i < MATRIX; i++) {
        const double want = (double)before[a.matrix + i] * (1 - 0.1 * 0.5);
        check_close("decayed", a.values + a.matrix + i, &want, 1, 2 * test_eps() * fabs(want));
        check(a.values[a.matrix + i] != before[a.matrix + i]);
    }
    for (int i = 0; i < VECTOR; i++) {
        check(a.values[a.vector + i] == before[a.vector + i]);
    }
    world_destroy(&a);
}

static void a_gradient_that_is_no_number_changes_nothing(void **state)
{
    (void)state;
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    world a;
    world_create(&a, &(rfa_adamw_options){0.9, 0.98, 1e-9, 0.1, 1});
    fill_gradient(&a, 1, 0.5);
    rfa_adamw_step(&a.optimiser, a.values, a.gradient, &a.table, 1, 0.1);
    const size_t bytes = (size_t)a.table.size * sizeof(rfa_real);
    rfa_real *kept[3] = {test_reals(a.table.size), test_reals(a.table.size),
                         test_reals(a.table.size)};
    rfa_real *const now[3] = {a.values, a.optimiser.moment1, a.optimiser.moment2};
    for (int i = 0; i < 3; i++) {
        memcpy(kept[i], now[i], bytes);
    }
    for (int b = 0; b < 3; b++) {
        for (int place = 0; place < 2; place++) {
            fill_gradient(&a, 2, 0.5);
            a.gradient[place ? a.vector + VECTOR - 1 : a.matrix] = (rfa_real)bad[b];
            const double norm =
                rfa_adamw_step(&a.optimiser, a.values, a.gradient, &a.table, 2, 0.1);
            check(!isfinite(norm));
            for (int i = 0; i < 3; i++) {
                check(memcmp(kept[i], now[i], bytes) == 0);
            }
        }
    }
    for (int i = 0; i < 3; i++) {
        rfa_free(kept[i]);
    }
    world_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(twenty_steps_are_the_definition),
        cmocka_unit_test(first_step_is_the_rate),
        cmocka_unit_test(decay_is_one_of_matrices_alone),
        cmocka_unit_test(a_gradient_that_is_no_number_changes_nothing),
    };
    return test_main(tests);
}
