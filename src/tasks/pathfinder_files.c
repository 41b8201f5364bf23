#include "tasks/pathfinder_files.h"

#include "base/mem.h"
#include "tasks/labels.h"
#include "tasks/table.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096, FILES = 100000, LABEL = 3, CONTOUR = 5, COLUMNS = 11 };

static int ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

// Numbers K of the files metadata/K.npy, ascending.
static rfa_status list_numbers(int64_t **numbers, int *count, const char *folder)
{
    char path[PATH_SIZE];
    *count = 0;
    if (snprintf(path, sizeof path, "%s/metadata", folder) >= PATH_SIZE) {
        return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", folder);
    }
    DIR *list = opendir(path);
    if (!list) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path, strerror(errno));
    }
    rfa_status status = rfa_alloc(numbers, FILES, sizeof **numbers, "files of metadata");
    // cppcheck-suppress readdirCalled
    for (const struct dirent *e; status == RFA_OK && (e = readdir(list));) {
        const size_t digits = strspn(e->d_name, "0123456789");
        if (digits == 0 || digits > 9 || strcmp(e->d_name + digits, ".npy") != 0) {
            continue;
        }
        if (*count == FILES) {
            status = rfa_fail(RFA_ERR_IO, "%s: more than %d files", path, FILES);
        } else {
            (*numbers)[(*count)++] = strtoll(e->d_name, NULL, 10);
        }
    }
    closedir(list);
    if (status == RFA_OK && *count == 0) {
        status = rfa_fail(RFA_ERR_IO, "%s: no file of metadata (0.npy) in it", path);
    }
    if (status == RFA_OK) {
        qsort(*numbers, (size_t)*count, sizeof **numbers, ascending);
    }
    return status;
}

// A path of the file's own: relative, and not upward.
static bool is_inner(const char *path)
{
    return path[0] != 0 && path[0] != '/' && !strstr(path, "..");
}

static rfa_status
add_picture(rfa_index *index, const char *folder, const rfa_field *f, int count, int contour)
{
    char path[PATH_SIZE];
    struct stat info;
    if (count < COLUMNS) {
        return rfa_fail(RFA_ERR_IO, "%d column%s, not %d", count, count == 1 ? "" : "s", COLUMNS);
    }
    for (int i = 0; i < COLUMNS; i++) {
        if (!rfa_field_is_word(&f[i])) {
            return rfa_fail(RFA_ERR_IO, "column %d is too long or holds a zero byte", i + 1);
        }
    }
    const int64_t label = rfa_label_number(f[LABEL].text, 1);
    if (label < 0) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.20s', not 0 or 1", f[LABEL].text);
    }
    if (rfa_label_number(f[CONTOUR].text, 1000) != contour) {
        return rfa_fail(RFA_ERR_IO, "a contour of '%.20s' dashes, not %d: another difficulty",
                        f[CONTOUR].text, contour);
    }
    if (!is_inner(f[0].text) || !is_inner(f[1].text) ||
        snprintf(path, sizeof path, "%s/%s/%s", folder, f[0].text, f[1].text) >= PATH_SIZE) {
        return rfa_fail(RFA_ERR_IO, "not the name of a picture: '%.60s' '%.60s'", f[0].text,
                        f[1].text);
    }
    if (stat(path, &info) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (info.st_size == 0) {
        rfa_index_skip(index, "%s: the file is empty", path);
        return RFA_OK;
    }
    rfa_entry entry = {.size = {info.st_size}, .origin = index->count, .label = (int32_t)label};
    RFA_TRY(rfa_index_stamp(index, path));
    RFA_TRY(rfa_index_name(index, &entry.file[0], path));
    return rfa_index_add(index, &entry);
}

static rfa_status list_file(rfa_index *index, const char *folder, int64_t number, int contour)
{
    char path[PATH_SIZE + 64];
    rfa_table *table = NULL;
    rfa_field fields[RFA_TABLE_FIELDS];
    int count = 0;
    snprintf(path, sizeof path, "%s/metadata/%lld.npy", folder, (long long)number);
    RFA_TRY(rfa_index_stamp(index, path));
    RFA_TRY(rfa_table_open(&table, path, ' ', RFA_TABLE_FIELDS, true));
    rfa_status status;
    while ((status = rfa_table_next(table, fields, &count)) == RFA_OK && count > 0) {
        status = add_picture(index, folder, fields, count, contour);
        if (status != RFA_OK) {
            status = rfa_fail_within(status, "%s:%lld", path, (long long)rfa_table_line(table));
            break;
        }
    }
    rfa_table_close(&table);
    return status;
}

static rfa_status find(char folder[PATH_SIZE], const char *root, int contour)
{
    char name[64], path[PATH_SIZE];
    snprintf(name, sizeof name, contour == 6 ? "curv_baseline" : "curv_contour_length_%d", contour);
    if (snprintf(path, sizeof path, "%s/metadata", root) < PATH_SIZE && rfa_is_folder(path)) {
        snprintf(folder, PATH_SIZE, "%s", root);
        return RFA_OK;
    }
    RFA_TRY(rfa_find_folder(path, sizeof path, root, name));
    return snprintf(folder, PATH_SIZE, "%s/%s", path, name) < PATH_SIZE
               ? RFA_OK
               : rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", root);
}

static rfa_status split(rfa_index *index, const char *folder)
{
    const int64_t n = index->count, train = n * 80 / 100, val = n * 90 / 100;
    if (train < 1 || val == train || val == n) {
        return rfa_fail(RFA_ERR_IO, "%s: %lld pictures are too few for three splits", folder,
                        (long long)n);
    }
    index->last[0] = index->first[1] = train;
    index->last[1] = index->first[2] = val;
    index->last[2] = n;
    return RFA_OK;
}

rfa_status
rfa_pathfinder_list(rfa_index *index, rfa_image_facts *facts, const char *root, int contour)
{
    char folder[PATH_SIZE];
    int64_t *numbers = NULL;
    int count = 0;
    *index = (rfa_index){0};
    memset(facts, 0, sizeof *facts);
    facts->format = RFA_IMAGE_TREE;
    facts->classes.count = 2;
    snprintf(facts->name, sizeof facts->name, "released PNG files");
    RFA_TRY(find(folder, root, contour));
    rfa_status status = list_numbers(&numbers, &count, folder);
    for (int i = 0; i < count && status == RFA_OK; i++) {
        status = list_file(index, folder, numbers[i], contour);
    }
    rfa_free(numbers);
    if (status == RFA_OK) {
        status = split(index, folder);
    }
    if (status == RFA_OK) {
        status = rfa_image_measure(facts, index);
    }
    if (status != RFA_OK) {
        rfa_index_destroy(index);
    }
    return status;
}
