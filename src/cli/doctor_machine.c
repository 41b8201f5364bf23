#include "base/log.h"
#include "base/mem.h"
#include "cli/doctor.h"
#include "storage/digest.h"

#include "commit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>

static const double gibibyte = 1024.0 * 1024 * 1024;

static void check_program(rfa_doctor *doctor)
{
    static const char version[] = "rfa " RFA_VERSION ", commit " RFA_COMMIT;
    rfa_doctor_begin(doctor, "program");
    uint64_t ends[2] = {rfa_digest(0, version, sizeof version), 0};
    ends[1] = ~ends[0];
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UINT64_T, MPI_MIN, doctor->world->comm);
    if (ends[0] != ~ends[1]) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "program",
                        "ranks run different commits of the program; rank 0: %s", version);
    } else {
        rfa_doctor_line(doctor, RFA_DIRTY ? RFA_DOCTOR_WARN : RFA_DOCTOR_OK, "program",
                        "%s, %s, built for %s%s", version, RFA_COMPILER, RFA_CPU_LEVEL,
                        RFA_DIRTY ? "; the source was modified: runs can't be traced to the commit"
                                  : "");
    }
}

// Whether the process was started with a variable; MPI_Init adds some of its own later.
static bool started_with(const char *name)
{
    enum { LINE = 4096 };
    char text[LINE];
    bool found = false;
    FILE *file = fopen("/proc/self/environ", "re");
    size_t used = 0;
    for (int c; file && !found && (c = getc(file)) != EOF;) {
        if (c == '\0') {
            used = 0;
        } else if (used < LINE) {
            text[used++] = (char)c;
            found = c == '=' && used == strlen(name) + 1 && strncmp(text, name, used - 1) == 0;
        }
    }
    if (file) {
        fclose(file);
    }
    return found;
}

static const char *launcher(void)
{
    if (started_with("OMPI_COMM_WORLD_SIZE")) {
        return "mpirun";
    }
    if (started_with("PMIX_RANK") || started_with("PMI_RANK") || started_with("PMI2_RANK")) {
        return started_with("SLURM_STEP_NUM_TASKS") ? "srun" : "another launcher";
    }
    return "started directly";
}

// Seconds until the Unix time of a variable. False without one.
static bool time_left(double *seconds, const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    const double at = text ? strtod(text, &end) : 0;
    *seconds = at - (double)time(NULL);
    return text && *text && end && *end == '\0';
}

static void check_launcher(rfa_doctor *doctor)
{
    static const struct {
        const char *variable, *what;
    } facts[] = {{"SLURM_JOB_PARTITION", "partition"},
                 {"SLURM_JOB_NUM_NODES", "nodes"},
                 {"SLURM_NTASKS", "tasks"},
                 {"SLURM_CPUS_PER_TASK", "cores a task"},
                 {"SLURM_MEM_PER_NODE", "MiB a node"},
                 {"SLURM_MEM_PER_CPU", "MiB a core"}};
    static const char *const ends[] = {"SLURM_JOB_END_TIME", "RFA_END_TIME"};
    const int size = doctor->world->size;
    const char *job = getenv("SLURM_JOB_ID"), *tasks = getenv("SLURM_NTASKS");
    char text[512], span[32];
    rfa_finding finding = RFA_DOCTOR_OK;
    double seconds = 0;
    rfa_doctor_begin(doctor, "launcher");
    snprintf(text, sizeof text, "%s, %d rank%s", launcher(), size, size > 1 ? "s" : "");
    if (job) {
        rfa_doctor_append(text, sizeof text, "; SLURM job %s", job);
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
            const char *value = getenv(facts[i].variable);
            if (value) {
                rfa_doctor_append(text, sizeof text, ", %s %s", facts[i].what, value);
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        if (time_left(&seconds, ends[i])) {
            const bool over = seconds <= 0;
            rfa_doctor_append(text, sizeof text, "; %s: %s", ends[i],
                              over ? "over already" : rfa_duration(span, seconds));
            finding = over ? RFA_DOCTOR_WARN : finding;
        }
    }
    if (job && tasks && strtol(tasks, NULL, 10) != size) {
        finding = RFA_DOCTOR_WARN;
        rfa_doctor_append(text, sizeof text,
                          ": the job has another number of tasks than MPI sees ranks: srun "
                          "--mpi=pmix, or mpirun");
    }
    rfa_doctor_line(doctor, finding, "launcher", "%s", text);
}

// Of rank 0's host.
static void check_limits(rfa_doctor *doctor)
{
    static const struct {
        int resource;
        const char *what;
    } limits[] = {
        {RLIMIT_AS, "address space"}, {RLIMIT_DATA, "data"}, {RLIMIT_FSIZE, "size of a file"}};
    rfa_doctor_begin(doctor, "limits");
    const double memory = rfa_mem_available(), limit = rfa_mem_limit();
    char text[512];
    rfa_finding finding = RFA_DOCTOR_OK;
    if (memory >= 0) {
        snprintf(text, sizeof text, "%.1f GiB of memory available", memory / gibibyte);
    } else {
        snprintf(text, sizeof text, "memory unknown");
    }
    if (limit >= 0) {
        rfa_doctor_append(text, sizeof text, ", %.1f GiB for this control group", limit / gibibyte);
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit most;
        if (getrlimit((__rlimit_resource_t)limits[i].resource, &most) == 0 &&
            most.rlim_cur != RLIM_INFINITY) {
            finding = RFA_DOCTOR_WARN;
            rfa_doctor_append(text, sizeof text, ", %s limited to %.3g GiB (ulimit)",
                              limits[i].what, (double)most.rlim_cur / gibibyte);
        }
    }
    struct statvfs shared;
    if (statvfs("/dev/shm", &shared) == 0) {
        const double left = (double)shared.f_bavail * (double)shared.f_frsize;
        rfa_doctor_append(text, sizeof text, ", %.2f GiB in /dev/shm", left / gibibyte);
        if (doctor->world->size > 1 && left < 16.0 * 1048576 * doctor->world->size) {
            finding = RFA_DOCTOR_WARN;
            rfa_doctor_append(text, sizeof text,
                              ": little for messages between ranks (containers: --shm-size)");
        }
    }
    rfa_doctor_line(doctor, finding, "limits", "%s", text);
}

// A file of MCA parameters that says something.
static bool says_something(const char *path)
{
    char line[256];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        const char c = line[strspn(line, " \t")];
        found = c != '#' && c != '\n' && c != '\0';
    }
    if (file) {
        fclose(file);
    }
    return found;
}

// Variables that have made runs slow, wrong in their last bits, or hang.
static void check_settings(rfa_doctor *doctor)
{
    static const struct {
        const char *variable, *harm;
    } known[] = {
        {"OMPI_MCA_coll_tuned_use_dynamic_rules",
         "other reductions than the tested ones, some slow or wrong"},
        {"OMPI_MCA_coll_tuned_dynamic_rules_filename", "takes reductions from a file"},
        {"OMPI_MCA_coll_tuned_allreduce_algorithm", "forces one reduction for all sizes"},
        {"OMPI_MCA_coll_tuned_alltoallv_algorithm", "forces one all-to-all for all sizes"},
        {"OMPI_MCA_coll", "leaves out collective components"},
        {"OMPI_MCA_pml", "forces a messaging layer, maybe not the network's best"},
        {"OMPI_MCA_btl", "forces transports: without vader ranks of one host talk by TCP"},
        {"OMPI_MCA_mtl", "forces a messaging layer, maybe not the network's best"},
        {"OMPI_MCA_io", "forces one MPI-IO, maybe not the file system's best"},
        {"OMPI_MCA_fs", "forces one kind of file system"},
        {"OMPI_MCA_fcoll", "forces one way of collective writing"},
        {"OMPI_MCA_mpi_leave_pinned", "known for corrupted messages where memory is given back"},
        {"OMPI_MCA_btl_vader_single_copy_mechanism", "changes how ranks of one host copy"},
        {"OMP_DYNAMIC", "OpenMP may take fewer threads than are asked for"},
        {"OMP_PROC_BIND", "binds threads over the launcher's binding"},
        {"GOMP_CPU_AFFINITY", "binds threads over the launcher's binding"},
        {"KMP_AFFINITY", "binds threads over the launcher's binding"},
        {"HDF5_DRIVER", "another file driver"},
        {"HDF5_USE_FILE_LOCKING", "locks of HDF5 forced or switched off"},
        {"HDF5_COLL_API_SANITY_CHECK", "slow checks in HDF5"},
        {"OPENBLAS_VERBOSE", "prints into the output"},
        {"LD_PRELOAD", "puts another library under this program"},
        {"RFA_FAULT", "an injected fault, for tests"},
    };
    char text[1400] = "", path[1024];
    int count = 0;
    rfa_doctor_begin(doctor, "settings");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *value = getenv(known[i].variable);
        if (value && *value && started_with(known[i].variable)) {
            rfa_doctor_append(text, sizeof text, "%s%s=%.40s (%s)", count++ ? ", " : "",
                              known[i].variable, value, known[i].harm);
        }
    }
    const char *home = getenv("HOME");
    snprintf(path, sizeof path, "%s/.openmpi/mca-params.conf", home ? home : "");
    if (home && says_something(path)) {
        rfa_doctor_append(text, sizeof text, "%s%.200s sets parameters of Open MPI",
                          count++ ? ", " : "", path);
    }
    rfa_doctor_line(doctor, count > 0 ? RFA_DOCTOR_WARN : RFA_DOCTOR_OK, "settings", "%s",
                    count > 0 ? text : "no variable that is known to do harm");
}

void rfa_doctor_machine(rfa_doctor *doctor)
{
    check_program(doctor);
    check_launcher(doctor);
    rfa_doctor_cores(doctor);
    check_limits(doctor);
    check_settings(doctor);
}
