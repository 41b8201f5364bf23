#include "storage/h5.h"

#include "base/mem.h"

#include <string.h>

// The name of an object in its file, for messages.
static const char *object_name(char name[128], hid_t object)
{
    if (H5Iget_name(object, name, 128) <= 0) {
        memcpy(name, "?", 2);
    }
    return name;
}

static hid_t text_type(void)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0 ||
                      H5Tset_strpad(type, H5T_STR_NULLTERM) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

static hid_t bool_type(void)
{
    const hid_t type = H5Tenum_create(H5T_STD_I8LE);
    const int8_t no = 0, yes = 1;
    if (type >= 0 &&
        (H5Tenum_insert(type, "FALSE", &no) < 0 || H5Tenum_insert(type, "TRUE", &yes) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

// count < 0: a scalar.
static rfa_status write_attribute(hid_t object,
                                  const char *path,
                                  const char *name,
                                  hid_t file_type,
                                  hid_t memory_type,
                                  int64_t count,
                                  const void *values)
{
    const hsize_t size = count < 0 ? 1 : (hsize_t)count;
    hid_t space = count < 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &size, NULL);
    hid_t attribute = H5I_INVALID_HID;
    rfa_status status = RFA_OK;
    if (file_type >= 0 && space >= 0) {
        attribute = H5Acreate2(object, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
    }
    if (attribute < 0 || (size > 0 && H5Awrite(attribute, memory_type, values) < 0)) {
        char owner[128];
        status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' of %s can't be written", name,
                             object_name(owner, object));
    }
    rfa_h5_close(&attribute);
    rfa_h5_close(&space);
    return status;
}

rfa_status rfa_h5_write_text(hid_t object, const char *path, const char *name, const char *text)
{
    hid_t type = text_type();
    const rfa_status status = write_attribute(object, path, name, type, type, -1, &text);
    rfa_h5_close(&type);
    return status;
}

rfa_status rfa_h5_write_int(hid_t object, const char *path, const char *name, int64_t value)
{
    return write_attribute(object, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, -1, &value);
}

rfa_status rfa_h5_write_double(hid_t object, const char *path, const char *name, double value)
{
    return write_attribute(object, path, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, -1, &value);
}

rfa_status rfa_h5_write_bool(hid_t object, const char *path, const char *name, bool value)
{
    hid_t type = bool_type();
    const int8_t byte = value;
    const rfa_status status = write_attribute(object, path, name, type, type, -1, &byte);
    rfa_h5_close(&type);
    return status;
}

rfa_status rfa_h5_write_ints(
    hid_t object, const char *path, const char *name, const int64_t *values, int64_t count)
{
    return write_attribute(object, path, name, H5T_STD_I64LE, H5T_NATIVE_INT64, count, values);
}

rfa_status rfa_h5_write_text_list(
    hid_t object, const char *path, const char *name, const char *const *texts, int64_t count)
{
    hid_t type = text_type();
    const rfa_status status = write_attribute(object, path, name, type, type, count, texts);
    rfa_h5_close(&type);
    return status;
}

// Opens a scalar attribute (one element in any shape) of one of two classes.
static rfa_status open_attribute(hid_t *attribute,
                                 hid_t *type,
                                 hid_t object,
                                 const char *path,
                                 const char *name,
                                 H5T_class_t class1,
                                 H5T_class_t class2)
{
    char owner[128];
    object_name(owner, object);
    *attribute = *type = H5I_INVALID_HID;
    if (!rfa_h5_has_attribute(object, name)) {
        return rfa_fail(RFA_ERR_IO, "%s: attribute '%s' of %s is missing", path, name, owner);
    }
    hid_t space = H5I_INVALID_HID;
    rfa_status status = RFA_OK;
    if ((*attribute = H5Aopen(object, name, H5P_DEFAULT)) < 0 ||
        (*type = H5Aget_type(*attribute)) < 0 || (space = H5Aget_space(*attribute)) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' of %s can't be read", name, owner);
    } else if (H5Sget_simple_extent_npoints(space) != 1 ||
               (H5Tget_class(*type) != class1 && H5Tget_class(*type) != class2)) {
        status = rfa_fail(RFA_ERR_IO, "%s: attribute '%s' of %s is of the wrong type or shape",
                          path, name, owner);
    }
    rfa_h5_close(&space);
    if (status != RFA_OK) {
        rfa_h5_close(type);
        rfa_h5_close(attribute);
    }
    return status;
}

rfa_status rfa_h5_read_text(hid_t object, const char *path, const char *name, char **out)
{
    *out = NULL;
    hid_t attribute, type;
    RFA_TRY(open_attribute(&attribute, &type, object, path, name, H5T_STRING, H5T_STRING));
    rfa_status status = RFA_OK;
    const htri_t variable = H5Tis_variable_str(type);
    // The memory type follows the file's character set: HDF5 doesn't convert between them.
    hid_t memory = H5Tcopy(type);
    char *text = NULL;
    if (variable > 0) {
        if (memory < 0 || H5Aread(attribute, memory, &text) < 0) {
            status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' can't be read", name);
        } else if ((status = rfa_alloc(out, text ? (ptrdiff_t)strlen(text) + 1 : 1, 1, name)) ==
                       RFA_OK &&
                   text) {
            memcpy(*out, text, strlen(text) + 1);
        }
        H5free_memory(text);
    } else {
        const size_t size = H5Tget_size(type);
        if (variable < 0 || memory < 0 || size == 0) {
            status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' can't be read", name);
        } else if ((status = rfa_alloc(out, (ptrdiff_t)size + 1, 1, name)) == RFA_OK) {
            if (H5Aread(attribute, memory, *out) < 0) {
                status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' can't be read", name);
            } else if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) {
                for (size_t n = size; n > 0 && (*out)[n - 1] == ' '; n--) {
                    (*out)[n - 1] = 0;
                }
            }
        }
    }
    if (status != RFA_OK) {
        rfa_free(*out);
        *out = NULL;
    }
    rfa_h5_close(&memory);
    rfa_h5_close(&type);
    rfa_h5_close(&attribute);
    return status;
}

static rfa_status read_number(hid_t object,
                              const char *path,
                              const char *name,
                              H5T_class_t class1,
                              H5T_class_t class2,
                              hid_t memory_type,
                              void *out)
{
    hid_t attribute, type;
    RFA_TRY(open_attribute(&attribute, &type, object, path, name, class1, class2));
    rfa_status status = RFA_OK;
    if (H5Aread(attribute, memory_type, out) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' can't be read", name);
    }
    rfa_h5_close(&type);
    rfa_h5_close(&attribute);
    return status;
}

rfa_status rfa_h5_read_int(hid_t object, const char *path, const char *name, int64_t *out)
{
    return read_number(object, path, name, H5T_INTEGER, H5T_INTEGER, H5T_NATIVE_INT64, out);
}

rfa_status rfa_h5_read_double(hid_t object, const char *path, const char *name, double *out)
{
    return read_number(object, path, name, H5T_FLOAT, H5T_INTEGER, H5T_NATIVE_DOUBLE, out);
}

rfa_status rfa_h5_read_bool(hid_t object, const char *path, const char *name, bool *out)
{
    hid_t attribute, type;
    RFA_TRY(open_attribute(&attribute, &type, object, path, name, H5T_ENUM, H5T_INTEGER));
    rfa_status status = RFA_OK;
    int64_t value = 0;
    herr_t read = -1;
    if (H5Tget_class(type) == H5T_INTEGER) {
        read = H5Aread(attribute, H5T_NATIVE_INT64, &value);
    } else if (H5Tget_size(type) == 1) {
        uint8_t byte = 0; // the enum's own type: HDF5 doesn't convert it to integers
        read = H5Aread(attribute, type, &byte);
        value = byte;
    }
    if (read < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "attribute '%s' can't be read", name);
    } else if (value != 0 && value != 1) {
        status = rfa_fail(RFA_ERR_IO, "%s: attribute '%s' is %lld, not 0 or 1", path, name,
                          (long long)value);
    }
    *out = value == 1;
    rfa_h5_close(&type);
    rfa_h5_close(&attribute);
    return status;
}
