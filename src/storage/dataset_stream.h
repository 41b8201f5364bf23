// One stream of token ids of a split while it is written: tokens, offsets and lengths. A data set
// of pairs has two. Local.
#ifndef RFA_STORAGE_DATASET_STREAM_H
#define RFA_STORAGE_DATASET_STREAM_H

#include "storage/h5.h"

typedef struct {
    const char *path, *split; // for texts; borrowed
    char suffix[2];           // "" or "2": of the names of its datasets
    hid_t tokens;             // invalid while no split is open
    int first_id;             // stored value = id - first_id
    int64_t examples, size;   // announced
    int64_t written;          // tokens in the file
    int64_t *offsets;         // [examples + 1]
    int32_t *lengths;         // [examples]
    uint16_t *buffer;         // [RFA_STREAM_BUFFER]
    ptrdiff_t buffered;
} rfa_dataset_stream;

enum { RFA_STREAM_BUFFER = 1 << 19 }; // tokens

// Starts a split in group: 8-bit values when values of them are at most 256, else 16-bit. The
// caller has set path, split, suffix and first_id; rfa_dataset_stream_free releases all but the
// buffer.
RFA_NODISCARD rfa_status rfa_dataset_stream_begin(
    rfa_dataset_stream *stream, hid_t group, int values, int64_t examples, int64_t tokens);
// Example n, whose ids follow those of n - 1.
RFA_NODISCARD rfa_status rfa_dataset_stream_add(rfa_dataset_stream *stream,
                                                int64_t n,
                                                const uint16_t *ids,
                                                ptrdiff_t length);
RFA_NODISCARD rfa_status rfa_dataset_stream_flush(rfa_dataset_stream *stream);
void rfa_dataset_stream_free(rfa_dataset_stream *stream); // idempotent

#endif
