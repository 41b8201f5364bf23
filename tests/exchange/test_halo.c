// Ranks: 1 2 3 4
//
// Rows that windows reach beyond a segment, against what the example holds there; their way back
// against a sum in the order of segments, to the bit.
#include "exchange/halo.h"

#include "base/mem.h"
#include "support/support.h"

enum { EXAMPLES = 5, WIDTH = 3, LD = 5, SEGMENTS = 8 };

static const ptrdiff_t lengths[][EXAMPLES] = {
    {300, 17, 1, 128, 129}, {15, 16, 31, 97, 2}, {1, 1, 1, 1, 1}, {500, 0, 200, 3, 64}};
static const ptrdiff_t windows[] = {1, 3, 16, 24, 40, 100, 299, 5000};

static rfa_real value_of(int example, ptrdiff_t at, ptrdiff_t column)
{
    return (rfa_real)(example * 4096 + at * 4 + column);
}

// What segment g contributes to a row: sums in another order have other bits.
static double part_of(int example, ptrdiff_t at, ptrdiff_t column, int g)
{
    const double size[] = {1, 0x1p-53, 0x1p-52, 3, 0x1p-53, 7, 0x1p-51, 0x1p-53};
    return size[(g + at + column + example) % 8] * (g % 2 ? -1 : 1);
}

typedef struct {
    rfa_halo halo;
    int own, first;
    rfa_leaf leaves[EXAMPLES * SEGMENTS];
    ptrdiff_t row0[EXAMPLES * SEGMENTS + 1], rows;
} setting;

static setting setting_of(const ptrdiff_t *length, ptrdiff_t window, bool after)
{
    const int P = test_world.size, me = test_world.rank;
    setting x = {.halo = {length, EXAMPLES, SEGMENTS, window, after}};
    x.first = rfa_part_begin(SEGMENTS, P, me);
    x.own = rfa_part_begin(SEGMENTS, P, me + 1) - x.first;
    x.rows = rfa_leaves_fill(x.leaves, length, EXAMPLES, SEGMENTS, P, me);
    rfa_halo_fill(x.row0, &x.halo, P, me);
    return x;
}

// The position of halo row t of leaf l.
static ptrdiff_t position(const setting *x, int l, ptrdiff_t t)
{
    const rfa_leaf *leaf = &x->leaves[l];
    const rfa_halo_reach reach = rfa_halo_reach_of(&x->halo, leaf->example, leaf->segment);
    const ptrdiff_t at = reach.begin + t;
    return at < leaf->begin ? at : at + leaf->tokens;
}

static void reaches_are_whole_windows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            for (int after = 0; after < 2; after++) {
                const setting x = setting_of(lengths[i], windows[w], after);
                bool good = true; // ranks own different numbers of leaves
                for (int l = 0; l < EXAMPLES * x.own; l++) {
                    const rfa_leaf *leaf = &x.leaves[l];
                    const rfa_halo_reach reach =
                        rfa_halo_reach_of(&x.halo, leaf->example, leaf->segment);
                    good &= x.row0[l + 1] - x.row0[l] == reach.end - reach.begin - leaf->tokens;
                    ptrdiff_t begin = leaf->begin, end = leaf->begin + leaf->tokens;
                    while (leaf->tokens > 0 && begin % windows[w] != 0) {
                        begin--;
                    }
                    while (after && leaf->tokens > 0 && end % windows[w] != 0 &&
                           end < lengths[i][leaf->example]) {
                        end++;
                    }
                    good &= reach.begin == begin && reach.end == end;
                }
                check(good);
            }
        }
    }
}

static void fetch(const ptrdiff_t *length, ptrdiff_t window, bool after, rfa_exchange_cost *cost)
{
    const setting x = setting_of(length, window, after);
    const ptrdiff_t total = x.row0[EXAMPLES * x.own];
    rfa_real *from = test_reals(x.rows * LD), *to = test_reals((total + 1) * WIDTH);
    for (int l = 0; l < EXAMPLES * x.own; l++) {
        for (ptrdiff_t t = 0; t < x.leaves[l].rows; t++) {
            for (ptrdiff_t c = 0; c < LD; c++) {
                from[(x.leaves[l].row0 + t) * LD + c] =
                    t < x.leaves[l].tokens && c < WIDTH
                        ? value_of(x.leaves[l].example, x.leaves[l].begin + t, c)
                        : -1;
            }
        }
    }
    for (ptrdiff_t i = 0; i < (total + 1) * WIDTH; i++) {
        to[i] = -2;
    }
    check_ok(rfa_halo_fetch(to, from, LD, WIDTH, &x.halo, &test_world, cost));
    bool good = true;
    for (int l = 0; l < EXAMPLES * x.own; l++) {
        for (ptrdiff_t t = 0; t < x.row0[l + 1] - x.row0[l]; t++) {
            for (ptrdiff_t c = 0; c < WIDTH; c++) {
                good &= to[(x.row0[l] + t) * WIDTH + c] ==
                        value_of(x.leaves[l].example, position(&x, l, t), c);
            }
        }
    }
    check(good && to[total * WIDTH] == -2);
    rfa_free(from);
    rfa_free(to);
}

static void give_back(const ptrdiff_t *length, ptrdiff_t window, bool after)
{
    const setting x = setting_of(length, window, after);
    const ptrdiff_t total = x.row0[EXAMPLES * x.own];
    double *sums = test_doubles(x.rows * WIDTH), *parts = test_doubles((total + 1) * WIDTH);
    rfa_exchange_cost cost = {0};
    for (int l = 0; l < EXAMPLES * x.own; l++) {
        for (ptrdiff_t t = 0; t < x.row0[l + 1] - x.row0[l]; t++) {
            for (ptrdiff_t c = 0; c < WIDTH; c++) {
                parts[(x.row0[l] + t) * WIDTH + c] =
                    part_of(x.leaves[l].example, position(&x, l, t), c, x.leaves[l].segment);
            }
        }
    }
    for (ptrdiff_t i = 0; i < x.rows * WIDTH; i++) {
        sums[i] = 0.25;
    }
    check_ok(rfa_halo_return(sums, parts, WIDTH, &x.halo, &test_world, &cost));
    bool good = true;
    for (int l = 0; l < EXAMPLES * x.own; l++) {
        const rfa_leaf *leaf = &x.leaves[l];
        for (ptrdiff_t i = 0; i < leaf->rows * WIDTH; i++) {
            const ptrdiff_t at = leaf->begin + i / WIDTH;
            double want = 0.25;
            for (int g = 0; g < SEGMENTS && i / WIDTH < leaf->tokens; g++) {
                const rfa_halo_reach reach = rfa_halo_reach_of(&x.halo, leaf->example, g);
                if (g != leaf->segment && at >= reach.begin && at < reach.end) {
                    want += part_of(leaf->example, at, i % WIDTH, g);
                }
            }
            good &= sums[leaf->row0 * WIDTH + i] == want;
        }
    }
    check(good);
    rfa_free(sums);
    rfa_free(parts);
}

static void rows_arrive(void **state)
{
    (void)state;
    rfa_exchange_cost cost = {0};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            fetch(lengths[i], windows[w], false, &cost);
            fetch(lengths[i], windows[w], true, &cost);
        }
    }
    check((cost.calls > 0) == (test_world.size > 1));
}

static void parts_return_in_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
            give_back(lengths[i], windows[w], false);
            give_back(lengths[i], windows[w], true);
        }
    }
}

// 64 tokens are 4 blocks of 16 in every second of the 8 segments.
static void sends_no_more_than_needed(void **state)
{
    (void)state;
    static const ptrdiff_t length[EXAMPLES] = {64, 64, 64, 64, 64};
    rfa_exchange_cost cost = {0};
    fetch(length, 16, true, &cost); // windows are segments
    check(cost.bytes_sent == 0);
    fetch(length, 32, true, &cost);
    // Two segments a window: with 2 ranks or less no window straddles ranks.
    check(test_world.size > 2 || cost.bytes_sent == 0);
    int64_t sent = cost.bytes_sent;
    MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_INT64_T, MPI_SUM, test_world.comm);
    // With 4 ranks each owns 16 tokens, which its neighbour in the window needs.
    check(test_world.size != 4 ||
          sent == (int64_t)(EXAMPLES * 64 * WIDTH) * (int64_t)sizeof(rfa_real));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reaches_are_whole_windows),
        cmocka_unit_test(rows_arrive),
        cmocka_unit_test(parts_return_in_order),
        cmocka_unit_test(sends_no_more_than_needed),
    };
    return test_main(tests);
}
