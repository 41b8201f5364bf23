#include "storage/checkpoint_parts.h"
#include "storage/h5.h"
#include "storage/h5_image.h"

#include "base/mem.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checksums of checkpoints are over little-endian floats"
#endif

enum { MAX_DIMENSIONS = 4 };

static uint32_t checksum(const float *values, ptrdiff_t count)
{
    const z_size_t bytes = (z_size_t)count * sizeof *values;
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), (const Bytef *)values, bytes);
}

// Of all that the header says.
static uint32_t header_checksum(const rfa_checkpoint_header *header, int64_t arrays)
{
    const int64_t numbers[] = {header->step, header->best_correct, header->best_step,
                               (int64_t)header->digest, arrays};
    const char *texts[] = {header->config_text, header->data_digest};
    uLong crc = crc32_z(crc32_z(0, NULL, 0), (const Bytef *)numbers, sizeof numbers);
    for (int i = 0; i < 2; i++) {
        crc = crc32_z(crc, (const Bytef *)texts[i], strlen(texts[i]) + 1);
    }
    return (uint32_t)crc;
}

static rfa_status
write_header(hid_t file, const char *path, const rfa_checkpoint_header *header, int count)
{
    char digest[17];
    rfa_checkpoint_header texts = *header;
    texts.config_text = header->config_text ? header->config_text : (char *)"";
    texts.data_digest = header->data_digest ? header->data_digest : (char *)"";
    snprintf(digest, sizeof digest, "%016" PRIx64, header->digest);
    RFA_TRY(rfa_h5_write_text(file, path, "schema", RFA_CHECKPOINT_SCHEMA));
    RFA_TRY(rfa_h5_write_int(file, path, "step", header->step));
    RFA_TRY(rfa_h5_write_int(file, path, "best_correct", header->best_correct));
    RFA_TRY(rfa_h5_write_int(file, path, "best_step", header->best_step));
    RFA_TRY(rfa_h5_write_text(file, path, "digest", digest));
    RFA_TRY(rfa_h5_write_text(file, path, "config", texts.config_text));
    RFA_TRY(rfa_h5_write_text(file, path, "data_digest", texts.data_digest));
    RFA_TRY(rfa_h5_write_int(file, path, "arrays", count));
    return rfa_h5_write_int(file, path, "crc32", header_checksum(&texts, count));
}

// A group that keeps the order in which its arrays are written, which is the table's.
static rfa_status make_group(hid_t file, const char *path, const char *name)
{
    hid_t group = H5I_INVALID_HID, list = H5Pcreate(H5P_GROUP_CREATE);
    if (list >= 0 &&
        H5Pset_link_creation_order(list, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0) {
        group = H5Gcreate2(file, name, H5P_DEFAULT, list, H5P_DEFAULT);
    }
    const rfa_status status =
        group >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "group '%s' can't be created", name);
    rfa_h5_close(&group);
    rfa_h5_close(&list);
    return status;
}

// Makes the groups that a name such as "parameters/embedding.tokens" needs.
static rfa_status make_groups(hid_t file, const char *path, const char *name)
{
    char prefix[512];
    for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(prefix, sizeof prefix, "%.*s", (int)(slash - name), name);
        if (!rfa_h5_has(file, prefix)) {
            RFA_TRY(make_group(file, path, prefix));
        }
    }
    return RFA_OK;
}

static rfa_status write_array(hid_t file, const char *path, const rfa_checkpoint_array *array)
{
    RFA_ASSERT(array->dimensions >= 1 && array->dimensions <= MAX_DIMENSIONS);
    hsize_t shape[MAX_DIMENSIONS];
    ptrdiff_t count = 1;
    for (int i = 0; i < array->dimensions; i++) {
        shape[i] = (hsize_t)array->shape[i];
        count *= array->shape[i];
    }
    hid_t dataset;
    RFA_TRY(make_groups(file, path, array->name));
    RFA_TRY(rfa_h5_write_array(&dataset, file, path, array->name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT,
                               array->dimensions, shape, array->values));
    rfa_status status = rfa_h5_write_int(dataset, path, "crc32", checksum(array->values, count));
    if (H5Dclose(dataset) < 0 && status == RFA_OK) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be closed", array->name);
    }
    return status;
}

rfa_status rfa_checkpoint_write_file(const char *path,
                                     const rfa_checkpoint_header *header,
                                     const rfa_checkpoint_array *arrays,
                                     int count)
{
    hid_t file;
    RFA_TRY(rfa_h5_image_create(&file, path));
    rfa_status status = write_header(file, path, header, count);
    for (int i = 0; i < count && status == RFA_OK; i++) {
        status = write_array(file, path, &arrays[i]);
    }
    if (status == RFA_OK) {
        status = rfa_h5_write_bool(file, path, "complete", true);
    }
    if (status == RFA_OK) {
        status = rfa_h5_image_write(file, path);
    }
    rfa_h5_close(&file);
    return status;
}

static rfa_status
read_header(hid_t file, const char *path, rfa_checkpoint_header *header, int64_t *arrays)
{
    char *schema = NULL, *digest = NULL, *end = NULL;
    bool complete = false;
    int64_t crc = 0;
    rfa_status status = rfa_h5_read_text(file, path, "schema", &schema);
    if (status == RFA_OK && strcmp(schema, RFA_CHECKPOINT_SCHEMA) != 0) {
        status = rfa_fail(RFA_ERR_IO, "%s: not a checkpoint (schema '%s', expected '%s')", path,
                          schema, RFA_CHECKPOINT_SCHEMA);
    }
    rfa_free(schema);
    RFA_TRY(status);
    RFA_TRY(rfa_h5_read_bool(file, path, "complete", &complete));
    if (!complete) {
        return rfa_fail(RFA_ERR_IO, "%s: not complete", path);
    }
    RFA_TRY(rfa_h5_read_int(file, path, "step", &header->step));
    RFA_TRY(rfa_h5_read_int(file, path, "best_correct", &header->best_correct));
    RFA_TRY(rfa_h5_read_int(file, path, "best_step", &header->best_step));
    RFA_TRY(rfa_h5_read_int(file, path, "arrays", arrays));
    RFA_TRY(rfa_h5_read_int(file, path, "crc32", &crc));
    RFA_TRY(rfa_h5_read_text(file, path, "config", &header->config_text));
    RFA_TRY(rfa_h5_read_text(file, path, "data_digest", &header->data_digest));
    RFA_TRY(rfa_h5_read_text(file, path, "digest", &digest));
    header->digest = strtoull(digest, &end, 16);
    const bool hex = strlen(digest) == 16 && *end == '\0';
    rfa_free(digest);
    if (!hex || crc != header_checksum(header, *arrays)) {
        return rfa_fail(RFA_ERR_IO, "%s: the checksum of the header is wrong", path);
    }
    return RFA_OK;
}

// Reads count floats of an open dataset and holds them against its checksum.
static rfa_status
read_values(hid_t dataset, const char *path, const char *name, float *values, ptrdiff_t count)
{
    int64_t crc = 0;
    RFA_TRY(rfa_h5_read_int(dataset, path, "crc32", &crc));
    if (count > 0) {
        RFA_TRY(rfa_h5_read_array(dataset, path, H5T_NATIVE_FLOAT, values));
    }
    if (crc != checksum(values, count)) {
        return rfa_fail(RFA_ERR_IO, "%s: the checksum of '%s' is wrong", path, name);
    }
    return RFA_OK;
}

typedef struct {
    const char *path;
    int64_t arrays, values;
    hsize_t size; // of the file, bytes
    rfa_status status;
} walk;

static herr_t check_object(hid_t root, const char *name, const H5O_info_t *info, void *context)
{
    walk *w = context;
    if (info->type != H5O_TYPE_DATASET) {
        return 0;
    }
    hsize_t shape[MAX_DIMENSIONS] = {0};
    hid_t dataset = H5Dopen2(root, name, H5P_DEFAULT), space = H5I_INVALID_HID;
    int dimensions = 0;
    if (dataset < 0 || (space = H5Dget_space(dataset)) < 0 ||
        (dimensions = H5Sget_simple_extent_ndims(space)) < 1 || dimensions > MAX_DIMENSIONS) {
        w->status = rfa_h5_fail(RFA_ERR_IO, w->path, "dataset '%s' can't be opened", name);
    }
    rfa_h5_close(&space);
    rfa_h5_close(&dataset);
    if (w->status == RFA_OK) {
        w->status = rfa_h5_open_array(&dataset, root, w->path, name, H5T_FLOAT, dimensions, shape);
    }
    float *values = NULL;
    ptrdiff_t count = 1;
    for (int i = 0; i < dimensions && w->status == RFA_OK; i++) {
        count *= (ptrdiff_t)shape[i];
    }
    // A damaged shape must not ask for all memory.
    if (w->status == RFA_OK && (hsize_t)count > w->size / sizeof *values) {
        w->status = rfa_fail(RFA_ERR_IO, "%s: dataset '%s' is larger than the file", w->path, name);
    }
    if (w->status == RFA_OK) {
        w->status = rfa_alloc(&values, count, sizeof *values, name);
    }
    if (w->status == RFA_OK) {
        w->status = read_values(dataset, w->path, name, values, count);
    }
    rfa_free(values);
    rfa_h5_close(&dataset);
    w->arrays++;
    w->values += count;
    return w->status == RFA_OK ? 0 : -1;
}

rfa_status rfa_checkpoint_check(const char *file,
                                rfa_checkpoint_header *header,
                                int64_t *arrays,
                                int64_t *values)
{
    hid_t id;
    *header = (rfa_checkpoint_header){0};
    *arrays = *values = 0;
    RFA_TRY(rfa_h5_image_verify(file));
    RFA_TRY(rfa_h5_open(&id, file));
    walk w = {.path = file, .status = RFA_OK};
    w.status = read_header(id, file, header, arrays);
    if (w.status == RFA_OK && H5Fget_filesize(id, &w.size) < 0) {
        w.status = rfa_h5_fail(RFA_ERR_IO, file, "its size can't be read");
    }
    if (w.status == RFA_OK) {
        const herr_t done =
            H5Ovisit2(id, H5_INDEX_NAME, H5_ITER_NATIVE, check_object, &w, H5O_INFO_BASIC);
        if (w.status == RFA_OK && done < 0) {
            w.status = rfa_h5_fail(RFA_ERR_IO, file, "its arrays can't be listed");
        }
        H5Eclear2(H5E_DEFAULT);
    }
    if (w.status == RFA_OK && w.arrays != *arrays) {
        w.status =
            rfa_fail(RFA_ERR_IO, "%s: %" PRId64 " arrays of %" PRId64, file, w.arrays, *arrays);
    }
    rfa_h5_close(&id);
    *values = w.values;
    if (w.status != RFA_OK) {
        rfa_checkpoint_header_free(header);
    }
    return w.status;
}

static rfa_status read_array(hid_t file, const char *path, rfa_checkpoint_array *array)
{
    hsize_t shape[MAX_DIMENSIONS] = {0};
    hid_t dataset;
    ptrdiff_t count = 1;
    rfa_status status =
        rfa_h5_open_array(&dataset, file, path, array->name, H5T_FLOAT, array->dimensions, shape);
    RFA_TRY(status);
    for (int i = 0; i < array->dimensions && status == RFA_OK; i++) {
        count *= array->shape[i];
        if ((ptrdiff_t)shape[i] != array->shape[i]) {
            status = rfa_fail(RFA_ERR_IO, "%s: dimension %d of '%s' is %lld, expected %td", path, i,
                              array->name, (long long)shape[i], array->shape[i]);
        }
    }
    if (status == RFA_OK) {
        status = read_values(dataset, path, array->name, array->values, count);
    }
    rfa_h5_close(&dataset);
    return status;
}

rfa_status rfa_checkpoint_read_arrays(const char *path, rfa_checkpoint_array *arrays, int count)
{
    hid_t file;
    RFA_TRY(rfa_h5_open(&file, path));
    rfa_status status = RFA_OK;
    for (int i = 0; i < count && status == RFA_OK; i++) {
        status = read_array(file, path, &arrays[i]);
    }
    rfa_h5_close(&file);
    return status;
}
