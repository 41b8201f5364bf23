#include "train/report.h"

#include "base/log.h"
#include "base/metrics.h"
#include "config/keys.h"
#include "tensor/gemm.h"

#include <inttypes.h>
#include <stdio.h>

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

// What is computed twice for the sake of memory, in products of a step of the longest examples.
static void report_repeats(const rfa_session *session)
{
    const rfa_config *config = &session->config;
    const ptrdiff_t n = (ptrdiff_t)config->data.max_length;
    const double forward = rfa_classifier_flops(session->model, n, false);
    const double share = forward / (forward + rfa_classifier_flops(session->model, n, true));
    const double windows = (double)rfa_batch_windows(&session->batch, n);
    const double layers = (double)config->model.layers;
    if (windows > 1 && config->train.carry != RFA_CARRY_STATEFUL) {
        rfa_note("up to %.0f windows of %" PRId64 " tokens, each but the last computed twice: "
                 "%.0f %% more products",
                 windows, config->train.window, 100 * share * (windows - 1) / windows);
    }
    if (config->train.recompute) {
        rfa_note(
            "blocks but the last are computed once more for the backward: %.0f %% more products",
            100 * share * (layers - 1) / layers);
    }
}

void rfa_report_start(const rfa_session *session)
{
    const rfa_config *config = &session->config;
    rfa_note("%s: %td parameters; %s, %" PRId64 " training examples, digest %s",
             rfa_key_find("attention", "kind")->choices[config->attention.kind],
             rfa_classifier_table(session->model)->learned, config->data.file,
             rfa_dataset_examples(session->data), rfa_dataset_digest(session->data));
    rfa_note("%d rank%s = %d x %d (sequence x data), %" PRId64 " segment%s, %" PRId64
             " thread%s a rank; %s; sgemm %.0f GFLOP/s",
             session->grid.all.size, plural(session->grid.all.size), session->grid.sequence.size,
             session->grid.data.size, config->parallel.segments, plural(config->parallel.segments),
             config->parallel.threads, plural(config->parallel.threads), rfa_gemm_library(),
             session->ceiling / 1e9);
    report_repeats(session);
}

void rfa_report_step(const rfa_session *session,
                     const rfa_pace *pace,
                     const rfa_step_record *record,
                     double accuracy)
{
    const int64_t steps = session->config.train.steps;
    const double left = (double)(steps - record->step) * pace->seconds / (double)pace->steps;
    char text[32];
    rfa_progress(
        false, "step %" PRId64 "/%" PRId64 "  loss %.4f  accuracy %.1f %%  %.1fk tokens/s  %s left",
        record->step, steps, record->loss, accuracy, (double)pace->tokens / pace->seconds / 1000,
        rfa_duration(text, left));
}

void rfa_report_end(const rfa_session *session, const rfa_pace *pace)
{
    if (pace->steps > 0) {
        const double rate = pace->flops / pace->seconds;
        rfa_note("%" PRId64 " step%s: %.1fk tokens/s, %.1f GFLOP/s = %.0f %% of sgemm "
                 "(%.1f GFLOP/s, %s), %.1f %% of the time in the exchange, %.0f MiB a rank at most",
                 pace->steps, plural(pace->steps), (double)pace->tokens / pace->seconds / 1000,
                 rate / 1e9, 100 * rate / session->ceiling, session->ceiling / 1e9,
                 rfa_gemm_library(), 100 * pace->wait / pace->seconds,
                 (double)rfa_mem_peak() / 1048576);
    }
}

static void print_matrix(const int64_t *confusion, int classes)
{
    enum { MOST = 16, CELL = 8 };
    char line[(MOST + 1) * CELL + 16];
    if (classes > MOST) {
        return;
    }
    for (int row = -1; row < classes; row++) {
        int used = row < 0 ? snprintf(line, sizeof line, "true\\guess")
                           : snprintf(line, sizeof line, "%10d", row);
        for (int c = 0; c < classes; c++) {
            const int64_t cell = row < 0 ? c : confusion[row * classes + c];
            used += snprintf(line + used, sizeof line - (size_t)used, " %7" PRId64, cell);
        }
        rfa_print("%s", line);
    }
}

void rfa_report_score(const char *split, const rfa_score *score, int classes, bool matrix)
{
    const double n = (double)score->examples;
    const rfa_interval interval = rfa_wilson(score->correct, score->examples);
    rfa_print("%s accuracy %.4f (%" PRId64 "/%" PRId64 ")", split, (double)score->correct / n,
              score->correct, score->examples);
    rfa_print("%s interval %.4f to %.4f (95 %%, Wilson)", split, interval.low, interval.high);
    rfa_print("%s macro F1 %.4f", split, rfa_macro_f1(score->confusion, classes));
    rfa_print("%s majority class %.4f", split, (double)rfa_majority(score->confusion, classes) / n);
    if (matrix) {
        print_matrix(score->confusion, classes);
    }
}

void rfa_report_result(const rfa_session *session,
                       const rfa_score *score,
                       uint64_t digest,
                       bool rank_independent)
{
    const int64_t cap = session->config.data.max_length;
    const ptrdiff_t longest = rfa_dataset_longest(session->data);
    rfa_note("%s, at most %" PRId64 " tokens of a sequence", rfa_dataset_task(session->data),
             longest < cap ? (int64_t)longest : cap);
    rfa_report_score("test", score, rfa_dataset_classes(session->data), false);
    if (rank_independent) {
        rfa_print("digest %016" PRIx64, digest);
    } else {
        rfa_note("no digest: the forced exscan sums in an order that depends on the rank count");
    }
}
