// Ranks: 2 3
// Precision: f32
//
// The exchange of linear kinds is hidden behind the projection of queries and, backward, the output
// projection's gradient, if and only if it is pumped meanwhile. On a slow network, made up here:
// what is under way arrives at the third look at it, and who waits instead sleeps.
#include "models/world.h"

#include <string.h>
#include <unistd.h>

static const ptrdiff_t lengths[] = {300, 200, 100, 128, 129, 96};
enum { EXAMPLES = 6, LOOKS = 3, SLEEP = 4000 }; // microseconds

static struct {
    bool stands_still; // looking brings nothing on: as without a pump
    int looks, sleeps;
} network;

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    if (*request == MPI_REQUEST_NULL) {
        return PMPI_Test(request, flag, status);
    }
    network.looks++;
    *flag = !network.stands_still && network.looks % LOOKS == 0;
    return *flag ? PMPI_Wait(request, status) : MPI_SUCCESS;
}

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    if (*request != MPI_REQUEST_NULL) {
        network.sleeps++;
        usleep(SLEEP);
    }
    return PMPI_Wait(request, status);
}

typedef struct {
    double loss, seconds; // in MPI calls of the exchange, forward and backward
    int looks, sleeps;
    rfa_real *gradient;
    ptrdiff_t size;
} outcome;

static outcome run(const rfa_classifier_options *options, bool stands_still)
{
    world w;
    world_create(&w, test_world.comm, options, RFA_EXCHANGE_TRANSPOSED, lengths, EXAMPLES);
    world_loss(&w, 1, true); // buffers
    network.stands_still = stands_still;
    network.looks = network.sleeps = 0;
    const double before = rfa_exchange_costs(w.exchange)->seconds;
    outcome o = {.loss = world_loss(&w, 1, true), .size = rfa_classifier_table(w.model)->size};
    o.seconds = rfa_exchange_costs(w.exchange)->seconds - before;
    o.looks = network.looks;
    o.sleeps = network.sleeps;
    network.stands_still = false;
    o.gradient = test_reals(o.size);
    memcpy(o.gradient, w.gradient, (size_t)o.size * sizeof *o.gradient);
    world_destroy(&w);
    return o;
}

static void waits_are_hidden_by_the_pump_alone(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        const rfa_classifier_options options = world_variant_options(variant);
        const rfa_attention_options *o = &options.attention;
        if (o->kind != RFA_ATTENTION_RFA && o->kind != RFA_ATTENTION_ELU) {
            continue;
        }
        outcome pumped = run(&options, false), idle = run(&options, true);
        const int stages = (o->causal && o->direction == RFA_BOTH ? 4 : 2) * 2 * 2;
        if (pumped.sleeps != 0 || idle.sleeps != stages) {
            print_error("%s: %d waits with a pump, %d of %d without\n", variant->name,
                        pumped.sleeps, idle.sleeps, stages);
        }
        check(pumped.sleeps == 0 && pumped.looks == stages * LOOKS);
        check(idle.sleeps == stages && idle.seconds >= 1e-6 * SLEEP * stages);
        check(pumped.loss == idle.loss);
        check(memcmp(pumped.gradient, idle.gradient,
                     (size_t)pumped.size * sizeof *pumped.gradient) == 0);
        rfa_free(pumped.gradient);
        rfa_free(idle.gradient);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_hidden_by_the_pump_alone),
    };
    return test_main(tests);
}
