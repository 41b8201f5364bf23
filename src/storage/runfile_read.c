#include "storage/h5.h"
#include "storage/h5_image.h"
#include "storage/runfile_parts.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// One column of a group into the records of size bytes each; *records is made by the first column.
static rfa_status read_column(void *records,
                              size_t size,
                              int64_t *count,
                              hid_t group,
                              const char *path,
                              const rfa_column *column)
{
    const H5T_class_t class = column->kind == RFA_COLUMN_DOUBLE ? H5T_FLOAT : H5T_INTEGER;
    hid_t dataset, memory_type = H5T_NATIVE_INT64;
    if (column->kind != RFA_COLUMN_INT) {
        memory_type = column->kind == RFA_COLUMN_DOUBLE ? H5T_NATIVE_DOUBLE : H5T_NATIVE_UINT64;
    }
    hsize_t rows = 0;
    char *to = NULL;
    uint64_t *values = NULL;
    RFA_TRY(rfa_h5_open_array(&dataset, group, path, column->name, class, 1, &rows));
    rfa_status status = RFA_OK;
    memcpy(&to, records, sizeof to);
    if (!to) {
        *count = (int64_t)rows;
        status = rfa_rows_alloc(&to, *count, size);
        memcpy(records, &to, sizeof to);
    } else if ((int64_t)rows != *count) {
        status = rfa_fail(RFA_ERR_IO, "%s: dataset '%s' has %lld rows, step has %lld", path,
                          column->name, (long long)rows, (long long)*count);
    }
    if (status == RFA_OK) {
        status = rfa_alloc(&values, (ptrdiff_t)rows, sizeof *values, column->name);
    }
    if (status == RFA_OK && rows > 0) {
        status = rfa_h5_read_array(dataset, path, memory_type, values);
    }
    for (int64_t i = 0; status == RFA_OK && i < *count; i++) {
        memcpy(to + (size_t)i * size + column->offset, &values[i], 8);
    }
    rfa_free(values);
    rfa_h5_close(&dataset);
    return status;
}

static rfa_status read_table(void *records,
                             size_t size,
                             int64_t *count,
                             hid_t group,
                             const char *path,
                             const rfa_column *columns,
                             int width)
{
    for (int i = 0; i < width; i++) {
        RFA_TRY(read_column(records, size, count, group, path, &columns[i]));
    }
    return RFA_OK;
}

// Columns of texts of a group into count records of size bytes each.
static rfa_status read_text_columns(void *records,
                                    size_t size,
                                    int64_t count,
                                    hid_t group,
                                    const char *path,
                                    const rfa_text_column *columns,
                                    int width)
{
    rfa_status status = RFA_OK;
    for (int c = 0; c < width && status == RFA_OK; c++) {
        const rfa_text_column *column = &columns[c];
        char **texts = NULL;
        int64_t rows = 0;
        status = rfa_h5_read_texts(group, path, column->name, &texts, &rows);
        if (status == RFA_OK && rows != count) {
            status =
                rfa_fail(RFA_ERR_IO, "%s: dataset '%s' is of the wrong shape", path, column->name);
        }
        for (int64_t i = 0; status == RFA_OK && i < count; i++) {
            char *to = (char *)records + (size_t)i * size + column->offset;
            snprintf(to, column->size, "%s", texts[i]);
        }
        rfa_free(texts);
    }
    return status;
}

static rfa_status read_profile(rfa_run_view *view, hid_t file, const char *path)
{
    hid_t group;
    RFA_TRY(rfa_h5_open_group(&group, file, path, "profile"));
    rfa_status status = read_table(&view->phase, sizeof *view->phase, &view->phases, group, path,
                                   rfa_phase_columns, RFA_PHASE_COLUMNS);
    if (status == RFA_OK) {
        status = read_text_columns(view->phase, sizeof *view->phase, view->phases, group, path,
                                   rfa_phase_texts, RFA_PHASE_TEXTS);
    }
    rfa_h5_close(&group);
    return status;
}

static rfa_status read_starts(rfa_run_view *view, hid_t file, const char *path)
{
    hid_t group;
    RFA_TRY(rfa_h5_open_group(&group, file, path, "starts"));
    rfa_status status = read_table(&view->start, sizeof *view->start, &view->starts, group, path,
                                   rfa_start_columns, RFA_START_COLUMNS);
    if (status == RFA_OK) {
        status = read_text_columns(view->start, sizeof *view->start, view->starts, group, path,
                                   rfa_start_texts, RFA_START_TEXTS);
    }
    for (int64_t i = 1; status == RFA_OK && i < view->starts; i++) {
        if (view->start[i].step < view->start[i - 1].step) {
            status = rfa_fail(RFA_ERR_IO, "%s: dataset 'starts/step' descends", path);
        }
    }
    rfa_h5_close(&group);
    return status;
}

// The matrices of all records of a group, each copied into its own memory.
static rfa_status
read_confusion(rfa_evaluation_record *records, int64_t count, hid_t group, const char *path)
{
    hsize_t shape[3] = {0};
    hid_t dataset;
    int64_t *values = NULL;
    RFA_TRY(rfa_h5_open_array(&dataset, group, path, "confusion", H5T_INTEGER, 3, shape));
    rfa_status status = RFA_OK;
    if ((int64_t)shape[0] != count || shape[1] != shape[2] || shape[1] < 1 || shape[1] > 32767) {
        status = rfa_fail(RFA_ERR_IO, "%s: dataset 'confusion' is of the wrong shape", path);
        goto out;
    }
    const ptrdiff_t cells = (ptrdiff_t)(shape[1] * shape[1]);
    status = rfa_alloc(&values, (ptrdiff_t)count * cells, sizeof *values, "confusion matrices");
    if (status == RFA_OK && count > 0) {
        status = rfa_h5_read_array(dataset, path, H5T_NATIVE_INT64, values);
    }
    for (int64_t i = 0; status == RFA_OK && i < count; i++) {
        int64_t *own = NULL;
        status = rfa_alloc(&own, cells, sizeof *own, "confusion matrix");
        if (status == RFA_OK) {
            memcpy(own, values + i * cells, (size_t)cells * sizeof *own);
            records[i].confusion = own;
            records[i].classes = (int)shape[1];
        }
    }
out:
    rfa_free(values);
    rfa_h5_close(&dataset);
    return status;
}

static rfa_status read_evaluations(
    rfa_evaluation_record **records, int64_t *count, hid_t file, const char *path, const char *name)
{
    hid_t group;
    char **split = NULL;
    int64_t splits = 0;
    RFA_TRY(rfa_h5_open_group(&group, file, path, name));
    rfa_status status = read_table(records, sizeof **records, count, group, path,
                                   rfa_evaluation_columns, RFA_EVALUATION_COLUMNS);
    if (status == RFA_OK) {
        status = rfa_h5_read_texts(group, path, "split", &split, &splits);
    }
    if (status == RFA_OK && splits != *count) {
        status = rfa_fail(RFA_ERR_IO, "%s: dataset 'split' is of the wrong shape", path);
    }
    for (int64_t i = 0; status == RFA_OK && i < *count; i++) {
        snprintf((*records)[i].split, sizeof(*records)[i].split, "%s", split[i]);
    }
    if (status == RFA_OK && rfa_h5_has(group, "confusion")) {
        status = read_confusion(*records, *count, group, path);
    }
    rfa_free(split);
    rfa_h5_close(&group);
    return status;
}

static rfa_status read_test(rfa_run_view *view, hid_t file, const char *path)
{
    rfa_evaluation_record *records = NULL;
    int64_t count = 0;
    rfa_status status = read_evaluations(&records, &count, file, path, "test");
    if (status == RFA_OK && count != 1) {
        status = rfa_fail(RFA_ERR_IO, "%s: /test has %lld rows, not 1", path, (long long)count);
    }
    if (status == RFA_OK) {
        view->test = records[0];
    } else {
        for (int64_t i = 0; i < count; i++) {
            rfa_free((int64_t *)records[i].confusion);
        }
    }
    rfa_free(records);
    return status;
}

// The attributes that are fields of the view leave the list.
static rfa_status take_attributes(rfa_run_view *view, char id[RFA_RUN_ID], const char *path)
{
    rfa_attributes all = view->attributes;
    view->attributes = (rfa_attributes){0};
    const char *schema = rfa_attributes_text(&all, "schema");
    const char *state = rfa_attributes_text(&all, "state");
    const char *run = rfa_attributes_text(&all, "run");
    rfa_status status = RFA_OK;
    if (!schema || strcmp(schema, RFA_RUN_SCHEMA) != 0) {
        status = rfa_fail(RFA_ERR_IO, "%s: not the record of a run (schema '%s', expected '%s')",
                          path, schema ? schema : "", RFA_RUN_SCHEMA);
    } else if (!state || !run || strlen(run) != RFA_RUN_ID - 1) {
        status = rfa_fail(RFA_ERR_IO, "%s: attribute 'state' or 'run' is missing", path);
    } else {
        snprintf(id, RFA_RUN_ID, "%s", run);
        status = rfa_text_copy(&view->state, state);
    }
    for (int64_t i = 0; i < all.count && status == RFA_OK; i++) {
        if (strcmp(all.items[i].name, "schema") != 0 && strcmp(all.items[i].name, "state") != 0) {
            status = rfa_attributes_set(&view->attributes, &all.items[i]);
        }
    }
    rfa_attributes_free(&all);
    return status;
}

rfa_status rfa_run_read_file(rfa_run_view *view, char id[RFA_RUN_ID], const char *path)
{
    hid_t file, group = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_image_verify(path));
    RFA_TRY(rfa_h5_open(&file, path));
    rfa_status status = rfa_h5_read_attributes(&view->attributes, file, path);
    if (status == RFA_OK) {
        status = take_attributes(view, id, path);
    }
    if (status == RFA_OK) {
        status = rfa_h5_open_group(&group, file, path, "config");
    }
    if (status == RFA_OK) {
        status = rfa_h5_read_text(group, path, "text", &view->config_text);
    }
    rfa_h5_close(&group);
    if (status == RFA_OK && rfa_h5_has(file, "starts")) {
        status = read_starts(view, file, path);
    }
    if (status == RFA_OK && rfa_h5_has(file, "profile")) {
        status = read_profile(view, file, path);
    }
    if (status == RFA_OK) {
        status = rfa_h5_open_group(&group, file, path, "steps");
    }
    if (status == RFA_OK) {
        status = read_table(&view->step, sizeof *view->step, &view->steps, group, path,
                            rfa_step_columns, RFA_STEP_COLUMNS);
    }
    rfa_h5_close(&group);
    if (status == RFA_OK) {
        status = read_evaluations(&view->evaluation, &view->evaluations, file, path, "evaluations");
    }
    if (status == RFA_OK && rfa_h5_has(file, "test")) {
        status = read_test(view, file, path);
    }
    rfa_h5_close(&file);
    if (status != RFA_OK) {
        rfa_run_view_free(view);
    }
    return status;
}

// A run has one number of classes.
static rfa_status check_classes(const rfa_run_view *view, const char *path)
{
    int classes = view->test.classes;
    for (int64_t i = 0; i < view->evaluations; i++) {
        const int own = view->evaluation[i].classes;
        if (classes > 0 && own > 0 && own != classes) {
            return rfa_fail(RFA_ERR_IO, "%s: confusion matrices of %d and of %d classes", path,
                            classes, own);
        }
        classes = own > 0 ? own : classes;
    }
    return RFA_OK;
}

rfa_status rfa_run_load(rfa_run_view *view, char id[RFA_RUN_ID], const char *path)
{
    char *lines = NULL;
    struct stat info;
    *view = (rfa_run_view){0};
    id[0] = '\0';
    RFA_TRY(rfa_run_beside(&lines, path, ".jsonl"));
    const bool there = stat(path, &info) == 0 || errno != ENOENT;
    rfa_status status = there ? rfa_run_read_file(view, id, path) : RFA_OK;
    if (status == RFA_OK) {
        status = rfa_lines_merge(view, id, lines, path);
    }
    if (status == RFA_OK) {
        status = check_classes(view, path);
    }
    if (status == RFA_OK && !id[0]) {
        status = rfa_fail(RFA_ERR_IO, "%s: %s, and no line in %s", path, strerror(ENOENT), lines);
    }
    if (status == RFA_OK && !view->state) { // of lines alone
        status = rfa_text_copy(&view->state, "running");
        if (status == RFA_OK) {
            status = rfa_text_copy(&view->config_text, "");
        }
        if (status == RFA_OK) {
            status = rfa_attributes_set(&view->attributes,
                                        &(rfa_run_attribute){.name = "run", .text = id});
        }
    }
    rfa_free(lines);
    if (status != RFA_OK) {
        rfa_run_view_free(view);
    }
    return status;
}

rfa_status rfa_run_read(rfa_run_view *view, const char *path)
{
    char id[RFA_RUN_ID];
    return rfa_run_load(view, id, path);
}
