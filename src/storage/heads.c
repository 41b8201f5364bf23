#include "storage/heads.h"

#include "base/mem.h"
#include "storage/h5.h"
#include "storage/h5_image.h"
#include "storage/runfile_parts.h"

static const char *const arrays[] = {"q", "k", "v"};
enum { ARRAYS = 3, DIMENSIONS = 3 };

// All three of one shape.
static rfa_status look(rfa_heads *heads, hid_t file)
{
    for (int i = 0; i < ARRAYS; i++) {
        hid_t dataset = H5I_INVALID_HID;
        hsize_t shape[DIMENSIONS];
        RFA_TRY(rfa_h5_open_array(&dataset, file, heads->path, arrays[i], H5T_FLOAT, DIMENSIONS,
                                  shape));
        rfa_h5_close(&dataset);
        if (i == 0) {
            heads->count = (int64_t)shape[0];
            heads->n = (int64_t)shape[1];
            heads->d = (int64_t)shape[2];
        }
        if (shape[0] < 1 || shape[1] < 2 || shape[2] < 2 || (int64_t)shape[0] != heads->count ||
            (int64_t)shape[1] != heads->n || (int64_t)shape[2] != heads->d) {
            return rfa_fail(RFA_ERR_IO, "%s: '%s' is not [heads][N][d] as q is", heads->path,
                            arrays[i]);
        }
    }
    return RFA_OK;
}

// numbers [count] of a dataset, if it is there.
static rfa_status numbers(int64_t **out, const rfa_heads *heads, hid_t file, const char *name)
{
    hid_t dataset = H5I_INVALID_HID;
    hsize_t shape = 0;
    RFA_TRY(rfa_alloc(out, (ptrdiff_t)heads->count, sizeof **out, "heads"));
    for (int64_t i = 0; i < heads->count; i++) {
        (*out)[i] = -1;
    }
    if (!rfa_h5_has(file, name)) {
        return RFA_OK;
    }
    RFA_TRY(rfa_h5_open_array(&dataset, file, heads->path, name, H5T_INTEGER, 1, &shape));
    rfa_status status =
        (int64_t)shape == heads->count
            ? rfa_h5_read_array(dataset, heads->path, H5T_NATIVE_INT64, *out)
            : rfa_fail(RFA_ERR_IO, "%s: '%s' has not one number a head", heads->path, name);
    rfa_h5_close(&dataset);
    return status;
}

static rfa_status read_all(rfa_heads *heads, hid_t file)
{
    RFA_TRY(look(heads, file));
    RFA_TRY(numbers(&heads->length, heads, file, "length"));
    RFA_TRY(numbers(&heads->example, heads, file, "example"));
    RFA_TRY(numbers(&heads->layer, heads, file, "layer"));
    RFA_TRY(numbers(&heads->head, heads, file, "head"));
    for (int64_t i = 0; i < heads->count; i++) {
        heads->length[i] = heads->length[i] < 0 ? heads->n : heads->length[i];
        if (heads->length[i] < 2 || heads->length[i] > heads->n) {
            return rfa_fail(RFA_ERR_IO, "%s: head %lld has %lld of %lld tokens", heads->path,
                            (long long)i, (long long)heads->length[i], (long long)heads->n);
        }
    }
    return RFA_OK;
}

rfa_status rfa_heads_open(rfa_heads *heads, const char *path)
{
    hid_t file = H5I_INVALID_HID;
    *heads = (rfa_heads){.path = NULL};
    RFA_TRY(rfa_h5_image_verify(path));
    RFA_TRY(rfa_text_copy(&heads->path, path));
    rfa_status status = rfa_h5_open(&file, path);
    if (status == RFA_OK) {
        status = read_all(heads, file);
    }
    rfa_h5_close(&file);
    if (status != RFA_OK) {
        rfa_heads_close(heads);
    }
    return status;
}

void rfa_heads_close(rfa_heads *heads)
{
    rfa_free(heads->path);
    rfa_free(heads->length);
    rfa_free(heads->example);
    rfa_free(heads->layer);
    rfa_free(heads->head);
    *heads = (rfa_heads){.path = NULL};
}

static rfa_status
read_slab(float *to, hid_t file, const rfa_heads *heads, const char *name, int64_t head)
{
    hid_t dataset = H5I_INVALID_HID;
    hsize_t shape[DIMENSIONS];
    RFA_TRY(rfa_h5_open_array(&dataset, file, heads->path, name, H5T_FLOAT, DIMENSIONS, shape));
    const hsize_t start[] = {(hsize_t)head, 0, 0}, count[] = {1, shape[1], shape[2]};
    hid_t from = H5Dget_space(dataset), memory = H5Screate_simple(2, shape + 1, NULL);
    rfa_status status = RFA_OK;
    if (from < 0 || memory < 0 ||
        H5Sselect_hyperslab(from, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(dataset, H5T_NATIVE_FLOAT, memory, from, H5P_DEFAULT, to) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, heads->path, "'%s' can't be read", name);
    }
    rfa_h5_close(&memory);
    rfa_h5_close(&from);
    rfa_h5_close(&dataset);
    return status;
}

rfa_status rfa_heads_read(float *q, float *k, float *v, const rfa_heads *heads, int64_t head)
{
    float *const to[] = {q, k, v};
    hid_t file = H5I_INVALID_HID;
    RFA_ASSERT(head >= 0 && head < heads->count);
    rfa_status status = rfa_h5_open(&file, heads->path);
    for (int i = 0; i < ARRAYS && status == RFA_OK; i++) {
        status = read_slab(to[i], file, heads, arrays[i], head);
    }
    rfa_h5_close(&file);
    return status;
}
