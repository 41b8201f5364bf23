#include "storage/h5_image.h"

#include "base/mem.h"
#include "storage/digest.h"
#include "storage/h5.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROWTH = 1 << 20, BLOCK = 1 << 20 }; // bytes

typedef struct {
    char name[8];
    uint64_t size, digest; // little-endian
} seal;

static const char seal_name[8] = {'r', 'f', 'a', ' ', 's', 'e', 'a', 'l'};

rfa_status rfa_h5_image_create(hid_t *file, const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    *file = H5I_INVALID_HID;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (access >= 0 && H5Pset_fapl_core(access, GROWTH, 0) >= 0) {
        *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    }
    const rfa_status status =
        *file >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "can't be made in memory");
    rfa_h5_close(&access);
    return status;
}

// The digest of an image chains those of its blocks.
static seal make_seal(const char *bytes, size_t size)
{
    seal mark = {.size = htole64(size)};
    uint64_t digest = 0;
    for (size_t at = 0; at < size; at += BLOCK) {
        digest = rfa_digest(digest, bytes + at, size - at < BLOCK ? size - at : BLOCK);
    }
    memcpy(mark.name, seal_name, sizeof mark.name);
    mark.digest = htole64(digest);
    return mark;
}

// 0 or errno.
static int write_bytes(const char *path, const char *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int error = file < 0 ? errno : 0;
    while (size > 0 && error == 0) {
        const ssize_t put = write(file, bytes, size);
        if (put >= 0) {
            bytes += put;
            size -= (size_t)put;
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    // Network file systems report a full disk only when the file is closed.
    if (file >= 0 && close(file) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

rfa_status rfa_h5_image_write(hid_t file, const char *path)
{
    char *bytes = NULL;
    const ssize_t size =
        H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
    if (size < 0) {
        return rfa_h5_fail(RFA_ERR_IO, path, "can't be made in memory");
    }
    RFA_TRY(rfa_alloc(&bytes, size + (ptrdiff_t)sizeof(seal), 1, path));
    rfa_status status = RFA_OK;
    if (H5Fget_file_image(file, bytes, (size_t)size) != size) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "can't be made in memory");
    } else {
        const seal mark = make_seal(bytes, (size_t)size);
        memcpy(bytes + size, &mark, sizeof mark);
        const int error = write_bytes(path, bytes, (size_t)size + sizeof mark);
        if (error) {
            unlink(path);
            status = rfa_fail(RFA_ERR_IO, "%s: can't be written: %s", path, strerror(error));
        }
    }
    rfa_free(bytes);
    return status;
}

// Exactly size bytes at an offset; false when the file has them not.
static bool read_bytes(int file, void *bytes, size_t size, off_t at)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = pread(file, (char *)bytes + done, size - done, at + (off_t)done);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

rfa_status rfa_h5_image_verify(const char *path)
{
    char *block = NULL;
    seal mark = {.size = 0};
    struct stat info;
    RFA_TRY(rfa_alloc(&block, BLOCK, 1, path));
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool sealed = file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode) &&
                        info.st_size >= (off_t)sizeof mark &&
                        read_bytes(file, &mark, sizeof mark, info.st_size - (off_t)sizeof mark) &&
                        memcmp(mark.name, seal_name, sizeof seal_name) == 0;
    bool good = true;
    if (sealed) {
        const size_t size = (size_t)info.st_size - sizeof mark;
        uint64_t digest = 0;
        good = le64toh(mark.size) == size;
        for (size_t at = 0; at < size && good; at += BLOCK) {
            const size_t part = size - at < BLOCK ? size - at : BLOCK;
            good = read_bytes(file, block, part, (off_t)at);
            digest = rfa_digest(digest, block, part);
        }
        good = good && le64toh(mark.digest) == digest;
    }
    if (file >= 0) {
        close(file);
    }
    rfa_free(block);
    return good ? RFA_OK : rfa_fail(RFA_ERR_IO, "%s: damaged: its checksum is wrong", path);
}
