// How a run is judged and kept: validation, checkpoints, the test, the end.
#include "train/loop_impl.h"

#include "base/log.h"
#include "train/listops_report.h"
#include "train/profiling.h"
#include "train/provenance.h"
#include "train/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static rfa_evaluation_record
evaluation_record(const rfa_training *training, const char *split, const rfa_score *score)
{
    rfa_evaluation_record record = {
        .step = training->step,
        .loss = score->loss,
        .correct = score->correct,
        .examples = score->examples,
        .classes = rfa_dataset_classes(training->session->data),
        .confusion = score->confusion,
    };
    strncpy(record.split, split, sizeof record.split - 1);
    return record;
}

rfa_status rfa_training_validate(rfa_training *training)
{
    rfa_session *session = training->session;
    rfa_score score = {0};
    training->validating = true;
    RFA_TRY(rfa_evaluate(session, training->validation, session->config.train.evaluate_examples,
                         training->confusion, NULL, &score));
    training->validating = false;
    if (score.correct > training->best_correct) { // ties keep the earlier
        training->best_correct = score.correct;
        training->best_step = training->step;
    }
    rfa_note("step %" PRId64 ": validation loss %.4f, accuracy %.2f %% (%" PRId64 "/%" PRId64 ")",
             training->step, score.loss, rfa_percent(score.correct, score.examples), score.correct,
             score.examples);
    rfa_status status = RFA_OK;
    if (training->run) {
        const rfa_evaluation_record record = evaluation_record(training, "val", &score);
        status = rfa_run_add_evaluation(training->run, &record);
        rfa_provenance_measure(training->run, training->step,
                               training->former_flops + training->pace.flops);
        if (status == RFA_OK) {
            status = rfa_run_write(training->run);
        }
    }
    return rfa_agree(&session->grid.all, status);
}

rfa_status rfa_training_checkpoint(rfa_training *training)
{
    rfa_session *session = training->session;
    rfa_status status = RFA_OK;
    RFA_TRY(rfa_session_check_ranks(session, training->step));
    if (training->run) {
        const rfa_checkpoint_header header = {
            .step = training->step,
            .best_correct = training->best_correct,
            .best_step = training->best_step,
            .digest = rfa_session_digest(session),
        };
        // The best first: a checkpoint never names a best one that is not there.
        if (training->best_step == training->step) {
            status = rfa_state_save_best(training->path, session, &training->optimiser, &header);
        }
        if (status == RFA_OK) {
            status = rfa_state_save(training->path, session, &training->optimiser, &header);
        }
    }
    training->checkpointed = rfa_now();
    training->checkpoint_step = training->step;
    training->checkpoint_asked = false;
    return rfa_agree(&session->grid.all, status);
}

bool rfa_training_is_out_of_patience(const rfa_training *training)
{
    const rfa_config *config = &training->session->config;
    const int64_t patience = config->train.patience, every = config->train.evaluate_every;
    return patience > 0 && every > 0 && training->best_step > 0 &&
           training->step - training->best_step >= patience * every;
}

// Takes the parameters of the best validation where they are not the last ones. Collective.
static rfa_status take_best(rfa_training *training)
{
    char path[RFA_STATE_PATH];
    rfa_checkpoint_header header;
    RFA_TRY(rfa_state_best_path(path, training->path));
    RFA_TRY(rfa_state_load(path, training->session, NULL, &header));
    rfa_note("the test is of the best validation's parameters, of step %" PRId64, header.step);
    return RFA_OK;
}

// The record of the result, and the state that says so. Rank 0.
static rfa_status record_test(rfa_training *training, const rfa_score *score, int64_t step)
{
    rfa_evaluation_record record = evaluation_record(training, "test", score);
    record.step = step;
    rfa_run_set_state(training->run, "finished");
    rfa_run_set_flag(training->run, "stopped_early",
                     training->step < training->session->config.train.steps);
    rfa_run_set_number(training->run, "best_step", (double)training->best_step);
    rfa_provenance_measure(training->run, training->step,
                           training->former_flops + training->pace.flops);
    RFA_TRY(rfa_run_set_test(training->run, &record));
    return rfa_run_write(training->run);
}

// Evaluates, records and prints. digest: of the last parameters.
static rfa_status test_on(rfa_training *training,
                          rfa_dataset *data,
                          rfa_predictions *predictions,
                          int64_t step,
                          uint64_t digest)
{
    rfa_session *session = training->session;
    const rfa_comm *all = &session->grid.all;
    rfa_score score = {0};
    RFA_TRY(rfa_evaluate(session, data, session->config.train.test_examples, training->confusion,
                         predictions, &score));
    rfa_provenance_peaks(training->run, all);
    rfa_status status = rfa_profiling_end(training->run, session, training->pace.steps);
    if (training->run && status == RFA_OK) {
        status = record_test(training, &score, step);
    }
    RFA_TRY(rfa_agree(all, status));
    rfa_report_end(session, &training->pace);
    rfa_report_result(session, &score, digest, session->reproducible);
    // The result stands, whatever the expressions are.
    if (predictions && rfa_listops_report(session, data, "test", score.examples, predictions)) {
        rfa_note("no results by kind of expression: %s", rfa_error_text());
    }
    return RFA_OK;
}

rfa_status rfa_training_test(rfa_training *training)
{
    rfa_session *session = training->session;
    const rfa_comm *all = &session->grid.all;
    const uint64_t digest = rfa_session_digest(session);
    const bool best = session->config.train.test == 1 && training->best_step < training->step;
    rfa_dataset *data = NULL;
    rfa_predictions predictions = {0};
    if (best) {
        RFA_TRY(take_best(training));
    }
    RFA_TRY(rfa_dataset_open(&data, all, session->config.data.file, "test"));
    const bool listops = rfa_listops_is(data);
    rfa_status status =
        rfa_agree(all, listops ? rfa_predictions_create(&predictions, data) : RFA_OK);
    if (status == RFA_OK) {
        status = test_on(training, data, listops ? &predictions : NULL,
                         best ? training->best_step : training->step, digest);
    }
    rfa_predictions_destroy(&predictions);
    rfa_dataset_close(&data);
    return status;
}

rfa_status rfa_training_end_early(rfa_training *training, const char *state, rfa_status status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", rfa_error_text());
    if (training->run) {
        rfa_run_set_state(training->run, state);
        if (rfa_run_write(training->run) != RFA_OK) {
            rfa_note("the record could not be written once more: %s", rfa_error_text());
        }
    }
    return rfa_fail(status, "%s", why);
}
