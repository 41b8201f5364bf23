#include "storage/predictions.h"

#include "base/mem.h"
#include "storage/h5.h"
#include "storage/h5_image.h"
#include "storage/runfile_parts.h"

#include <time.h>
#include <unistd.h>

#define RFA_PREDICTIONS_SCHEMA "rfa predictions 1"

// Closes the dataset.
static rfa_status describe(
    hid_t *dataset, const char *path, const char *long_name, const hid_t *scales, int dimensions)
{
    rfa_status status = rfa_h5_write_text(*dataset, path, "units", "1");
    if (status == RFA_OK) {
        status = rfa_h5_write_text(*dataset, path, "long_name", long_name);
    }
    for (int d = 0; d < dimensions && status == RFA_OK; d++) {
        status = rfa_h5_attach_scale(*dataset, path, d, scales[d]);
    }
    const rfa_status closed = rfa_h5_close_array(dataset, path);
    return status == RFA_OK ? closed : status;
}

// 0, 1, ..., n - 1; stays open.
static rfa_status write_scale(
    hid_t *scale, hid_t file, const char *path, const char *name, const char *long_name, int64_t n)
{
    const hsize_t shape = (hsize_t)n;
    int64_t *numbers = NULL;
    RFA_TRY(rfa_alloc(&numbers, (ptrdiff_t)n, sizeof *numbers, name));
    for (int64_t i = 0; i < n; i++) {
        numbers[i] = i;
    }
    const rfa_status status = rfa_h5_write_array(scale, file, path, name, H5T_STD_I64LE,
                                                 H5T_NATIVE_INT64, 1, &shape, numbers);
    rfa_free(numbers);
    RFA_TRY(status);
    RFA_TRY(rfa_h5_write_text(*scale, path, "units", "1"));
    RFA_TRY(rfa_h5_write_text(*scale, path, "long_name", long_name));
    return rfa_h5_make_scale(*scale, path, name);
}

static rfa_status write_classes(hid_t file,
                                const char *path,
                                const char *name,
                                const char *long_name,
                                hid_t scale,
                                int64_t n,
                                const int32_t *values)
{
    const hsize_t shape = (hsize_t)n;
    hid_t dataset = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_write_array(&dataset, file, path, name, H5T_STD_I32LE, H5T_NATIVE_INT32, 1,
                               &shape, values));
    return describe(&dataset, path, long_name, &scale, 1);
}

rfa_status rfa_predictions_write(const char *path,
                                 const rfa_attributes *attributes,
                                 const char *config_text,
                                 int64_t examples,
                                 int classes,
                                 const int32_t *labels,
                                 const int32_t *guesses,
                                 const float *logits)
{
    char written[32], *tmp = NULL;
    struct tm utc;
    hid_t file = H5I_INVALID_HID, dataset = H5I_INVALID_HID;
    hid_t scales[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
    const hsize_t shape[2] = {(hsize_t)examples, (hsize_t)classes};
    strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&(time_t){time(NULL)}, &utc));
    RFA_TRY(rfa_run_beside(&tmp, path, ".h5.tmp"));
    rfa_status status = rfa_h5_image_create(&file, tmp);
#define NEXT(call) status = status == RFA_OK ? (call) : status
    NEXT(rfa_h5_write_text(file, tmp, "schema", RFA_PREDICTIONS_SCHEMA));
    NEXT(rfa_h5_write_text(file, tmp, "written", written));
    NEXT(rfa_h5_write_attributes(file, tmp, attributes));
    NEXT(rfa_h5_write_config(file, tmp, config_text));
    NEXT(
        write_scale(&scales[0], file, tmp, "index", "place of the example in its split", examples));
    NEXT(write_scale(&scales[1], file, tmp, "class", "class", classes));
    NEXT(write_classes(file, tmp, "label", "class of the example", scales[0], examples, labels));
    NEXT(write_classes(file, tmp, "prediction", "class with the largest logit", scales[0], examples,
                       guesses));
    NEXT(rfa_h5_write_array(&dataset, file, tmp, "logits", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2,
                            shape, logits));
    NEXT(describe(&dataset, tmp, "logits", scales, 2));
    rfa_h5_close(&scales[1]);
    rfa_h5_close(&scales[0]);
    NEXT(rfa_h5_image_write(file, tmp));
    NEXT(rfa_publish(tmp, path));
#undef NEXT
    rfa_h5_close(&file);
    if (status != RFA_OK) {
        unlink(tmp);
        status = rfa_fail_within(status, "%s is not written", path);
    }
    rfa_free(tmp);
    return status;
}
