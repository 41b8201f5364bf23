#include "storage/h5.h"
#include "storage/h5_image.h"
#include "storage/runfile_parts.h"

#include "base/mem.h"
#include "base/metrics.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// One file that is being written.
typedef struct {
    hid_t file;
    const char *path;
    int classes;
    hid_t class_scale; // of confusion matrices; invalid without classes
} writer;

static rfa_status describe(writer *w, hid_t dataset, const char *units, const char *long_name)
{
    RFA_TRY(rfa_h5_write_text(dataset, w->path, "units", units));
    return rfa_h5_write_text(dataset, w->path, "long_name", long_name);
}

// Describes a dataset of the rows, puts it on the scale and closes it.
static rfa_status
finish_column(writer *w, hid_t *dataset, const char *units, const char *long_name, hid_t scale)
{
    rfa_status status = describe(w, *dataset, units, long_name);
    if (status == RFA_OK) {
        status = rfa_h5_attach_scale(*dataset, w->path, 0, scale);
    }
    if (H5Dclose(*dataset) < 0 && status == RFA_OK) {
        status = rfa_h5_fail(RFA_ERR_IO, w->path, "%s can't be closed", long_name);
    }
    *dataset = H5I_INVALID_HID;
    return status;
}

// Writes one column of count records of size bytes; the first column is the scale and stays open.
static rfa_status write_column(writer *w,
                               hid_t group,
                               const rfa_column *column,
                               const void *records,
                               size_t size,
                               int64_t count,
                               uint64_t *buffer,
                               hid_t *scale)
{
    const hsize_t shape = (hsize_t)count;
    hid_t file_type = H5T_STD_I64LE, memory_type = H5T_NATIVE_INT64, dataset;
    if (column->kind == RFA_COLUMN_DOUBLE) {
        file_type = H5T_IEEE_F64LE;
        memory_type = H5T_NATIVE_DOUBLE;
    } else if (column->kind == RFA_COLUMN_DIGEST) {
        file_type = H5T_STD_U64LE;
        memory_type = H5T_NATIVE_UINT64;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(&buffer[i], (const char *)records + (size_t)i * size + column->offset, 8);
    }
    RFA_TRY(rfa_h5_write_array(&dataset, group, w->path, column->name, file_type, memory_type, 1,
                               &shape, buffer));
    if (*scale >= 0) {
        return finish_column(w, &dataset, column->units, column->long_name, *scale);
    }
    *scale = dataset;
    RFA_TRY(describe(w, dataset, column->units, column->long_name));
    return rfa_h5_make_scale(dataset, w->path, column->name);
}

// A group of columns. scale: its step, left open for more.
static rfa_status write_table(writer *w,
                              hid_t group,
                              const rfa_column *columns,
                              int width,
                              const void *records,
                              size_t size,
                              int64_t count,
                              hid_t *scale)
{
    uint64_t *buffer = NULL;
    rfa_status status = rfa_alloc(&buffer, (ptrdiff_t)count, sizeof *buffer, "column");
    for (int i = 0; i < width && status == RFA_OK; i++) {
        status = write_column(w, group, &columns[i], records, size, count, buffer, scale);
    }
    rfa_free(buffer);
    return status;
}

// Columns of numbers and of texts of one array of records.
typedef struct {
    const char *group;
    const rfa_column *columns;
    int width;
    const rfa_text_column *text_columns;
    int text_width;
} record_kind;

static rfa_status
write_records(writer *w, const record_kind *kind, const void *records, size_t size, int64_t count)
{
    hid_t group, scale = H5I_INVALID_HID;
    const char **texts = NULL;
    RFA_TRY(rfa_h5_create_group(&group, w->file, w->path, kind->group));
    rfa_status status =
        write_table(w, group, kind->columns, kind->width, records, size, count, &scale);
    if (status == RFA_OK) {
        status = rfa_alloc(&texts, (ptrdiff_t)count, sizeof *texts, kind->group);
    }
    for (int c = 0; c < kind->text_width && status == RFA_OK; c++) {
        const rfa_text_column *column = &kind->text_columns[c];
        hid_t dataset;
        for (int64_t i = 0; i < count; i++) {
            texts[i] = (const char *)records + (size_t)i * size + column->offset;
        }
        status = rfa_h5_write_texts(&dataset, group, w->path, column->name, texts, count);
        if (status == RFA_OK) {
            status = finish_column(w, &dataset, "1", column->long_name, scale);
        }
    }
    rfa_free(texts);
    rfa_h5_close(&scale);
    rfa_h5_close(&group);
    return status;
}

static rfa_status write_starts(writer *w, const rfa_run_view *view)
{
    static const record_kind kind = {"starts", rfa_start_columns, RFA_START_COLUMNS,
                                     rfa_start_texts, RFA_START_TEXTS};
    return view->starts > 0
               ? write_records(w, &kind, view->start, sizeof *view->start, view->starts)
               : RFA_OK;
}

static rfa_status write_profile(writer *w, const rfa_run_view *view)
{
    static const record_kind kind = {"profile", rfa_phase_columns, RFA_PHASE_COLUMNS,
                                     rfa_phase_texts, RFA_PHASE_TEXTS};
    return view->phases > 0
               ? write_records(w, &kind, view->phase, sizeof *view->phase, view->phases)
               : RFA_OK;
}

static rfa_status write_steps(writer *w, const rfa_run_view *view)
{
    hid_t group, scale = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_create_group(&group, w->file, w->path, "steps"));
    const rfa_status status = write_table(w, group, rfa_step_columns, RFA_STEP_COLUMNS, view->step,
                                          sizeof *view->step, view->steps, &scale);
    rfa_h5_close(&scale);
    rfa_h5_close(&group);
    return status;
}

// What follows from an evaluation's counts.
typedef enum { ACCURACY, LOW, HIGH, MACRO_F1, MAJORITY, RESULTS } result;

static double result_of(const rfa_evaluation_record *record, result which)
{
    const double n = (double)record->examples;
    const bool matrix = record->confusion && record->classes > 0;
    if (record->examples <= 0 || ((which == MACRO_F1 || which == MAJORITY) && !matrix)) {
        return NAN;
    }
    switch (which) {
    case LOW: return rfa_wilson(record->correct, record->examples).low;
    case HIGH: return rfa_wilson(record->correct, record->examples).high;
    case MACRO_F1: return rfa_macro_f1(record->confusion, record->classes);
    case MAJORITY: return (double)rfa_majority(record->confusion, record->classes) / n;
    default: return (double)record->correct / n;
    }
}

static rfa_status write_results(
    writer *w, hid_t group, const rfa_evaluation_record *records, int64_t count, hid_t scale)
{
    static const struct {
        const char *name, *long_name;
    } columns[RESULTS] = {
        [ACCURACY] = {"accuracy", "correct over examples"},
        [LOW] = {"accuracy_low", "lower end of the accuracy's 95 % interval (Wilson 1927)"},
        [HIGH] = {"accuracy_high", "upper end of the accuracy's 95 % interval (Wilson 1927)"},
        [MACRO_F1] = {"macro_f1", "mean F1 of the classes that are there or predicted"},
        [MAJORITY] = {"majority", "share of the most frequent class"},
    };
    const hsize_t shape = (hsize_t)count;
    double *values = NULL;
    RFA_TRY(rfa_alloc(&values, (ptrdiff_t)count, sizeof *values, "results"));
    rfa_status status = RFA_OK;
    for (int c = 0; c < RESULTS && status == RFA_OK; c++) {
        hid_t dataset = H5I_INVALID_HID;
        for (int64_t i = 0; i < count; i++) {
            values[i] = result_of(&records[i], (result)c);
        }
        status = rfa_h5_write_array(&dataset, group, w->path, columns[c].name, H5T_IEEE_F64LE,
                                    H5T_NATIVE_DOUBLE, 1, &shape, values);
        if (status == RFA_OK) {
            status = finish_column(w, &dataset, "1", columns[c].long_name, scale);
        }
    }
    rfa_free(values);
    return status;
}

static rfa_status write_splits(
    writer *w, hid_t group, const rfa_evaluation_record *records, int64_t count, hid_t scale)
{
    hid_t dataset;
    const char **texts = NULL;
    RFA_TRY(rfa_alloc(&texts, (ptrdiff_t)count, sizeof *texts, "splits"));
    for (int64_t i = 0; i < count; i++) {
        texts[i] = records[i].split;
    }
    const rfa_status status = rfa_h5_write_texts(&dataset, group, w->path, "split", texts, count);
    rfa_free(texts);
    RFA_TRY(status);
    return finish_column(w, &dataset, "1", "split of the data set", scale);
}

static rfa_status write_confusion(
    writer *w, hid_t group, const rfa_evaluation_record *records, int64_t count, hid_t scale)
{
    const hsize_t classes = (hsize_t)w->classes, shape[3] = {(hsize_t)count, classes, classes};
    const ptrdiff_t cells = (ptrdiff_t)(classes * classes);
    hid_t dataset = H5I_INVALID_HID;
    int64_t *values = NULL;
    RFA_TRY(rfa_alloc(&values, (ptrdiff_t)count * cells, sizeof *values, "confusion matrices"));
    for (int64_t i = 0; i < count; i++) {
        if (records[i].confusion) {
            memcpy(values + i * cells, records[i].confusion, (size_t)cells * sizeof *values);
        }
    }
    rfa_status status = rfa_h5_write_array(&dataset, group, w->path, "confusion", H5T_STD_I64LE,
                                           H5T_NATIVE_INT64, 3, shape, values);
    rfa_free(values);
    RFA_TRY(status);
    status = rfa_h5_attach_scale(dataset, w->path, 1, w->class_scale);
    if (status == RFA_OK) {
        status = rfa_h5_attach_scale(dataset, w->path, 2, w->class_scale);
    }
    if (status == RFA_OK) {
        return finish_column(w, &dataset, "1", "examples by true and predicted class", scale);
    }
    rfa_h5_close(&dataset);
    return status;
}

static rfa_status
write_evaluations(writer *w, const char *name, const rfa_evaluation_record *records, int64_t count)
{
    hid_t group, scale = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_create_group(&group, w->file, w->path, name));
    rfa_status status = write_table(w, group, rfa_evaluation_columns, RFA_EVALUATION_COLUMNS,
                                    records, sizeof *records, count, &scale);
    if (status == RFA_OK) {
        status = write_results(w, group, records, count, scale);
    }
    if (status == RFA_OK) {
        status = write_splits(w, group, records, count, scale);
    }
    if (status == RFA_OK && w->classes > 0) {
        status = write_confusion(w, group, records, count, scale);
    }
    rfa_h5_close(&scale);
    rfa_h5_close(&group);
    return status;
}

// The one number of classes of a run, and their scale.
static rfa_status write_classes(writer *w, const rfa_run_view *view)
{
    w->classes = view->test.classes;
    for (int64_t i = 0; i < view->evaluations; i++) {
        const int classes = view->evaluation[i].classes;
        if (w->classes > 0 && classes > 0 && classes != w->classes) {
            return rfa_fail(RFA_ERR_INTERNAL, "%s: confusion matrices of %d and of %d classes",
                            w->path, w->classes, classes);
        }
        w->classes = classes > 0 ? classes : w->classes;
    }
    if (w->classes == 0) {
        return RFA_OK;
    }
    const hsize_t shape = (hsize_t)w->classes;
    int64_t *values = NULL;
    RFA_TRY(rfa_alloc(&values, w->classes, sizeof *values, "classes"));
    for (int i = 0; i < w->classes; i++) {
        values[i] = i;
    }
    const rfa_status status =
        rfa_h5_write_array(&w->class_scale, w->file, w->path, "class", H5T_STD_I64LE,
                           H5T_NATIVE_INT64, 1, &shape, values);
    rfa_free(values);
    RFA_TRY(status);
    RFA_TRY(describe(w, w->class_scale, "1", "label of the class"));
    return rfa_h5_make_scale(w->class_scale, w->path, "class");
}

rfa_status rfa_h5_write_attributes(hid_t object, const char *path, const rfa_attributes *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        const rfa_run_attribute *item = &list->items[i];
        if (item->text) {
            RFA_TRY(rfa_h5_write_text(object, path, item->name, item->text));
        } else if (item->flag) {
            RFA_TRY(rfa_h5_write_bool(object, path, item->name, item->integer != 0));
        } else if (item->whole) {
            RFA_TRY(rfa_h5_write_int(object, path, item->name, item->integer));
        } else {
            RFA_TRY(rfa_h5_write_double(object, path, item->name, item->number));
        }
    }
    return RFA_OK;
}

rfa_status rfa_h5_write_config(hid_t file, const char *path, const char *text)
{
    hid_t group = H5I_INVALID_HID;
    rfa_attributes keys;
    RFA_TRY(rfa_attributes_parse(&keys, text));
    rfa_status status = rfa_h5_create_group(&group, file, path, "config");
    if (status == RFA_OK) {
        status = rfa_h5_write_text(group, path, "text", text);
    }
    if (status == RFA_OK) {
        status = rfa_h5_write_attributes(group, path, &keys);
    }
    rfa_h5_close(&group);
    rfa_attributes_free(&keys);
    return status;
}

static rfa_status write_all(writer *w, const rfa_run_view *view)
{
    RFA_TRY(rfa_h5_write_text(w->file, w->path, "schema", RFA_RUN_SCHEMA));
    RFA_TRY(rfa_h5_write_text(w->file, w->path, "state", view->state));
    RFA_TRY(rfa_h5_write_attributes(w->file, w->path, &view->attributes));
    RFA_TRY(rfa_h5_write_config(w->file, w->path, view->config_text));
    RFA_TRY(write_classes(w, view));
    RFA_TRY(write_starts(w, view));
    RFA_TRY(write_profile(w, view));
    RFA_TRY(write_steps(w, view));
    RFA_TRY(write_evaluations(w, "evaluations", view->evaluation, view->evaluations));
    if (view->test.examples > 0) {
        RFA_TRY(write_evaluations(w, "test", &view->test, 1));
    }
    return RFA_OK;
}

static void set_time(rfa_run *run)
{
    char text[32];
    const time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    rfa_run_set_text(run, "written", text);
}

// Checkpoints of a run that is written over must not be taken for this run's.
static rfa_status remove_stale(rfa_run *run)
{
    static const char *const suffix[] = {".ckpt",      ".ckpt.prev",      ".ckpt.tmp",
                                         ".best.ckpt", ".best.ckpt.prev", ".best.ckpt.tmp"};
    for (size_t i = 0; i < sizeof suffix / sizeof *suffix && run->stale; i++) {
        char *path = NULL;
        RFA_TRY(rfa_run_beside(&path, run->path, suffix[i]));
        const int error = unlink(path) == 0 || errno == ENOENT ? 0 : errno;
        rfa_status status = RFA_OK;
        if (error) {
            status = rfa_fail(RFA_ERR_IO, "%s: can't be removed: %s", path, strerror(error));
        }
        rfa_free(path);
        RFA_TRY(status);
    }
    run->stale = false;
    return RFA_OK;
}

rfa_status rfa_run_write(rfa_run *run)
{
    char *tmp = NULL;
    set_time(run);
    if (run->broken != RFA_OK) {
        return rfa_fail(run->broken, "%s: out of memory for its attributes", run->path);
    }
    RFA_TRY(rfa_run_beside(&tmp, run->path, ".h5.tmp"));
    writer w = {.path = tmp, .class_scale = H5I_INVALID_HID};
    rfa_status status = rfa_h5_image_create(&w.file, tmp);
    if (status == RFA_OK) {
        status = write_all(&w, &run->view);
        rfa_h5_close(&w.class_scale);
    }
    if (status == RFA_OK) {
        status = rfa_h5_image_write(w.file, tmp);
    }
    if (status == RFA_OK) {
        status = rfa_fault("run.write", &(rfa_comm){.rank = 0, .size = 1}, RFA_ERR_IO);
    }
    if (status == RFA_OK) {
        status = rfa_publish(tmp, run->path);
    }
    rfa_h5_close(&w.file);
    if (status != RFA_OK) {
        unlink(tmp);
        status = rfa_fail_within(status, "%s is not written", run->path);
    } else if (ftruncate(run->lines, 0) != 0) {
        status = rfa_fail(RFA_ERR_IO, "%s: can't be emptied: %s", run->lines_path, strerror(errno));
    } else {
        run->length = 0;
        status = remove_stale(run);
    }
    rfa_free(tmp);
    return status;
}
