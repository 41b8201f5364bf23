#include "tasks/tree.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096 };

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static rfa_status open_folder(DIR **list, const char *path)
{
    *list = opendir(path);
    return *list ? RFA_OK : rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path, strerror(errno));
}

static rfa_status join(char out[PATH_SIZE], const char *root, const char *split, const char *name)
{
    const int size = name ? snprintf(out, PATH_SIZE, "%s/%s/%s", root, split, name)
                          : snprintf(out, PATH_SIZE, "%s/%s", root, split);
    return size < PATH_SIZE ? RFA_OK
                            : rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", root);
}

// Folders of root/split: the classes, or a check that they are known.
static rfa_status
list_classes(rfa_classes *classes, const char *root, const char *split, const char *ignore)
{
    char path[PATH_SIZE];
    DIR *list = NULL;
    const bool learn = classes->count == 0;
    RFA_TRY(join(path, root, split, NULL));
    RFA_TRY(open_folder(&list, path));
    rfa_status status = RFA_OK;
    // cppcheck-suppress readdirCalled
    for (const struct dirent *e; status == RFA_OK && (e = readdir(list));) {
        if (e->d_name[0] == '.' || (ignore && strcmp(e->d_name, ignore) == 0)) {
            continue;
        }
        if ((status = join(path, root, split, e->d_name)) != RFA_OK) {
            break;
        }
        if (!rfa_is_folder(path)) {
            continue; // IMDb's lists of addresses and features
        }
        const size_t size = strlen(e->d_name) + 1;
        if (size > RFA_CLASS_NAME) {
            status = rfa_fail(RFA_ERR_IO, "%s: the name of the class is too long", path);
        } else if (!learn) {
            if (!bsearch(e->d_name, classes->name, (size_t)classes->count, RFA_CLASS_NAME,
                         by_name)) {
                status = rfa_fail(RFA_ERR_IO, "%s: there is no such class in train", path);
            }
        } else if (classes->count == RFA_TREE_CLASSES) {
            status = rfa_fail(RFA_ERR_IO, "%s: more than %d classes", path, RFA_TREE_CLASSES);
        } else {
            memcpy(classes->name[classes->count++], e->d_name, size);
        }
    }
    closedir(list);
    if (status == RFA_OK && learn) {
        qsort(classes->name, (size_t)classes->count, RFA_CLASS_NAME, by_name);
        if (classes->count < 2) {
            status = rfa_fail(RFA_ERR_IO, "%s/%s: %d folder%s of a class, not two or more", root,
                              split, classes->count, classes->count == 1 ? "" : "s");
        }
    }
    return status;
}

static rfa_status add_file(rfa_index *index,
                           const char *path,
                           const char *class,
                           const char *name,
                           int label,
                           rfa_tree_order order)
{
    struct stat info;
    rfa_entry entry = {.label = label};
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        rfa_index_skip(index, "%s: not a file", path);
        return RFA_OK;
    }
    if (info.st_size == 0) {
        rfa_index_skip(index, "%s: the file is empty", path);
        return RFA_OK;
    }
    entry.size[0] = info.st_size;
    if (order == RFA_TREE_BY_NUMBER) {
        char *end;
        errno = 0;
        entry.key = strtoull(name, &end, 10);
        if (end == name || errno != 0 || name[0] < '0' || name[0] > '9' || entry.key > INT64_MAX) {
            return rfa_fail(RFA_ERR_IO, "%s: the name begins with no number, as in 12_7.txt", path);
        }
        entry.origin = (int64_t)entry.key;
    } else {
        entry.key = rfa_hash(rfa_hash(0, class, strlen(class) + 1), name, strlen(name));
    }
    RFA_TRY(rfa_index_name(index, &entry.file[0], path));
    RFA_TRY(rfa_index_stamp(index, path));
    return rfa_index_add(index, &entry);
}

static bool ends_with(const char *name, const char *extension)
{
    const size_t n = strlen(name), m = strlen(extension);
    return n > m && strcmp(name + n - m, extension) == 0;
}

static rfa_status list_files(rfa_index *index,
                             const char *folder,
                             const char *class,
                             int label,
                             const char *extension,
                             rfa_tree_order order)
{
    DIR *list = NULL;
    char path[PATH_SIZE + 256];
    const int64_t before = index->count;
    RFA_TRY(open_folder(&list, folder));
    rfa_status status = RFA_OK;
    // cppcheck-suppress readdirCalled
    for (const struct dirent *e; status == RFA_OK && (e = readdir(list));) {
        if (e->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (!ends_with(e->d_name, extension)) {
            rfa_index_skip(index, "%s: not a %s file", path, extension + 1);
        } else {
            status = add_file(index, path, class, e->d_name, label, order);
        }
    }
    closedir(list);
    if (status == RFA_OK && index->count == before) {
        status = rfa_fail(RFA_ERR_IO, "%s: no %s file with content in it", folder, extension + 1);
    }
    return status;
}

rfa_status rfa_tree_list(rfa_index *index,
                         rfa_classes *classes,
                         const char *root,
                         const char *split,
                         const char *extension,
                         const char *ignore,
                         rfa_tree_order order)
{
    const int64_t before = index->count;
    RFA_TRY(list_classes(classes, root, split, ignore));
    for (int label = 0; label < classes->count; label++) {
        char folder[PATH_SIZE];
        RFA_TRY(join(folder, root, split, classes->name[label]));
        RFA_TRY(list_files(index, folder, classes->name[label], label, extension, order));
    }
    rfa_index_sort(index, before, index->count);
    for (int64_t i = before; i < index->count && order == RFA_TREE_BY_HASH; i++) {
        index->entries[i].origin = i - before;
    }
    return RFA_OK;
}
