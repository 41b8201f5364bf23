// Ranks: 1 2 3 4
#include "exchange/gather.h"

#include "support/support.h"

#include <string.h>

enum { GUARD = 8, MOST_RANKS = 4 };

static const rfa_real elsewhere = -1, untouched = 123;

// A number that depends on the row's owner, the row of all and the column.
static rfa_real value_of(int rank, ptrdiff_t row, ptrdiff_t column)
{
    return (rfa_real)((rank + 1) * 1000 + row * 37 + column % 29);
}

// Gathers rows of the given counts, checks every number on every rank and the cost.
static void gather(const ptrdiff_t *counts, ptrdiff_t width, rfa_exchange_cost *cost)
{
    const int P = test_world.size, me = test_world.rank;
    ptrdiff_t rows = 0;
    for (int r = 0; r < P; r++) {
        rows += counts[r];
    }
    rfa_real *all = test_reals(rows * width + GUARD);
    ptrdiff_t row = 0;
    for (int r = 0; r < P; r++) {
        for (ptrdiff_t t = 0; t < counts[r]; t++, row++) {
            for (ptrdiff_t c = 0; c < width; c++) {
                all[row * width + c] = r == me ? value_of(r, row, c) : elsewhere;
            }
        }
    }
    for (int g = 0; g < GUARD; g++) {
        all[rows * width + g] = untouched;
    }
    const rfa_exchange_cost before = *cost;
    check_ok(rfa_gather_rows(all, counts, width, &test_world, cost));
    bool good = true;
    row = 0;
    for (int r = 0; r < P; r++) {
        for (ptrdiff_t t = 0; t < counts[r]; t++, row++) {
            for (ptrdiff_t c = 0; c < width; c++) {
                good = good && all[row * width + c] == value_of(r, row, c);
            }
        }
    }
    check(good);
    for (int g = 0; g < GUARD; g++) {
        good = good && all[rows * width + g] == untouched;
    }
    check(good);
    const int64_t sent = (int64_t)(counts[me] * width * (ptrdiff_t)sizeof *all) * (P - 1);
    check(cost->bytes_sent - before.bytes_sent == sent);
    check(cost->messages - before.messages == P - 1);
    check(cost->calls - before.calls == (P > 1));
    check(cost->seconds >= before.seconds);
    rfa_free(all);
}

static void every_rank_gets_all_rows(void **state)
{
    (void)state;
    static const ptrdiff_t widths[] = {1, 3, 64, 4099};
    static const ptrdiff_t cases[][MOST_RANKS] = {
        {16, 16, 16, 16}, {1, 48, 7, 2}, {0, 5, 0, 3}, {5, 0, 3, 0},
        {0, 0, 0, 9},     {9, 0, 0, 0},  {0, 0, 0, 0}, {32, 16, 0, 16},
    };
    rfa_exchange_cost cost = {0};
    for (int w = 0; w < 4; w++) {
        for (int c = 0; c < 8; c++) {
            gather(cases[c], widths[w], &cost);
        }
    }
}

// A row is the unit of MPI's counts, so a row of a megabyte is one.
static void wide_rows(void **state)
{
    (void)state;
    static const ptrdiff_t counts[MOST_RANKS] = {2, 0, 1, 3};
    rfa_exchange_cost cost = {0};
    gather(counts, (ptrdiff_t)1 << 18, &cost);
}

// Half of the world gathers without the other half (an even number of ranks: two groups).
static void of_a_part_of_the_world(void **state)
{
    (void)state;
    const int size = test_world.size % 2 ? test_world.size : test_world.size / 2;
    rfa_grid grid;
    rfa_grid_create(&grid, test_world.comm, size);
    check(grid.sequence.size == size);
    const ptrdiff_t counts[MOST_RANKS] = {1, 2, 3, 4};
    rfa_real all[10];
    ptrdiff_t row = 0;
    for (int r = 0; r < size; r++) {
        for (ptrdiff_t t = 0; t < counts[r]; t++, row++) {
            all[row] = r == grid.sequence.rank ? value_of(grid.data.rank, row, r) : elsewhere;
        }
    }
    rfa_exchange_cost cost = {0};
    check_ok(rfa_gather_rows(all, counts, 1, &grid.sequence, &cost));
    row = 0;
    for (int r = 0; r < size; r++) {
        for (ptrdiff_t t = 0; t < counts[r]; t++, row++) {
            check(all[row] == value_of(grid.data.rank, row, r));
        }
    }
    rfa_grid_destroy(&grid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rank_gets_all_rows),
        cmocka_unit_test(wide_rows),
        cmocka_unit_test(of_a_part_of_the_world),
    };
    return test_main(tests);
}
