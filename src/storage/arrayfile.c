#include "storage/arrayfile.h"

#include "base/mem.h"
#include "storage/h5.h"
#include "storage/h5_image.h"
#include "storage/runfile_parts.h"

#include <time.h>
#include <unistd.h>

enum { MOST_SCALES = 16 };

// An open file and its scales.
typedef struct {
    const char *path;
    hid_t file, scale[MOST_SCALES];
    const rfa_array_scale *scales;
    int count;
} output;

static rfa_status
describe(hid_t dataset, const char *path, const char *units, const char *long_name)
{
    RFA_TRY(rfa_h5_write_text(dataset, path, "units", units));
    return rfa_h5_write_text(dataset, path, "long_name", long_name);
}

static rfa_status write_scale(output *to, int i)
{
    const rfa_array_scale *s = &to->scales[i];
    const hsize_t shape = (hsize_t)s->count;
    if (s->numbers) {
        RFA_TRY(rfa_h5_write_array(&to->scale[i], to->file, to->path, s->name, H5T_IEEE_F64LE,
                                   H5T_NATIVE_DOUBLE, 1, &shape, s->numbers));
    } else {
        RFA_TRY(rfa_h5_write_texts(&to->scale[i], to->file, to->path, s->name, s->texts, s->count));
    }
    RFA_TRY(describe(to->scale[i], to->path, s->units, s->long_name));
    return rfa_h5_make_scale(to->scale[i], to->path, s->name);
}

static rfa_status fill_array(hid_t group, const output *to, const rfa_array *a)
{
    hsize_t shape[RFA_ARRAY_DIMENSIONS];
    hid_t dataset = H5I_INVALID_HID;
    for (int i = 0; i < a->dimensions; i++) {
        shape[i] = (hsize_t)to->scales[a->scale[i]].count;
    }
    RFA_TRY(rfa_h5_write_array(&dataset, group, to->path, a->name, H5T_IEEE_F64LE,
                               H5T_NATIVE_DOUBLE, a->dimensions, shape, a->numbers));
    rfa_status status = describe(dataset, to->path, a->units, a->long_name);
    for (int i = 0; i < a->dimensions && status == RFA_OK; i++) {
        status = rfa_h5_attach_scale(dataset, to->path, i, to->scale[a->scale[i]]);
    }
    const rfa_status closed = rfa_h5_close_array(&dataset, to->path);
    return status == RFA_OK ? closed : status;
}

static rfa_status write_array(const output *to, const rfa_array *a)
{
    hid_t group = H5I_INVALID_HID;
    if (!a->group) {
        return fill_array(to->file, to, a);
    }
    RFA_TRY(rfa_h5_has(to->file, a->group)
                ? rfa_h5_open_group(&group, to->file, to->path, a->group)
                : rfa_h5_create_group(&group, to->file, to->path, a->group));
    const rfa_status status = fill_array(group, to, a);
    rfa_h5_close(&group);
    return status;
}

static rfa_status write_head(const output *to,
                             const char *schema,
                             const rfa_attributes *attributes,
                             const char *config_text)
{
    char written[32];
    struct tm utc;
    strftime(written, sizeof written, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&(time_t){time(NULL)}, &utc));
    RFA_TRY(rfa_h5_write_text(to->file, to->path, "schema", schema));
    RFA_TRY(rfa_h5_write_text(to->file, to->path, "written", written));
    RFA_TRY(rfa_h5_write_attributes(to->file, to->path, attributes));
    return rfa_h5_write_config(to->file, to->path, config_text);
}

rfa_status rfa_arrayfile_write(const char *path,
                               const char *schema,
                               const rfa_attributes *attributes,
                               const char *config_text,
                               const rfa_array_scale *scales,
                               int scale_count,
                               const rfa_array *arrays,
                               int array_count)
{
    char *tmp = NULL;
    output to = {.file = H5I_INVALID_HID, .scales = scales};
    RFA_ASSERT(scale_count <= MOST_SCALES);
    RFA_TRY(rfa_run_beside(&tmp, path, ".h5.tmp"));
    to.path = tmp;
    rfa_status status = rfa_h5_image_create(&to.file, tmp);
    if (status == RFA_OK) {
        status = write_head(&to, schema, attributes, config_text);
    }
    for (; to.count < scale_count && status == RFA_OK; to.count++) {
        to.scale[to.count] = H5I_INVALID_HID;
        status = write_scale(&to, to.count);
    }
    for (int i = 0; i < array_count && status == RFA_OK; i++) {
        status = write_array(&to, &arrays[i]);
    }
    for (int i = 0; i < to.count; i++) {
        rfa_h5_close(&to.scale[i]);
    }
    if (status == RFA_OK) {
        status = rfa_h5_image_write(to.file, tmp);
    }
    if (status == RFA_OK) {
        status = rfa_publish(tmp, path);
    }
    rfa_h5_close(&to.file);
    if (status != RFA_OK) {
        unlink(tmp);
        status = rfa_fail_within(status, "%s is not written", path);
    }
    rfa_free(tmp);
    return status;
}
