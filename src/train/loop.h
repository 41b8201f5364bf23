// The training loop: step, evaluate, checkpoint, resume, outcome.
#ifndef RFA_TRAIN_LOOP_H
#define RFA_TRAIN_LOOP_H

#include "config/config.h"
#include "storage/runfile.h"
#include "train/session.h"

typedef struct {
    const char *run_path; // RUN.h5
    bool resume, overwrite;
    bool profile; // where the time of the steps goes: printed at the end, and on record
    // For callers that look on: called on all ranks after each step; its status is agreed and ends
    // the run.
    rfa_status (*watch)(void *context, const rfa_step_record *record);
    void *context;
    int64_t last_step; // > 0: ends after this step, without the test split and its result lines
} rfa_train_options;

// Trains, evaluates on the test split at the end, and prints the two result lines on stdout.
// Collective.
RFA_NODISCARD rfa_status rfa_train(rfa_session *session, const rfa_train_options *options);

#endif
