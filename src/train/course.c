#include "train/course.h"

rfa_status rfa_course_create(rfa_course *course, const rfa_session *session)
{
    const rfa_config *config = &session->config;
    *course = (rfa_course){
        .batch = -1,
        .stateful = config->train.window > 0 && config->train.carry == RFA_CARRY_STATEFUL,
    };
    RFA_TRY(rfa_sampler_create(&course->sampler, (uint64_t)config->train.seed,
                               rfa_dataset_examples(session->data)));
    RFA_TRY(rfa_alloc(&course->id, config->train.batch, sizeof *course->id, "batch"));
    course->of = (rfa_portion){
        .data = session->data, .id = course->id, .n = config->train.batch, .window = -1};
    return RFA_OK;
}

void rfa_course_destroy(rfa_course *course)
{
    rfa_free(course->id);
    rfa_sampler_destroy(&course->sampler);
    *course = (rfa_course){0};
}

static void take_batch(rfa_course *course, const rfa_session *session, int64_t batch)
{
    for (int64_t i = 0; i < course->of.n; i++) {
        course->id[i] = rfa_sampler_at(&course->sampler, batch * course->of.n + i);
    }
    course->batch = batch;
    course->windows = course->stateful
                          ? rfa_session_windows(session, course->of.data, course->id, course->of.n)
                          : 1;
}

void rfa_course_go(rfa_course *course, const rfa_session *session, int64_t step)
{
    if (!course->stateful) {
        take_batch(course, session, step - 1);
        course->step = step;
        return;
    }
    if (step < course->step) {
        course->step = 0;
        course->batch = -1;
    }
    for (; course->step < step; course->step++) {
        if (course->step == 0 || rfa_course_is_border(course)) {
            take_batch(course, session, course->batch + 1);
            course->of.window = -1;
        }
        course->of.window++;
    }
}

bool rfa_course_is_border(const rfa_course *course)
{
    return !course->stateful || course->of.window + 1 == course->windows;
}
