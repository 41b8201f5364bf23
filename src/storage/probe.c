#include "storage/probe.h"

#include "base/log.h"
#include "base/mem.h"
#include "storage/h5.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { PART = 8192 }; // numbers a rank

static const char dataset_name[] = "numbers";

// What a transfer needs: the numbers of one part, and where they are in memory and in the file.
typedef struct {
    int64_t first, *values; // [PART]
    hid_t memory, place, transfer;
} part;

static int64_t number(int64_t i)
{
    return (int64_t)((uint64_t)i * 0x9E3779B97F4A7C15U) ^ i;
}

static void part_destroy(part *p)
{
    rfa_h5_close(&p->memory);
    rfa_h5_close(&p->place);
    rfa_h5_close(&p->transfer);
    rfa_free(p->values);
    p->values = NULL;
}

// The part of rank owner; local.
static rfa_status
part_create(part *p, const rfa_comm *all, int owner, bool together, const char *path)
{
    const hsize_t whole = (hsize_t)all->size * PART, count = PART, start = (hsize_t)owner * PART;
    *p = (part){.first = (int64_t)start,
                .memory = H5Screate_simple(1, &count, NULL),
                .place = H5Screate_simple(1, &whole, NULL),
                .transfer = H5Pcreate(H5P_DATASET_XFER)};
    if (p->memory < 0 || p->place < 0 || p->transfer < 0 ||
        H5Sselect_hyperslab(p->place, H5S_SELECT_SET, &start, NULL, &count, NULL) < 0 ||
        H5Pset_dxpl_mpio(p->transfer, together ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT) <
            0) {
        return rfa_h5_fail(RFA_ERR_IO, path, "a hyperslab can't be described");
    }
    return rfa_alloc(&p->values, PART, sizeof *p->values, "probe of a file");
}

static bool was_together(const part *p)
{
    H5D_mpio_actual_io_mode_t mode = H5D_MPIO_NO_COLLECTIVE;
    return H5Pget_mpio_actual_io_mode(p->transfer, &mode) >= 0 && mode != H5D_MPIO_NO_COLLECTIVE;
}

static rfa_status create_file(hid_t *file, const rfa_comm *all, const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL); // errors are reported by rfa_h5_fail
    *file = H5I_INVALID_HID;
    hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    if (list >= 0 && H5Pset_file_locking(list, 0, 1) >= 0 &&
        H5Pset_fapl_mpio(list, all->comm, MPI_INFO_NULL) >= 0) {
        *file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    }
    const rfa_status status =
        *file >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "can't be created by MPI-IO");
    rfa_h5_close(&list);
    return status;
}

// The outcome of opening a file together. Where only some ranks have it they can't close it: that
// would wait for the others. Collective.
static rfa_status agree_open(rfa_probe *probe, const rfa_comm *all, hid_t *file, rfa_status status)
{
    int most = *file >= 0;
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, all->comm);
    status = rfa_agree(all, status);
    if (status != RFA_OK && most) {
        probe->stuck = true;
        *file = H5I_INVALID_HID;
    }
    return status;
}

// All ranks close, then agree on all that went before. Collective.
static rfa_status close_together(
    rfa_probe *probe, const rfa_comm *all, hid_t *file, const char *path, rfa_status status)
{
    const herr_t closed = H5Fclose(*file);
    *file = H5I_INVALID_HID;
    int failed = closed < 0;
    if (failed && status == RFA_OK) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "can't be closed");
    }
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, all->comm);
    probe->stuck |= failed;
    return rfa_agree(all, status);
}

static rfa_status
write_file(rfa_probe *probe, hid_t file, const rfa_comm *all, const char *path, const part *p)
{
    RFA_ASSERT(p->values);
    hid_t dataset = H5Dcreate2(file, dataset_name, H5T_STD_I64LE, p->place, H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT);
    rfa_status status = rfa_agree(
        all, dataset >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "no dataset can be created"));
    if (status == RFA_OK) {
        for (int64_t i = 0; i < PART; i++) {
            p->values[i] = number(p->first + i);
        }
        if (H5Dwrite(dataset, H5T_NATIVE_INT64, p->memory, p->place, p->transfer, p->values) < 0) {
            status = rfa_h5_fail(RFA_ERR_IO, path, "the collective write failed");
        }
        probe->write_together = was_together(p);
        status = rfa_agree(all, status);
    }
    rfa_h5_close(&dataset);
    return status;
}

// Reads and compares a part of the open file. Local but for what the library does.
static rfa_status read_part(hid_t file, const rfa_comm *all, const char *path, const part *p)
{
    RFA_ASSERT(p->values);
    hid_t dataset = H5Dopen2(file, dataset_name, H5P_DEFAULT);
    rfa_status status = rfa_agree(
        all, dataset >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "its dataset can't be opened"));
    if (status == RFA_OK &&
        H5Dread(dataset, H5T_NATIVE_INT64, p->memory, p->place, p->transfer, p->values) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "the read failed");
    }
    for (int64_t i = 0; i < PART && status == RFA_OK; i++) {
        if (p->values[i] != number(p->first + i)) {
            status = rfa_fail(RFA_ERR_IO,
                              "%s: number %" PRId64 " is read back as %" PRId64 ", %" PRId64
                              " was written",
                              path, p->first + i, p->values[i], number(p->first + i));
        }
    }
    rfa_h5_close(&dataset);
    return status;
}

static rfa_status
read_file(rfa_probe *probe, const rfa_comm *all, const char *path, int shift, bool together)
{
    part p;
    hid_t file = H5I_INVALID_HID;
    rfa_status status =
        rfa_agree(all, part_create(&p, all, (all->rank + shift) % all->size, together, path));
    if (status == RFA_OK) {
        const double start = rfa_now();
        status = agree_open(probe, all, &file, rfa_h5_open_parallel(&file, path, all->comm));
        if (status == RFA_OK) {
            status = close_together(probe, all, &file, path, read_part(file, all, path, &p));
        }
        if (together) {
            probe->read_together = was_together(&p);
            probe->read_seconds = rfa_now() - start;
        }
    }
    part_destroy(&p);
    return status;
}

rfa_status rfa_probe_together(rfa_probe *probe, const rfa_comm *all, const char *path)
{
    part p;
    hid_t file = H5I_INVALID_HID;
    *probe = (rfa_probe){.bytes = (int64_t)all->size * PART * (int64_t)sizeof *p.values};
    rfa_status status = rfa_agree(all, part_create(&p, all, all->rank, true, path));
    if (status == RFA_OK) {
        const double start = rfa_now();
        status = agree_open(probe, all, &file, create_file(&file, all, path));
        if (status == RFA_OK) {
            status =
                close_together(probe, all, &file, path, write_file(probe, file, all, path, &p));
        }
        probe->write_seconds = rfa_now() - start;
    }
    part_destroy(&p);
    return status == RFA_OK ? read_file(probe, all, path, 1, true) : status;
}

rfa_status rfa_probe_alone(rfa_probe *probe, const rfa_comm *all, const char *path)
{
    return read_file(probe, all, path, 2, false);
}

rfa_status rfa_probe_lock(const char *path)
{
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5I_INVALID_HID, list = H5Pcreate(H5P_FILE_ACCESS);
    if (list >= 0 && H5Pset_file_locking(list, 1, 0) >= 0) {
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    }
    rfa_status status =
        file >= 0 ? RFA_OK : rfa_h5_fail(RFA_ERR_IO, path, "HDF5 can't create and lock it");
    rfa_h5_close(&list);
    if (file >= 0 && H5Fclose(file) < 0) {
        status = rfa_h5_fail(RFA_ERR_IO, path, "can't be closed");
    }
    unlink(path);
    return status;
}

static rfa_status write_text(const char *path, const char *text)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be created: %s", path, strerror(errno));
    }
    const ssize_t size = (ssize_t)strlen(text), written = write(file, text, (size_t)size);
    const int error = written < 0 ? errno : ENOSPC;
    if (close(file) != 0 || written != size) {
        return rfa_fail(RFA_ERR_IO, "%s: can't be written: %s", path, strerror(error));
    }
    return RFA_OK;
}

rfa_status rfa_probe_rename(double *seconds, const char *tmp, const char *final)
{
    static const char former[] = "former", new[] = "new";
    char found[sizeof former] = "";
    RFA_TRY(write_text(final, former));
    RFA_TRY(write_text(tmp, new));
    const double start = rfa_now();
    RFA_TRY(rfa_publish(tmp, final));
    *seconds = rfa_now() - start;
    const int file = open(final, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: gone after the rename: %s", final, strerror(errno));
    }
    const ssize_t size = read(file, found, sizeof found - 1);
    close(file);
    if (size != (ssize_t)strlen(new) || strcmp(found, new) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: after the rename it is not what was renamed", final);
    }
    return RFA_OK;
}
