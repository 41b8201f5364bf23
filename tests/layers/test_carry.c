// Ranks: 1 2 3 4
//
// Two windows of a sequence, the state of the first carried into the second, are the whole
// sequence: outputs, and the state that is handed out to where the next window begins.
#include "layers/attention_linear.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { E = 16, H = 2, SEGMENTS = 8, EXAMPLES = 2, ROWS = 1024 };

static double number(int example, ptrdiff_t position, ptrdiff_t channel)
{
    return sin(0.3 + 1.3 * example + 0.77 * (double)position + 2.9 * (double)channel);
}

// One window on this rank: positions [begin, begin + length) of each example.
typedef struct {
    rfa_comm sequence;
    rfa_exchange *exchange;
    rfa_attention attention;
    rfa_attention_saved saved;
    rfa_plan plan;
    rfa_leaf leaves[EXAMPLES * SEGMENTS];
    ptrdiff_t lengths[EXAMPLES], begin;
    rfa_arena arena;
    double *carry;
    rfa_real *mask, *work, *parameters, *x;
} window;

static void
window_create(window *w, const rfa_attention_options *o, ptrdiff_t begin, ptrdiff_t n, bool follows)
{
    *w = (window){.begin = begin, .mask = test_reals(ROWS), .x = test_reals(ROWS * E)};
    rfa_comm_create(&w->sequence, test_world.comm);
    check_ok(rfa_exchange_create(&w->exchange, &w->sequence, SEGMENTS, RFA_EXCHANGE_AUTO));
    check_ok(rfa_attention_create(&w->attention, o, w->exchange, &w->sequence));
    const int P = w->sequence.size, p = w->sequence.rank;
    for (int e = 0; e < EXAMPLES; e++) {
        w->lengths[e] = n;
    }
    const ptrdiff_t rows = rfa_leaves_fill(w->leaves, w->lengths, EXAMPLES, SEGMENTS, P, p);
    w->plan = (rfa_plan){.examples = EXAMPLES,
                         .own = rfa_part_begin(SEGMENTS, P, p + 1) - rfa_part_begin(SEGMENTS, P, p),
                         .leaves = w->leaves,
                         .lengths = w->lengths,
                         .mask = w->mask,
                         .rows = rows,
                         .longest_leaf = ROWS,
                         .longest_example = ROWS,
                         .follows = follows,
                         .is_followed = true};
    for (int pass = 0; pass < 2; pass++) {
        w->arena.used = 0;
        w->carry = rfa_attention_carve_carry(&w->arena, &w->attention, &w->plan);
        rfa_attention_carve_kept(&w->saved, &w->arena, &w->attention, &w->plan, w->carry);
        rfa_attention_carve_saved(&w->saved, &w->arena, &w->attention, &w->plan);
        rfa_attention_carve(&w->attention, &w->arena, &w->plan);
        if (pass == 0) {
            check_ok(rfa_alloc(&w->arena.base, (ptrdiff_t)w->arena.used, 1, "arena"));
        }
    }
    w->work = test_reals(rfa_attention_work(&w->attention, &w->plan));
    w->parameters = test_reals(w->attention.parameters + 1);
    for (ptrdiff_t i = 0; i < w->attention.parameters; i++) {
        w->parameters[i] = (rfa_real)(0.5 + 0.3 * sin((double)i));
    }
    w->saved.parameters = w->parameters;
    for (int l = 0; l < EXAMPLES * w->plan.own; l++) {
        const rfa_leaf *leaf = &w->leaves[l];
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            const ptrdiff_t row = leaf->row0 + t, at = begin + leaf->begin + t;
            w->mask[row] = 1;
            for (ptrdiff_t j = 0; j < 3 * E; j++) {
                w->saved.qkv[row * 3 * E + j] = (rfa_real)number(leaf->example, at, j);
            }
            for (ptrdiff_t j = 0; j < E; j++) {
                w->x[row * E + j] = (rfa_real)number(leaf->example, at, 50 + j);
            }
        }
    }
}

static void window_run(window *w)
{
    rfa_attention *a = &w->attention;
    rfa_attention_begin(a, &w->saved, w->work);
    for (int l = 0; l < EXAMPLES * w->plan.own; l++) {
        rfa_attention_local(a, &w->saved, &w->plan, 0, l, w->x + w->leaves[l].row0 * E, w->work);
    }
    check_ok(rfa_attention_exchange(a, &w->saved, &w->plan, 0, &w->work));
    for (int l = 0; l < EXAMPLES * w->plan.own; l++) {
        rfa_attention_read(a, &w->saved, &w->plan, l, w->work);
    }
}

// out [EXAMPLES][whole][E] of all ranks: each adds its rows.
static void collect(double *out, const window *w, ptrdiff_t whole)
{
    for (int l = 0; l < EXAMPLES * w->plan.own; l++) {
        const rfa_leaf *leaf = &w->leaves[l];
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            const ptrdiff_t at = leaf->example * whole + w->begin + leaf->begin + t;
            for (ptrdiff_t j = 0; j < E; j++) {
                out[at * E + j] = (double)w->saved.out[(leaf->row0 + t) * E + j];
            }
        }
    }
}

static void window_destroy(window *w)
{
    rfa_free(w->arena.base);
    rfa_attention_destroy(&w->attention);
    rfa_exchange_destroy(&w->exchange);
    rfa_comm_destroy(&w->sequence);
    rfa_real *all[] = {w->mask, w->work, w->parameters, w->x};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

static void windows_are_the_whole(void **state)
{
    (void)state;
    enum { FIRST = 75, WHOLE = 208 };
    const ptrdiff_t size = (ptrdiff_t)EXAMPLES * WHOLE * E;
    for (int kind = 0; kind < 3; kind++) {
        rfa_attention_options o = {.kind = kind == 2 ? RFA_ATTENTION_PERFORMER : RFA_ATTENTION_RFA,
                                   .map = kind == 2 ? RFA_MAP_POSITIVE : RFA_MAP_GAUSSIAN,
                                   .layers = 1,
                                   .width = E,
                                   .heads = H,
                                   .segments = SEGMENTS,
                                   .seed = 3,
                                   .causal = true,
                                   .unit_norm = kind < 2,
                                   .gate = kind == 1 ? RFA_GATE_LEARNED : RFA_GATE_NONE,
                                   .projections = 24,
                                   .pool = 4,
                                   .bandwidth_kind = RFA_BANDWIDTH_FIXED,
                                   .bandwidth = 0.5};
        window whole, first, second;
        window_create(&whole, &o, 0, WHOLE, false);
        window_create(&first, &o, 0, FIRST, false);
        window_create(&second, &o, FIRST, WHOLE - FIRST, true);
        const ptrdiff_t states = H * EXAMPLES * rfa_linear_state_numbers(&o);
        double *want = test_doubles(size), *got = test_doubles(size);
        window_run(&whole);
        window_run(&first);
        memcpy(second.carry, first.carry, (size_t)states * sizeof(double));
        window_run(&second);
        // The states stand where the next window would begin: on the first rank.
        const double *end = whole.carry, *carried = first.carry, *last = second.carry;
        const bool here = test_world.rank == 0;
        collect(want, &whole, WHOLE);
        collect(got, &first, WHOLE);
        collect(got, &second, WHOLE);
        MPI_Allreduce(MPI_IN_PLACE, want, (int)size, MPI_DOUBLE, MPI_SUM, test_world.comm);
        MPI_Allreduce(MPI_IN_PLACE, got, (int)size, MPI_DOUBLE, MPI_SUM, test_world.comm);
        bool close = true, handed_out = true, carries = false;
        for (ptrdiff_t i = 0; i < size; i++) {
            close = close && fabs(got[i] - want[i]) <= 2e3 * test_eps();
        }
        for (ptrdiff_t i = 0; here && i < states; i++) {
            handed_out =
                handed_out && fabs(last[i] - end[i]) <= 2e3 * test_eps() * (1 + fabs(end[i]));
            carries = carries || fabs(carried[i]) > 0.1;
        }
        check(close && handed_out && carries == here);
        window_destroy(&whole);
        window_destroy(&first);
        window_destroy(&second);
        double *all[] = {want, got};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            rfa_free(all[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows_are_the_whole)};
    return test_main(tests);
}
