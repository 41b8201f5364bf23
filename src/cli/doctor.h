// rfa doctor in parts. Each part runs some checks; each check is one line on stdout: "ok", "warn"
// or "FAIL", its name, facts. All ranks call all parts; what one rank finds is agreed before it is
// a line. A check that does not end is ended by a clock.
#ifndef RFA_CLI_DOCTOR_H
#define RFA_CLI_DOCTOR_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum { RFA_DOCTOR_OK, RFA_DOCTOR_WARN, RFA_DOCTOR_FAIL, RFA_DOCTOR_LEVELS } rfa_finding;

typedef struct {
    const rfa_comm *world;
    const char *folder;
    unsigned seconds;              // that one check may take
    int counts[RFA_DOCTOR_LEVELS]; // lines so far, on rank 0
    char failed[256];              // their names
    bool stuck;                    // the end of MPI may hang: rfa_probe
} rfa_doctor;

// Names the check that begins, and starts its clock. Local.
void rfa_doctor_begin(const rfa_doctor *doctor, const char *name);

// The line of a check; on rank 0, nothing elsewhere.
void rfa_doctor_line(rfa_doctor *doctor,
                     rfa_finding finding,
                     const char *name,
                     const char *format,
                     ...) __attribute__((format(printf, 4, 5)));

// Appends to a text of size bytes, cutting it where it ends.
void rfa_doctor_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Program, launcher, limits, settings; calls rfa_doctor_cores in between. Collective.
void rfa_doctor_machine(rfa_doctor *doctor);
// Hosts, threads, and whether the ranks get in each other's way on their cores. Collective.
void rfa_doctor_cores(rfa_doctor *doctor);
// MPI, HDF5, BLAS, products. Collective.
void rfa_doctor_compute(rfa_doctor *doctor);
// The exchange of states. Collective.
void rfa_doctor_exchange(rfa_doctor *doctor);
// The folder, parallel HDF5 in it, locks, rename. Collective.
void rfa_doctor_files(rfa_doctor *doctor);

#endif
