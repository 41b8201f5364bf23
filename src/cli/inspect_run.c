#include "base/metrics.h"
#include "cli/inspect.h"
#include "storage/columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static double accuracy(const rfa_evaluation_record *record)
{
    return record->examples > 0 ? (double)record->correct / (double)record->examples : NAN;
}

static void print_starts(const rfa_run_view *view)
{
    enum { SHOWN = 10 };
    const int64_t first = view->starts > SHOWN ? view->starts - SHOWN : 0;
    if (view->starts > 0) {
        printf("\n%20s %8s %6s %8s %10s  %s\n", "started", "step", "ranks", "threads", "sgemm",
               "hosts, commit");
    }
    for (int64_t i = first; i < view->starts; i++) {
        const rfa_start_record *s = &view->start[i];
        printf("%20s %8" PRId64 " %6" PRId64 " %8" PRId64 " %10.3g  %s, %s\n", s->started, s->step,
               s->ranks, s->threads, s->sgemm_flops_per_second, s->hosts, s->commit);
    }
}

static void print_steps(const rfa_run_view *view)
{
    enum { SHOWN = 5 };
    const int64_t first = view->steps > SHOWN ? view->steps - SHOWN : 0;
    if (view->steps > 0) {
        printf("\n%8s %10s %10s %10s %10s %8s %8s %6s  %s\n", "step", "loss", "rate", "gradient",
               "tokens/s", "seconds", "exchange", "guards", "digest");
    }
    for (int64_t i = first; i < view->steps; i++) {
        const rfa_step_record *s = &view->step[i];
        printf("%8" PRId64 " %10.4f %10.3g %10.4g %10.4g %8.3g %6.1f %% %6" PRId64 "  %016" PRIx64
               "\n",
               s->step, s->loss, s->learning_rate, s->gradient_norm, s->tokens_per_second,
               s->seconds, s->seconds > 0 ? 100 * s->exchange_wait / s->seconds : 0, s->guards,
               s->digest);
    }
}

// Mean loss of the steps of column i of columns; NaN when none of them has one.
static double column_loss(const rfa_run_view *view, int i, int columns)
{
    const int64_t begin = view->steps * i / columns, end = view->steps * (i + 1) / columns;
    double sum = 0;
    int64_t count = 0;
    for (int64_t s = begin; s < end; s++) {
        if (isfinite(view->step[s].loss)) {
            sum += view->step[s].loss;
            count++;
        }
    }
    return count > 0 ? sum / (double)count : NAN;
}

enum { CURVE = 60 }; // columns of a curve

// Values as one line of blocks, from the least to the greatest; nothing when there is no shape.
static void print_blocks(const char *label, const double *values, int columns)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < columns; i++) {
        least = fmin(least, values[i]);
        most = fmax(most, values[i]);
    }
    if (columns < 2 || !isfinite(least) || !isfinite(most)) {
        return;
    }
    printf("%s %.4f ", label, values[0]);
    for (int i = 0; i < columns; i++) {
        const double height = most > least ? (values[i] - least) / (most - least) : 0;
        const int block = isfinite(values[i]) ? (int)(height * 7.999) : 0;
        printf("%s", isfinite(values[i]) ? blocks[block < 0 ? 0 : block > 7 ? 7 : block] : "?");
    }
    printf(" %.4f\n", values[columns - 1]);
}

// Mean accuracy of the validations of column i of columns.
static double column_accuracy(const rfa_run_view *view, int i, int columns)
{
    const int64_t begin = view->evaluations * i / columns,
                  end = view->evaluations * (i + 1) / columns;
    double sum = 0;
    int64_t count = 0;
    for (int64_t e = begin; e < end; e++) {
        const double value = accuracy(&view->evaluation[e]);
        if (isfinite(value) && strcmp(view->evaluation[e].split, "val") == 0) {
            sum += value;
            count++;
        }
    }
    return count > 0 ? sum / (double)count : NAN;
}

// Loss of the steps and accuracy of the validations.
static void print_curves(const rfa_run_view *view)
{
    const int losses = view->steps < CURVE ? (int)view->steps : CURVE;
    const int points = view->evaluations < CURVE ? (int)view->evaluations : CURVE;
    double values[CURVE];
    for (int i = 0; i < losses; i++) {
        values[i] = column_loss(view, i, losses);
    }
    printf("%s", losses > 1 ? "\n" : "");
    print_blocks("loss", values, losses);
    for (int i = 0; i < points; i++) {
        values[i] = column_accuracy(view, i, points);
    }
    print_blocks("val accuracy", values, points);
}

static void print_profile(const rfa_run_view *view)
{
    char row[RFA_PHASE_ROW];
    if (view->phases > 0) {
        printf("\n%s\n", rfa_phase_head);
    }
    for (int64_t i = 0; i < view->phases; i++) {
        if (rfa_phase_row(row, &view->phase[i])) {
            printf("%s\n", row);
        }
    }
}

static void print_evaluations(const rfa_run_view *view)
{
    enum { SHOWN = 20 };
    const int64_t first = view->evaluations > SHOWN ? view->evaluations - SHOWN : 0;
    if (view->evaluations > 0) {
        printf("\n%8s  %-10s %10s  %s\n", "step", "split", "loss", "accuracy");
    }
    if (first > 0) {
        printf("     ...  (%" PRId64 " before)\n", first);
    }
    for (int64_t i = first; i < view->evaluations; i++) {
        const rfa_evaluation_record *e = &view->evaluation[i];
        printf("%8" PRId64 "  %-10s %10.4f  %.4f (%" PRId64 "/%" PRId64 ")\n", e->step, e->split,
               e->loss, accuracy(e), e->correct, e->examples);
    }
}

static void print_confusion(const rfa_evaluation_record *test)
{
    enum { MOST = 20 }; // classes that fit the page
    if (!test->confusion || test->classes > MOST) {
        return;
    }
    int width = 4;
    for (int i = 0; i < test->classes * test->classes; i++) {
        const int digits = snprintf(NULL, 0, "%" PRId64, test->confusion[i]);
        width = digits >= width ? digits + 1 : width;
    }
    printf("\n%s: true class by row, predicted by column\n     ", test->split);
    for (int j = 0; j < test->classes; j++) {
        printf("%*d", width, j);
    }
    for (int i = 0; i < test->classes; i++) {
        printf("\n%4d:", i);
        for (int j = 0; j < test->classes; j++) {
            printf("%*" PRId64, width, test->confusion[(ptrdiff_t)i * test->classes + j]);
        }
    }
    printf("\n");
}

static void print_metrics(const rfa_evaluation_record *test)
{
    const rfa_interval interval = rfa_wilson(test->correct, test->examples);
    printf("%s interval %.4f to %.4f (95 %%, Wilson)\n", test->split, interval.low, interval.high);
    if (test->confusion && test->classes > 0) {
        printf("%s macro F1 %.4f\n", test->split, rfa_macro_f1(test->confusion, test->classes));
        printf("%s majority class %.4f\n", test->split,
               (double)rfa_majority(test->confusion, test->classes) / (double)test->examples);
    }
}

rfa_status rfa_inspect_run(const char *path, const rfa_run_view *view)
{
    static const char *const skip[] = {"run", NULL};
    printf("%s: run, %s after %" PRId64 " steps\n", path, view->state,
           view->steps > 0 ? view->step[view->steps - 1].step : 0);
    RFA_TRY(rfa_inspect_config(view->config_text));
    RFA_TRY(rfa_inspect_list("provenance", &view->attributes, "", skip));
    print_starts(view);
    print_steps(view);
    print_curves(view);
    print_profile(view);
    print_evaluations(view);
    const rfa_evaluation_record *test = &view->test;
    if (test->examples > 0) {
        print_confusion(test);
        printf("\n%s loss %.17g\n", test->split, test->loss);
        printf("%s accuracy %.4f (%" PRId64 "/%" PRId64 ")\n", test->split, accuracy(test),
               test->correct, test->examples);
        print_metrics(test);
    } else {
        printf("\n");
    }
    if (view->steps > 0) {
        printf("digest %016" PRIx64 "\n", view->step[view->steps - 1].digest);
    }
    return RFA_OK;
}

static rfa_status put_starts(const rfa_run_view *view)
{
    char word[RFA_JSON_NUMBER];
    printf(",\"starts\":[");
    for (int64_t i = 0; i < view->starts; i++) {
        for (int c = 0; c < RFA_START_COLUMNS; c++) {
            printf("%s\"%s\":%s",
                   c   ? ","
                   : i ? ",{"
                       : "{",
                   rfa_start_columns[c].name,
                   rfa_column_word(word, &rfa_start_columns[c], &view->start[i]));
        }
        for (int c = 0; c < RFA_START_TEXTS; c++) {
            printf(",\"%s\":", rfa_start_texts[c].name);
            RFA_TRY(rfa_inspect_quoted((const char *)&view->start[i] + rfa_start_texts[c].offset));
        }
        printf("}");
    }
    printf("]");
    return RFA_OK;
}

static rfa_status put_profile(const rfa_run_view *view)
{
    char word[RFA_JSON_NUMBER];
    printf(",\"profile\":[");
    for (int64_t i = 0; i < view->phases; i++) {
        const rfa_phase_record *record = &view->phase[i];
        printf("%s{\"phase\":", i ? "," : "");
        RFA_TRY(rfa_inspect_quoted(record->phase));
        for (int c = 0; c < RFA_PHASE_COLUMNS; c++) {
            printf(",\"%s\":%s", rfa_phase_columns[c].name,
                   rfa_column_word(word, &rfa_phase_columns[c], record));
        }
        printf("}");
    }
    printf("]");
    return RFA_OK;
}

static void put_steps(const rfa_run_view *view)
{
    char word[RFA_JSON_NUMBER];
    printf(",\"steps\":{");
    for (int c = 0; c < RFA_STEP_COLUMNS; c++) {
        printf("%s\"%s\":[", c ? "," : "", rfa_step_columns[c].name);
        for (int64_t i = 0; i < view->steps; i++) {
            printf("%s%s", i ? "," : "",
                   rfa_column_word(word, &rfa_step_columns[c], &view->step[i]));
        }
        printf("]");
    }
    printf("}");
}

static rfa_status put_evaluation(const rfa_evaluation_record *record)
{
    char word[RFA_JSON_NUMBER];
    printf("{\"split\":");
    RFA_TRY(rfa_inspect_quoted(record->split));
    for (int c = 0; c < RFA_EVALUATION_COLUMNS; c++) {
        printf(",\"%s\":%s", rfa_evaluation_columns[c].name,
               rfa_column_word(word, &rfa_evaluation_columns[c], record));
    }
    printf(",\"accuracy\":%s,\"confusion\":", rfa_json_number(word, accuracy(record)));
    if (!record->confusion) {
        printf("null}");
        return RFA_OK;
    }
    for (int i = 0; i < record->classes; i++) {
        printf("%s", i ? ",[" : "[[");
        for (int j = 0; j < record->classes; j++) {
            printf("%s%" PRId64, j ? "," : "",
                   record->confusion[(ptrdiff_t)i * record->classes + j]);
        }
        printf("]");
    }
    printf("]}");
    return RFA_OK;
}

rfa_status rfa_inspect_run_json(const char *path, const rfa_run_view *view)
{
    rfa_attributes keys;
    printf("{\"file\":");
    RFA_TRY(rfa_inspect_quoted(path));
    printf(",\"kind\":\"run\",\"state\":");
    RFA_TRY(rfa_inspect_quoted(view->state));
    printf(",\"config_text\":");
    RFA_TRY(rfa_inspect_quoted(view->config_text));
    printf(",\"config\":");
    RFA_TRY(rfa_attributes_parse(&keys, view->config_text));
    const rfa_status status = rfa_inspect_object(&keys);
    rfa_attributes_free(&keys);
    RFA_TRY(status);
    printf(",\"attributes\":");
    RFA_TRY(rfa_inspect_object(&view->attributes));
    RFA_TRY(put_starts(view));
    RFA_TRY(put_profile(view));
    put_steps(view);
    printf(",\"evaluations\":[");
    for (int64_t i = 0; i < view->evaluations; i++) {
        printf("%s", i ? "," : "");
        RFA_TRY(put_evaluation(&view->evaluation[i]));
    }
    printf("],\"test\":");
    if (view->test.examples > 0) {
        RFA_TRY(put_evaluation(&view->test));
    } else {
        printf("null");
    }
    printf("}\n");
    return RFA_OK;
}
