// RUN.jsonl: {"step":1,"loss":2.3,...,"digest":"0123456789abcdef","run":"..."} a step,
// {"evaluation":"validation","step":...,"confusion":[[..],..],"run":"..."} an evaluation, and the
// same with "test" first for the final result.
#include "storage/runfile_parts.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP(member, units, long_name, kind)                                                       \
    {                                                                                              \
#member, units, long_name, offsetof(rfa_step_record, member), kind                         \
    }
const rfa_column rfa_step_columns[RFA_STEP_COLUMNS] = {
    STEP(step, "1", "optimiser steps done", RFA_COLUMN_INT),
    STEP(loss, "nat", "mean loss of the batch", RFA_COLUMN_DOUBLE),
    STEP(learning_rate, "1", "learning rate of the step", RFA_COLUMN_DOUBLE),
    STEP(gradient_norm, "1", "L2 norm of all gradients before clipping", RFA_COLUMN_DOUBLE),
    STEP(tokens_per_second, "1/s", "valid tokens per second over all ranks", RFA_COLUMN_DOUBLE),
    STEP(exchange_wait, "s", "time in the exchange, maximum over ranks", RFA_COLUMN_DOUBLE),
    STEP(seconds, "s", "time of the step", RFA_COLUMN_DOUBLE),
    STEP(guards, "1", "clamped denominators", RFA_COLUMN_INT),
    STEP(digest, "1", "digest of the parameters after the step", RFA_COLUMN_DIGEST),
};

#define EVALUATION(member, units, long_name, kind)                                                 \
    {                                                                                              \
#member, units, long_name, offsetof(rfa_evaluation_record, member), kind                   \
    }
const rfa_column rfa_evaluation_columns[RFA_EVALUATION_COLUMNS] = {
    EVALUATION(step, "1", "optimiser steps done", RFA_COLUMN_INT),
    EVALUATION(loss, "nat", "mean loss over the examples", RFA_COLUMN_DOUBLE),
    EVALUATION(correct, "1", "examples predicted right", RFA_COLUMN_INT),
    EVALUATION(examples, "1", "examples", RFA_COLUMN_INT),
};

const char *rfa_column_word(char out[RFA_JSON_NUMBER], const rfa_column *column, const void *record)
{
    const char *at = (const char *)record + column->offset;
    int64_t integer = 0;
    double number = 0;
    if (column->kind == RFA_COLUMN_DOUBLE) {
        memcpy(&number, at, sizeof number);
        return rfa_json_number(out, number);
    }
    memcpy(&integer, at, sizeof integer);
    if (column->kind == RFA_COLUMN_DIGEST) {
        snprintf(out, RFA_JSON_NUMBER, "\"%016" PRIx64 "\"", (uint64_t)integer);
    } else {
        snprintf(out, RFA_JSON_NUMBER, "%" PRId64, integer);
    }
    return out;
}

// Writes "name":value,... and returns the end.
static char *put_columns(char *to, const rfa_column *columns, int count, const void *record)
{
    char word[RFA_JSON_NUMBER];
    for (int i = 0; i < count; i++) {
        to +=
            sprintf(to, "\"%s\":%s,", columns[i].name, rfa_column_word(word, &columns[i], record));
    }
    return to;
}

int rfa_line_step(char line[RFA_LINE_STEP_SIZE], const rfa_step_record *record, const char *id)
{
    char *to = stpcpy(line, "{");
    to = put_columns(to, rfa_step_columns, RFA_STEP_COLUMNS, record);
    to += sprintf(to, "\"run\":\"%s\"}\n", id);
    return (int)(to - line);
}

rfa_status rfa_line_evaluation(char **line,
                               const rfa_evaluation_record *record,
                               rfa_line_kind kind,
                               const char *id)
{
    const int classes = record->confusion ? record->classes : 0;
    RFA_TRY(rfa_alloc(line, 1024 + 22 * (ptrdiff_t)classes * (classes + 1), 1, "evaluation"));
    char split[6 * sizeof record->split + 3];
    char *to = *line;
    to += sprintf(to, "{\"%s\":%s,", kind == RFA_LINE_TEST ? "test" : "evaluation",
                  rfa_json_quote(split, record->split));
    to = put_columns(to, rfa_evaluation_columns, RFA_EVALUATION_COLUMNS, record);
    to += sprintf(to, "\"classes\":%d,\"confusion\":[", classes);
    for (int i = 0; i < classes; i++) {
        for (int j = 0; j < classes; j++) {
            to += sprintf(to, "%s%" PRId64,
                          j   ? ","
                          : i ? ",["
                              : "[",
                          record->confusion[(ptrdiff_t)i * classes + j]);
        }
        *to++ = ']';
    }
    sprintf(to, "],\"run\":\"%s\"}\n", id);
    return RFA_OK;
}

// The value after "name": in a line, NULL when it isn't there.
static const char *value_of(const char *line, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "\"%s\":", name);
    const char *found = strstr(line, key);
    return found ? found + strlen(key) : NULL;
}

static bool ends_value(const char *end, const char *begin)
{
    return end > begin && (*end == ',' || *end == '}' || *end == ']');
}

static bool take_integer(int64_t *out, const char *text)
{
    char *end = NULL;
    errno = 0;
    *out = text ? strtoll(text, &end, 10) : 0;
    return text && errno == 0 && ends_value(end, text);
}

static bool take_columns(void *record, const char *line, const rfa_column *columns, int count)
{
    for (int i = 0; i < count; i++) {
        const char *text = value_of(line, columns[i].name);
        char *end = NULL;
        double number = 0;
        uint64_t bits = 0;
        int64_t integer = 0;
        bool good = text != NULL;
        if (good && columns[i].kind == RFA_COLUMN_DOUBLE && strncmp(text, "null", 4) == 0) {
            number = NAN;
            memcpy(&bits, &number, sizeof bits);
        } else if (good && columns[i].kind == RFA_COLUMN_DOUBLE) {
            number = strtod(text, &end);
            good = ends_value(end, text);
            memcpy(&bits, &number, sizeof bits);
        } else if (good && columns[i].kind == RFA_COLUMN_DIGEST) {
            bits = strtoull(text + (*text == '"'), &end, 16);
            good = end == text + 17 && *end == '"';
        } else if (good) {
            good = take_integer(&integer, text);
            bits = (uint64_t)integer;
        }
        if (!good) {
            return false;
        }
        memcpy((char *)record + columns[i].offset, &bits, sizeof bits);
    }
    return true;
}

static bool take_word(char *out, size_t size, const char *text)
{
    const size_t length = text && *text == '"' ? strcspn(text + 1, "\"") : size;
    if (length >= size) {
        return false;
    }
    memcpy(out, text + 1, length);
    out[length] = '\0';
    return true;
}

// confusion (rfa_free) holds the numbers of "confusion":[[..],..].
static bool take_confusion(int64_t **confusion, int classes, const char *text)
{
    *confusion = NULL;
    if (classes == 0) {
        return text != NULL;
    }
    const ptrdiff_t cells = (ptrdiff_t)classes * classes;
    // A damaged count must not ask for all memory: each number takes two characters.
    if (!text || (size_t)cells > strlen(text) / 2 ||
        rfa_alloc(confusion, cells, 8, "confusion") != RFA_OK) {
        return false;
    }
    for (ptrdiff_t i = 0; i < cells; i++) {
        text += strspn(text, "[],");
        if (!take_integer(&(*confusion)[i], text)) {
            return false;
        }
        text += strcspn(text, ",]}");
    }
    return true;
}

// One whole line into the view. *good = false when it can't be read.
static rfa_status take_line(rfa_run_view *view, const char *line, bool *good)
{
    if (strncmp(line, "{\"step\":", 8) == 0) {
        rfa_step_record record = {0};
        *good = take_columns(&record, line, rfa_step_columns, RFA_STEP_COLUMNS);
        return *good ? rfa_view_add_step(view, &record) : RFA_OK;
    }
    const bool test = strncmp(line, "{\"test\":", 8) == 0;
    rfa_evaluation_record record = {0};
    int64_t classes = 0, *confusion = NULL;
    *good = take_word(record.split, sizeof record.split,
                      value_of(line, test ? "test" : "evaluation")) &&
            take_columns(&record, line, rfa_evaluation_columns, RFA_EVALUATION_COLUMNS) &&
            take_integer(&classes, value_of(line, "classes")) && classes >= 0 && classes < 32768 &&
            take_confusion(&confusion, (int)classes, value_of(line, "confusion"));
    record.classes = (int)classes;
    record.confusion = confusion;
    rfa_status status = RFA_OK;
    if (*good) {
        status = test ? rfa_view_set_test(view, &record) : rfa_view_add_evaluation(view, &record);
    }
    rfa_free(confusion);
    return status;
}

// The whole file, with a terminating zero; NULL when there is none.
static rfa_status read_text(char **out, const char *path)
{
    *out = NULL;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0 && errno == ENOENT) {
        return RFA_OK;
    }
    struct stat info = {0};
    rfa_status status = RFA_OK;
    if (file < 0 || fstat(file, &info) != 0) {
        status = rfa_fail(RFA_ERR_IO, "%s: %s", path, strerror(errno));
    } else {
        status = rfa_alloc(out, (ptrdiff_t)info.st_size + 1, 1, path);
    }
    for (off_t at = 0; status == RFA_OK && at < info.st_size;) {
        const ssize_t got = read(file, *out + at, (size_t)(info.st_size - at));
        if (got < 0 && errno != EINTR) {
            status = rfa_fail(RFA_ERR_IO, "%s: %s", path, strerror(errno));
        } else if (got == 0) {
            break;
        }
        at += got > 0 ? got : 0;
    }
    if (file >= 0) {
        close(file);
    }
    return status;
}

// Cuts text at its newlines: the next line from *at, or NULL; a torn last one doesn't count.
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (!end) {
        return NULL;
    }
    *end = '\0';
    *at = end + 1;
    return line;
}

// A line's run; false when it isn't whole.
static bool line_run(char id[RFA_RUN_ID], const char *line)
{
    const size_t length = strlen(line);
    return length > 0 && line[length - 1] == '}' &&
           take_word(id, RFA_RUN_ID, value_of(line, "run")) && strlen(id) == RFA_RUN_ID - 1;
}

rfa_status
rfa_lines_merge(rfa_run_view *view, char id[RFA_RUN_ID], const char *path, const char *file)
{
    char *text = NULL, newest[RFA_RUN_ID] = "", run[RFA_RUN_ID];
    int64_t number = 0, damaged = 0, first = 0;
    rfa_status status = read_text(&text, path);
    if (status != RFA_OK || !text) {
        rfa_free(text);
        return status;
    }
    for (char *at = text, *line; (line = next_line(&at)); at[-1] = '\n') {
        if (line_run(run, line) && strcmp(run, newest) > 0) {
            memcpy(newest, run, sizeof newest);
        }
    }
    if (newest[0] && strcmp(newest, id) < 0) {
        rfa_warn("%s is of an older run than %s and left out", path, file);
        goto out;
    }
    if (id[0] && strcmp(newest, id) > 0) {
        rfa_warn("%s is of an older run than %s and left out", file, path);
        rfa_run_view_free(view);
    }
    if (newest[0]) {
        memcpy(id, newest, sizeof newest);
    }
    for (char *at = text, *line; status == RFA_OK && (line = next_line(&at));) {
        number++;
        bool good = line_run(run, line);
        if (good && strcmp(run, newest) == 0) {
            status = take_line(view, line, &good);
        }
        if (!good && damaged++ == 0) {
            first = number;
        }
    }
    if (status == RFA_OK && damaged > 0) {
        rfa_warn("%s:%" PRId64 ": not a line of a run; %" PRId64 " such left out", path, first,
                 damaged);
    }
out:
    rfa_free(text);
    return status;
}
