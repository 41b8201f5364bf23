// A run in progress: what loop.c (steps) and outcome.c (validation, checkpoints, the end) share.
#ifndef RFA_TRAIN_LOOP_IMPL_H
#define RFA_TRAIN_LOOP_IMPL_H

#include "optim/adamw.h"
#include "train/course.h"
#include "train/loop.h"
#include "train/report.h"

// All that a run in progress holds beside the session.
typedef struct {
    rfa_session *session;
    rfa_dataset *validation;
    rfa_course course;
    rfa_adamw optimiser;
    rfa_tally tally;
    rfa_run *run; // rank 0
    const rfa_train_options *options;
    const char *path;
    const char *stop;             // why to end after this step, or NULL
    bool validating;              // within an evaluation
    bool checkpoint_asked;        // by time
    double started, checkpointed; // rfa_now at the start and at the last checkpoint
    double round;                 // rfa_now where this round began
    double longest;               // seconds of the longest round: steps up to the end of a batch,
                                  // validation, checkpoint
    int64_t step;                 // optimiser steps done
    int64_t best_correct, best_step, checkpoint_step;
    int64_t *confusion;
    rfa_real *gradient, *dlogits;
    rfa_pace pace;       // of the steps of this process
    double former_flops; // model flops of the steps before
} rfa_training;

static inline double rfa_percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

// Whether train.patience has run out: so many validations have passed since the best one.
bool rfa_training_is_out_of_patience(const rfa_training *training);

// Validation; the record is then written whole. Collective.
RFA_NODISCARD rfa_status rfa_training_validate(rfa_training *training);
// A checkpoint of the state, and of the best one when it is this. Collective.
RFA_NODISCARD rfa_status rfa_training_checkpoint(rfa_training *training);
// The final result on the test split, which training never looks at before, of the last parameters
// or with train.test best of those of RUN.best.ckpt. Collective.
RFA_NODISCARD rfa_status rfa_training_test(rfa_training *training);
// The record says how the run ended, if it can still be written; what is reported is why it did:
// status, with its error text.
RFA_NODISCARD rfa_status rfa_training_end_early(rfa_training *training,
                                                const char *state,
                                                rfa_status status);

#endif
