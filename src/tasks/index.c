#define _GNU_SOURCE // qsort_r
#include "tasks/index.h"

#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096, DEEPEST = 2 };

void rfa_index_destroy(rfa_index *index)
{
    rfa_free(index->entries);
    rfa_free(index->names);
    *index = (rfa_index){0};
}

// Room for more elements behind the count that there are.
static rfa_status
reserve(void *memory, int64_t *capacity, int64_t count, int64_t more, size_t size, const char *what)
{
    void **block = memory, *larger = NULL;
    if (count + more <= *capacity) {
        return RFA_OK;
    }
    const int64_t wanted = 2 * (count + more) + 64;
    RFA_TRY(rfa_alloc(&larger, wanted, size, what));
    if (count > 0) {
        memcpy(larger, *block, (size_t)count * size);
    }
    rfa_free(*block);
    *block = larger;
    *capacity = wanted;
    return RFA_OK;
}

rfa_status rfa_index_add(rfa_index *index, const rfa_entry *entry)
{
    RFA_TRY(reserve(&index->entries, &index->capacity, index->count, 1, sizeof *index->entries,
                    "list of examples"));
    index->entries[index->count++] = *entry;
    return RFA_OK;
}

rfa_status rfa_index_name(rfa_index *index, int64_t *at, const char *text)
{
    const int64_t size = (int64_t)strlen(text) + 1;
    RFA_TRY(reserve(&index->names, &index->names_capacity, index->names_size, size, 1,
                    "names of files"));
    memcpy(index->names + index->names_size, text, (size_t)size);
    *at = index->names_size;
    index->names_size += size;
    return RFA_OK;
}

void rfa_index_skip(rfa_index *index, const char *format, ...)
{
    if (index->skipped++ == 0) {
        va_list list;
        va_start(list, format);
        vsnprintf(index->skipped_first, sizeof index->skipped_first, format, list);
        va_end(list);
    }
}

rfa_status rfa_index_stamp(rfa_index *index, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path, strerror(errno));
    }
    const int64_t facts[3] = {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
    // A sum, as folders are not read in a certain order.
    index->stamp += rfa_hash(rfa_hash(0, path, strlen(path)), facts, sizeof facts);
    return RFA_OK;
}

const char *rfa_index_file(const rfa_index *index, const rfa_entry *entry, int document)
{
    return index->names + entry->file[document];
}

static int compare(const void *a, const void *b, void *names)
{
    const rfa_entry *x = a, *y = b;
    if (x->key != y->key) {
        return x->key < y->key ? -1 : 1;
    }
    if (x->label != y->label) {
        return x->label < y->label ? -1 : 1;
    }
    return strcmp((const char *)names + x->file[0], (const char *)names + y->file[0]);
}

void rfa_index_sort(rfa_index *index, int64_t begin, int64_t end)
{
    if (end > begin) {
        qsort_r(index->entries + begin, (size_t)(end - begin), sizeof *index->entries, compare,
                index->names);
    }
}

rfa_status rfa_index_split(rfa_index *index, int64_t train, int percent)
{
    const int64_t val = percent > 0 ? train * percent / 100 : index->count - train;
    index->first[0] = 0;
    index->last[0] = percent > 0 ? train - val : train;
    index->first[1] = index->last[0];
    index->last[1] = index->last[0] + val;
    index->first[2] = train;
    index->last[2] = index->count;
    for (int s = 0; s < RFA_SPLITS; s++) {
        if (rfa_index_examples(index, s) < 1) {
            return rfa_fail(RFA_ERR_USAGE,
                            "split %s is left without examples: there are %lld for training and "
                            "validation, and %lld for the test",
                            rfa_splits[s], (long long)train, (long long)(index->count - train));
        }
    }
    return RFA_OK;
}

bool rfa_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool rfa_is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

// Looks for name in the folders that lie `depth` levels below folder. *found counts them.
static rfa_status
search(char *out, size_t size, int *found, const char *folder, const char *name, int depth)
{
    char path[PATH_SIZE];
    if (depth == 0) {
        if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
            (rfa_is_folder(path) || rfa_is_file(path)) && ++*found == 1 &&
            snprintf(out, size, "%s", folder) >= (int)size) {
            return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", folder);
        }
        return RFA_OK;
    }
    DIR *list = opendir(folder);
    if (!list) {
        return RFA_OK; // others may do
    }
    rfa_status status = RFA_OK;
    // cppcheck-suppress readdirCalled
    for (const struct dirent *entry; status == RFA_OK && (entry = readdir(list));) {
        if (entry->d_name[0] != '.' &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path &&
            rfa_is_folder(path)) {
            status = search(out, size, found, path, name, depth - 1);
        }
    }
    closedir(list);
    return status;
}

rfa_status rfa_find_folder(char *out, size_t size, const char *root, const char *name)
{
    if (!rfa_is_folder(root)) {
        struct stat info;
        return rfa_fail(RFA_ERR_IO, "%s: %s", root,
                        stat(root, &info) == 0 ? "not a folder" : strerror(errno));
    }
    int found = 0;
    for (int depth = 0; depth <= DEEPEST && found == 0; depth++) {
        RFA_TRY(search(out, size, &found, root, name, depth));
    }
    if (found > 1) {
        return rfa_fail(RFA_ERR_IO, "%s: %d folders below it have '%s': which one?", root, found,
                        name);
    }
    return found == 1 ? RFA_OK
                      : rfa_fail(RFA_ERR_IO, "%s: no '%s' in it, nor one or two levels deeper",
                                 root, name);
}
