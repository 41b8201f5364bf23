#include "storage/runfile_parts.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

rfa_status rfa_text_copy(char **out, const char *text)
{
    const size_t size = strlen(text) + 1;
    RFA_TRY(rfa_alloc(out, (ptrdiff_t)size, 1, "text"));
    memcpy(*out, text, size);
    return RFA_OK;
}

rfa_status rfa_run_beside(char **out, const char *path, const char *suffix)
{
    size_t length = strlen(path);
    if (length > 3 && strcmp(path + length - 3, ".h5") == 0) {
        length -= 3;
    }
    const size_t size = length + strlen(suffix) + 1;
    RFA_TRY(rfa_alloc(out, (ptrdiff_t)size, 1, "path"));
    snprintf(*out, size, "%.*s%s", (int)length, path, suffix);
    return RFA_OK;
}

static int64_t capacity(int64_t count)
{
    int64_t room = 16;
    while (room < count) {
        room *= 2;
    }
    return room;
}

rfa_status rfa_rows_alloc(void *rows, int64_t count, size_t size)
{
    return rfa_alloc(rows, (ptrdiff_t)capacity(count), size, "rows of the run's record");
}

rfa_status rfa_rows_reserve(void *rows, int64_t count, size_t size)
{
    void *old = NULL, *new = NULL;
    memcpy(&old, rows, sizeof old);
    if (old && count < capacity(count)) {
        return RFA_OK;
    }
    RFA_TRY(rfa_rows_alloc(&new, count + 1, size));
    if (old) {
        memcpy(new, old, (size_t)count * size);
    }
    rfa_free(old);
    memcpy(rows, &new, sizeof new);
    return RFA_OK;
}

rfa_status rfa_view_add_step(rfa_run_view *view, const rfa_step_record *record)
{
    if (view->steps > 0 && record->step <= view->step[view->steps - 1].step) {
        return RFA_OK;
    }
    RFA_TRY(rfa_rows_reserve(&view->step, view->steps, sizeof *view->step));
    view->step[view->steps++] = *record;
    return RFA_OK;
}

#define START(member, units, long_name, kind)                                                      \
    {                                                                                              \
#member, units, long_name, offsetof(rfa_start_record, member), kind                        \
    }
const rfa_column rfa_start_columns[RFA_START_COLUMNS] = {
    START(step, "1", "optimiser steps done before the start", RFA_COLUMN_INT),
    START(ranks, "1", "ranks", RFA_COLUMN_INT),
    START(threads, "1", "threads a rank", RFA_COLUMN_INT),
    START(sgemm_flops_per_second, "1/s", "sgemm rate of all ranks together", RFA_COLUMN_DOUBLE),
};

#define TEXT(member, long_name)                                                                    \
    {                                                                                              \
#member, long_name, offsetof(rfa_start_record, member),                                    \
            sizeof((rfa_start_record){0}.member)                                                   \
    }
const rfa_text_column rfa_start_texts[RFA_START_TEXTS] = {
    TEXT(started, "time of the start, UTC"),
    TEXT(commit, "commit of the program"),
    TEXT(hosts, "names of the hosts"),
};

rfa_status rfa_view_add_start(rfa_run_view *view, const rfa_start_record *record)
{
    RFA_TRY(rfa_rows_reserve(&view->start, view->starts, sizeof *view->start));
    view->start[view->starts++] = *record;
    return RFA_OK;
}

static void free_confusion(rfa_evaluation_record *record)
{
    rfa_free((int64_t *)record->confusion);
    record->confusion = NULL;
}

// *out = record with its own confusion matrix and a split that ends.
static rfa_status copy_record(rfa_evaluation_record *out, const rfa_evaluation_record *record)
{
    rfa_evaluation_record copy = *record;
    int64_t *confusion = NULL;
    copy.split[sizeof copy.split - 1] = '\0';
    copy.classes = record->confusion ? record->classes : 0;
    if (copy.classes > 0) {
        const ptrdiff_t cells = (ptrdiff_t)copy.classes * copy.classes;
        RFA_TRY(rfa_alloc(&confusion, cells, sizeof *confusion, "confusion matrix"));
        memcpy(confusion, record->confusion, (size_t)cells * sizeof *confusion);
    }
    copy.confusion = confusion;
    *out = copy;
    return RFA_OK;
}

rfa_status rfa_view_add_evaluation(rfa_run_view *view, const rfa_evaluation_record *record)
{
    rfa_evaluation_record copy;
    RFA_TRY(copy_record(&copy, record));
    for (int64_t i = view->evaluations - 1; i >= 0; i--) {
        rfa_evaluation_record *old = &view->evaluation[i];
        if (old->step == copy.step && strcmp(old->split, copy.split) == 0) {
            free_confusion(old);
            *old = copy;
            return RFA_OK;
        }
    }
    const rfa_status status =
        rfa_rows_reserve(&view->evaluation, view->evaluations, sizeof *view->evaluation);
    if (status != RFA_OK) {
        free_confusion(&copy);
        return status;
    }
    view->evaluation[view->evaluations++] = copy;
    return RFA_OK;
}

rfa_status rfa_view_set_test(rfa_run_view *view, const rfa_evaluation_record *record)
{
    rfa_evaluation_record copy;
    RFA_TRY(copy_record(&copy, record));
    free_confusion(&view->test);
    view->test = copy;
    return RFA_OK;
}

void rfa_view_trim(rfa_run_view *view, int64_t step)
{
    while (view->steps > 0 && view->step[view->steps - 1].step > step) {
        view->steps--;
    }
    while (view->starts > 0 && view->start[view->starts - 1].step > step) {
        view->starts--; // nothing of it is left
    }
    int64_t kept = 0;
    for (int64_t i = 0; i < view->evaluations; i++) {
        if (view->evaluation[i].step <= step) {
            view->evaluation[kept++] = view->evaluation[i];
        } else {
            free_confusion(&view->evaluation[i]);
        }
    }
    view->evaluations = kept;
    if (view->test.examples > 0 && view->test.step > step) {
        free_confusion(&view->test);
        view->test = (rfa_evaluation_record){0};
    }
}

void rfa_run_view_free(rfa_run_view *view)
{
    for (int64_t i = 0; i < view->evaluations; i++) {
        free_confusion(&view->evaluation[i]);
    }
    free_confusion(&view->test);
    rfa_attributes_free(&view->attributes);
    rfa_free(view->evaluation);
    rfa_free(view->start);
    rfa_free(view->step);
    rfa_free(view->phase);
    rfa_free(view->config_text);
    rfa_free(view->state);
    *view = (rfa_run_view){0};
}
