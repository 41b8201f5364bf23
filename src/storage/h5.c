#define _GNU_SOURCE // memfd_create
#include "storage/h5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// Keeps the first entry met walking upward: the innermost, which knows the cause.
static herr_t take_innermost(unsigned depth, const H5E_error2_t *entry, void *out)
{
    if (depth == 0) {
        snprintf(out, 512, "%s", entry->desc ? entry->desc : "unknown");
    }
    return 0;
}

// "file write failed: time = ..., errno = 28, error message = 'No space left on device', buf = ..."
// becomes "file write failed: No space left on device".
static void shorten(char *text)
{
    static const char key[] = "error message = '";
    char *cause = strstr(text, key), *colon = strchr(text, ':');
    if (cause && colon && colon < cause) {
        cause += sizeof key - 1;
        cause[strcspn(cause, "'")] = 0;
        memmove(colon + 2, cause, strlen(cause) + 1);
        colon[1] = ' ';
    }
}

rfa_status rfa_h5_fail(rfa_status code, const char *path, const char *what, ...)
{
    char cause[512] = "", place[512];
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, cause);
    H5Eclear2(H5E_DEFAULT);
    shorten(cause);
    va_list args;
    va_start(args, what);
    vsnprintf(place, sizeof place, what, args);
    va_end(args);
    if (cause[0]) {
        return rfa_fail(code, "%.300s: %.300s: %.300s", path, place, cause);
    }
    return rfa_fail(code, "%.300s: %.300s", path, place);
}

// Errors are reported by rfa_h5_fail; the library must not print its own.
static void silence(void)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

rfa_status rfa_h5_create(hid_t *file, const char *path)
{
    silence();
    *file = H5I_INVALID_HID;
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    // Without the sieve buffer a full disk fails H5Dwrite, which the library survives, and not
    // H5Dclose, after which it crashes at exit (HDF5 1.10.8).
    if (access >= 0 && H5Pset_file_locking(access, 0, 1) >= 0 &&
        H5Pset_sieve_buf_size(access, 0) >= 0) {
        *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    }
    const rfa_status status =
        *file >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "can't be created");
    H5Pclose(access);
    return status;
}

rfa_status rfa_h5_open(hid_t *file, const char *path)
{
    silence();
    *file = H5I_INVALID_HID;
    struct stat info;
    if (stat(path, &info) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return rfa_fail(RFA_ERR_IO, "%s: not a regular file", path);
    }
    if (access(path, R_OK) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be read: %s", path, strerror(errno));
    }
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list >= 0 && H5Pset_file_locking(list, 1, 1) >= 0) {
        *file = H5Fopen(path, H5F_ACC_RDONLY, list);
    }
    const rfa_status status =
        *file >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "can't be opened as HDF5");
    H5Pclose(list);
    return status;
}

rfa_status rfa_h5_open_parallel(hid_t *file, const char *path, MPI_Comm comm)
{
    silence();
    *file = H5I_INVALID_HID;
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list >= 0 && H5Pset_file_locking(list, 1, 1) >= 0 &&
        H5Pset_fapl_mpio(list, comm, MPI_INFO_NULL) >= 0 &&
        H5Pset_all_coll_metadata_ops(list, 1) >= 0) {
        *file = H5Fopen(path, H5F_ACC_RDONLY, list);
    }
    const rfa_status status =
        *file >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "can't be opened by MPI-IO");
    H5Pclose(list);
    return status;
}

// Space on disk for all that HDF5 is going to flush, so that a full disk is found before: its
// metadata cache can't be closed any more after a flush that failed. Best effort.
static rfa_status reserve(hid_t file, const char *path)
{
    void *handle = NULL;
    hsize_t size = 0;
    if (H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0 || !handle ||
        H5Fget_filesize(file, &size) < 0) {
        return rfa_h5_fail(RFA_ERR_IO, path, "can't be flushed");
    }
    const int error = size > 0 ? posix_fallocate(*(int *)handle, 0, (off_t)size) : 0;
    if (error == ENOSPC || error == EFBIG || error == EIO || error == EDQUOT) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be flushed: %s", path, strerror(error));
    }
    return RFA_OK;
}

rfa_status rfa_h5_close_file(hid_t *file, const char *path)
{
    if (*file < 0) {
        return RFA_OK;
    }
    unsigned intent = 0;
    if (H5Fget_intent(*file, &intent) < 0) {
        return rfa_h5_fail(RFA_ERR_IO, path, "can't be closed");
    }
    if (intent & H5F_ACC_RDWR) {
        // After a failure the file stays open, as the caller's rfa_h5_abandon wants it.
        RFA_TRY(reserve(*file, path));
        if (H5Fflush(*file, H5F_SCOPE_GLOBAL) < 0) {
            return rfa_h5_fail(RFA_ERR_IO, path, "can't be flushed");
        }
    }
    const herr_t closed = H5Fclose(*file);
    *file = H5I_INVALID_HID;
    return closed >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "can't be closed");
}

// HDF5 1.10 does not survive a file whose last flush fails: its id stays, and the end of the
// library crashes on it. What is still to be flushed goes to memory instead: the descriptor is
// replaced under the library's feet. Memory counts as a file for the limit of file sizes, if there
// is one.
void rfa_h5_abandon(hid_t *file, const char *path)
{
    if (*file >= 0) {
        void *handle = NULL;
        struct rlimit limit;
        const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0;
        const struct rlimit widest = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (limited) {
            setrlimit(RLIMIT_FSIZE, &widest);
        }
        const int sink = memfd_create("rfa-abandoned", MFD_CLOEXEC);
        if (sink >= 0 && H5Fget_vfd_handle(*file, H5P_DEFAULT, &handle) >= 0 && handle) {
            dup2(sink, *(int *)handle);
        }
        if (sink >= 0) {
            close(sink);
        }
        // Open objects would keep the file open.
        hid_t open_ids[64];
        const unsigned objects = H5F_OBJ_DATASET | H5F_OBJ_GROUP | H5F_OBJ_DATATYPE | H5F_OBJ_ATTR;
        const ssize_t count = H5Fget_obj_ids(*file, objects, 64, open_ids);
        for (ssize_t i = 0; i < count; i++) {
            rfa_h5_close(&open_ids[i]);
        }
        H5Fclose(*file);
        H5Eclear2(H5E_DEFAULT);
        if (limited) {
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        *file = H5I_INVALID_HID;
    }
    unlink(path);
}

void rfa_h5_close(hid_t *id)
{
    if (*id >= 0) {
        // By type: H5Idec_ref keeps an id whose closing failed, and the library crashes on it
        // later.
        switch (H5Iget_type(*id)) {
        case H5I_FILE: H5Fclose(*id); break;
        case H5I_GROUP: H5Gclose(*id); break;
        case H5I_DATASET: H5Dclose(*id); break;
        case H5I_ATTR: H5Aclose(*id); break;
        case H5I_DATATYPE: H5Tclose(*id); break;
        case H5I_DATASPACE: H5Sclose(*id); break;
        default: H5Idec_ref(*id); break;
        }
        H5Eclear2(H5E_DEFAULT);
    }
    *id = H5I_INVALID_HID;
}

rfa_status rfa_h5_create_group(hid_t *group, hid_t parent, const char *path, const char *name)
{
    *group = H5Gcreate2(parent, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    return *group >= 0 ? RFA_OK
                       : rfa_h5_fail(RFA_ERR_IO, path, "group '%s' can't be created", name);
}

rfa_status rfa_h5_open_group(hid_t *group, hid_t parent, const char *path, const char *name)
{
    *group = H5I_INVALID_HID;
    if (!rfa_h5_has(parent, name)) {
        return rfa_fail(RFA_ERR_IO, "%s: group '%s' is missing", path, name);
    }
    *group = H5Gopen2(parent, name, H5P_DEFAULT);
    return *group >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "'%s' is not a group", name);
}

bool rfa_h5_has(hid_t parent, const char *name)
{
    const bool found = H5Lexists(parent, name, H5P_DEFAULT) > 0;
    H5Eclear2(H5E_DEFAULT);
    return found;
}

bool rfa_h5_has_attribute(hid_t object, const char *name)
{
    const bool found = H5Aexists(object, name) > 0;
    H5Eclear2(H5E_DEFAULT);
    return found;
}

// 0 or errno.
static int sync_path(const char *path, int flags)
{
    const int descriptor = open(path, flags | O_CLOEXEC);
    if (descriptor < 0) {
        return errno;
    }
    const int error = fsync(descriptor) == 0 ? 0 : errno;
    close(descriptor);
    return error;
}

rfa_status rfa_publish(const char *tmp, const char *final)
{
    int error = sync_path(tmp, O_RDONLY);
    if (error) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be brought to disk: %s", tmp, strerror(error));
    }
    if (rename(tmp, final) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be renamed to %s: %s", tmp, final, strerror(errno));
    }
    char folder[4096] = ".";
    const char *slash = strrchr(final, '/');
    if (slash) {
        const size_t length = slash == final ? 1 : (size_t)(slash - final);
        if (length >= sizeof folder) {
            return rfa_fail(RFA_ERR_IO, "%.300s...: the path is too long", final);
        }
        memcpy(folder, final, length);
        folder[length] = 0;
    }
    error = sync_path(folder, O_RDONLY | O_DIRECTORY);
    if (error && error != EINVAL) { // some file systems can't sync a folder
        return rfa_fail(RFA_ERR_IO, "%s: can't be brought to disk: %s", folder, strerror(error));
    }
    return RFA_OK;
}
