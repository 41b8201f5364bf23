// Hostile HDF5 files by editing a good one through the library: input bytes choose which objects,
// attributes, types, shapes and values are wrong. The result is a file that HDF5 itself finds in
// order, so that our checks are what is tested. (Arbitrary bytes would test libhdf5 1.10, whose
// reader falls over some of them by itself; records and checkpoints carry a seal that is looked at
// before the library sees them, storage/h5_image.h.)
#ifndef TESTS_FUZZ_HDF5_EDIT_H
#define TESTS_FUZZ_HDF5_EDIT_H

#include "fuzz/fuzz.h"

#include <hdf5.h>
#include <stdbool.h>

enum { EDIT_NAMES = 128, EDIT_NAME = 128, EDIT_VALUES = 1 << 16, EDIT_OPERATIONS = 6 };

// The good file: its bytes, and the names of its objects and attributes.
typedef struct {
    char *bytes;
    size_t size;
    int objects, attributes;
    char object[EDIT_NAMES][EDIT_NAME], attribute[EDIT_NAMES][EDIT_NAME];
} edit_template;

typedef struct {
    const uint8_t *at;
    size_t left;
} edit_bytes;

static inline unsigned edit_take(edit_bytes *bytes, unsigned below)
{
    unsigned value = 0;
    if (bytes->left > 0) {
        value = *bytes->at++;
        bytes->left--;
    }
    return value % below;
}

static inline herr_t
edit_attribute_name(hid_t object, const char *name, const H5A_info_t *info, void *context)
{
    (void)object;
    (void)info;
    edit_template *t = context;
    if (t->attributes < EDIT_NAMES) {
        snprintf(t->attribute[t->attributes++], EDIT_NAME, "%s", name);
    }
    return 0;
}

static inline herr_t
edit_object_name(hid_t root, const char *name, const H5O_info_t *info, void *context)
{
    (void)info;
    edit_template *t = context;
    if (t->objects < EDIT_NAMES) {
        snprintf(t->object[t->objects++], EDIT_NAME, "%s", name);
    }
    const hid_t object = H5Oopen(root, name, H5P_DEFAULT);
    H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, NULL, edit_attribute_name, context);
    H5Oclose(object);
    return 0;
}

// Takes the file at path as the good one.
static inline void edit_load(edit_template *t, const char *path)
{
    FILE *file = fopen(path, "re");
    PROMISE(file && fseek(file, 0, SEEK_END) == 0 && ftell(file) > 0);
    t->size = (size_t)ftell(file);
    rewind(file);
    t->bytes = malloc(t->size);
    PROMISE(t->bytes && fread(t->bytes, 1, t->size, file) == t->size);
    fclose(file);
    const hid_t id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    PROMISE(id >= 0);
    H5Ovisit2(id, H5_INDEX_NAME, H5_ITER_NATIVE, edit_object_name, t, H5O_INFO_BASIC);
    H5Fclose(id);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

// A type, to be closed. *text: of variable-length strings.
static inline hid_t edit_type(edit_bytes *bytes, bool *text)
{
    hid_t type = H5I_INVALID_HID;
    const hid_t numbers[] = {H5T_STD_I8LE,  H5T_STD_U8LE,   H5T_STD_I16BE,  H5T_STD_U16LE,
                             H5T_STD_U16BE, H5T_STD_I32LE,  H5T_STD_I64LE,  H5T_STD_U64BE,
                             H5T_STD_U64LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE, H5T_IEEE_F64BE,
                             H5T_STD_B8LE};
    const signed char flags[] = {0, 1, 2};
    *text = false;
    switch (edit_take(bytes, 9)) {
    default: return H5Tcopy(numbers[edit_take(bytes, sizeof numbers / sizeof *numbers)]);
    case 1:
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, H5T_VARIABLE);
        H5Tset_cset(type, edit_take(bytes, 2) ? H5T_CSET_UTF8 : H5T_CSET_ASCII);
        *text = true;
        return type;
    case 2:
        type = H5Tcopy(H5T_C_S1);
        H5Tset_size(type, 1 + edit_take(bytes, 40));
        H5Tset_strpad(type, (H5T_str_t)edit_take(bytes, 3));
        return type;
    case 3: return H5Tvlen_create(H5T_STD_I32LE);
    case 4:
        type = H5Tenum_create(H5T_STD_I8LE);
        H5Tenum_insert(type, "FALSE", &flags[0]);
        H5Tenum_insert(type, edit_take(bytes, 2) ? "TRUE" : "MAYBE",
                       &flags[1 + edit_take(bytes, 2)]);
        return type;
    case 5:
        type = H5Tcreate(H5T_COMPOUND, 16);
        H5Tinsert(type, "a", 0, H5T_STD_I64LE);
        H5Tinsert(type, "b", 8, H5T_IEEE_F64LE);
        return type;
    case 6: return H5Tcreate(H5T_OPAQUE, 1 + edit_take(bytes, 9));
    case 7:
        type = H5Tcopy(H5T_STD_I32LE);
        H5Tset_precision(type, 1 + edit_take(bytes, 31));
        return type;
    }
}

static inline hid_t edit_space(edit_bytes *bytes)
{
    hsize_t shape[6];
    const int dimensions = (int)edit_take(bytes, 8) - 1;
    if (dimensions < 0 || dimensions > 6) {
        return H5Screate(H5S_NULL);
    }
    if (dimensions == 0) {
        return H5Screate(H5S_SCALAR);
    }
    for (int i = 0; i < dimensions; i++) {
        shape[i] = edit_take(bytes, 64);
        if (shape[i] > 60) { // more than any memory
            shape[i] = (hsize_t)1 << (10 * (shape[i] - 58));
        }
    }
    return H5Screate_simple(dimensions, shape, NULL);
}

// Values for a type and space, from the input; NULL: leave them unwritten.
static inline const void *edit_values(edit_bytes *bytes, hid_t type, hid_t space, bool text)
{
    static char values[EDIT_VALUES], words[4][EDIT_NAME];
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const size_t size = text ? sizeof(char *) : H5Tget_size(type);
    if (count <= 0 || (size_t)count > sizeof values / size ||
        (H5Tget_class(type) == H5T_VLEN && !text)) {
        return NULL;
    }
    memset(values, 0, sizeof values);
    if (text) {
        for (int w = 0; w < 4; w++) {
            const unsigned length = edit_take(bytes, 32);
            memset(words[w], 0, sizeof words[w]);
            for (unsigned i = 0; i < length; i++) {
                words[w][i] = (char)edit_take(bytes, 256);
            }
        }
        for (hssize_t i = 0; i < count; i++) {
            const char *word = words[edit_take(bytes, 4)];
            memcpy(values + (size_t)i * sizeof word, &word, sizeof word);
        }
        return values;
    }
    const size_t all = (size_t)count * size, own = all < bytes->left ? all : bytes->left;
    memcpy(values, bytes->at, own);
    bytes->at += own;
    bytes->left -= own;
    return values;
}

static inline void edit_make_attribute(edit_bytes *bytes, hid_t object, const char *name)
{
    bool text = false;
    const hid_t type = edit_type(bytes, &text), space = edit_space(bytes);
    if (H5Aexists(object, name) > 0) {
        H5Adelete(object, name);
    }
    // HDF5 1.10 keeps attributes in object headers of at most 64 KiB, and fails beyond.
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    if (count >= 0 && count < 1024) {
        const hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        const void *values = edit_values(bytes, type, space, text);
        if (attribute >= 0 && values) {
            H5Awrite(attribute, type, values);
        }
        H5Aclose(attribute);
    }
    H5Sclose(space);
    H5Tclose(type);
}

static inline void edit_make_dataset(edit_bytes *bytes, hid_t file, const char *name)
{
    bool text = false;
    const hid_t type = edit_type(bytes, &text), space = edit_space(bytes);
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    const hssize_t count = H5Sget_simple_extent_npoints(space);
    const int dimensions = H5Sget_simple_extent_ndims(space);
    const void *values = edit_values(bytes, type, space, text);
    const unsigned layout = edit_take(bytes, 4);
    if (layout == 1 && dimensions > 0) {
        const hsize_t chunk[6] = {2, 2, 2, 2, 2, 2};
        H5Pset_chunk(create, dimensions, chunk);
    } else if (layout == 2 && count >= 0 && count < 1000) {
        H5Pset_layout(create, H5D_COMPACT);
    }
    H5Ldelete(file, name, H5P_DEFAULT);
    const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    if (dataset >= 0 && values) {
        H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    }
    H5Dclose(dataset);
    H5Pclose(create);
    H5Sclose(space);
    H5Tclose(type);
}

// New values in a dataset of the good file.
static inline void edit_overwrite(edit_bytes *bytes, hid_t file, const char *name)
{
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    if (dataset < 0) {
        return;
    }
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    const void *values = edit_values(bytes, type, space, H5Tis_variable_str(type) > 0);
    if (values) {
        H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
}

static inline void edit_once(edit_bytes *bytes, hid_t file, const edit_template *t)
{
    const char *name = t->object[edit_take(bytes, (unsigned)t->objects)];
    const char *other = t->object[edit_take(bytes, (unsigned)t->objects)];
    const char *attribute = t->attribute[edit_take(bytes, (unsigned)t->attributes)];
    hid_t object = H5I_INVALID_HID;
    switch (edit_take(bytes, 8)) {
    case 0: H5Ldelete(file, name, H5P_DEFAULT); break;
    case 1: edit_make_dataset(bytes, file, name); break;
    case 2: edit_overwrite(bytes, file, name); break;
    case 3:
        H5Ldelete(file, name, H5P_DEFAULT);
        H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
        break;
    case 4:
        H5Ldelete(file, name, H5P_DEFAULT);
        H5Lcreate_soft(other, file, name, H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 5:
        H5Ldelete(file, name, H5P_DEFAULT);
        H5Lcreate_hard(file, other, file, name, H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 6:
        object = H5Oopen(file, edit_take(bytes, 2) ? name : ".", H5P_DEFAULT);
        H5Adelete(object, attribute);
        H5Oclose(object);
        break;
    default:
        object = H5Oopen(file, edit_take(bytes, 2) ? name : ".", H5P_DEFAULT);
        edit_make_attribute(bytes, object, attribute);
        H5Oclose(object);
        break;
    }
    H5Eclear2(H5E_DEFAULT);
}

// The good file in memory with edits of the input, open for more; H5Fclose it.
static inline hid_t edit_open(const edit_template *t, edit_bytes *bytes)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, 0);
    H5Pset_file_image(access, t->bytes, t->size);
    const hid_t file = H5Fopen("edited", H5F_ACC_RDWR, access);
    H5Pclose(access);
    PROMISE(file >= 0);
    for (int i = 0; i < EDIT_OPERATIONS && bytes->left > 0; i++) {
        edit_once(bytes, file, t);
    }
    return file;
}

// Every id of the library is given back.
static inline void edit_nothing_open(void)
{
    PROMISE(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
}

#endif
