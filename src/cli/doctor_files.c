#include "base/log.h"
#include "cli/doctor.h"
#include "storage/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 1024 };

static const double gibibyte = 1024.0 * 1024 * 1024;

// A folder of its own in the folder that is looked at, which it leaves as it was.
typedef struct {
    char top[PATH];
    char seen[PATH + 16], numbers[PATH + 16], tmp[PATH + 16], final[PATH + 16];
} scratch;

static void name_files(scratch *at)
{
    snprintf(at->seen, sizeof at->seen, "%s/seen", at->top);
    snprintf(at->numbers, sizeof at->numbers, "%s/numbers.h5", at->top);
    snprintf(at->tmp, sizeof at->tmp, "%s/tmp", at->top);
    snprintf(at->final, sizeof at->final, "%s/final", at->top);
}

static const char *system_name(const char *folder)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } systems[] = {
        {0x6969, "nfs"},       {0x0BD00BD0, "lustre"},  {0x47504653, "gpfs"},
        {0x01021994, "tmpfs"}, {0xEF53, "ext"},         {0x58465342, "xfs"},
        {0x9123683E, "btrfs"}, {0x794C7630, "overlay"}, {0x2FC12FC1, "zfs"},
        {0x00C36400, "ceph"},  {0x19830326, "beegfs"},  {0x65735546, "fuse"},
        {0xFF534D42, "cifs"},  {0xAAD7AAEA, "panfs"},   {0x858458F6, "ramfs"},
        {0x01021997, "9p"},    {0xFE534D42, "smb"},     {0x9FA0, "proc"},
        {0x62656572, "sysfs"},
    };
    struct statfs info;
    if (statfs(folder, &info) == 0) {
        for (size_t i = 0; i < sizeof systems / sizeof *systems; i++) {
            if (systems[i].magic == ((unsigned long)info.f_type & 0xFFFFFFFFU)) {
                return systems[i].name;
            }
        }
    }
    return "unknown file system";
}

// Makes the scratch folder, and takes and gives back the space that the checks need: what finds the
// disk full inside the HDF5 library may not come back from it. Rank 0.
static rfa_status make_scratch(scratch *at, const char *folder, int ranks)
{
    const off_t needed = (off_t)ranks * 65536 + 524288;
    struct stat info;
    if (stat(folder, &info) != 0) {
        return rfa_fail(RFA_ERR_IO, "%s: %s", folder, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode)) {
        return rfa_fail(RFA_ERR_IO, "%s: not a folder", folder);
    }
    if (snprintf(at->top, sizeof at->top, "%s/.rfa-doctor-XXXXXX", folder) >= PATH) {
        return rfa_fail(RFA_ERR_IO, "the path of the folder is too long");
    }
    if (!mkdtemp(at->top)) {
        const int error = errno;
        at->top[0] = '\0';
        return rfa_fail(RFA_ERR_IO, "%s: nothing can be created in it: %s", folder,
                        strerror(error));
    }
    name_files(at);
    const int file = open(at->seen, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) {
        return rfa_fail(RFA_ERR_IO, "%s: no file can be created in it: %s", folder,
                        strerror(errno));
    }
    int error = posix_fallocate(file, 0, needed);
    if (ftruncate(file, 1) != 0 || fsync(file) != 0) {
        error = errno;
    }
    if (close(file) != 0) {
        error = errno;
    }
    return error == 0 ? RFA_OK
                      : rfa_fail(RFA_ERR_IO, "%s: %" PRId64 " bytes can't be written: %s", folder,
                                 (int64_t)needed, strerror(error));
}

static void remove_scratch(const scratch *at)
{
    if (at->top[0]) {
        unlink(at->seen);
        unlink(at->numbers);
        unlink(at->tmp);
        unlink(at->final);
        rmdir(at->top);
    }
}

// A folder that is not the same one on all hosts looks empty from elsewhere. Network file systems
// may show a new file late.
static rfa_status see(const char *path)
{
    enum { TRIES = 30 };
    const struct timespec pause = {.tv_nsec = 100000000};
    for (int i = 0; i < TRIES; i++) {
        const int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file >= 0) {
            close(file);
            return RFA_OK;
        }
        nanosleep(&pause, NULL);
    }
    return rfa_fail(RFA_ERR_IO,
                    "does not see what rank 0 wrote (%s: %s): the folder must be on a file system "
                    "that all hosts share",
                    path, strerror(errno));
}

static bool check_folder(rfa_doctor *doctor, scratch *at)
{
    const rfa_comm *world = doctor->world;
    rfa_doctor_begin(doctor, "folder");
    rfa_status status =
        rfa_agree(world, world->rank == 0 ? make_scratch(at, doctor->folder, world->size) : RFA_OK);
    if (status == RFA_OK) {
        MPI_Bcast(at, (int)sizeof *at, MPI_BYTE, 0, world->comm);
        status = rfa_agree(world, see(at->seen));
    }
    if (status != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "folder", "%s; other checks of files are left out",
                        rfa_error_text());
    } else {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "folder", "%s, %s, written by rank 0 and seen by %s",
                        doctor->folder, system_name(doctor->folder),
                        world->size > 1 ? "all ranks" : "it");
    }
    return status == RFA_OK;
}

static void check_space(rfa_doctor *doctor)
{
    struct statvfs info;
    if (doctor->world->rank == 0) {
        if (statvfs(doctor->folder, &info) != 0) {
            rfa_doctor_line(doctor, RFA_DOCTOR_WARN, "space", "%s: %s", doctor->folder,
                            strerror(errno));
            return;
        }
        const double unit = (double)info.f_frsize, left = unit * (double)info.f_bavail;
        rfa_doctor_line(doctor, left < gibibyte ? RFA_DOCTOR_WARN : RFA_DOCTOR_OK, "space",
                        "%.2f GiB free of %.2f in %s%s", left / gibibyte,
                        unit * (double)info.f_blocks / gibibyte, doctor->folder,
                        left < gibibyte ? ": little for runs and checkpoints" : "");
    }
}

static const char *manner(bool together)
{
    return together ? "collectively" : "one rank at a time, for the library chose so";
}

static void check_hdf5(rfa_doctor *doctor, const scratch *at)
{
    const rfa_comm *world = doctor->world;
    rfa_probe probe = {0};
    rfa_doctor_begin(doctor, "parallel");
    rfa_status status = rfa_agree(world, rfa_fault("doctor.parallel", world, RFA_ERR_IO));
    if (status == RFA_OK) {
        status = rfa_probe_together(&probe, world, at->numbers);
    }
    doctor->stuck |= probe.stuck;
    if (status != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "parallel", "%s", rfa_error_text());
        return;
    }
    rfa_doctor_line(doctor, RFA_DOCTOR_OK, "parallel",
                    "parallel HDF5: %" PRId64 " bytes written %s in %.3f s, read back %s in %.3f "
                    "s, the same",
                    probe.bytes, manner(probe.write_together), probe.write_seconds,
                    manner(probe.read_together), probe.read_seconds);
    rfa_doctor_begin(doctor, "alone");
    status = rfa_probe_alone(&probe, world, at->numbers);
    doctor->stuck |= probe.stuck;
    if (status != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "alone", "%s", rfa_error_text());
    } else {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "alone",
                        "parallel HDF5: each rank reads a part by itself, the same");
    }
}

// Whether a second open of the file can lock it: 0 no, as it should be, 1 yes, -1 no locks at all.
static int second_lock(const char *path)
{
    const int file = open(path, O_RDWR | O_CLOEXEC);
    int answer = -1;
    if (file >= 0) {
        answer = flock(file, LOCK_EX | LOCK_NB) == 0 ? 1 : errno == EWOULDBLOCK ? 0 : -1;
        close(file);
    }
    return answer;
}

// Locks keep two runs from writing one record; without them all works, but for this guard.
static void check_locks(rfa_doctor *doctor, const scratch *at)
{
    const rfa_comm *world = doctor->world;
    int file = -1, error = 0, own = 0;
    rfa_doctor_begin(doctor, "locks");
    if (world->rank == 0) {
        file = open(at->seen, O_RDWR | O_CLOEXEC);
        error = file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
        own = error == 0 ? second_lock(at->seen) : -1;
    }
    MPI_Barrier(world->comm);
    int other = world->rank == world->size - 1 && world->rank > 0 ? second_lock(at->seen) : 0;
    MPI_Bcast(&other, 1, MPI_INT, world->size - 1, world->comm);
    if (file >= 0) {
        close(file);
    }
    const rfa_status hdf5 = world->rank == 0 ? rfa_probe_lock(at->final) : RFA_OK;
    char text[256] = "";
    if (hdf5 != RFA_OK) {
        snprintf(text, sizeof text, "%.200s", rfa_error_text());
    }
    const char *use = getenv("HDF5_USE_FILE_LOCKING");
    if (error != 0 || own != 0) {
        rfa_doctor_line(doctor, RFA_DOCTOR_WARN, "locks",
                        "flock does not work (%s): nothing keeps two runs from writing one record",
                        error ? strerror(error) : "a second lock is not refused");
    } else if (other != 0) {
        rfa_doctor_line(doctor, RFA_DOCTOR_WARN, "locks",
                        "flock of rank 0 does not hold on rank %d: nothing keeps two runs on "
                        "different hosts from writing one record",
                        world->size - 1);
    } else if (hdf5 != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_WARN, "locks",
                        "flock works; HDF5's own locks do not (%s): rfa goes without, other "
                        "programs may need HDF5_USE_FILE_LOCKING=FALSE",
                        text);
    } else {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "locks",
                        "flock refuses a second writer%s; HDF5 "
                        "locks its files%s%s",
                        world->size > 1 ? ", on another rank too" : "",
                        use ? ", HDF5_USE_FILE_LOCKING=" : "", use ? use : "");
    }
}

static void check_rename(rfa_doctor *doctor, const scratch *at)
{
    double seconds = 0;
    rfa_doctor_begin(doctor, "rename");
    rfa_status status = RFA_OK;
    if (doctor->world->rank == 0) {
        status = rfa_fault("doctor.rename", doctor->world, RFA_ERR_IO);
        if (status == RFA_OK) {
            status = rfa_probe_rename(&seconds, at->tmp, at->final);
        }
    }
    if (rfa_agree(doctor->world, status) != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "rename", "%s", rfa_error_text());
    } else {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "rename",
                        "a new file replaces an older one; fsync, rename and fsync of the folder "
                        "in %.3f s",
                        seconds);
    }
}

void rfa_doctor_files(rfa_doctor *doctor)
{
    scratch at = {0};
    if (check_folder(doctor, &at)) {
        check_space(doctor);
        check_hdf5(doctor, &at);
        check_locks(doctor, &at);
        check_rename(doctor, &at);
    }
    if (doctor->world->rank == 0) {
        remove_scratch(&at);
    }
}
