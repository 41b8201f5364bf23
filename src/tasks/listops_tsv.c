#include "tasks/listops_tsv.h"

#include "base/mem.h"
#include "tasks/listops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096, LINE_LIMIT = 1 << 26 };

const char *const rfa_listops_splits[RFA_LISTOPS_SPLITS] = {"train", "val", "test"};

static const char *const places[] = {"", "/listops-1000", "/lra_release/listops-1000",
                                     "/lra_release/lra_release/listops-1000"};

static rfa_status file_path(char path[PATH_SIZE], const char *folder, const char *split)
{
    if (snprintf(path, PATH_SIZE, "%s/basic_%s.tsv", folder, split) >= PATH_SIZE) {
        return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", folder);
    }
    return RFA_OK;
}

// Appends ", basic_<split>.tsv" for each split whose bit is in set.
static void list_files(char text[128], unsigned set)
{
    text[0] = 0;
    for (int s = 0; s < RFA_LISTOPS_SPLITS; s++) {
        if (set & 1u << s) {
            const size_t used = strlen(text);
            snprintf(text + used, 128 - used, "%sbasic_%s.tsv", used ? ", " : "",
                     rfa_listops_splits[s]);
        }
    }
}

rfa_status rfa_listops_tsv_find(char *folder, size_t size, const char *root)
{
    struct stat info;
    if (stat(root, &info) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", root, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return rfa_fail(RFA_ERR_IO, "%s: not a folder", root);
    }
    const unsigned all = (1u << RFA_LISTOPS_SPLITS) - 1;
    unsigned best = 0;
    const char *best_place = "";
    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        char path[PATH_SIZE];
        unsigned found = 0;
        if (snprintf(folder, size, "%s%s", root, places[p]) >= (int)size) {
            return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", root);
        }
        for (int s = 0; s < RFA_LISTOPS_SPLITS; s++) {
            RFA_TRY(file_path(path, folder, rfa_listops_splits[s]));
            found |= stat(path, &info) == 0 && S_ISREG(info.st_mode) ? 1u << s : 0;
        }
        if (found == all) {
            return RFA_OK;
        }
        if (__builtin_popcount(found) > __builtin_popcount(best)) {
            best = found;
            best_place = places[p];
        }
    }
    char missing[128], have[128];
    list_files(missing, all & ~best);
    list_files(have, best);
    if (best == 0) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: %s are missing: none of them is there, nor in listops-1000, "
                        "lra_release/listops-1000 or lra_release/lra_release/listops-1000",
                        root, missing);
    }
    return rfa_fail(RFA_ERR_IO, "%s%s: missing %s; found %s", root, best_place, missing, have);
}

struct rfa_listops_tsv {
    FILE *file;
    char path[PATH_SIZE];
    char *text; // the line
    ptrdiff_t text_size;
    uint16_t *ids;
    ptrdiff_t capacity;
    int64_t line, examples;
};

// Doubles the room for the line, of which length bytes are there.
static rfa_status grow(rfa_listops_tsv *tsv, ptrdiff_t length)
{
    char *text = NULL;
    const ptrdiff_t size = tsv->text_size > 0 ? 2 * tsv->text_size : 1 << 14;
    if (size > LINE_LIMIT) {
        return rfa_fail(RFA_ERR_IO, "%s:%lld: a line of more than %d bytes", tsv->path,
                        (long long)tsv->line, LINE_LIMIT / 2);
    }
    RFA_TRY(rfa_alloc(&text, size, 1, "ListOps line"));
    if (length > 0) {
        memcpy(text, tsv->text, (size_t)length);
    }
    rfa_free(tsv->text);
    tsv->text = text;
    tsv->text_size = size;
    return RFA_OK;
}

// Reads a line without its end into tsv->text; *length is -1 at the end of the file.
static rfa_status read_line(rfa_listops_tsv *tsv, ptrdiff_t *length)
{
    ptrdiff_t n = 0;
    int c = 0;
    tsv->line++;
    for (;;) {
        if (n + 1 >= tsv->text_size) {
            RFA_TRY(grow(tsv, n));
        }
        errno = 0;
        c = getc_unlocked(tsv->file);
        if (c == EOF || c == '\n') {
            break;
        }
        if (c == 0) {
            return rfa_fail(RFA_ERR_IO, "%s:%lld: not text: a zero byte", tsv->path,
                            (long long)tsv->line);
        }
        tsv->text[n++] = (char)c;
    }
    if (c == EOF && ferror(tsv->file)) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be read: %s", tsv->path, strerror(errno));
    }
    *length = c == EOF && n == 0 ? -1 : n;
    if (n > 0 && tsv->text[n - 1] == '\r') {
        --*length;
        n--;
    }
    tsv->text[n] = 0;
    return RFA_OK;
}

rfa_status rfa_listops_tsv_open(rfa_listops_tsv **out, const char *folder, const char *split)
{
    *out = NULL;
    rfa_listops_tsv *tsv = NULL;
    ptrdiff_t length = 0;
    RFA_TRY(rfa_alloc(&tsv, 1, sizeof *tsv, "ListOps file"));
    rfa_status status = file_path(tsv->path, folder, split);
    if (status != RFA_OK) {
        goto out;
    }
    tsv->file = fopen(tsv->path, "re");
    if (!tsv->file) {
        status = rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", tsv->path, strerror(errno));
        goto out;
    }
    status = read_line(tsv, &length);
    if (status == RFA_OK && length < 0) {
        status = rfa_fail(RFA_ERR_IO, "%s: the file is empty", tsv->path);
    } else if (status == RFA_OK && strcmp(tsv->text, "Source\tTarget") != 0) {
        status = rfa_fail(RFA_ERR_IO,
                          "%s:1: the header is '%.40s', expected the columns Source and Target "
                          "with a tab between",
                          tsv->path, tsv->text);
    }
out:
    if (status != RFA_OK) {
        rfa_listops_tsv_close(&tsv);
    }
    *out = tsv;
    return status;
}

void rfa_listops_tsv_close(rfa_listops_tsv **tsv)
{
    if (*tsv) {
        if ((*tsv)->file) {
            fclose((*tsv)->file);
        }
        rfa_free((*tsv)->text);
        rfa_free((*tsv)->ids);
        rfa_free(*tsv);
        *tsv = NULL;
    }
}

static int count_columns(const char *text)
{
    int columns = 1;
    for (; *text; text++) {
        columns += *text == '\t';
    }
    return columns;
}

// The line in tsv->text as an example.
static rfa_status parse(rfa_listops_tsv *tsv, ptrdiff_t length, rfa_listops_row *row)
{
    const int columns = count_columns(tsv->text);
    if (columns != 2) {
        return rfa_fail(RFA_ERR_IO, "%d column%s, expected 2 (Source and Target)", columns,
                        columns == 1 ? "" : "s");
    }
    const ptrdiff_t most = length / 2 + 1; // a symbol takes two bytes with its space
    if (most > tsv->capacity) {
        rfa_free(tsv->ids);
        tsv->ids = NULL;
        tsv->capacity = 0;
        RFA_TRY(rfa_alloc(&tsv->ids, 2 * most, sizeof *tsv->ids, "ListOps line"));
        tsv->capacity = 2 * most;
    }
    char *tab = strchr(tsv->text, '\t');
    *tab = 0;
    const char *target = tab + 1;
    if (target[0] < '0' || target[0] > '9' || target[1] != 0) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.20s', not a digit", target);
    }
    int value;
    RFA_TRY(rfa_listops_encode(tsv->ids, &row->length, tsv->capacity, tsv->text));
    RFA_TRY(rfa_listops_evaluate(&value, tsv->ids, row->length));
    row->label = target[0] - '0';
    if (value != row->label) {
        return rfa_fail(RFA_ERR_IO, "the label is %d, but the expression's value is %d", row->label,
                        value);
    }
    row->ids = tsv->ids;
    row->line = tsv->line;
    return RFA_OK;
}

rfa_status rfa_listops_tsv_next(rfa_listops_tsv *tsv, rfa_listops_row *row)
{
    *row = (rfa_listops_row){0};
    ptrdiff_t length = 0;
    RFA_TRY(read_line(tsv, &length));
    if (length < 0) {
        return tsv->examples > 0
                   ? RFA_OK
                   : rfa_fail(RFA_ERR_IO, "%s: no examples after the header", tsv->path);
    }
    const rfa_status status = parse(tsv, length, row);
    if (status != RFA_OK) {
        return rfa_fail_within(status, "%s:%lld", tsv->path, (long long)tsv->line);
    }
    tsv->examples++;
    return RFA_OK;
}
