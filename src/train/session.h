// A model on a grid of ranks with its data: what training and evaluation share.
#ifndef RFA_TRAIN_SESSION_H
#define RFA_TRAIN_SESSION_H

#include "config/config.h"
#include "exchange/exact_sum.h"
#include "models/classifier.h"
#include "optim/schedule.h"
#include "tasks/batch.h"

typedef struct {
    rfa_config config;
    rfa_grid grid;
    rfa_exchange *exchange;
    rfa_dataset *data; // split of training, or of evaluation
    rfa_classifier *model;
    rfa_batch batch;
    ptrdiff_t tokens;  // valid, of this rank, in the windows of the last forward
    int64_t step;      // optimiser steps that the parameters have had
    double ceiling;    // measured sgemm rate of all ranks and threads together, flops/s
    bool reproducible; // bits don't depend on the rank count
} rfa_session;

// Builds grid, exchange, model and batch for a configuration and opens one split of its data;
// checks what must agree between ranks. Errors agreed. Collective
// over world.
RFA_NODISCARD rfa_status rfa_session_create(rfa_session *session,
                                            const rfa_config *config,
                                            const rfa_comm *world,
                                            const char *split);
void rfa_session_destroy(rfa_session *session); // idempotent. Collective

// The model that a configuration describes, for data of so many classes, symbols and documents an
// example. Local.
rfa_classifier_options
rfa_session_model(const rfa_config *config, ptrdiff_t classes, ptrdiff_t vocabulary, int documents);

rfa_schedule rfa_session_schedule(const rfa_config *config);

// Digest of the parameters, the same on all ranks.
uint64_t rfa_session_digest(const rfa_session *session);

// All ranks hold the same parameters, or RFA_STOPPED with the rank that has drifted: nothing that
// it has touched may be written. 8 bytes a rank. Collective.
RFA_NODISCARD rfa_status rfa_session_check_ranks(const rfa_session *session, int64_t step);

// Examples id[0..n) of a data set, whole or one window of them (>= 0: training that carries states
// from step to step).
typedef struct {
    rfa_dataset *data;
    const int64_t *id;
    int64_t n;
    int window; // -1: all
} rfa_portion;

// Examples are dealt to the data groups and walked in passes of at most batch.capacity examples.
// All groups make the same number of passes over n, also empty ones.
int rfa_session_passes(const rfa_session *session, int64_t n);

// Windows of the longest of these examples, the same on all ranks. Local.
int rfa_session_windows(const rfa_session *session,
                        const rfa_dataset *data,
                        const int64_t *id,
                        int64_t n);

// Examples of all ranks that have tokens in the portion; model flops of a training step on it,
// forward and backward, of valid tokens. Local.
int64_t rfa_session_examples(const rfa_session *session, const rfa_portion *portion);
double rfa_session_flops(const rfa_session *session, const rfa_portion *portion);

// Makes room for a pass as the forward would, and reads nothing. Local.
RFA_NODISCARD rfa_status rfa_session_reserve(rfa_session *session,
                                             const rfa_portion *portion,
                                             int pass,
                                             bool training);

// Loads a pass, window by window, and runs the model's forward. training: of the step after
// session->step. Errors agreed. Collective.
RFA_NODISCARD rfa_status rfa_session_forward(rfa_session *session,
                                             const rfa_portion *portion,
                                             int pass,
                                             bool training);
// Its backward, from dlogits [examples][classes]. Errors agreed. Collective.
RFA_NODISCARD rfa_status rfa_session_backward(rfa_session *session,
                                              const rfa_portion *portion,
                                              int pass,
                                              const rfa_real *dlogits);

// What passes have seen so far, on this rank.
enum {
    RFA_TALLY_CORRECT,
    RFA_TALLY_EXAMPLES,
    RFA_TALLY_TOKENS,
    RFA_TALLY_GUARDS,
    RFA_TALLY_COUNTS
};
typedef struct {
    rfa_exact_sum loss; // one sum
    int64_t counts[RFA_TALLY_COUNTS];
    int64_t *confusion; // [classes][classes] rows true, columns predicted; or NULL. Borrowed
} rfa_tally;

// The same over all ranks.
typedef struct {
    double loss; // mean, nats
    int64_t correct, examples, tokens, guards;
    const int64_t *confusion;
} rfa_score;

// After a forward: counts its examples; dlogits [examples][classes] = scale times the gradient of
// each example's loss (NULL: not needed). Local.
void rfa_tally_add(rfa_tally *tally, const rfa_session *session, rfa_real *dlogits, double scale);
// Sums over all ranks and clears the tally but for the confusion. Collective.
void rfa_tally_reduce(rfa_tally *tally, const rfa_session *session, rfa_score *score);

// What the model says of each example of a split.
typedef struct {
    int64_t examples;
    int classes;
    int32_t *guess;   // [examples]
    rfa_real *logits; // [examples][classes]
} rfa_predictions;

RFA_NODISCARD rfa_status rfa_predictions_create(rfa_predictions *predictions,
                                                const rfa_dataset *data);
void rfa_predictions_destroy(rfa_predictions *predictions); // idempotent

// Evaluates the first `examples` examples of data (0: all), each exactly once, in evaluation mode;
// the result's bits depend on the parameters and the data only. confusion [classes][classes]
// overwritten; so are predictions (NULL: not wanted), on all ranks. RFA_ERR_NUMERIC where the loss
// is not finite. Collective.
RFA_NODISCARD rfa_status rfa_evaluate(rfa_session *session,
                                      rfa_dataset *data,
                                      int64_t examples,
                                      int64_t *confusion,
                                      rfa_predictions *predictions,
                                      rfa_score *score);

#endif
