// What people read while a run goes on, on stderr from rank 0.
#ifndef RFA_TRAIN_REPORT_H
#define RFA_TRAIN_REPORT_H

#include "storage/runfile.h"
#include "train/session.h"

// Sums over the training steps of this process, all ranks: seconds and seconds in the exchange are
// those of the slowest rank of each step, flops are model flops.
typedef struct {
    double seconds, wait, flops;
    int64_t tokens, steps;
} rfa_pace;

void rfa_report_start(const rfa_session *session); // model, data, ranks
// The progress line; accuracy in percent, smoothed.
void rfa_report_step(const rfa_session *session,
                     const rfa_pace *pace,
                     const rfa_step_record *record,
                     double accuracy);
void rfa_report_end(const rfa_session *session, const rfa_pace *pace); // speed against sgemm

// What the confusion of a split says, on stdout: accuracy, its interval, macro F1, the majority
// class; the matrix itself up to 16 classes, with matrix.
void rfa_report_score(const char *split, const rfa_score *score, int classes, bool matrix);

// The result of the test split, and the digest of the last parameters, which is printed only when
// it does not depend on the rank count.
void rfa_report_result(const rfa_session *session,
                       const rfa_score *score,
                       uint64_t digest,
                       bool rank_independent);

#endif
