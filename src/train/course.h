// What each step takes: batch k of a run is a function of seed and k; a step takes a whole batch,
// or where states are carried from step to step its next window.
#ifndef RFA_TRAIN_COURSE_H
#define RFA_TRAIN_COURSE_H

#include "train/session.h"

typedef struct {
    rfa_sampler sampler;
    int64_t *id;    // [train.batch] of the batch
    int64_t step;   // that it stands at; 0: before the first
    int64_t batch;  // number of its batch, from 0
    int windows;    // steps of the batch
    rfa_portion of; // what the step takes
    bool stateful;
} rfa_course;

RFA_NODISCARD rfa_status rfa_course_create(rfa_course *course, const rfa_session *session);
void rfa_course_destroy(rfa_course *course); // idempotent

// Goes to step step >= 1. Local; backwards it starts anew.
void rfa_course_go(rfa_course *course, const rfa_session *session, int64_t step);

// Whether the batch ends with this step, so that no state is carried on.
bool rfa_course_is_border(const rfa_course *course);

#endif
