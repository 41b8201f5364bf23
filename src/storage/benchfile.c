#include "storage/benchfile.h"

#include "base/mem.h"
#include "storage/h5.h"
#include "storage/h5_image.h"
#include "storage/runfile_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RFA_BENCH_SCHEMA "rfa bench 1"

rfa_status rfa_benchfile_check(const char *path)
{
    const size_t length = strlen(path);
    char *tmp = NULL;
    if (length < 4 || strcmp(path + length - 3, ".h5") != 0 || path[length - 4] == '/') {
        return rfa_fail(RFA_ERR_USAGE, "%s: the name of a file of results must end in .h5", path);
    }
    if (access(path, F_OK) == 0) {
        return rfa_fail(RFA_ERR_USAGE, "%s exists: remove it, or choose another name", path);
    }
    RFA_TRY(rfa_run_beside(&tmp, path, ".h5.tmp"));
    const int file = open(tmp, O_WRONLY | O_CREAT | O_CLOEXEC, 0666), error = errno;
    if (file >= 0) {
        close(file);
        unlink(tmp);
    }
    rfa_free(tmp);
    return file >= 0 ? RFA_OK
                     : rfa_fail(RFA_ERR_IO, "%s: can't be created: %s", path, strerror(error));
}

static rfa_status
describe(hid_t dataset, const char *path, const char *units, const char *long_name)
{
    RFA_TRY(rfa_h5_write_text(dataset, path, "units", units));
    return rfa_h5_write_text(dataset, path, "long_name", long_name);
}

static rfa_status write_scale(hid_t *scale, hid_t file, const char *path, int64_t rows)
{
    const hsize_t shape = (hsize_t)rows;
    int64_t *numbers = NULL;
    RFA_TRY(rfa_alloc(&numbers, (ptrdiff_t)rows, sizeof *numbers, "rows"));
    for (int64_t i = 0; i < rows; i++) {
        numbers[i] = i;
    }
    const rfa_status status = rfa_h5_write_array(scale, file, path, "row", H5T_STD_I64LE,
                                                 H5T_NATIVE_INT64, 1, &shape, numbers);
    rfa_free(numbers);
    RFA_TRY(status);
    RFA_TRY(describe(*scale, path, "1", "line of the table, in the order of measurement"));
    return rfa_h5_make_scale(*scale, path, "row");
}

static rfa_status
write_column(hid_t group, const char *path, const rfa_bench_column *c, int64_t rows, hid_t scale)
{
    const hsize_t shape = (hsize_t)rows;
    hid_t dataset = H5I_INVALID_HID;
    if (c->texts) {
        RFA_TRY(rfa_h5_write_texts(&dataset, group, path, c->name, c->texts, rows));
    } else {
        RFA_TRY(rfa_h5_write_array(&dataset, group, path, c->name,
                                   c->whole ? H5T_STD_I64LE : H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1,
                                   &shape, c->numbers));
    }
    rfa_status status = describe(dataset, path, c->units, c->long_name);
    if (status == RFA_OK) {
        status = rfa_h5_attach_scale(dataset, path, 0, scale);
    }
    const rfa_status closed = rfa_h5_close_array(&dataset, path);
    return status == RFA_OK ? closed : status;
}

static rfa_status write_group(hid_t file,
                              const char *path,
                              const char *name,
                              bool parameters,
                              const rfa_bench_column *columns,
                              int count,
                              int64_t rows,
                              hid_t scale)
{
    hid_t group = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_create_group(&group, file, path, name));
    rfa_status status = RFA_OK;
    for (int i = 0; i < count && status == RFA_OK; i++) {
        if (columns[i].parameter == parameters) {
            status = write_column(group, path, &columns[i], rows, scale);
        }
    }
    rfa_h5_close(&group);
    return status;
}

static rfa_status write_all(hid_t file,
                            const char *path,
                            const rfa_attributes *attributes,
                            const char *config_text,
                            const rfa_bench_column *columns,
                            int count,
                            int64_t rows)
{
    char written[32];
    hid_t scale = H5I_INVALID_HID;
    struct tm utc;
    strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&(time_t){time(NULL)}, &utc));
    RFA_TRY(rfa_h5_write_text(file, path, "schema", RFA_BENCH_SCHEMA));
    RFA_TRY(rfa_h5_write_text(file, path, "written", written));
    RFA_TRY(rfa_h5_write_attributes(file, path, attributes));
    RFA_TRY(rfa_h5_write_config(file, path, config_text));
    rfa_status status = write_scale(&scale, file, path, rows);
    if (status == RFA_OK) {
        status = write_group(file, path, "results", false, columns, count, rows, scale);
    }
    if (status == RFA_OK) {
        status = write_group(file, path, "parameters", true, columns, count, rows, scale);
    }
    rfa_h5_close(&scale);
    return status;
}

rfa_status rfa_benchfile_write(const char *path,
                               const rfa_attributes *attributes,
                               const char *config_text,
                               const rfa_bench_column *columns,
                               int count,
                               int64_t rows)
{
    char *tmp = NULL;
    hid_t file = H5I_INVALID_HID;
    RFA_TRY(rfa_run_beside(&tmp, path, ".h5.tmp"));
    rfa_status status = rfa_h5_image_create(&file, tmp);
    if (status == RFA_OK) {
        status = write_all(file, tmp, attributes, config_text, columns, count, rows);
    }
    if (status == RFA_OK) {
        status = rfa_h5_image_write(file, tmp);
    }
    if (status == RFA_OK) {
        status = rfa_publish(tmp, path);
    }
    rfa_h5_close(&file);
    if (status != RFA_OK) {
        unlink(tmp);
        status = rfa_fail_within(status, "%s is not written", path);
    }
    rfa_free(tmp);
    return status;
}
