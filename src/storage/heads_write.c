#include "storage/heads_write.h"

#include "base/mem.h"
#include "storage/h5.h"
#include "storage/runfile_parts.h"

#include <time.h>
#include <unistd.h>

#define RFA_HEADS_SCHEMA "rfa heads 1"

enum { DIMENSIONS = 3 };

struct rfa_heads_writer {
    const rfa_comm *all;
    char *path, *tmp;
    int64_t d;
    hid_t file, transfer, array[RFA_HEADS_ARRAYS];
};

static const struct {
    const char *name, *long_name;
} arrays[RFA_HEADS_ARRAYS] = {
    {"q", "queries, as projected"},
    {"k", "keys, as projected"},
    {"v", "values, as projected"},
    {"out", "output of the run's own attention, before its output projection"},
};

static rfa_status
describe(hid_t dataset, const char *path, const char *units, const char *long_name)
{
    RFA_TRY(rfa_h5_write_text(dataset, path, "units", units));
    return rfa_h5_write_text(dataset, path, "long_name", long_name);
}

// numbers NULL: 0, 1, ...
static rfa_status write_numbers(hid_t *out,
                                hid_t file,
                                const char *path,
                                const char *name,
                                const char *long_name,
                                const int64_t *numbers,
                                int64_t count)
{
    const hsize_t shape = (hsize_t)count;
    int64_t *ascending = NULL;
    if (!numbers) {
        RFA_TRY(rfa_alloc(&ascending, (ptrdiff_t)count, sizeof *ascending, "scale"));
        for (int64_t i = 0; i < count; i++) {
            ascending[i] = i;
        }
    }
    const rfa_status status =
        rfa_h5_write_array(out, file, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &shape,
                           numbers ? numbers : ascending);
    rfa_free(ascending);
    RFA_TRY(status);
    return describe(*out, path, "1", long_name);
}

static rfa_status
write_origin(hid_t file, const char *path, const rfa_heads_contents *contents, hid_t place)
{
    const int64_t *const numbers[] = {contents->example, contents->layer, contents->head};
    static const char *const names[] = {"example", "layer", "head"};
    static const char *const long_names[] = {"number of the example in its split",
                                             "layer, from 0 on", "head of the layer, from 0 on"};
    for (int i = 0; i < DIMENSIONS; i++) {
        hid_t dataset = H5I_INVALID_HID;
        rfa_status status = write_numbers(&dataset, file, path, names[i], long_names[i], numbers[i],
                                          contents->count);
        if (status == RFA_OK) {
            status = rfa_h5_attach_scale(dataset, path, 0, place);
        }
        const rfa_status closed = rfa_h5_close_array(&dataset, path);
        RFA_TRY(status);
        RFA_TRY(closed);
    }
    return RFA_OK;
}

// With room in the file at once, which the ranks then fill.
static rfa_status reserve_array(
    hid_t file, const char *path, int i, const hsize_t shape[DIMENSIONS], const hid_t *scale)
{
    hid_t space = H5Screate_simple(DIMENSIONS, shape, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset = H5I_INVALID_HID;
    rfa_status status = RFA_OK;
    if (space < 0 || list < 0 || H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY) < 0 ||
        H5Pset_fill_time(list, H5D_FILL_TIME_NEVER) < 0 ||
        (dataset = H5Dcreate2(file, arrays[i].name, H5T_IEEE_F32LE, space, H5P_DEFAULT, list,
                              H5P_DEFAULT)) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "dataset '%s' can't be created", arrays[i].name);
    } else {
        status = describe(dataset, path, "1", arrays[i].long_name);
    }
    for (int j = 0; j < DIMENSIONS && status == RFA_OK; j++) {
        status = rfa_h5_attach_scale(dataset, path, j, scale[j]);
    }
    rfa_h5_close(&list);
    rfa_h5_close(&space);
    const rfa_status closed = rfa_h5_close_array(&dataset, path);
    return status == RFA_OK ? closed : status;
}

static rfa_status write_scales(hid_t file, const char *path, const hsize_t *shape, hid_t *scale)
{
    static const char *const names[] = {"place", "token", "component"};
    static const char *const long_names[] = {"place in this file", "place in the example",
                                             "component of the head's vectors"};
    for (int i = 0; i < DIMENSIONS; i++) {
        RFA_TRY(
            write_numbers(&scale[i], file, path, names[i], long_names[i], NULL, (int64_t)shape[i]));
        RFA_TRY(rfa_h5_make_scale(scale[i], path, names[i]));
    }
    return RFA_OK;
}

static rfa_status describe_file(hid_t file, const char *path, const rfa_heads_contents *contents)
{
    const hsize_t shape[] = {(hsize_t)contents->count, (hsize_t)contents->n, (hsize_t)contents->d};
    hid_t scale[DIMENSIONS] = {H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID};
    char written[32];
    struct tm utc;
    strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&(time_t){time(NULL)}, &utc));
    RFA_TRY(rfa_h5_write_text(file, path, "schema", RFA_HEADS_SCHEMA));
    RFA_TRY(rfa_h5_write_text(file, path, "written", written));
    RFA_TRY(rfa_h5_write_attributes(file, path, contents->attributes));
    RFA_TRY(rfa_h5_write_config(file, path, contents->config_text));
    rfa_status status = write_scales(file, path, shape, scale);
    if (status == RFA_OK) {
        status = write_origin(file, path, contents, scale[0]);
    }
    for (int i = 0; i < RFA_HEADS_ARRAYS && status == RFA_OK; i++) {
        status = reserve_array(file, path, i, shape, scale);
    }
    for (int i = 0; i < DIMENSIONS; i++) {
        rfa_h5_close(&scale[i]);
    }
    return status;
}

// Rank 0, by itself.
static rfa_status make_file(const char *path, const rfa_heads_contents *contents)
{
    hid_t file = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_create(&file, path));
    rfa_status status = describe_file(file, path, contents);
    if (status == RFA_OK) {
        status = rfa_h5_close_file(&file, path);
    }
    if (status != RFA_OK) {
        rfa_h5_abandon(&file, path);
    }
    return status;
}

static rfa_status open_together(rfa_heads_writer *writer)
{
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    writer->transfer = H5Pcreate(H5P_DATASET_XFER);
    if (list >= 0 && H5Pset_file_locking(list, 0, 1) >= 0 &&
        H5Pset_fapl_mpio(list, writer->all->comm, MPI_INFO_NULL) >= 0) {
        writer->file = H5Fopen(writer->tmp, H5F_ACC_RDWR, list);
    }
    H5Pclose(list);
    if (writer->file < 0 || writer->transfer < 0 ||
        H5Pset_dxpl_mpio(writer->transfer, H5FD_MPIO_COLLECTIVE) < 0) {
        return rfa_h5_fail(RFA_ERR_IO, writer->tmp, "can't be opened by all ranks");
    }
    for (int i = 0; i < RFA_HEADS_ARRAYS; i++) {
        writer->array[i] = H5Dopen2(writer->file, arrays[i].name, H5P_DEFAULT);
        if (writer->array[i] < 0) {
            return rfa_h5_fail(RFA_ERR_IO, writer->tmp, "'%s' can't be opened", arrays[i].name);
        }
    }
    return RFA_OK;
}

static rfa_status allocate(rfa_heads_writer **out, const rfa_comm *all, const char *path, int64_t d)
{
    RFA_TRY(rfa_alloc(out, 1, sizeof **out, "file of heads"));
    rfa_heads_writer *writer = *out;
    writer->all = all;
    writer->d = d;
    writer->file = writer->transfer = H5I_INVALID_HID;
    for (int i = 0; i < RFA_HEADS_ARRAYS; i++) {
        writer->array[i] = H5I_INVALID_HID;
    }
    RFA_TRY(rfa_text_copy(&writer->path, path));
    return rfa_run_beside(&writer->tmp, path, ".h5.tmp");
}

static void destroy(rfa_heads_writer **out)
{
    if (*out) {
        rfa_free((*out)->path);
        rfa_free((*out)->tmp);
        rfa_free(*out);
        *out = NULL;
    }
}

rfa_status rfa_heads_create(rfa_heads_writer **out,
                            const rfa_comm *all,
                            const char *path,
                            const rfa_heads_contents *contents)
{
    *out = NULL;
    rfa_status status = rfa_agree(all, allocate(out, all, path, contents->d));
    if (status == RFA_OK) {
        status = rfa_agree(all, all->rank == 0 ? make_file((*out)->tmp, contents) : RFA_OK);
    }
    if (status != RFA_OK) {
        destroy(out);
        return status;
    }
    status = rfa_agree(all, open_together(*out));
    return status == RFA_OK ? RFA_OK : rfa_heads_end(out, status);
}

rfa_status rfa_heads_put(rfa_heads_writer *writer,
                         rfa_heads_array array,
                         int64_t head,
                         int64_t heads,
                         int64_t token,
                         int64_t tokens,
                         const float *values)
{
    const hsize_t start[] = {(hsize_t)head, (hsize_t)token, 0};
    const hsize_t count[] = {(hsize_t)heads, (hsize_t)tokens, (hsize_t)writer->d};
    hid_t file = H5Dget_space(writer->array[array]);
    hid_t memory = H5Screate_simple(DIMENSIONS, count, NULL);
    const bool some = heads > 0 && tokens > 0;
    const bool selected =
        file >= 0 && memory >= 0 &&
        (some ? H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL) >= 0
              : H5Sselect_none(file) >= 0 && H5Sselect_none(memory) >= 0);
    RFA_ASSERT(selected); // or the others would wait in a write that this rank doesn't join
    rfa_status status = RFA_OK;
    if (H5Dwrite(writer->array[array], H5T_NATIVE_FLOAT, memory, file, writer->transfer, values) <
        0) {
        status = rfa_h5_fail(RFA_ERR_IO, writer->tmp, "'%s' can't be written", arrays[array].name);
    }
    rfa_h5_close(&memory);
    rfa_h5_close(&file);
    return rfa_agree(writer->all, status);
}

rfa_status rfa_heads_end(rfa_heads_writer **out, rfa_status status)
{
    rfa_heads_writer *writer = *out;
    const rfa_comm *all = writer->all;
    rfa_status closed = RFA_OK;
    for (int i = 0; i < RFA_HEADS_ARRAYS; i++) {
        rfa_h5_close(&writer->array[i]);
    }
    rfa_h5_close(&writer->transfer);
    if (writer->file >= 0 && H5Fclose(writer->file) < 0) {
        closed = rfa_h5_fail(RFA_ERR_IO, writer->tmp, "can't be closed");
    }
    status = status == RFA_OK ? rfa_agree(all, closed) : status;
    if (all->rank == 0) {
        closed = status == RFA_OK ? rfa_publish(writer->tmp, writer->path) : status;
        if (closed != RFA_OK) {
            unlink(writer->tmp);
            closed = rfa_fail_within(closed, "%s is not written", writer->path);
        }
    }
    status = status == RFA_OK ? rfa_agree(all, closed) : status;
    destroy(out);
    return status;
}
