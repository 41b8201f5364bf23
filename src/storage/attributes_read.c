#include "storage/h5.h"
#include "storage/h5_image.h"
#include "storage/runfile_parts.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

// A list of numbers or texts as "[a, b]".
static rfa_status
read_list(char **out, hid_t attribute, hid_t type, int64_t count, const char *path)
{
    const bool text = H5Tis_variable_str(type) > 0;
    hid_t space = H5Aget_space(attribute);
    void *values = NULL;
    rfa_status status = rfa_alloc(&values, (ptrdiff_t)count, 8, path);
    if (status == RFA_OK && count > 0 &&
        H5Aread(attribute, text ? type : H5T_NATIVE_DOUBLE, values) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "a list of attributes can't be read");
    }
    ptrdiff_t size = 3;
    for (int64_t i = 0; status == RFA_OK && i < count; i++) {
        const char *word = text ? ((char **)values)[i] : NULL;
        size += word ? (ptrdiff_t)strlen(word) + 2 : 32;
    }
    if (status == RFA_OK && (status = rfa_alloc(out, size, 1, path)) == RFA_OK) {
        char *to = stpcpy(*out, "[");
        for (int64_t i = 0; i < count; i++) {
            to = stpcpy(to, i ? ", " : "");
            if (text) {
                const char *word = ((char **)values)[i];
                to = stpcpy(to, word ? word : "");
            } else {
                to += sprintf(to, "%.17g", ((double *)values)[i]);
            }
        }
        stpcpy(to, "]");
    }
    if (text && values && count > 0) {
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, values);
    }
    rfa_h5_close(&space);
    rfa_free(values);
    return status;
}

// One attribute of any kind that rfa writes; others are left out (*known = false).
static rfa_status read_attribute(rfa_run_attribute *item,
                                 char **text,
                                 bool *known,
                                 hid_t object,
                                 const char *name,
                                 const char *path)
{
    rfa_status status = RFA_OK;
    hid_t attribute = H5Aopen(object, name, H5P_DEFAULT), type = H5I_INVALID_HID;
    hid_t space = H5I_INVALID_HID;
    *item = (rfa_run_attribute){.name = name};
    *text = NULL;
    *known = true;
    if (attribute < 0 || (type = H5Aget_type(attribute)) < 0 ||
        (space = H5Aget_space(attribute)) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' can't be read", name);
        goto out;
    }
    const H5T_class_t class = H5Tget_class(type);
    const bool scalar = H5Sget_simple_extent_type(space) == H5S_SCALAR;
    if (scalar && class == H5T_STRING) {
        status = rfa_h5_read_text(object, path, name, text);
    } else if (scalar && class == H5T_INTEGER) {
        item->whole = true;
        status = rfa_h5_read_int(object, path, name, &item->integer);
        item->number = (double)item->integer;
    } else if (scalar && class == H5T_FLOAT) {
        status = rfa_h5_read_double(object, path, name, &item->number);
    } else if (scalar && class == H5T_ENUM) {
        bool flag = false;
        status = rfa_h5_read_bool(object, path, name, &flag);
        item->flag = true;
        item->integer = flag;
        item->number = flag;
    } else if (class == H5T_INTEGER || class == H5T_FLOAT || H5Tis_variable_str(type) > 0) {
        status = read_list(text, attribute, type, H5Sget_simple_extent_npoints(space), path);
    } else {
        *known = false;
    }
    item->text = *text;
out:
    rfa_h5_close(&space);
    rfa_h5_close(&type);
    rfa_h5_close(&attribute);
    return status;
}

typedef struct {
    rfa_attributes *list;
    const char *path;
    rfa_status status;
} attribute_walk;

static herr_t take_attribute(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)info;
    attribute_walk *walk = context;
    rfa_run_attribute item;
    char *text = NULL;
    bool known = false;
    walk->status = read_attribute(&item, &text, &known, object, name, walk->path);
    if (walk->status == RFA_OK && known) {
        walk->status = rfa_attributes_set(walk->list, &item);
    }
    rfa_free(text);
    return walk->status == RFA_OK ? 0 : -1;
}

rfa_status rfa_h5_read_attributes(rfa_attributes *list, hid_t object, const char *path)
{
    *list = (rfa_attributes){0};
    attribute_walk walk = {list, path, RFA_OK};
    hsize_t at = 0;
    const herr_t done = H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &at, take_attribute, &walk);
    if (walk.status == RFA_OK && done < 0) {
        walk.status = rfa_h5_fail(RFA_ERR_IO, path, "its attributes can't be read");
    }
    H5Eclear2(H5E_DEFAULT);
    if (walk.status != RFA_OK) {
        rfa_attributes_free(list);
    }
    return walk.status;
}

rfa_status rfa_attributes_read(rfa_attributes *list, const char *path)
{
    hid_t file;
    *list = (rfa_attributes){0};
    RFA_TRY(rfa_h5_image_verify(path));
    RFA_TRY(rfa_h5_open(&file, path));
    const rfa_status status = rfa_h5_read_attributes(list, file, path);
    rfa_h5_close(&file);
    return status;
}
