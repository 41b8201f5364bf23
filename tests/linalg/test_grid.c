// Ranks: 1 2 3 4 6
// Precision: f64
// The shape of the grid, its placement, spare ranks, and 10 000 grids one after another.
#include "linalg/grid.h"
#include "support/support.h"

#include <cblas.h>

static void shapes(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        ptrdiff_t order;
        int rows, columns;
    } cases[] = {
        {1, 4096, 1, 1},  {2, 4096, 1, 2},     {3, 4096, 1, 2}, {4, 4096, 2, 2},  {5, 4096, 2, 2},
        {6, 4096, 2, 3},  {7, 4096, 2, 3},     {8, 4096, 2, 4}, {11, 4096, 3, 3}, {13, 4096, 3, 4},
        {64, 4096, 8, 8}, {127, 65536, 9, 14}, {4, 64, 1, 1},   {4, 127, 1, 1},   {4, 255, 1, 1},
        {4, 256, 2, 2},   {64, 256, 2, 2},     {6, 256, 2, 2},  {6, 384, 2, 3},   {6, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int rows = 0, columns = 0;
        rfa_linalg_grid_shape(&rows, &columns, cases[i].ranks, cases[i].order, 64);
        check(rows == cases[i].rows && columns == cases[i].columns);
    }
}

static void placement(void **state)
{
    (void)state;
    openblas_set_num_threads(2);
    rfa_linalg_grid grid;
    check_ok(rfa_linalg_grid_create(&grid, &test_world, 1000, 8));
    check(openblas_get_num_threads() == 1);
    const bool spare = test_world.rank >= grid.rows * grid.columns;
    check(rfa_linalg_grid_is_spare(&grid) == spare);
    check(spare || (grid.row * grid.columns + grid.column == test_world.rank));
    check(spare || (grid.in_row.size == grid.columns && grid.in_row.rank == grid.column));
    check(spare || (grid.in_column.size == grid.rows && grid.in_column.rank == grid.row));
    rfa_linalg_grid_destroy(&grid);
    rfa_linalg_grid_destroy(&grid);
}

// On half of the ranks, in the order against the world's: nothing may lean on all processes.
static void part_of_the_world(void **state)
{
    (void)state;
    const bool member = test_world.rank % 2 == 0;
    rfa_comm part = {.size = 0};
    MPI_Comm_split(test_world.comm, member ? 0 : MPI_UNDEFINED, -test_world.rank, &part.comm);
    bool good = true;
    if (member) {
        MPI_Comm_rank(part.comm, &part.rank);
        MPI_Comm_size(part.comm, &part.size);
        rfa_linalg_grid one, two; // two at a time
        good = rfa_linalg_grid_create(&one, &part, 1000, 8) == RFA_OK &&
               rfa_linalg_grid_create(&two, &part, 1, 8) == RFA_OK &&
               rfa_linalg_grid_is_single(&two) && one.rows * one.columns <= part.size;
        rfa_linalg_grid_destroy(&one);
        rfa_linalg_grid_destroy(&two);
        MPI_Comm_free(&part.comm);
    }
    check(good);
}

// Each leaked grid would keep four communicators, and MPI ends after some thousands.
static void many(void **state)
{
    (void)state;
    // Grids are collective: on a busy machine each costs milliseconds where there are other ranks.
    const int most = test_world.size == 1 ? 10000 : 1000 / (test_world.size * test_world.size);
    bool good = true;
    rfa_linalg_grid first = {.context = -1};
    for (int i = 0; i < most && good; i++) {
        rfa_linalg_grid grid;
        good = rfa_linalg_grid_create(&grid, &test_world, 1000, 8) == RFA_OK;
        // What was freed is used again: numbers of contexts and handles don't grow.
        first = i == 0 ? grid : first;
        good &= grid.context == first.context && grid.handle == first.handle;
        rfa_linalg_grid_destroy(&grid);
    }
    check(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(placement),
        cmocka_unit_test(part_of_the_world),
        cmocka_unit_test(many),
    };
    return test_main(tests);
}
