// Dimension scales by their attributes: CLASS, NAME and REFERENCE_LIST of the scale,
// DIMENSION_LIST of the dataset. The high-level library that usually writes them is not linked.
#include "storage/h5.h"

#include "base/mem.h"

#include <string.h>

typedef struct {
    hobj_ref_t dataset;
    int dimension;
} reference;

// CLASS and NAME are fixed-length ASCII, null-terminated: other readers expect exactly this.
static herr_t write_fixed(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute = H5I_INVALID_HID;
    herr_t result = -1;
    if (type >= 0 && space >= 0 && H5Tset_size(type, strlen(text) + 1) >= 0 &&
        (attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0) {
        result = H5Awrite(attribute, type, text);
    }
    rfa_h5_close(&attribute);
    rfa_h5_close(&space);
    rfa_h5_close(&type);
    return result;
}

rfa_status rfa_h5_make_scale(hid_t scale, const char *path, const char *name)
{
    if (write_fixed(scale, "CLASS", "DIMENSION_SCALE") < 0 ||
        write_fixed(scale, "NAME", name) < 0) {
        return rfa_h5_fail(RFA_ERR_IO, path, "scale '%s' can't be written", name);
    }
    return RFA_OK;
}

static hid_t reference_type(hid_t reference_class, hid_t integer)
{
    const hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(reference));
    if (type >= 0 &&
        (H5Tinsert(type, "dataset", HOFFSET(reference, dataset), reference_class) < 0 ||
         H5Tinsert(type, "dimension", HOFFSET(reference, dimension), integer) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

// Appends {dataset, dimension} to the scale's REFERENCE_LIST, an attribute that can't grow: it is
// read, deleted and written anew.
static herr_t add_reference(hid_t scale, hobj_ref_t dataset, int dimension)
{
    static const char name[] = "REFERENCE_LIST";
    herr_t result = -1;
    hsize_t count = 0;
    reference *list = NULL;
    hid_t type = reference_type(H5T_STD_REF_OBJ, H5T_NATIVE_INT);
    hid_t file_type = reference_type(H5T_STD_REF_OBJ, H5T_STD_I32LE);
    hid_t space = H5I_INVALID_HID, attribute = H5I_INVALID_HID;
    const bool old = rfa_h5_has_attribute(scale, name);
    if (old) {
        if ((attribute = H5Aopen(scale, name, H5P_DEFAULT)) < 0 ||
            (space = H5Aget_space(attribute)) < 0) {
            goto out;
        }
        count = (hsize_t)H5Sget_simple_extent_npoints(space);
        rfa_h5_close(&space);
    }
    if (rfa_alloc(&list, (ptrdiff_t)count + 1, sizeof *list, name) != RFA_OK ||
        (old && (H5Aread(attribute, type, list) < 0 || H5Adelete(scale, name) < 0))) {
        goto out;
    }
    rfa_h5_close(&attribute);
    list[count++] = (reference){dataset, dimension};
    if ((space = H5Screate_simple(1, &count, NULL)) >= 0 &&
        (attribute = H5Acreate2(scale, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0) {
        result = H5Awrite(attribute, type, list);
    }
out:
    rfa_free(list);
    rfa_h5_close(&attribute);
    rfa_h5_close(&space);
    rfa_h5_close(&file_type);
    rfa_h5_close(&type);
    return result;
}

enum { MAX_DIMENSIONS = 8 };

// Appends the scale to entry `dimension` of the dataset's DIMENSION_LIST.
static herr_t add_dimension(hid_t dataset, int dimension, hobj_ref_t scale)
{
    static const char name[] = "DIMENSION_LIST";
    herr_t result = -1;
    hvl_t lists[MAX_DIMENSIONS] = {{0}};
    hobj_ref_t *own = NULL, *former = NULL;
    hid_t type = H5Tvlen_create(H5T_STD_REF_OBJ), space = H5Dget_space(dataset);
    hid_t attribute = H5I_INVALID_HID;
    bool read = false;
    const int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    rfa_h5_close(&space);
    if (rank < 1 || rank > MAX_DIMENSIONS || dimension < 0 || dimension >= rank) {
        goto out;
    }
    const hsize_t size = (hsize_t)rank;
    if ((space = H5Screate_simple(1, &size, NULL)) < 0) {
        goto out;
    }
    if (rfa_h5_has_attribute(dataset, name)) {
        if ((attribute = H5Aopen(dataset, name, H5P_DEFAULT)) < 0 ||
            H5Aread(attribute, type, lists) < 0) {
            goto out;
        }
        read = true;
        rfa_h5_close(&attribute);
        if (H5Adelete(dataset, name) < 0) {
            goto out;
        }
    }
    hvl_t *list = &lists[dimension];
    if (rfa_alloc(&own, (ptrdiff_t)list->len + 1, sizeof *own, name) != RFA_OK) {
        goto out;
    }
    if (list->len > 0) {
        memcpy(own, list->p, list->len * sizeof *own);
    }
    own[list->len] = scale;
    former = list->p;
    list->p = own;
    list->len++;
    if ((attribute = H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) >= 0) {
        result = H5Awrite(attribute, type, lists);
    }
    list->p = former; // what the library allocated goes back to it
    list->len--;
out:
    if (read) {
        H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists);
    }
    rfa_free(own);
    rfa_h5_close(&attribute);
    rfa_h5_close(&space);
    rfa_h5_close(&type);
    return result;
}

rfa_status rfa_h5_attach_scale(hid_t dataset, const char *path, int dimension, hid_t scale)
{
    hobj_ref_t to_dataset, to_scale;
    if (H5Rcreate(&to_dataset, dataset, ".", H5R_OBJECT, H5I_INVALID_HID) < 0 ||
        H5Rcreate(&to_scale, scale, ".", H5R_OBJECT, H5I_INVALID_HID) < 0 ||
        add_dimension(dataset, dimension, to_scale) < 0 ||
        add_reference(scale, to_dataset, dimension) < 0) {
        char name[128] = "?";
        H5Iget_name(dataset, name, sizeof name);
        return rfa_h5_fail(RFA_ERR_IO, path, "the scale of '%s' can't be attached", name);
    }
    return RFA_OK;
}
