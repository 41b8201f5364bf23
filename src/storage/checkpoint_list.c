#include "storage/checkpoint_list.h"

#include "base/mem.h"
#include "storage/checkpoint_parts.h"
#include "storage/h5.h"
#include "storage/runfile_parts.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DIMENSIONS = 4 };

// Of a walk through one group.
typedef struct {
    rfa_checkpoint_list *list;
    const char *path, *group;
    rfa_status status;
} walk;

// Adds a dataset's name and shape; its values are read later, with their checksums.
static rfa_status add_array(walk *w, hid_t group, const char *name)
{
    rfa_checkpoint_list *list = w->list;
    hsize_t shape[MAX_DIMENSIONS] = {0};
    hid_t dataset = H5Dopen2(group, name, H5P_DEFAULT), space = H5I_INVALID_HID;
    int dimensions = -1;
    if (dataset >= 0 && (space = H5Dget_space(dataset)) >= 0) {
        dimensions = H5Sget_simple_extent_ndims(space);
    }
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS ||
        H5Sget_simple_extent_dims(space, shape, NULL) < 0) {
        w->status = rfa_h5_fail(RFA_ERR_IO, w->path, "'%s/%s' is no array", w->group, name);
    }
    rfa_h5_close(&space);
    rfa_h5_close(&dataset);
    RFA_TRY(w->status);
    RFA_TRY(rfa_rows_reserve(&list->array, list->count, sizeof *list->array));
    const size_t size = strlen(w->group) + strlen(name) + 2;
    rfa_checkpoint_array *array = &list->array[list->count];
    char *full = NULL;
    *array = (rfa_checkpoint_array){.dimensions = dimensions};
    list->count++; // what it holds is freed with the list
    RFA_TRY(rfa_alloc(&full, (ptrdiff_t)size, 1, "name of an array"));
    snprintf(full, size, "%s/%s", w->group, name);
    array->name = full;
    ptrdiff_t count = 1;
    for (int i = 0; i < dimensions; i++) {
        array->shape[i] = (ptrdiff_t)shape[i];
        count *= array->shape[i];
    }
    return rfa_alloc(&array->values, count, sizeof *array->values, name);
}

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *context)
{
    walk *w = context;
    (void)info;
    w->status = add_array(w, group, name);
    return w->status == RFA_OK ? 0 : -1;
}

// In the order of writing where the file keeps it, else by name.
static rfa_status
add_group(rfa_checkpoint_list *list, hid_t file, const char *path, const char *name)
{
    hid_t group = H5I_INVALID_HID, how = H5I_INVALID_HID;
    unsigned order = 0;
    walk w = {.list = list, .path = path, .group = name};
    if (!rfa_h5_has(file, name)) {
        return RFA_OK;
    }
    RFA_TRY(rfa_h5_open_group(&group, file, path, name));
    how = H5Gget_create_plist(group);
    if (how < 0 || H5Pget_link_creation_order(how, &order) < 0) {
        w.status = rfa_h5_fail(RFA_ERR_IO, path, "group '%s' can't be read", name);
    } else {
        const H5_index_t index = order & H5P_CRT_ORDER_TRACKED ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
        hsize_t at = 0;
        if (H5Literate(group, index, H5_ITER_INC, &at, visit, &w) < 0 && w.status == RFA_OK) {
            w.status = rfa_h5_fail(RFA_ERR_IO, path, "group '%s' can't be listed", name);
        }
        H5Eclear2(H5E_DEFAULT);
    }
    rfa_h5_close(&how);
    rfa_h5_close(&group);
    return w.status;
}

// One file, with all checksums verified.
static rfa_status read_file(rfa_checkpoint_list *list, const char *path)
{
    static const char *const groups[] = {"parameters", "moment1", "moment2"};
    int64_t arrays = 0, values = 0;
    hid_t file;
    *list = (rfa_checkpoint_list){0};
    RFA_TRY(rfa_checkpoint_check(path, &list->header, &arrays, &values));
    rfa_status status = rfa_h5_open(&file, path);
    for (int i = 0; i < 3 && status == RFA_OK; i++) {
        status = add_group(list, file, path, groups[i]);
    }
    rfa_h5_close(&file);
    if (status == RFA_OK) {
        status = rfa_checkpoint_read_arrays(path, list->array, list->count);
    }
    if (status != RFA_OK) {
        rfa_checkpoint_list_free(list);
    }
    return status;
}

rfa_status rfa_checkpoint_list_read(rfa_checkpoint_list *list, const char *run_path)
{
    rfa_checkpoint_header newest;
    char *current = NULL, *previous = NULL;
    *list = (rfa_checkpoint_list){0};
    RFA_TRY(rfa_checkpoint_read_header(run_path, &newest)); // says what is wrong with the others
    rfa_status status = rfa_run_beside(&current, run_path, ".ckpt");
    if (status == RFA_OK) {
        status = rfa_run_beside(&previous, run_path, ".ckpt.prev");
    }
    if (status == RFA_OK) {
        status = read_file(list, current);
        if (status != RFA_OK || list->header.step != newest.step) {
            rfa_checkpoint_list_free(list);
            status = read_file(list, previous);
        }
    }
    rfa_free(previous);
    rfa_free(current);
    rfa_checkpoint_header_free(&newest);
    return status;
}

void rfa_checkpoint_list_free(rfa_checkpoint_list *list)
{
    for (int i = 0; i < list->count; i++) {
        rfa_free((char *)list->array[i].name);
        rfa_free(list->array[i].values);
    }
    rfa_free(list->array);
    rfa_checkpoint_header_free(&list->header);
    *list = (rfa_checkpoint_list){0};
}
