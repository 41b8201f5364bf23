#include "storage/h5.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { MAX_DIMENSIONS = 8 };

rfa_status rfa_h5_write_array(hid_t *out,
                              hid_t parent,
                              const char *path,
                              const char *name,
                              hid_t file_type,
                              hid_t memory_type,
                              int dimensions,
                              const hsize_t *shape,
                              const void *values)
{
    rfa_status status = RFA_OK;
    hsize_t count = 1;
    for (int i = 0; i < dimensions; i++) {
        count *= shape[i];
    }
    hid_t dataset = H5I_INVALID_HID, space = H5Screate_simple(dimensions, shape, NULL);
    if (space >= 0) {
        dataset = H5Dcreate2(parent, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    }
    if (dataset < 0 ||
        (count > 0 && H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be written", name);
    }
    rfa_h5_close(&space);
    if (status == RFA_OK && !out) {
        status = rfa_h5_close_array(&dataset, path);
    }
    if (status != RFA_OK) {
        rfa_h5_close(&dataset);
    }
    if (out) {
        *out = dataset;
    }
    return status;
}

rfa_status rfa_h5_close_array(hid_t *dataset, const char *path)
{
    char name[128] = "?";
    if (*dataset < 0) {
        return RFA_OK;
    }
    H5Iget_name(*dataset, name, sizeof name);
    const herr_t closed = H5Dclose(*dataset);
    *dataset = H5I_INVALID_HID;
    return closed >= 0 ? RFA_OK
                       : rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be written", name);
}

rfa_status rfa_h5_write_texts(hid_t *out,
                              hid_t parent,
                              const char *path,
                              const char *name,
                              const char *const *texts,
                              int64_t count)
{
    const hsize_t shape = (hsize_t)count;
    hid_t type = H5Tcopy(H5T_C_S1);
    rfa_status status;
    if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be written", name);
    } else {
        status = rfa_h5_write_array(out, parent, path, name, type, type, 1, &shape, texts);
    }
    rfa_h5_close(&type);
    return status;
}

static const char *class_name(H5T_class_t class)
{
    switch (class) {
    case H5T_INTEGER: return "integers";
    case H5T_FLOAT: return "floating-point numbers";
    case H5T_STRING: return "strings";
    case H5T_ENUM: return "an enumeration";
    case H5T_COMPOUND: return "records";
    default: return "another type";
    }
}

// A dataset that was never written, or is an empty promise of 2^60 elements, has less storage than
// its shape says. Filtered data may be smaller, and variable-length text is counted by reference.
static rfa_status check_storage(hid_t dataset, const char *path, const char *name, hsize_t bytes)
{
    hid_t list = H5Dget_create_plist(dataset);
    const int filters = list >= 0 ? H5Pget_nfilters(list) : -1;
    rfa_h5_close(&list);
    const hsize_t stored = H5Dget_storage_size(dataset);
    if (filters < 0) {
        return rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be read", name);
    }
    if ((filters == 0 && stored < bytes) || (bytes > 0 && stored == 0)) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: dataset '%s' is incomplete: %" PRIuHSIZE " of %" PRIuHSIZE
                        " bytes are in the file",
                        path, name, stored, bytes);
    }
    return RFA_OK;
}

rfa_status rfa_h5_open_array(hid_t *out,
                             hid_t parent,
                             const char *path,
                             const char *name,
                             H5T_class_t class,
                             int dimensions,
                             hsize_t *shape)
{
    *out = H5I_INVALID_HID;
    if (!rfa_h5_has(parent, name)) {
        return rfa_fail(RFA_ERR_IO, "%s: dataset '%s' is missing", path, name);
    }
    rfa_status status = RFA_OK;
    hid_t type = H5I_INVALID_HID, space = H5I_INVALID_HID;
    hid_t dataset = H5Dopen2(parent, name, H5P_DEFAULT);
    if (dataset < 0 || (type = H5Dget_type(dataset)) < 0 || (space = H5Dget_space(dataset)) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be opened", name);
        goto out;
    }
    const H5T_class_t have = H5Tget_class(type);
    if (have != class) {
        status = rfa_fail(RFA_ERR_IO, "%s: dataset '%s' holds %s, expected %s", path, name,
                          class_name(have), class_name(class));
        goto out;
    }
    const int rank = H5Sget_simple_extent_ndims(space);
    if (H5Sget_simple_extent_type(space) != H5S_SIMPLE || rank != dimensions ||
        rank > MAX_DIMENSIONS) {
        status = rfa_fail(RFA_ERR_IO, "%s: dataset '%s' has %d dimensions, expected %d", path, name,
                          rank, dimensions);
        goto out;
    }
    hsize_t have_shape[MAX_DIMENSIONS] = {0}, bytes = H5Tget_size(type);
    H5Sget_simple_extent_dims(space, have_shape, NULL);
    for (int i = 0; i < dimensions; i++) {
        shape[i] = have_shape[i];
        if (__builtin_mul_overflow(bytes, have_shape[i], &bytes) || bytes > INT64_MAX) {
            status = rfa_fail(RFA_ERR_IO, "%s: dataset '%s' is too large", path, name);
            goto out;
        }
    }
    status = check_storage(dataset, path, name, bytes);
out:
    rfa_h5_close(&space);
    rfa_h5_close(&type);
    if (status == RFA_OK) {
        *out = dataset;
    } else {
        rfa_h5_close(&dataset);
    }
    return status;
}

rfa_status rfa_h5_read_array(hid_t dataset, const char *path, hid_t memory_type, void *values)
{
    char name[128] = "?";
    if (H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0) {
        return RFA_OK;
    }
    H5Iget_name(dataset, name, sizeof name);
    return rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be read", name);
}

// raw: count strings, pointers to texts when width == 0, else width bytes each.
static rfa_status
copy_texts(char ***out, const void *raw, int64_t count, size_t width, const char *name)
{
    ptrdiff_t bytes = count * (ptrdiff_t)sizeof(char *);
    for (int64_t i = 0; i < count; i++) {
        const char *text = ((char *const *)raw)[width ? 0 : i];
        bytes += width ? (ptrdiff_t)width + 1 : text ? (ptrdiff_t)strlen(text) + 1 : 1;
    }
    RFA_TRY(rfa_alloc(out, bytes > 0 ? bytes : 1, 1, name));
    char *to = (char *)(*out + count);
    for (int64_t i = 0; i < count; i++) {
        const char *text = width ? (const char *)raw + (size_t)i * width : ((char *const *)raw)[i];
        const size_t length = text ? (width ? strnlen(text, width) : strlen(text)) : 0;
        for (size_t c = 0; c < length; c++) {
            to[c] = text[c]; // the zero after it is there
        }
        (*out)[i] = to;
        to += length + 1;
    }
    return RFA_OK;
}

rfa_status
rfa_h5_read_texts(hid_t parent, const char *path, const char *name, char ***out, int64_t *count)
{
    *out = NULL;
    *count = 0;
    hsize_t shape = 0;
    hid_t dataset, space = H5I_INVALID_HID, type = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_open_array(&dataset, parent, path, name, H5T_STRING, 1, &shape));
    rfa_status status = RFA_OK;
    void *raw = NULL;
    bool variable = false;
    if ((type = H5Dget_type(dataset)) < 0 || (space = H5Dget_space(dataset)) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be read", name);
        goto out;
    }
    variable = H5Tis_variable_str(type) > 0;
    const size_t size = variable ? sizeof(char *) : H5Tget_size(type);
    status = rfa_alloc(&raw, shape > 0 ? (ptrdiff_t)shape : 1, size, name);
    if (status == RFA_OK && shape > 0) {
        status = rfa_h5_read_array(dataset, path, type, raw);
    }
    if (status == RFA_OK) {
        status = copy_texts(out, raw, (int64_t)shape, variable ? 0 : size, name);
        *count = (int64_t)shape;
    }
    if (raw && variable) {
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw);
    }
out:
    rfa_free(raw);
    rfa_h5_close(&space);
    rfa_h5_close(&type);
    rfa_h5_close(&dataset);
    return status;
}
