#include "models/parameters.h"

#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HASH 0x684d89e262cff12du // of the initial values below, as floats

// A table with tensors of all kinds and odd sizes.
static void fill_table(rfa_parameters *table, ptrdiff_t *offset, int count)
{
    static const ptrdiff_t shapes[][2] = {{5, 7}, {3, 0}, {16, 16}, {1, 0}, {17, 1}, {4, 4}};
    for (int i = 0; i < count; i++) {
        check_ok(rfa_parameters_add(table, &offset[i], shapes[i % 6][0], shapes[i % 6][1],
                                    (rfa_init)(i % 3), 0.5 + i, "layer%d.tensor%d", i / 6, i % 6));
    }
}

static void tensors_are_disjoint_padded_and_named(void **state)
{
    (void)state;
    enum { COUNT = 200 }; // the list grows twice
    rfa_parameters table = {0};
    ptrdiff_t offset[COUNT], end = 0, learned = 0;
    fill_table(&table, offset, COUNT);
    check(table.count == COUNT);
    for (int i = 0; i < COUNT; i++) {
        const rfa_parameter *entry = &table.list[i];
        const bool vector = entry->shape[1] == 0;
        char name[64];
        snprintf(name, sizeof name, "layer%d.tensor%d", i / 6, i % 6);
        check(strcmp(entry->name, name) == 0);
        check(entry->offset == offset[i] && offset[i] == end && offset[i] % RFA_ROWS == 0);
        check(entry->count == entry->shape[0] * (vector ? 1 : entry->shape[1]));
        check(entry->decay == !vector);
        check(entry->init == (rfa_init)(i % 3) && entry->value == 0.5 + i);
        end += rfa_padded(entry->count);
        learned += entry->count;
    }
    check(table.size == end && table.learned == learned);
    rfa_parameters_destroy(&table);
    rfa_parameters_destroy(&table); // idempotent
    check(table.count == 0 && table.size == 0);
}

// FNV-1a over the values as floats.
static uint64_t hash_of(const rfa_real *values, ptrdiff_t n)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (ptrdiff_t i = 0; i < n; i++) {
        const float value = (float)values[i];
        unsigned char bytes[sizeof value];
        memcpy(bytes, &value, sizeof value);
        for (size_t b = 0; b < sizeof value; b++) {
            hash = (hash ^ bytes[b]) * 0x100000001b3u;
        }
    }
    return hash;
}

static void initial_values_follow_from_seed_and_place(void **state)
{
    (void)state;
    enum { COUNT = 12 };
    rfa_parameters table = {0}, longer = {0};
    ptrdiff_t offset[COUNT + 6];
    fill_table(&longer, offset, COUNT + 6);
    fill_table(&table, offset, COUNT);
    rfa_real *a = test_reals(table.size), *b = test_reals(longer.size), *c = test_reals(table.size);
    memset(a, 0x55, (size_t)table.size * sizeof *a); // gaps are written too
    check_ok(rfa_parameters_init(a, &table, 1));
    check_ok(rfa_parameters_init(b, &longer, 1));
    check_ok(rfa_parameters_init(c, &table, 2));
    check(memcmp(a, b, (size_t)table.size * sizeof *a) == 0);
    // Both builds hold these floats; the number is of glibc's log, sin and cos.
    if (hash_of(a, table.size) != HASH) {
        print_error("hash 0x%016llx\n", (unsigned long long)hash_of(a, table.size));
    }
    check(hash_of(a, table.size) == HASH);
    for (int i = 0; i < COUNT; i++) {
        const rfa_parameter *entry = &table.list[i];
        const rfa_real *x = a + entry->offset;
        for (ptrdiff_t e = 0; e < rfa_padded(entry->count); e++) {
            check(x[e] == (rfa_real)(float)x[e]);
            check(e < entry->count || x[e] == 0);
            const bool drawn = entry->init != RFA_INIT_CONSTANT && e < entry->count;
            check(drawn == (x[e] != c[entry->offset + e]));
        }
        // The same shape and kind elsewhere in the table has other values.
        const ptrdiff_t other = table.list[(i + 6) % COUNT].offset;
        check(entry->init == RFA_INIT_CONSTANT ||
              (double)x[0] / entry->value != (double)a[other] / table.list[(i + 6) % COUNT].value);
    }
    rfa_free(a);
    rfa_free(b);
    rfa_free(c);
    rfa_parameters_destroy(&table);
    rfa_parameters_destroy(&longer);
}

// Means, variances and fourth moments to 5 standard errors (once in 1.7 million each).
static void initial_values_have_their_distribution(void **state)
{
    (void)state;
    enum { N = 40000 };
    const double value = 0.02;
    static const struct {
        rfa_init init;
        double variance, fourth, eighth; // moments over value^2, ^4, ^8
    } kinds[] = {{RFA_INIT_NORMAL, 1, 3, 105}, {RFA_INIT_UNIFORM, 1.0 / 3, 1.0 / 5, 1.0 / 9}};
    for (int k = 0; k < 2; k++) {
        rfa_parameters table = {0};
        ptrdiff_t at;
        check_ok(rfa_parameters_add(&table, &at, 200, 200, kinds[k].init, value, "x"));
        rfa_real *x = test_reals(table.size);
        check_ok(rfa_parameters_init(x, &table, 3));
        double sum[5] = {0}, most = 0;
        for (int i = 0; i < N; i++) {
            const double y = (double)x[i] / value;
            sum[1] += y / N;
            sum[2] += y * y / N;
            sum[4] += y * y * y * y / N;
            most = fmax(most, fabs(y));
        }
        const double v = kinds[k].variance, f = kinds[k].fourth;
        check(fabs(sum[1]) <= 5 * sqrt(v / N));
        check(fabs(sum[2] - v) <= 5 * sqrt((f - v * v) / N));
        check(fabs(sum[4] - f) <= 5 * sqrt((kinds[k].eighth - f * f) / N));
        check(kinds[k].init == RFA_INIT_UNIFORM ? most <= 1 + 1e-6 && most > 0.999 : most > 3.5);
        rfa_free(x);
        rfa_parameters_destroy(&table);
    }
}

static void constants(void **state)
{
    (void)state;
    rfa_parameters table = {0};
    ptrdiff_t one, zero;
    check_ok(rfa_parameters_add(&table, &one, 3, 0, RFA_INIT_CONSTANT, 1, "one"));
    check_ok(rfa_parameters_add(&table, &zero, 2, 2, RFA_INIT_CONSTANT, 0, "zero"));
    rfa_real *x = test_reals(table.size);
    x[zero] = 9;
    check_ok(rfa_parameters_init(x, &table, 3));
    for (ptrdiff_t i = 0; i < table.size; i++) {
        check(x[i] == (i >= one && i < one + 3));
    }
    rfa_free(x);
    rfa_parameters_destroy(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_disjoint_padded_and_named),
        cmocka_unit_test(initial_values_follow_from_seed_and_place),
        cmocka_unit_test(initial_values_have_their_distribution),
        cmocka_unit_test(constants),
    };
    return test_main(tests);
}
