#include "train/session.h"

#include "base/log.h"
#include "base/profile.h"
#include "storage/digest.h"
#include "tensor/gemm.h"

#include "commit.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <string.h>

// Ranks that differ in what decides the bits can't run together: program, BLAS kernel,
// configuration.
static rfa_status check_ranks_alike(const rfa_session *session)
{
    char *text = NULL;
    const rfa_status status =
        rfa_agree(&session->grid.all, rfa_config_text(&text, &session->config));
    if (status != RFA_OK) {
        rfa_free(text);
        return status;
    }
    const char *facts[] = {RFA_COMMIT, rfa_gemm_library(), text};
    static const char *const names[] = {"commits of the program", "BLAS libraries or kernels",
                                        "configurations"};
    uint64_t least[3], greatest[3];
    for (int i = 0; i < 3; i++) {
        least[i] = rfa_digest(0, facts[i], strlen(facts[i]));
        greatest[i] = least[i];
    }
    rfa_free(text);
    MPI_Allreduce(MPI_IN_PLACE, least, 3, MPI_UINT64_T, MPI_MIN, session->grid.all.comm);
    MPI_Allreduce(MPI_IN_PLACE, greatest, 3, MPI_UINT64_T, MPI_MAX, session->grid.all.comm);
    for (int i = 0; i < 3; i++) {
        if (least[i] != greatest[i]) {
            return rfa_fail(RFA_ERR_USAGE, "ranks run with different %s", names[i]);
        }
    }
    return RFA_OK;
}

// Everybody at once, so that shared caches, memory and clock count as they do in the run.
static double measure_ceiling(const rfa_comm *all)
{
    double rate = 0;
    MPI_Barrier(all->comm);
#pragma omp parallel reduction(+ : rate)
    rate += rfa_gemm_ceiling(1024);
    MPI_Allreduce(MPI_IN_PLACE, &rate, 1, MPI_DOUBLE, MPI_SUM, all->comm);
    return rate;
}

// What "auto" means follows from the kind.
static rfa_attention_options attention_options(const rfa_config *config)
{
    const rfa_attention_kind kind = (rfa_attention_kind)config->attention.kind;
    const bool performer = kind == RFA_ATTENTION_PERFORMER;
    rfa_attention_options options = {
        .kind = kind,
        .causal = config->attention.causal,
        .direction = (rfa_direction)config->attention.direction,
        .projections = config->attention.features,
        .map = performer ? RFA_MAP_POSITIVE : RFA_MAP_GAUSSIAN,
        .unit_norm = !performer && config->attention.norm == RFA_NORM_UNIT,
        .rows = performer ? RFA_ROWS_ORTHOGONAL : RFA_ROWS_IID,
        .pool = config->attention.pool,
        .redraw = config->attention.redraw,
        .bandwidth_kind = (rfa_bandwidth_kind)config->attention.sigma,
        .bandwidth = config->attention.bandwidth,
        .gate = (rfa_gate_kind)config->attention.gate,
        .gate_bias = config->attention.gate_bias,
        .landmarks = config->attention.landmarks,
        .landmark_map = config->attention.landmark_map == RFA_LANDMARKS_LEARNED,
        .draws = config->attention.draws,
        .antithetic = config->attention.antithetic,
        .weights = (rfa_weights_kind)config->attention.weights,
        .specificity = config->attention.specificity,
        .window = config->attention.window,
    };
    if (kind == RFA_ATTENTION_ELU) {
        options.map = RFA_MAP_ELU;
    } else if (config->attention.map > 0) {
        options.map = (rfa_map_kind)(config->attention.map - 1);
    }
    if (config->attention.rows > 0) {
        options.rows = (rfa_rows_kind)(config->attention.rows - 1);
    }
    return options;
}

rfa_classifier_options
rfa_session_model(const rfa_config *config, ptrdiff_t classes, ptrdiff_t vocabulary, int documents)
{
    return (rfa_classifier_options){
        .layers = config->model.layers,
        .width = config->model.width,
        .heads = config->model.heads,
        .feed_forward = config->model.feed_forward,
        .head = config->model.head,
        .head2 = config->model.head2,
        .documents = documents,
        .match = (rfa_match_kind)config->model.match,
        .classes = classes,
        .vocabulary = config->model.vocabulary > 0 ? config->model.vocabulary : vocabulary,
        .max_length = config->data.max_length,
        .positions = (rfa_positions)config->model.positions,
        .pooling = (rfa_pooling)config->model.pooling,
        .dropout = config->model.dropout,
        .attention = attention_options(config),
        .segments = (int)config->parallel.segments,
        .carry = (rfa_carry)config->train.carry,
        .recompute = config->train.recompute,
        .seed = (uint64_t)config->train.seed,
    };
}

rfa_schedule rfa_session_schedule(const rfa_config *config)
{
    return (rfa_schedule){
        .kind = (rfa_schedule_kind)config->train.schedule,
        .peak = config->train.rate,
        .warmup = config->train.warmup,
        .steps = config->train.steps,
        .beta1 = config->train.beta1,
        .cycle_beta1 = config->train.cycle_beta1,
    };
}

// What a data set of pairs asks of a configuration.
static rfa_status check_pairs(const rfa_config *config)
{
    if (config->train.window > 0 && config->train.carry == RFA_CARRY_STATEFUL) {
        return rfa_fail(RFA_ERR_USAGE, "train.carry stateful reads windows out by themselves: not "
                                       "for data sets of pairs");
    }
    rfa_config twice = *config; // as many sequences, in the sums of their gradients
    twice.train.batch *= 2;
    const rfa_status status = rfa_config_check(&twice);
    return status == RFA_OK ? status
                            : rfa_fail_within(status,
                                              "documents of pairs, two for each of "
                                              "train.batch (%" PRId64 ")",
                                              config->train.batch);
}

static rfa_status create_model(rfa_session *session)
{
    const int64_t table = session->config.model.vocabulary;
    const int symbols = rfa_dataset_vocabulary(session->data);
    if (table > 0 && table < symbols) {
        return rfa_fail(RFA_ERR_USAGE,
                        "model.vocabulary (%" PRId64 ") is smaller than that of %s (%d)", table,
                        rfa_dataset_path(session->data), symbols);
    }
    if (rfa_dataset_sequences(session->data) > 1) {
        RFA_TRY(check_pairs(&session->config));
    } else if (session->config.model.match != RFA_MATCH_CONCAT) {
        return rfa_fail(RFA_ERR_USAGE, "model.match nli: %s is no data set of pairs",
                        rfa_dataset_path(session->data));
    }
    const rfa_classifier_options options =
        rfa_session_model(&session->config, rfa_dataset_classes(session->data), symbols,
                          rfa_dataset_sequences(session->data));
    return rfa_classifier_create(&session->model, &options, &session->grid.sequence,
                                 session->exchange);
}

static rfa_status create(rfa_session *session, const rfa_comm *world, const char *split)
{
    const rfa_config *config = &session->config;
    const int64_t sequence = config->parallel.sequence ? config->parallel.sequence : world->size;
    if (sequence > world->size || world->size % sequence != 0) {
        return rfa_fail(RFA_ERR_USAGE, "parallel.sequence %" PRId64 " does not divide %d ranks",
                        sequence, world->size);
    }
    if (sequence > config->parallel.segments) {
        return rfa_fail(RFA_ERR_USAGE,
                        "%" PRId64 " ranks share a sequence of %" PRId64
                        " segments: use fewer ranks, or parallel.sequence for data parallel ones, "
                        "or more parallel.segments",
                        sequence, config->parallel.segments);
    }
    rfa_grid_create(&session->grid, world->comm, (int)sequence);
    omp_set_num_threads((int)config->parallel.threads);
    const rfa_comm *all = &session->grid.all;
    RFA_TRY(rfa_agree(all, rfa_gemm_start() ? RFA_OK
                                            : rfa_fail(RFA_ERR_INTERNAL,
                                                       "%s computes wrong products on this "
                                                       "processor: try OPENBLAS_CORETYPE=Haswell",
                                                       rfa_gemm_library())));
    RFA_TRY(check_ranks_alike(session));
    RFA_TRY(rfa_agree(all, rfa_exchange_create(&session->exchange, &session->grid.sequence,
                                               (int)config->parallel.segments,
                                               (rfa_exchange_algorithm)config->parallel.exchange)));
    session->reproducible = rfa_exchange_is_exact(session->exchange);
    RFA_TRY(rfa_dataset_open(&session->data, all, config->data.file, split));
    RFA_TRY(rfa_agree(all, create_model(session)));
    if (!rfa_mem_is_plan()) {
        RFA_TRY(rfa_session_check_ranks(session, 0));
    }
    const int groups = session->grid.data.size;
    const int64_t share = (config->train.batch + groups - 1) / groups;
    const int64_t micro = config->train.micro_batch;
    RFA_TRY(rfa_agree(
        all, rfa_batch_create(&session->batch, (int)(micro > 0 && micro < share ? micro : share),
                              (int)config->parallel.segments, session->grid.sequence.size,
                              session->grid.sequence.rank, config->data.max_length,
                              config->train.window, rfa_dataset_sequences(session->data))));
    session->ceiling = rfa_mem_is_plan() ? 0 : measure_ceiling(all);
    return RFA_OK;
}

rfa_status rfa_session_create(rfa_session *session,
                              const rfa_config *config,
                              const rfa_comm *world,
                              const char *split)
{
    *session = (rfa_session){.config = *config};
    const rfa_status status = create(session, world, split);
    if (status != RFA_OK) {
        rfa_session_destroy(session);
    }
    return status;
}

void rfa_session_destroy(rfa_session *session)
{
    rfa_batch_destroy(&session->batch);
    rfa_classifier_destroy(&session->model);
    rfa_dataset_close(&session->data);
    rfa_exchange_destroy(&session->exchange);
    rfa_grid_destroy(&session->grid);
}

uint64_t rfa_session_digest(const rfa_session *session)
{
    RFA_PROFILE(RFA_PHASE_DIGEST);
    return rfa_digest(0, rfa_classifier_values(session->model),
                      (size_t)rfa_classifier_table(session->model)->size * sizeof(rfa_real));
}

// Parameters, and the projections that are no parameters but must be alike too.
static uint64_t replicated_digest(const rfa_session *session)
{
    const rfa_pool *pool = rfa_classifier_pool(session->model);
    const size_t numbers = (size_t)(pool->matrices * pool->projections * pool->width);
    const uint64_t digest = rfa_session_digest(session);
    return numbers > 0 ? rfa_digest(digest, pool->w, numbers * sizeof(rfa_real)) : digest;
}

rfa_status rfa_session_check_ranks(const rfa_session *session, int64_t step)
{
    const rfa_comm *all = &session->grid.all;
    uint64_t digest = replicated_digest(session), *every = NULL;
    RFA_TRY(rfa_agree(all, rfa_alloc(&every, all->size, sizeof *every, "digests")));
    MPI_Allgather(&digest, 1, MPI_UINT64_T, every, 1, MPI_UINT64_T, all->comm);
    int drifted = -1, most = 0;
    uint64_t common = 0;
    for (int r = 0; r < all->size; r++) { // the digest that most ranks have
        int same = 0;
        for (int other = 0; other < all->size; other++) {
            same += every[other] == every[r];
        }
        common = same > most ? every[r] : common;
        most = same > most ? same : most;
    }
    for (int r = all->size - 1; r >= 0; r--) {
        drifted = every[r] != common ? r : drifted;
    }
    rfa_free(every);
    if (drifted < 0) {
        return RFA_OK;
    }
    if (2 * most <= all->size) {
        return rfa_fail(RFA_STOPPED,
                        "step %" PRId64
                        ": the ranks' parameters differ, half against half (a fault "
                        "of a processor or memory); go on from the last checkpoint",
                        step);
    }
    return rfa_fail(RFA_STOPPED,
                    "step %" PRId64
                    ": the parameters of rank %d are not those of the others (a fault "
                    "of its processor or memory); go on from the last checkpoint",
                    step, drifted);
}
