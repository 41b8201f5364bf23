// A whole training step of a configuration: forward, loss, backward, the sum of gradients over all
// ranks, the optimiser; on synthetic tokens. And the same over lengths.
#include "base/log.h"
#include "bench/measure.h"
#include "bench/synthetic.h"
#include "bench/variant.h"
#include "layers/head.h"
#include "optim/adamw.h"
#include "train/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_LENGTHS = 32, CHECKED = 512, CHECKED_WINDOW = 192 };

typedef struct {
    const rfa_config *config;
    rfa_grid grid;
    rfa_exchange *exchange;
    rfa_classifier *model;
    rfa_batch *batches; // [passes]
    int passes;
    rfa_adamw optimiser;
    rfa_real *gradient, *dlogits, *before; // before: the parameters of a check
    int64_t examples;                      // of the whole batch
    int64_t step;
} training;

// This data group's share of n examples of length tokens, in passes of train.micro_batch and
// windows of span tokens.
static rfa_status create_batches(training *t, int64_t n, ptrdiff_t length, ptrdiff_t span)
{
    const rfa_config *c = t->config;
    const rfa_comm *groups = &t->grid.data, *sequence = &t->grid.sequence;
    const int64_t begin = rfa_share(n, groups->rank, groups->size);
    const int64_t share = rfa_share(n, groups->rank + 1, groups->size) - begin;
    const int64_t most = (n + groups->size - 1) / groups->size, micro = c->train.micro_batch;
    const int64_t capacity = micro > 0 && micro < most ? micro : most;
    t->examples = n;
    t->passes = (int)((most + capacity - 1) / capacity);
    RFA_TRY(rfa_alloc(&t->batches, t->passes, sizeof *t->batches, "batches"));
    for (int pass = 0; pass < t->passes; pass++) {
        const int64_t first = pass * capacity, left = share > first ? share - first : 0;
        RFA_TRY(rfa_bench_batch_create(&t->batches[pass], (int)(begin + first),
                                       (int)(left < capacity ? left : capacity), length, span,
                                       (int)c->parallel.segments, sequence->size, sequence->rank,
                                       c->bench.vocabulary, c->bench.classes));
    }
    return RFA_OK;
}

static void destroy_batches(training *t)
{
    for (int pass = 0; t->batches && pass < t->passes; pass++) {
        rfa_batch_destroy(&t->batches[pass]);
    }
    rfa_free(t->batches);
    t->batches = NULL;
}

static rfa_status create_local(training *t)
{
    const rfa_config *c = t->config;
    const rfa_classifier_options options =
        rfa_session_model(c, (ptrdiff_t)c->bench.classes, (ptrdiff_t)c->bench.vocabulary, 1);
    const rfa_adamw_options optimiser = {
        .beta1 = c->train.beta1,
        .beta2 = c->train.beta2,
        .epsilon = c->train.epsilon,
        .weight_decay = c->train.weight_decay,
        .clip = c->train.clip,
    };
    RFA_TRY(rfa_classifier_create(&t->model, &options, &t->grid.sequence, t->exchange));
    const ptrdiff_t size = rfa_classifier_table(t->model)->size;
    RFA_TRY(rfa_adamw_create(&t->optimiser, &optimiser, size));
    RFA_TRY(rfa_alloc(&t->gradient, size, sizeof *t->gradient, "gradient"));
    RFA_TRY(rfa_alloc(&t->before, size, sizeof *t->before, "parameters"));
    return rfa_alloc(&t->dlogits, (ptrdiff_t)(c->train.batch * c->bench.classes),
                     sizeof *t->dlogits, "logits");
}

static rfa_status create(training *t, const rfa_config *config, const rfa_comm *world)
{
    const int64_t wanted = config->parallel.sequence;
    const int64_t sequence = wanted > 0 ? wanted : world->size;
    *t = (training){.config = config};
    if (config->train.window > 0 && config->train.carry == RFA_CARRY_STATEFUL) {
        return rfa_fail(RFA_ERR_USAGE, "bench: a step with train.carry stateful is one window: set "
                                       "data.max_length to it and train.window to 0");
    }
    if (sequence > world->size || world->size % sequence != 0) {
        return rfa_fail(RFA_ERR_USAGE, "parallel.sequence %" PRId64 " does not divide %d ranks",
                        sequence, world->size);
    }
    rfa_grid_create(&t->grid, world->comm, (int)sequence);
    RFA_TRY(rfa_agree(
        world, rfa_exchange_create(&t->exchange, &t->grid.sequence, (int)config->parallel.segments,
                                   (rfa_exchange_algorithm)config->parallel.exchange)));
    return rfa_agree(world, create_local(t));
}

static void destroy(training *t)
{
    destroy_batches(t);
    rfa_free(t->dlogits);
    rfa_free(t->before);
    rfa_free(t->gradient);
    rfa_adamw_destroy(&t->optimiser);
    rfa_classifier_destroy(&t->model);
    rfa_exchange_destroy(&t->exchange);
    rfa_grid_destroy(&t->grid);
}

// Adds this rank's losses of a pass over the number of all examples; dlogits: their gradient.
static void add_losses(training *t, const rfa_batch *batch, double *loss)
{
    const ptrdiff_t classes = (ptrdiff_t)t->config->bench.classes;
    for (int e = 0; e < batch->examples; e++) {
        const double one = rfa_cross_entropy(t->dlogits + e * classes,
                                             rfa_classifier_logits(t->model) + e * classes, classes,
                                             batch->label[e], 1 / (double)t->examples);
        *loss += t->grid.sequence.rank == 0 ? one / (double)t->examples : 0;
    }
}

// Phases of a step.
enum { FORWARD, BACKWARD, UPDATE, PHASES };
static const char *const phase_names[] = {"forward", "backward", "update"};

// All windows of a pass.
static rfa_status forward(training *t, rfa_batch *batch, double *loss)
{
    const rfa_comm *all = &t->grid.all;
    const int windows = batch->windows;
    for (int window = 0; window < windows; window++) {
        RFA_TRY(rfa_agree(all, rfa_bench_batch_show(batch, window, t->config->bench.vocabulary)));
        RFA_TRY(rfa_agree(all, rfa_classifier_forward(t->model, batch, t->step, true)));
    }
    add_losses(t, batch, loss);
    return RFA_OK;
}

static rfa_status backward(training *t, rfa_batch *batch)
{
    const rfa_comm *all = &t->grid.all;
    const int windows = batch->windows;
    for (int window = windows - 1; window >= 0; window--) {
        if (window + 1 < windows) {
            RFA_TRY(
                rfa_agree(all, rfa_bench_batch_show(batch, window, t->config->bench.vocabulary)));
        }
        RFA_TRY(rfa_agree(all, rfa_classifier_backward(t->model, batch, t->dlogits)));
    }
    return RFA_OK;
}

static rfa_status run(void *context, rfa_lap *laps)
{
    training *t = context;
    const rfa_comm *all = &t->grid.all;
    double loss = 0;
    rfa_lap start;
    t->step++;
    for (int pass = 0; pass < t->passes; pass++) {
        start = rfa_lap_start();
        RFA_TRY(forward(t, &t->batches[pass], &loss));
        rfa_lap_add(&laps[FORWARD], start);
        start = rfa_lap_start();
        RFA_TRY(backward(t, &t->batches[pass]));
        rfa_lap_add(&laps[BACKWARD], start);
    }
    start = rfa_lap_start();
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_DOUBLE, MPI_SUM, all->comm);
    RFA_TRY(rfa_classifier_gradients(t->model, t->gradient, all));
    const rfa_schedule schedule = rfa_session_schedule(t->config);
    const rfa_scheduled at = rfa_schedule_at(&schedule, t->step);
    t->optimiser.options.beta1 = at.beta1;
    const double norm = rfa_adamw_step(&t->optimiser, rfa_classifier_values(t->model), t->gradient,
                                       rfa_classifier_table(t->model), t->step, at.rate);
    rfa_lap_add(&laps[UPDATE], start);
    return isfinite(loss) && isfinite(norm)
               ? RFA_OK
               : rfa_fail(RFA_ERR_INTERNAL, "bench step: loss or gradient is not finite");
}

// The loss with the parameters at before + distance times gradient / norm.
static rfa_status loss_at(training *t, double distance, double norm, double *loss)
{
    rfa_real *values = rfa_classifier_values(t->model);
    const ptrdiff_t size = rfa_classifier_table(t->model)->size;
    for (ptrdiff_t i = 0; i < size; i++) {
        values[i] = (rfa_real)((double)t->before[i] + distance / norm * (double)t->gradient[i]);
    }
    *loss = 0;
    for (int pass = 0; pass < t->passes; pass++) {
        RFA_TRY(forward(t, &t->batches[pass], loss));
    }
    MPI_Allreduce(MPI_IN_PLACE, loss, 1, MPI_DOUBLE, MPI_SUM, t->grid.all.comm);
    return RFA_OK;
}

// Along its own direction the gradient's length is the loss's slope. Steps are small, as the head's
// relus bend the loss; what they and its curvature do shows in the differences between steps of h,
// 2 h and 4 h and, for a relu that turns right here, between both sides. A loss has the roundings
// of about 4 sums of E products a layer, each of which and all of which add up like a random walk.
// Relative to the slope.
static rfa_status
check(training *t, const rfa_bench *bench, rfa_bench_result *result, ptrdiff_t length)
{
    const rfa_comm *all = &t->grid.all;
    const ptrdiff_t size = rfa_classifier_table(t->model)->size;
    const int64_t n = t->grid.data.size;
    double loss = 0, norm = 0, losses[6] = {0};
    // In several windows where there are any; not where the gradient leaves out what crosses them.
    const ptrdiff_t window = (ptrdiff_t)t->config->train.window;
    const bool exact = t->config->train.carry == RFA_CARRY_EXACT;
    const ptrdiff_t span = !exact ? 0 : window < CHECKED_WINDOW ? window : CHECKED_WINDOW;
    RFA_TRY(rfa_agree(all, create_batches(t, n, length < CHECKED ? length : CHECKED, span)));
    memcpy(t->before, rfa_classifier_values(t->model), (size_t)size * sizeof *t->before);
    t->step = 1;
    for (int pass = 0; pass < t->passes; pass++) {
        RFA_TRY(forward(t, &t->batches[pass], &loss));
        rfa_bench_spoil(bench, result->name, t->dlogits);
        RFA_TRY(backward(t, &t->batches[pass]));
    }
    RFA_TRY(rfa_classifier_gradients(t->model, t->gradient, all));
    for (ptrdiff_t i = 0; i < size; i++) {
        norm += (double)t->gradient[i] * (double)t->gradient[i];
    }
    norm = sqrt(norm);
    MPI_Allreduce(MPI_IN_PLACE, &loss, 1, MPI_DOUBLE, MPI_SUM, all->comm);
    const double h = 0.001 / norm; // changes the loss by 0.001
    static const double steps[] = {1, -1, 2, -2, 4, -4};
    for (int i = 0; i < 6; i++) {
        RFA_TRY(loss_at(t, steps[i] * h, norm, &losses[i]));
    }
    memcpy(rfa_classifier_values(t->model), t->before, (size_t)size * sizeof *t->before);
    destroy_batches(t);
    double slope[3];
    for (int i = 0; i < 3; i++) {
        slope[i] = (losses[2 * i] - losses[2 * i + 1]) / (2 * steps[2 * i] * h);
    }
    const double sums = (double)(4 * t->config->model.layers + 4);
    const double terms = sqrt(sums * (double)t->config->model.width);
    const double rounding = ldexp(terms * fmax(loss, 1), -24) / h;
    const double bend = fmax(fabs(slope[0] - slope[1]), fabs(slope[1] - slope[2])) +
                        fabs(losses[0] - 2 * loss + losses[1]) / (2 * h);
    return rfa_bench_check(bench, result, fabs(slope[0] - norm) / norm, (bend + rounding) / norm);
}

static void add_parameters(rfa_bench_result *result, const rfa_config *c, ptrdiff_t length)
{
    rfa_bench_parameter_add(result, "N", length);
    rfa_bench_parameter_add(result, "B", c->train.batch);
    rfa_bench_parameter_add(result, "L", c->model.layers);
    rfa_bench_parameter_add(result, "E", c->model.width);
    rfa_bench_parameter_add(result, "H", c->model.heads);
    rfa_bench_parameter_add(result, "M", c->model.feed_forward);
    if (c->attention.kind == RFA_ATTENTION_RFA || c->attention.kind == RFA_ATTENTION_PERFORMER) {
        rfa_bench_parameter_add(result, "D", c->attention.features);
    }
    rfa_bench_parameter_add(result, "G", c->parallel.segments);
}

static rfa_status measure_created(training *t, rfa_bench *bench, const char *name, ptrdiff_t length)
{
    const rfa_config *c = t->config;
    const double n = (double)c->train.batch, real = sizeof(rfa_real);
    const ptrdiff_t size = rfa_classifier_table(t->model)->size;
    rfa_bench_result results[PHASES];
    char variant[RFA_BENCH_NAME];
    rfa_bench_variant_name(variant, c);
    results[0] = rfa_bench_result_of(bench, name, variant, n * (double)length);
    add_parameters(&results[0], c, length);
    RFA_TRY(check(t, bench, &results[0], length));
    RFA_TRY(rfa_agree(&t->grid.all,
                      create_batches(t, c->train.batch, length, (ptrdiff_t)c->train.window)));
    for (int phase = PHASES - 1; phase >= 0; phase--) { // the first is the model of the others
        results[phase] = results[0];
        rfa_bench_append(results[phase].phase, RFA_BENCH_NAME, "%s", phase_names[phase]);
        if (phase < UPDATE) {
            results[phase].flops = n * rfa_classifier_flops(t->model, length, phase == BACKWARD);
        } else { // parameters, moments, gradients of each rank, read and written
            results[phase].flops = 0;
            results[phase].bytes = 8 * real * (double)size * bench->world->size;
        }
    }
    return rfa_bench_measure(bench, results, PHASES, run, t);
}

static rfa_status
measure_length(rfa_bench *bench, const char *name, const rfa_config *config, ptrdiff_t length)
{
    training t;
    rfa_bench_begin(bench);
    rfa_status status = create(&t, config, bench->world);
    if (status == RFA_OK) {
        status = measure_created(&t, bench, name, length);
    }
    destroy(&t);
    return status;
}

rfa_status rfa_bench_step(rfa_bench *bench)
{
    return measure_length(bench, "step", bench->config, (ptrdiff_t)bench->config->data.max_length);
}

rfa_status rfa_bench_length(rfa_bench *bench)
{
    ptrdiff_t lengths[MOST_LENGTHS];
    int count = 0;
    RFA_TRY(rfa_bench_numbers(lengths, &count, MOST_LENGTHS, "lengths",
                              bench->config->bench.lengths, RFA_ROWS, 1 << 30));
    for (int i = 0; i < count; i++) {
        rfa_config config = *bench->config;
        config.data.max_length = lengths[i];
        RFA_TRY(measure_length(bench, "length", &config, lengths[i]));
    }
    return RFA_OK;
}
