#include "train/loop_impl.h"

#include "base/log.h"
#include "base/stop.h"
#include "optim/adamw.h"
#include "storage/checkpoint.h"
#include "train/finished.h"
#include "train/profiling.h"
#include "train/provenance.h"
#include "train/state.h"
#include "train/warnings.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static rfa_status create(rfa_training *training)
{
    rfa_session *session = training->session;
    const rfa_config *config = &session->config;
    const rfa_adamw_options options = {.beta1 = config->train.beta1,
                                       .beta2 = config->train.beta2,
                                       .epsilon = config->train.epsilon,
                                       .weight_decay = config->train.weight_decay,
                                       .clip = config->train.clip};
    const ptrdiff_t size = rfa_classifier_table(session->model)->size;
    const int classes = rfa_dataset_classes(session->data);
    RFA_TRY(rfa_course_create(&training->course, session));
    RFA_TRY(rfa_adamw_create(&training->optimiser, &options, size));
    RFA_TRY(rfa_exact_sum_create(&training->tally.loss, 1, "loss"));
    RFA_TRY(rfa_alloc(&training->gradient, size, sizeof *training->gradient, "gradient"));
    RFA_TRY(rfa_alloc(&training->dlogits, (ptrdiff_t)session->batch.capacity * classes,
                      sizeof *training->dlogits, "logits"));
    return rfa_alloc(&training->confusion, (ptrdiff_t)classes * classes,
                     sizeof *training->confusion, "confusion matrix");
}

static void destroy(rfa_training *training)
{
    rfa_run_destroy(&training->run);
    rfa_free(training->confusion);
    rfa_free(training->dlogits);
    rfa_free(training->gradient);
    rfa_exact_sum_destroy(&training->tally.loss);
    rfa_adamw_destroy(&training->optimiser);
    rfa_course_destroy(&training->course);
    rfa_dataset_close(&training->validation);
}

static double exchange_wait(const rfa_session *session)
{
    return rfa_exchange_costs(session->exchange)->seconds +
           rfa_classifier_gather_cost(session->model).seconds;
}

// What ranks tell each other after a step; any rank's wish is all ranks'.
enum { SECONDS, WAIT, STOP_SIGNAL, STOP_TIME, CHECKPOINT, WISHES };

// How many steps a round with a validation takes at most: a batch of it costs less than a step. So
// the time limit is kept before the first validation has been timed.
static double validation_rounds(const rfa_training *training)
{
    const rfa_config *config = &training->session->config;
    const int64_t all = rfa_dataset_examples(training->validation);
    const int64_t some = config->train.evaluate_examples;
    const int64_t n = some > 0 && some < all ? some : all;
    return 1 + ceil((double)n / (double)config->train.batch);
}

static void make_wishes(const rfa_training *training, double wishes[WISHES])
{
    const rfa_config *config = &training->session->config;
    const double now = rfa_now(), minutes = config->train.checkpoint_minutes;
    const double left = rfa_stop_time_left(training->started, config->train.max_minutes);
    wishes[STOP_SIGNAL] = rfa_stop_signal() != NULL;
    wishes[STOP_TIME] = left < 2 * training->longest + 2; // another round, the last words
    wishes[CHECKPOINT] = minutes > 0 && now - training->checkpointed > 60 * minutes;
}

static void hear_wishes(rfa_training *training, const double wishes[WISHES])
{
    if (wishes[STOP_SIGNAL] > 0 || wishes[STOP_TIME] > 0) {
        training->stop = wishes[STOP_SIGNAL] > 0 ? "a signal" : "the time limit";
    }
    training->checkpoint_asked = wishes[CHECKPOINT] > 0;
}

// For tests: a parameter that changes by itself, a gradient that is no number.
static void inject_faults(rfa_training *training)
{
    const rfa_session *session = training->session;
    const rfa_comm *all = &session->grid.all;
    if (rfa_fault("train.drift", all, RFA_ERR_INTERNAL) != RFA_OK) {
        rfa_classifier_values(session->model)[0] += (rfa_real)1e-3;
    }
    if (rfa_fault("train.nan", all, RFA_ERR_NUMERIC) != RFA_OK && session->batch.examples > 0) {
        training->dlogits[0] = (rfa_real)NAN;
    }
}

// One optimiser step: forward, loss, backward of the batch in passes; gradients summed over all
// ranks; update. On RFA_ERR_NUMERIC the parameters are those of the step before.
static rfa_status take_step(rfa_training *training, rfa_step_record *record, rfa_score *score)
{
    RFA_PROFILE_STRETCH(training->options->profile);
    rfa_session *session = training->session;
    const rfa_comm *all = &session->grid.all;
    const int64_t step = training->step + 1;
    const double start = rfa_now(), waited = exchange_wait(session);
    rfa_course_go(&training->course, session, step);
    const rfa_portion *portion = &training->course.of;
    const double scale = 1 / (double)rfa_session_examples(session, portion);
    for (int pass = 0; pass < rfa_session_passes(session, portion->n); pass++) {
        RFA_TRY(rfa_session_forward(session, portion, pass, true));
        rfa_tally_add(&training->tally, session, training->dlogits, scale);
        inject_faults(training);
        RFA_TRY(rfa_session_backward(session, portion, pass, training->dlogits));
    }
    rfa_tally_reduce(&training->tally, session, score);
    RFA_TRY(rfa_classifier_gradients(session->model, training->gradient, all));
    if (!isfinite(score->loss)) {
        return rfa_fail(RFA_ERR_NUMERIC, "the loss is not finite: diverged");
    }
    const rfa_schedule schedule = rfa_session_schedule(&session->config);
    const rfa_scheduled at = rfa_schedule_at(&schedule, step);
    training->optimiser.options.beta1 = at.beta1;
    const double norm =
        rfa_adamw_step(&training->optimiser, rfa_classifier_values(session->model),
                       training->gradient, rfa_classifier_table(session->model), step, at.rate);
    if (!isfinite(norm)) {
        return rfa_fail(RFA_ERR_NUMERIC, "the gradient's norm is not finite: diverged");
    }
    training->step = session->step = step;
    double times[WISHES] = {
        [SECONDS] = rfa_now() - start,
        [WAIT] = exchange_wait(session) - waited,
    };
    training->longest = fmax(training->longest, times[SECONDS] * validation_rounds(training));
    training->longest = fmax(training->longest, rfa_now() - training->round);
    make_wishes(training, times);
    MPI_Allreduce(MPI_IN_PLACE, times, WISHES, MPI_DOUBLE, MPI_MAX, all->comm);
    hear_wishes(training, times);
    *record = (rfa_step_record){
        .step = step,
        .loss = score->loss,
        .learning_rate = at.rate,
        .gradient_norm = norm,
        .tokens_per_second = (double)score->tokens / times[SECONDS],
        .exchange_wait = times[WAIT],
        .seconds = times[SECONDS],
        .guards = score->guards,
        .digest = rfa_session_digest(session),
    };
    training->pace.seconds += times[SECONDS];
    training->pace.wait += times[WAIT];
    training->pace.tokens += score->tokens;
    training->pace.steps++;
    training->pace.flops += rfa_session_flops(session, portion);
    return RFA_OK;
}

// True at multiples of every and at the end; 0: at the end only.
static bool is_due(int64_t step, int64_t every, int64_t steps)
{
    return step == steps || (every > 0 && step % every == 0);
}

// Ends in good order before the end: the exit code says so, --resume goes on.
static rfa_status stop(rfa_training *training)
{
    if (training->checkpoint_step != training->step) {
        RFA_TRY(rfa_training_checkpoint(training));
    }
    RFA_TRY(rfa_agree(&training->session->grid.all,
                      rfa_profiling_end(training->run, training->session, training->pace.steps)));
    return rfa_fail(RFA_STOPPED, "stopped by %s after step %" PRId64 "; --resume goes on",
                    training->stop, training->step);
}

static rfa_status run_steps(rfa_training *training, int64_t last)
{
    const rfa_config *config = &training->session->config;
    const rfa_train_options *options = training->options;
    const rfa_comm *all = &training->session->grid.all;
    double accuracy = -1; // of the last steps, smoothed, in percent
    training->round = rfa_now();
    bool validation_due = false, checkpoint_due = false;
    while (training->step < last && !rfa_training_is_out_of_patience(training)) {
        rfa_step_record record = {0};
        rfa_score score = {0};
        RFA_TRY(rfa_agree(all, rfa_fault("train.step", all, RFA_ERR_IO)));
        RFA_TRY(take_step(training, &record, &score));
        const double now = rfa_percent(score.correct, score.examples);
        accuracy = accuracy < 0 ? now : 0.95 * accuracy + 0.05 * now;
        rfa_status status = training->run ? rfa_run_add_step(training->run, &record) : RFA_OK;
        if (status == RFA_OK && options->watch) {
            status = options->watch(options->context, &record);
        }
        RFA_TRY(rfa_agree(all, status));
        rfa_report_step(training->session, &training->pace, &record, accuracy);
        if (is_due(training->step, config->train.check_every, config->train.steps)) {
            RFA_TRY(rfa_session_check_ranks(training->session, training->step));
        }
        validation_due |= is_due(training->step, config->train.evaluate_every, config->train.steps);
        checkpoint_due |=
            is_due(training->step, config->train.checkpoint_every, config->train.steps);
        if (!rfa_course_is_border(&training->course) && training->step < config->train.steps) {
            continue; // with states on the way: what is due waits for the end of the batch
        }
        if (validation_due) {
            RFA_TRY(rfa_training_validate(training));
        }
        const bool at_end = rfa_training_is_out_of_patience(training);
        if (at_end) {
            rfa_note("no better validation since step %" PRId64 ": ending early",
                     training->best_step);
        }
        if (checkpoint_due || training->checkpoint_asked || at_end ||
            training->best_step == training->step) {
            RFA_TRY(rfa_training_checkpoint(training));
        }
        validation_due = checkpoint_due = false;
        training->longest = fmax(training->longest, rfa_now() - training->round);
        training->round = rfa_now();
        if (training->stop && training->step < config->train.steps) {
            return stop(training);
        }
    }
    return RFA_OK;
}

static rfa_status start_record(rfa_training *training, const rfa_train_options *options)
{
    rfa_session *session = training->session;
    char *text = NULL;
    rfa_status status = RFA_OK;
    if (session->grid.all.rank == 0) {
        status = rfa_config_text(&text, &session->config);
        if (status == RFA_OK) {
            status = rfa_run_create(&training->run, options->run_path, text,
                                    options->resume ? training->step : -1, options->overwrite);
        }
    }
    rfa_free(text);
    RFA_TRY(rfa_agree(&session->grid.all, status));
    status = rfa_provenance_describe(training->run, session, training->step);
    for (int64_t step = 1; training->run && step <= training->step; step++) {
        rfa_course_go(&training->course, session, step);
        training->former_flops += rfa_session_flops(session, &training->course.of);
    }
    if (training->run &&
        status == RFA_OK) { // readers see the run, and an overwritten one is gone, from now on
        rfa_run_set_state(training->run, "running");
        status = rfa_run_write(training->run);
    }
    return rfa_agree(&session->grid.all, status);
}

static rfa_status train(rfa_training *training, const rfa_train_options *options)
{
    rfa_session *session = training->session;
    const rfa_comm *all = &session->grid.all;
    RFA_TRY(rfa_agree(all, create(training)));
    RFA_TRY(rfa_dataset_open(&training->validation, all, session->config.data.file, "val"));
    if (options->resume) {
        rfa_checkpoint_header header;
        RFA_TRY(rfa_state_load(options->run_path, session, &training->optimiser, &header));
        training->step = header.step;
        training->best_correct = header.best_correct;
        training->best_step = header.best_step;
        if (training->step == session->config.train.steps ||
            rfa_training_is_out_of_patience(training)) {
            bool finished = false;
            RFA_TRY(rfa_finished_check(&finished, options->run_path, session));
            if (finished) {
                return RFA_OK;
            }
        }
        rfa_note("resuming %s after step %" PRId64, options->run_path, training->step);
    }
    RFA_TRY(start_record(training, options));
    rfa_report_start(session);
    char warnings[1024];
    RFA_TRY(rfa_warn_of_data(warnings, sizeof warnings, session, training->validation));
    if (training->run && warnings[0]) {
        rfa_run_set_text(training->run, "warnings", warnings);
    }
    const int64_t steps = session->config.train.steps;
    const bool partly = options->last_step > 0 && options->last_step < steps;
    const rfa_status status = run_steps(training, partly ? options->last_step : steps);
    if (status == RFA_ERR_NUMERIC) { // an outcome of the run: the record shows the last good step
        const char *where = training->validating ? "validation after step" : "step";
        const int64_t step = training->step + !training->validating;
        return rfa_training_end_early(training, "diverged",
                                      rfa_fail_within(status, "%s %" PRId64, where, step));
    }
    if (status != RFA_OK) {
        return rfa_training_end_early(training, status == RFA_STOPPED ? "stopped" : "failed",
                                      status);
    }
    const rfa_status tested = partly ? RFA_OK : rfa_training_test(training);
    return tested == RFA_ERR_NUMERIC ? rfa_training_end_early(training, "diverged", tested)
                                     : tested;
}

rfa_status rfa_train(rfa_session *session, const rfa_train_options *options)
{
    rfa_training training = {.session = session,
                             .options = options,
                             .path = options->run_path,
                             .best_correct = -1,
                             .best_step = -1,
                             .started = rfa_now(),
                             .checkpointed = rfa_now()};
    rfa_stop_on_signals();
    const rfa_status status = train(&training, options);
    destroy(&training);
    return status;
}
