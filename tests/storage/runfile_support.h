// Runs whose every number follows from the step, and checks of what is read back.
#ifndef TESTS_STORAGE_RUNFILE_SUPPORT_H
#define TESTS_STORAGE_RUNFILE_SUPPORT_H

#include "storage/scratch.h"

#include "storage/runfile.h"

#include <float.h>
#include <math.h>

static const char config_text[] = "data:\n"
                                  "  file: data/\xc3\xbc.h5\n"
                                  "  max_length: 2000\n"
                                  "attention:\n"
                                  "  kind: rfa\n"
                                  "  causal: true\n"
                                  "  bandwidth: 1.5\n"
                                  "train:\n"
                                  "  seed: 9007199254740993\n"
                                  "  rate: 1e-3\n"
                                  "  name: \"12\"\n";

// What step n says, awkward numbers included.
static inline rfa_step_record step_record(int64_t n)
{
    const double awkward[] = {1.0 / 3, NAN, INFINITY, DBL_MIN / 8, -0.0, DBL_MAX, 0.1, 1e-300};
    return (rfa_step_record){
        .step = n,
        .loss = awkward[n % 8],
        .learning_rate = 1e-3 / (double)n,
        .gradient_norm = sqrt((double)n),
        .tokens_per_second = 1e6 + (double)n,
        .exchange_wait = 1e-5 * (double)n,
        .seconds = 0.125,
        .guards = n % 3,
        .digest = (uint64_t)n * 0x9e3779b97f4a7c15u,
    };
}

static const int64_t matrix[9] = {5, 1, 0, 2, 7, 1, 0, 0, 4};

static inline rfa_evaluation_record evaluation_record(int64_t step)
{
    return (rfa_evaluation_record){.step = step,
                                   .split = "validation",
                                   .loss = 1.0 / (double)step,
                                   .correct = 16,
                                   .examples = 20,
                                   .classes = 3,
                                   .confusion = matrix};
}

// Bits alike; in lines all that isn't finite became NaN.
static inline bool same_number(double a, double b, bool lines)
{
    return same_bytes(&a, &b, sizeof a) || (isnan(a) && (lines ? !isfinite(b) : isnan(b)));
}

static inline bool same_step(const rfa_step_record *a, const rfa_step_record *b, bool lines)
{
    return a->step == b->step && same_number(a->loss, b->loss, lines) &&
           same_number(a->learning_rate, b->learning_rate, lines) &&
           same_number(a->gradient_norm, b->gradient_norm, lines) &&
           same_number(a->tokens_per_second, b->tokens_per_second, lines) &&
           same_number(a->exchange_wait, b->exchange_wait, lines) &&
           same_number(a->seconds, b->seconds, lines) && a->guards == b->guards &&
           a->digest == b->digest;
}

// The view holds steps 1 .. n and evaluations at each multiple of every up to n.
static inline void check_view(const rfa_run_view *view, int64_t n, int64_t every, bool lines)
{
    check(view->steps == n);
    for (int64_t i = 0; i < n; i++) {
        const rfa_step_record want = step_record(i + 1);
        if (!same_step(&view->step[i], &want, lines)) {
            print_error("step %lld differs\n", (long long)i + 1);
            check(false);
        }
    }
    check(view->evaluations == n / every);
    for (int64_t i = 0; i < view->evaluations; i++) {
        const rfa_evaluation_record *have = &view->evaluation[i];
        const rfa_evaluation_record want = evaluation_record((i + 1) * every);
        check(have->step == want.step && have->loss == want.loss && have->correct == want.correct);
        check(have->examples == want.examples && strcmp(have->split, want.split) == 0);
        check(have->classes == 3 && memcmp(have->confusion, matrix, sizeof matrix) == 0);
    }
}

static inline void check_file(const char *path, int64_t n, int64_t every, bool lines)
{
    rfa_run_view view;
    check_ok(rfa_run_read(&view, path));
    check_view(&view, n, every, lines);
    rfa_run_view_free(&view);
}

static inline void add(rfa_run *run, int64_t first, int64_t last, int64_t every)
{
    for (int64_t n = first; n <= last; n++) {
        const rfa_step_record step = step_record(n);
        check_ok(rfa_run_add_step(run, &step));
        if (n % every == 0) {
            const rfa_evaluation_record record = evaluation_record(n);
            check_ok(rfa_run_add_evaluation(run, &record));
        }
    }
}

// A run of written steps in RUN.h5 and the rest in lines.
static inline void make_run(const char *path, int64_t written, int64_t all, int64_t every)
{
    rfa_run *run = NULL;
    check_ok(rfa_run_create(&run, path, config_text, -1, true));
    add(run, 1, written, every);
    check_ok(rfa_run_write(run));
    add(run, written + 1, all, every);
    rfa_run_destroy(&run);
    check(run == NULL);
}

#endif
