// Ranks: 1 2 3 4 5 8
//
// Scaled elements: prefixes and suffixes through decays, and totals, against their definition; the
// same bits on any number of ranks; forced exscan, an operation of our own that does not commute,
// within rounding; strides and odd sizes.
#include "exchange/element.h"
#include "exchange/partition.h"
#include "exchange/states.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { SEGMENTS = 16, UNITS = 5, UNIT = 7, SIZE = UNITS * UNIT, STRIDE = SIZE + 3 };

// Leaf g: scales far apart, some elements empty, decays that reach nothing.
static void fill(double *row, int g, rfa_exchange_kind kind)
{
    for (int e = 0; e < UNITS; e++) {
        double *element = row + e * UNIT;
        const bool empty = (g + e) % 5 == 2;
        element[0] = empty ? -INFINITY : 40 * sin(3.1 * g + e);
        element[1] = kind == RFA_TOTAL ? 0 : -0.3 * (1 + cos(1.7 * g + e)) - (g == 9 ? 1e3 : 0);
        for (int i = RFA_ELEMENT_HEADER; i < UNIT; i++) {
            element[i] = empty ? 0 : cos(0.7 * g + 1.9 * i + 5 * e);
        }
    }
}

// The definition: a reader beside leaf `at` sees leaf g through the decays of those between.
static void define(double *want, int at, rfa_exchange_kind kind)
{
    static double leaf[SEGMENTS][SIZE];
    rfa_element_clear(want, UNITS, UNIT);
    for (int g = 0; g < SEGMENTS; g++) {
        fill(leaf[g], g, kind);
    }
    for (int e = 0; e < UNITS; e++) {
        double *out = want + e * UNIT, scale[SEGMENTS];
        for (int g = 0; g < SEGMENTS; g++) {
            const bool seen = kind == RFA_TOTAL || (kind == RFA_PREFIX ? g < at : g > at);
            scale[g] = seen ? leaf[g][e * UNIT] : -INFINITY;
            for (int j = 0; seen && j < SEGMENTS; j++) {
                const bool between = kind == RFA_PREFIX ? j > g && j < at : j < g && j > at;
                scale[g] += kind != RFA_TOTAL && between ? leaf[j][e * UNIT + 1] : 0;
            }
            out[1] += seen ? leaf[g][e * UNIT + 1] : 0;
            out[0] = fmax(out[0], scale[g]);
        }
        for (int g = 0; g < SEGMENTS; g++) {
            for (int i = RFA_ELEMENT_HEADER; i < UNIT && !isinf(scale[g]); i++) {
                out[i] += exp(scale[g] - out[0]) * leaf[g][e * UNIT + i];
            }
        }
    }
}

static bool close(const double *got, const double *want)
{
    bool good = true;
    for (int i = 0; i < SIZE; i++) {
        good = good && (got[i] == want[i] || fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i])));
    }
    return good;
}

// Runs a kind on comm; own [own segments][STRIDE].
static void run(double *own, const rfa_comm *comm, rfa_exchange_algorithm algorithm, int kind)
{
    rfa_exchange *exchange = NULL;
    const int first = rfa_part_begin(SEGMENTS, comm->size, comm->rank);
    const int end = rfa_part_begin(SEGMENTS, comm->size, comm->rank + 1);
    for (int g = first; g < end; g++) {
        fill(own + (g - first) * STRIDE, g, (rfa_exchange_kind)kind);
        for (int i = SIZE; i < STRIDE; i++) {
            own[(g - first) * STRIDE + i] = 123;
        }
    }
    check_ok(rfa_exchange_create(&exchange, comm, SEGMENTS, algorithm));
    check_ok(rfa_exchange_rows_run(exchange, (rfa_exchange_kind)kind, own,
                                   (rfa_exchange_rows){SIZE, STRIDE, UNIT}));
    rfa_exchange_destroy(&exchange);
}

static void elements_are_their_definition(void **state)
{
    (void)state;
    rfa_comm world, self;
    rfa_comm_create(&world, test_world.comm);
    rfa_comm_create(&self, MPI_COMM_SELF);
    double *own = test_doubles(SEGMENTS * STRIDE), *whole = test_doubles(SEGMENTS * STRIDE);
    const int first = rfa_part_begin(SEGMENTS, world.size, world.rank);
    const int end = rfa_part_begin(SEGMENTS, world.size, world.rank + 1);
    for (int kind = 0; kind < 3; kind++) {
        const bool total = kind == RFA_TOTAL;
        run(whole, &self, RFA_EXCHANGE_AUTO, kind);
        for (int algorithm = 0; algorithm < 3; algorithm++) {
            bool right = true, alike = true, kept = true; // of all rows: ranks have unlike many
            run(own, &world, (rfa_exchange_algorithm)algorithm, kind);
            for (int g = first; g < (total ? first + 1 : end); g++) {
                const double *row = own + (g - first) * STRIDE;
                const double *alone = whole + (total ? 0 : g) * STRIDE;
                double want[SIZE];
                define(want, g, (rfa_exchange_kind)kind);
                right = right && close(row, want);
                alike = alike && memcmp(row, alone, SIZE * sizeof *row) == 0;
                for (int i = SIZE; i < STRIDE; i++) {
                    kept = kept && row[i] == 123;
                }
            }
            check(right);
            check(alike || algorithm == RFA_EXCHANGE_EXSCAN);
            check(kept);
        }
    }
    rfa_free(own);
    rfa_free(whole);
    rfa_comm_destroy(&self);
    rfa_comm_destroy(&world);
}

// The order matters: a far element decays, a near one does not.
static void combination_does_not_commute(void **state)
{
    (void)state;
    const double a[] = {1, -2, 3}, b[] = {0.5, -1, 5}, empty[] = {-INFINITY, 0, 0};
    double ab[3], ba[3], same[3];
    rfa_element_combine(ab, a, b, 1, 3); // scales 1 - 1 and 0.5
    check(ab[0] == 0.5 && ab[1] == -3 && fabs(ab[2] - (5 + 3 * exp(-0.5))) < 1e-15);
    rfa_element_combine(ba, b, a, 1, 3); // 0.5 - 2 and 1
    check(ba[0] == 1 && ba[1] == -3 && fabs(ba[2] - (3 + 5 * exp(-2.5))) < 1e-15);
    rfa_element_combine(same, empty, a, 1, 3);
    check(memcmp(same, a, sizeof a) == 0);
    rfa_element_combine(same, a, empty, 1, 3);
    check(memcmp(same, a, sizeof a) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(combination_does_not_commute),
        cmocka_unit_test(elements_are_their_definition),
    };
    return test_main(tests);
}
