// HDF5 files that are made in memory and written out by plain writes: the library (1.10.8) does not
// survive a full disk at every place, it keeps ids open and crashes at exit. For files that fit in
// memory twice.
//
// A seal of 24 bytes follows what HDF5 knows of, and no reader minds it: "rfa seal", the size of
// the image and its digest, both little-endian. On a damaged file the library may even fall over,
// so the seal is looked at before the file is opened.
#ifndef RFA_STORAGE_H5_IMAGE_H
#define RFA_STORAGE_H5_IMAGE_H

#include "base/status.h"

#include <hdf5.h>

// Creates an empty file in memory, given up by rfa_h5_close; path is for messages. RFA_ERR_IO.
// Local.
RFA_NODISCARD rfa_status rfa_h5_image_create(hid_t *file, const char *path);

// Writes the file to path, with its seal; nothing is left there on failure. It stays open.
// RFA_ERR_IO. Local.
RFA_NODISCARD rfa_status rfa_h5_image_write(hid_t file, const char *path);

// RFA_ERR_IO when the file at path has a seal and isn't as it was sealed. A file without one, as
// after a change by another program, passes: what HDF5 finds must do. Local; reads the file once.
RFA_NODISCARD rfa_status rfa_h5_image_verify(const char *path);

#endif
