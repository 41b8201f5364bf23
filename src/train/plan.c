#include "train/plan.h"

#include "base/log.h"
#include "base/mem.h"
#include "optim/adamw.h"
#include "train/session.h"

#include <inttypes.h>
#include <math.h>

enum { STEPS = 2000 };

// Bytes of one rank.
typedef struct {
    double parameters;    // with gradients, moments, exact sums
    double data;          // lengths, order, files
    double batches;       // activations, states and tokens of the largest batch
    double checkpoint;    // its file as rank 0 writes it; HDF5 holds another
    double program;       // the process before anything
    int64_t rows, tokens; // of all passes over training batches: computed with, and valid
} needs;

static double held(void)
{
    return (double)rfa_mem_now();
}

// The batches of the training steps.
static rfa_status reserve_steps(needs *need, rfa_session *session)
{
    const rfa_config *config = &session->config;
    const int64_t n = config->train.batch;
    const int64_t steps = config->train.steps < STEPS ? config->train.steps : STEPS;
    rfa_sampler sampler = {0};
    int64_t *id = NULL;
    rfa_status status = rfa_sampler_create(&sampler, (uint64_t)config->train.seed,
                                           rfa_dataset_examples(session->data));
    if (status == RFA_OK) {
        status = rfa_alloc(&id, n, sizeof *id, "batch");
    }
    for (int64_t step = 0; step < steps && status == RFA_OK; step++) {
        for (int64_t i = 0; i < n; i++) {
            id[i] = rfa_sampler_at(&sampler, step * n + i);
        }
        const rfa_portion portion = {.data = session->data, .id = id, .n = n, .window = -1};
        for (int pass = 0; pass < rfa_session_passes(session, n) && status == RFA_OK; pass++) {
            status = rfa_session_reserve(session, &portion, pass, true);
            need->rows += session->batch.rows;
            need->tokens += session->batch.tokens;
        }
    }
    rfa_free(id);
    rfa_sampler_destroy(&sampler);
    return status;
}

// Those of an evaluation of a split. Collective.
static rfa_status reserve_evaluation(rfa_session *session, const char *split)
{
    const int64_t batch = session->config.train.batch;
    const rfa_comm *all = &session->grid.all;
    rfa_dataset *data = NULL;
    int64_t *id = NULL;
    RFA_TRY(rfa_dataset_open(&data, all, session->config.data.file, split));
    const int64_t examples = rfa_dataset_examples(data);
    rfa_status status = rfa_alloc(&id, batch, sizeof *id, "batch");
    for (int64_t at = 0; at < examples && status == RFA_OK; at += batch) {
        const int64_t n = examples - at < batch ? examples - at : batch;
        for (int64_t i = 0; i < n; i++) {
            id[i] = at + i;
        }
        const rfa_portion portion = {.data = data, .id = id, .n = n, .window = -1};
        for (int pass = 0; pass < rfa_session_passes(session, n) && status == RFA_OK; pass++) {
            status = rfa_session_reserve(session, &portion, pass, false);
        }
    }
    rfa_free(id);
    rfa_dataset_close(&data);
    return rfa_agree(all, status);
}

static rfa_status lay_out(needs *need, const rfa_config *config, const rfa_comm *world)
{
    rfa_session session;
    rfa_adamw optimiser = {0};
    rfa_real *gradient = NULL;
    need->program = fmax(rfa_mem_resident(), 0);
    RFA_TRY(rfa_session_create(&session, config, world, "train"));
    const ptrdiff_t size = rfa_classifier_table(session.model)->size;
    const rfa_adamw_options none = {0};
    need->data = (double)rfa_dataset_examples(session.data) * (double)sizeof(int32_t);
    rfa_status status = rfa_adamw_create(&optimiser, &none, size);
    if (status == RFA_OK) {
        status = rfa_alloc(&gradient, size, sizeof *gradient, "gradient");
    }
    need->checkpoint = world->rank == 0 ? 3 * (double)size * (double)sizeof(rfa_real) : 0;
    const double start = held();
    if (status == RFA_OK) {
        status = reserve_steps(need, &session);
    }
    status = rfa_agree(world, status);
    if (status == RFA_OK) {
        status = reserve_evaluation(&session, "val");
    }
    if (status == RFA_OK) {
        status = reserve_evaluation(&session, "test");
    }
    need->batches = held() - start;
    rfa_free(gradient);
    rfa_adamw_destroy(&optimiser);
    rfa_session_destroy(&session);
    need->parameters = start;
    return status;
}

static rfa_status compare(const needs *need, const rfa_comm *world)
{
    const double mebi = 1048576;
    const double arrays = need->parameters + need->data + need->batches + need->checkpoint;
    double sum = arrays + need->checkpoint + need->program,
           most[] = {arrays,     need->parameters, need->batches,
                     need->data, need->checkpoint, need->program};
    MPI_Comm host;
    int ranks = 1;
    MPI_Comm_split_type(world->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &ranks);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, host);
    MPI_Comm_free(&host);
    MPI_Allreduce(MPI_IN_PLACE, most, 6, MPI_DOUBLE, MPI_MAX, world->comm);
    rfa_print(
        "memory of a rank: %.0f MiB in arrays = %.0f parameters and optimiser + %.0f "
        "activations and states + %.0f data + %.0f a checkpoint, at most; program and libraries "
        "%.0f MiB",
        most[0] / mebi, most[1] / mebi, most[2] / mebi, most[3] / mebi, most[4] / mebi,
        most[5] / mebi);
    const double available = rfa_mem_available(), limit = rfa_mem_limit();
    const double room = limit > 0 && limit < available ? limit : available;
    rfa_status status = RFA_OK;
    if (available >= 0 && sum > room) {
        status = rfa_fail(RFA_ERR_MEMORY,
                          "%d rank%s of this host need %.2f GiB, of which %.2f are available: more "
                          "hosts, a smaller train.micro_batch or train.window, train.recompute",
                          ranks, ranks == 1 ? "" : "s", sum / mebi / 1024, room / mebi / 1024);
    }
    return rfa_agree(world, status);
}

// The rate, and beta1, where the schedule turns and at its ends.
static void print_schedule(const rfa_config *config)
{
    const rfa_schedule schedule = rfa_session_schedule(config);
    const int64_t steps = schedule.steps, top = schedule.warmup < steps ? schedule.warmup : steps;
    const int64_t at[] = {1, top / 2, top, top + (steps - top) / 2, steps};
    int64_t last = 0;
    for (int i = 0; i < 5; i++) {
        if (at[i] > last) {
            const rfa_scheduled now = rfa_schedule_at(&schedule, at[i]);
            rfa_print("step %" PRId64 ": rate %.4g, beta1 %.4g", at[i], now.rate, now.beta1);
            last = at[i];
        }
    }
}

// Examples lie one after the other: only the end of a segment is filled up, to whole blocks of
// rows.
static void print_padding(const needs *need, const rfa_comm *world)
{
    int64_t sums[2] = {need->rows, need->tokens};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, world->comm);
    rfa_print("padding: %.2f %% of the rows that are computed with",
              sums[0] > 0 ? 100 * (1 - (double)sums[1] / (double)sums[0]) : 0);
}

rfa_status rfa_plan_memory(const rfa_config *config, const rfa_comm *world)
{
    needs need = {0};
    rfa_mem_plan(true);
    const rfa_status status = lay_out(&need, config, world);
    rfa_mem_plan(false);
    RFA_TRY(rfa_agree(world, status));
    print_schedule(config);
    print_padding(&need, world);
    return compare(&need, world);
}
