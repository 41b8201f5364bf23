// Checkpoints: everything that the next step depends on, by canonical name, never by rank.
// Written by rank 0 beside the run file: RUN.ckpt.tmp, closed, fsynced, read back and compared by
// checksum, then RUN.ckpt -> RUN.ckpt.prev, RUN.ckpt.tmp -> RUN.ckpt, directory fsynced.
//
//   /          attributes: schema, step, best_correct, best_step, digest (16 hex digits), config,
//              data_digest, arrays, crc32 (of these), complete (written last)
//   /<name>    float32, attribute crc32: zlib's, of the little-endian bytes
#ifndef RFA_STORAGE_CHECKPOINT_H
#define RFA_STORAGE_CHECKPOINT_H

#include "base/status.h"

#include <stdint.h>

// One named array, float32 on disk.
typedef struct {
    const char *name; // "parameters/embedding.tokens", "moment1/...", "moment2/..."
    int dimensions;
    ptrdiff_t shape[4];
    float *values; // borrowed
} rfa_checkpoint_array;

typedef struct {
    int64_t step;                    // optimiser steps done
    int64_t best_correct, best_step; // best validation so far; -1 when none
    uint64_t digest;                 // of the parameters
    char *config_text; // canonical YAML; owned by the reader after rfa_checkpoint_read
    char *data_digest; // of the data set; owned likewise
} rfa_checkpoint_header;

// Local (rank 0). run_path: RUN.h5; the checkpoint is RUN.ckpt. On failure RUN.ckpt is as before.
RFA_NODISCARD rfa_status rfa_checkpoint_write(const char *run_path,
                                              const rfa_checkpoint_header *header,
                                              const rfa_checkpoint_array *arrays,
                                              int count);

// Newest complete checkpoint: RUN.ckpt, or RUN.ckpt.prev (with a warning that names the damage)
// when it is damaged. arrays: names and shapes as expected; values are filled; a missing array or
// other shape is RFA_ERR_IO, more arrays in the file are not. header is of the file that was read:
// free it afterwards. Local.
RFA_NODISCARD rfa_status rfa_checkpoint_read(const char *run_path,
                                             rfa_checkpoint_header *header,
                                             rfa_checkpoint_array *arrays,
                                             int count);

// The header alone (for checks before the model is built), of the newest checkpoint whose arrays
// all match their checksums. Local.
RFA_NODISCARD rfa_status rfa_checkpoint_read_header(const char *run_path,
                                                    rfa_checkpoint_header *header);
void rfa_checkpoint_header_free(rfa_checkpoint_header *header);

// The header of one checkpoint file, RUN.ckpt or RUN.ckpt.prev, with all checksums verified, and
// how many arrays and values it holds. RFA_ERR_IO names the damage. Local.
RFA_NODISCARD rfa_status rfa_checkpoint_check(const char *file,
                                              rfa_checkpoint_header *header,
                                              int64_t *arrays,
                                              int64_t *values);

#endif
