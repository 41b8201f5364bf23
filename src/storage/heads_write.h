// Writes the files that storage/heads.h reads, all ranks together: rank 0 makes the file with all
// that describes it, then every rank writes its own tokens by MPI-IO.
//
//   /q, /k, /v     [heads][N][d] float32; the score of a pair is q . k / sqrt(d)
//   /out           [heads][N][d] float32: what the run's own attention made of them
//   /example, /layer, /head [heads] int64: where each comes from
//   /place, /token, /component: scales of the three dimensions
//   /              attributes: schema, written, and those of the caller; /config
#ifndef RFA_STORAGE_HEADS_WRITE_H
#define RFA_STORAGE_HEADS_WRITE_H

#include "storage/attributes.h"

typedef struct rfa_heads_writer rfa_heads_writer; // opaque

typedef enum {
    RFA_HEADS_Q,
    RFA_HEADS_K,
    RFA_HEADS_V,
    RFA_HEADS_OUT,
    RFA_HEADS_ARRAYS
} rfa_heads_array;

typedef struct {
    int64_t count, n, d;
    const int64_t *example, *layer, *head; // [count]
    const rfa_attributes *attributes;      // of the root; on rank 0 alone
    const char *config_text;               // on rank 0 alone
} rfa_heads_contents;

// Under a temporary name beside path, which rfa_benchfile_check has seen. RFA_ERR_IO. Agreed.
// Collective over all, which is borrowed and not Cartesian.
RFA_NODISCARD rfa_status rfa_heads_create(rfa_heads_writer **out,
                                          const rfa_comm *all,
                                          const char *path,
                                          const rfa_heads_contents *contents);

// Heads [head, head + heads) and tokens [token, token + tokens) of an array, values
// [heads][tokens][d]; a rank with none of either takes part. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_heads_put(rfa_heads_writer *writer,
                                       rfa_heads_array array,
                                       int64_t head,
                                       int64_t heads,
                                       int64_t token,
                                       int64_t tokens,
                                       const float *values);

// Ends the file: status RFA_OK publishes it under its name, another removes it and is returned.
// Agreed. Collective.
RFA_NODISCARD rfa_status rfa_heads_end(rfa_heads_writer **writer, rfa_status status);

#endif
