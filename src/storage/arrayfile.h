// Results in several dimensions as HDF5, written once, whole, under a temporary name: arrays whose
// dimensions are named scales, which h5py shows under dims[i] and xarray takes as coordinates.
//
//   /          attributes: schema, written, and those of the caller
//   /config    attribute text: the resolved configuration, and one attribute per key
//   /SCALE     [n] numbers or texts, with units and long_name
//   /GROUP/... arrays, with units and long_name
#ifndef RFA_STORAGE_ARRAYFILE_H
#define RFA_STORAGE_ARRAYFILE_H

#include "storage/attributes.h"

typedef struct {
    const char *name, *units, *long_name;
    const double *numbers;    // [count]; NULL: texts
    const char *const *texts; // [count]
    int64_t count;
} rfa_array_scale;

enum { RFA_ARRAY_DIMENSIONS = 6 };

typedef struct {
    const char *group, *name, *units, *long_name; // group: one name, made where it is new; NULL: /
    int scale[RFA_ARRAY_DIMENSIONS];              // of each dimension, the index of its scale
    int dimensions;
    const double *numbers;
} rfa_array;

// The name is checked beforehand by rfa_benchfile_check. RFA_ERR_IO. Local.
RFA_NODISCARD rfa_status rfa_arrayfile_write(const char *path,
                                             const char *schema,
                                             const rfa_attributes *attributes,
                                             const char *config_text,
                                             const rfa_array_scale *scales,
                                             int scale_count,
                                             const rfa_array *arrays,
                                             int array_count);

#endif
