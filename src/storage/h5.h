// What all HDF5 files of rfa share: errors in one line, files that open and close with checks,
// attributes and small arrays that h5py shows as they are, and publishing under a final name.
//
// path is always the file's name for messages; an object is a file, group or dataset. All functions
// are local unless they say otherwise, leave nothing open on failure, and return RFA_ERR_IO (or
// RFA_ERR_MEMORY). Serial files are for one rank at a time.
#ifndef RFA_STORAGE_H5_H
#define RFA_STORAGE_H5_H

#include "base/status.h"

#include <hdf5.h>

#include <stdbool.h>
#include <stdint.h>

// Records "path: what: innermost message of the HDF5 stack", empties the stack and returns code.
RFA_NODISCARD rfa_status rfa_h5_fail(rfa_status code, const char *path, const char *what, ...)
    __attribute__((format(printf, 3, 4)));

// Files. Creation truncates and takes no lock: it is meant for temporary names.
RFA_NODISCARD rfa_status rfa_h5_create(hid_t *file, const char *path);
RFA_NODISCARD rfa_status rfa_h5_open(hid_t *file, const char *path); // read only
// Read only by MPI-IO, all ranks of comm (a plain duplicate, never Cartesian). Collective; the
// caller agrees on the outcome.
RFA_NODISCARD rfa_status rfa_h5_open_parallel(hid_t *file, const char *path, MPI_Comm comm);
// Flushes (when written by rfa_h5_create) and closes; *file is H5I_INVALID_HID afterwards, but
// stays open for rfa_h5_abandon when a flush fails. OK when it is closed already.
RFA_NODISCARD rfa_status rfa_h5_close_file(hid_t *file, const char *path);
// Gives up a file that failed while it was written, closes all that is open in it, and removes it:
// nothing more goes to a full disk. Only for files of rfa_h5_create.
void rfa_h5_abandon(hid_t *file, const char *path);

// Closes a dataset that was written, with a check: small ones reach the file only now. Idempotent.
RFA_NODISCARD rfa_status rfa_h5_close_array(hid_t *dataset, const char *path);

// Closes any object, type, space or property list, and files that were only read; idempotent.
void rfa_h5_close(hid_t *id);

// Groups.
RFA_NODISCARD rfa_status rfa_h5_create_group(hid_t *group,
                                             hid_t parent,
                                             const char *path,
                                             const char *name);
RFA_NODISCARD rfa_status rfa_h5_open_group(hid_t *group,
                                           hid_t parent,
                                           const char *path,
                                           const char *name);
bool rfa_h5_has(hid_t parent, const char *name);           // a link of this name; no error
bool rfa_h5_has_attribute(hid_t object, const char *name); // no error

// Attributes, created (they must not exist). Text is variable-length UTF-8; bool is h5py's enum
// {FALSE, TRUE} of int8; numbers are little-endian 64-bit.
RFA_NODISCARD rfa_status rfa_h5_write_text(hid_t object,
                                           const char *path,
                                           const char *name,
                                           const char *text);
RFA_NODISCARD rfa_status rfa_h5_write_int(hid_t object,
                                          const char *path,
                                          const char *name,
                                          int64_t value);
RFA_NODISCARD rfa_status rfa_h5_write_double(hid_t object,
                                             const char *path,
                                             const char *name,
                                             double value);
RFA_NODISCARD rfa_status rfa_h5_write_bool(hid_t object,
                                           const char *path,
                                           const char *name,
                                           bool value);
RFA_NODISCARD rfa_status rfa_h5_write_ints(
    hid_t object, const char *path, const char *name, const int64_t *values, int64_t count);
RFA_NODISCARD rfa_status rfa_h5_write_text_list(
    hid_t object, const char *path, const char *name, const char *const *texts, int64_t count);

// Scalar attributes, read with checks of presence, class and shape. Text may be of fixed or
// variable length; the result is owned by the caller (rfa_free). bool also takes integers 0 and 1.
RFA_NODISCARD rfa_status rfa_h5_read_text(hid_t object,
                                          const char *path,
                                          const char *name,
                                          char **out);
RFA_NODISCARD rfa_status rfa_h5_read_int(hid_t object,
                                         const char *path,
                                         const char *name,
                                         int64_t *out);
RFA_NODISCARD rfa_status rfa_h5_read_double(hid_t object,
                                            const char *path,
                                            const char *name,
                                            double *out);
RFA_NODISCARD rfa_status rfa_h5_read_bool(hid_t object,
                                          const char *path,
                                          const char *name,
                                          bool *out);

// Datasets, contiguous. file_type: explicit, as H5T_IEEE_F32LE; memory_type: native. out (may be
// NULL) keeps the dataset open for attributes.
RFA_NODISCARD rfa_status rfa_h5_write_array(hid_t *out,
                                            hid_t parent,
                                            const char *path,
                                            const char *name,
                                            hid_t file_type,
                                            hid_t memory_type,
                                            int dimensions,
                                            const hsize_t *shape,
                                            const void *values);
// Strings, variable-length UTF-8, one dimension.
RFA_NODISCARD rfa_status rfa_h5_write_texts(hid_t *out,
                                            hid_t parent,
                                            const char *path,
                                            const char *name,
                                            const char *const *texts,
                                            int64_t count);

// Opens a dataset and checks that it has this class (H5T_INTEGER, H5T_FLOAT, H5T_STRING, H5T_ENUM)
// and this number of dimensions, and that its bytes are in the file; shape [dimensions].
RFA_NODISCARD rfa_status rfa_h5_open_array(hid_t *out,
                                           hid_t parent,
                                           const char *path,
                                           const char *name,
                                           H5T_class_t class,
                                           int dimensions,
                                           hsize_t *shape);
// Reads the whole of an open dataset, converted to memory_type (serial files).
RFA_NODISCARD rfa_status rfa_h5_read_array(hid_t dataset,
                                           const char *path,
                                           hid_t memory_type,
                                           void *values);
// A one-dimensional string dataset as one block: rfa_free(*out) frees texts and pointers.
RFA_NODISCARD rfa_status
rfa_h5_read_texts(hid_t parent, const char *path, const char *name, char ***out, int64_t *count);

// Dimension scales (HDF5 Dimension Scale Specification), as h5py shows them under dims[i]: makes a
// one-dimensional dataset a scale called name, then attaches it to one dimension of a dataset.
RFA_NODISCARD rfa_status rfa_h5_make_scale(hid_t scale, const char *path, const char *name);
RFA_NODISCARD rfa_status rfa_h5_attach_scale(hid_t dataset,
                                             const char *path,
                                             int dimension,
                                             hid_t scale);

// fsync(tmp), rename(tmp, final), fsync of the folder. On failure tmp is left to the caller.
RFA_NODISCARD rfa_status rfa_publish(const char *tmp, const char *final);

#endif
