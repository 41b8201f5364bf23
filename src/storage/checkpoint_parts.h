// One checkpoint file, whatever its name; for checkpoint.c.
#ifndef RFA_STORAGE_CHECKPOINT_PARTS_H
#define RFA_STORAGE_CHECKPOINT_PARTS_H

#include "storage/checkpoint.h"

#define RFA_CHECKPOINT_SCHEMA "rfa checkpoint 1"

// Writes and closes the file; removes it on failure. Local.
RFA_NODISCARD rfa_status rfa_checkpoint_write_file(const char *path,
                                                   const rfa_checkpoint_header *header,
                                                   const rfa_checkpoint_array *arrays,
                                                   int count);

// Fills the arrays of a file; each must be there, of its shape and checksum. Local.
RFA_NODISCARD rfa_status rfa_checkpoint_read_arrays(const char *path,
                                                    rfa_checkpoint_array *arrays,
                                                    int count);

#endif
