#include "base/log.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/settings.h"

#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const help[] = {
    "usage: rfa doctor [DIR] [--seconds S]",
    "",
    "Checks what a run needs, on all ranks: hosts, cores, MPI, BLAS, products, the exchange of",
    "states; and in DIR (default: runs, or . without it) space, parallel HDF5, locks, renaming.",
    "One line a check: ok, warn or FAIL, its name, facts. Exit code 0 without FAIL, else 1.",
    "",
    "  --seconds S  that one check may take (default 60); then it is a FAIL, and all ends",
    "",
    "  mpirun -n 4 rfa doctor",
    "  srun --mpi=pmix rfa doctor /scratch/runs",
    NULL,
};

static const char *const words[RFA_DOCTOR_LEVELS] = {"ok", "warn", "FAIL"};

// What the clock's handler says, made before: it may call nothing that isn't async-signal-safe.
static struct {
    char line[160], error[200];
    int line_size, error_size;
} late;

static void put(int file, const char *text, int size)
{
    if (write(file, text, (size_t)size) < 0) {
        _exit(RFA_ERR_INTERNAL); // nobody listens
    }
}

// Some rank does not come back, from a file system or from the network. The launcher ends the
// others.
static void too_late(int number)
{
    (void)number;
    put(STDOUT_FILENO, late.line, late.line_size);
    put(STDERR_FILENO, late.error, late.error_size);
    _exit(RFA_ERR_INTERNAL);
}

void rfa_doctor_begin(const rfa_doctor *doctor, const char *name)
{
    const bool speaks = doctor->world->rank == 0;
    alarm(0);
    late.line_size = late.error_size = 0;
    if (speaks) {
        late.line_size = snprintf(late.line, sizeof late.line,
                                  "%-4s  %-9s  no answer within %u s from all ranks\n",
                                  words[RFA_DOCTOR_FAIL], name, doctor->seconds);
        late.error_size =
            snprintf(late.error, sizeof late.error,
                     "rfa: error: doctor: %s did not end within %u s\n", name, doctor->seconds);
    }
    alarm(doctor->seconds + (speaks ? 0 : 5)); // rank 0 first: it speaks
}

void rfa_doctor_append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

void rfa_doctor_line(
    rfa_doctor *doctor, rfa_finding finding, const char *name, const char *format, ...)
{
    char facts[1536];
    va_list args;
    va_start(args, format);
    vsnprintf(facts, sizeof facts, format, args);
    va_end(args);
    rfa_print("%-4s  %-9s  %s", words[finding], name, facts);
    doctor->counts[finding]++;
    if (finding == RFA_DOCTOR_FAIL) {
        rfa_doctor_append(doctor->failed, sizeof doctor->failed, "%s%s",
                          doctor->failed[0] ? ", " : "", name);
    }
}

// Rank 0's eyes decide where to look.
static const char *default_folder(const rfa_comm *world)
{
    struct stat info;
    int runs = world->rank == 0 && stat("runs", &info) == 0 && S_ISDIR(info.st_mode);
    MPI_Bcast(&runs, 1, MPI_INT, 0, world->comm);
    return runs ? "runs" : ".";
}

static rfa_status examine(rfa_doctor *doctor)
{
    const struct sigaction clock = {.sa_handler = too_late}, before = {.sa_handler = SIG_DFL};
    sigaction(SIGALRM, &clock, NULL);
    rfa_doctor_machine(doctor);
    rfa_doctor_compute(doctor);
    rfa_doctor_exchange(doctor);
    rfa_doctor_files(doctor);
    int counts[RFA_DOCTOR_LEVELS];
    memcpy(counts, doctor->counts, sizeof counts);
    MPI_Bcast(counts, RFA_DOCTOR_LEVELS, MPI_INT, 0, doctor->world->comm);
    const int checks = counts[RFA_DOCTOR_OK] + counts[RFA_DOCTOR_WARN] + counts[RFA_DOCTOR_FAIL];
    rfa_print("%d checks: %d ok, %d warn, %d FAIL", checks, counts[RFA_DOCTOR_OK],
              counts[RFA_DOCTOR_WARN], counts[RFA_DOCTOR_FAIL]);
    if (doctor->stuck) { // MPI_Finalize closes what HDF5 could not
        late.line_size = late.error_size = 0;
        alarm(10);
    } else {
        alarm(0);
        sigaction(SIGALRM, &before, NULL);
    }
    if (counts[RFA_DOCTOR_FAIL] == 0) {
        return RFA_OK;
    }
    return rfa_fail(RFA_ERR_INTERNAL, "doctor: %d of %d checks failed: %s", counts[RFA_DOCTOR_FAIL],
                    checks, doctor->failed);
}

rfa_status rfa_cmd_doctor(const rfa_comm *world, int argc, char **argv)
{
    enum { SECONDS = 256, HELP = 'h', MOST_SECONDS = 86400 };
    static const struct option options[] = {
        {"seconds", required_argument, NULL, SECONDS},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    rfa_doctor doctor = {.world = world, .seconds = 60};
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        char *end = NULL;
        switch (option) {
        case SECONDS:
            doctor.seconds = (unsigned)strtoul(optarg, &end, 10);
            if (*end || doctor.seconds < 1 || doctor.seconds > MOST_SECONDS) {
                return rfa_fail(RFA_ERR_USAGE, "--seconds: '%s' is not a whole number, 1 to %d",
                                optarg, MOST_SECONDS);
            }
            break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 < argc) {
        return rfa_fail(RFA_ERR_USAGE, "doctor looks at one folder, not at '%s' too",
                        argv[optind + 1]);
    }
    doctor.folder = optind < argc ? argv[optind] : default_folder(world);
    return examine(&doctor);
}
