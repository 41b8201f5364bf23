// Whether a folder and the HDF5 library do what parallel files ask of them.
#ifndef RFA_STORAGE_PROBE_H
#define RFA_STORAGE_PROBE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t bytes; // of the dataset, all ranks together
    double write_seconds, read_seconds;
    bool write_together, read_together; // MPI-IO moved the bytes collectively, as it was asked to
    bool stuck; // a file stays open because some rank could not open it: the end of MPI may hang
} rfa_probe;

// Creates path: every rank writes its hyperslab of one dataset by one collective write; after
// closing, all read the hyperslab of another rank by one collective read and compare. RFA_ERR_IO,
// agreed. The file stays. Collective over all; 64 KiB a rank.
RFA_NODISCARD rfa_status rfa_probe_together(rfa_probe *probe,
                                            const rfa_comm *all,
                                            const char *path);

// Each rank reads a hyperslab of that file by itself (independent MPI-IO) and compares. Agreed.
// Collective over all.
RFA_NODISCARD rfa_status rfa_probe_alone(rfa_probe *probe, const rfa_comm *all, const char *path);

// Whether HDF5 can lock a file that it creates at path, as programs do that don't switch its locks
// off; the file is removed. Local.
RFA_NODISCARD rfa_status rfa_probe_lock(const char *path);

// Writes a file at tmp and publishes it over an older one at final, as checkpoints are; reads it
// back. *seconds: of fsync, rename and fsync of the folder. final stays. Local.
RFA_NODISCARD rfa_status rfa_probe_rename(double *seconds, const char *tmp, const char *final);

#endif
