// Parts: runs of finished examples on disk, while a data set is made. Which examples a part holds
// does not depend on the number of ranks, so that a call that was stopped, or killed, goes on from
// what is there, on any number of them.
//
// A part file: "rfa part 1\n", then as little-endian numbers the recipe (2 x 64 bits), split and
// examples (32), first example, tokens of each document, bytes of what follows (64), its CRC-32
// (32); then of each example: origin (64), fingerprint (2 x 64), label (32), length of each
// document (32), ids of each document (16).
#ifndef RFA_TASKS_PART_H
#define RFA_TASKS_PART_H

#include "tasks/fingerprint.h"
#include "tasks/source.h"

#include <stdbool.h>

typedef struct {
    rfa_fingerprint recipe; // of everything that the examples depend on
    int split, examples, documents;
    int64_t first;
} rfa_part_key;

typedef struct {
    rfa_part_key key;
    int64_t tokens[RFA_DOCUMENTS];
    int added, taken; // examples so far
    unsigned char *bytes;
    int64_t size, capacity, at;
} rfa_part;

// One example of a part; ids borrowed until the part changes.
typedef struct {
    const uint16_t *ids[RFA_DOCUMENTS];
    ptrdiff_t length[RFA_DOCUMENTS];
    int label;
    int64_t origin;
    rfa_fingerprint fingerprint; // of the ids
} rfa_part_example;

void rfa_part_destroy(rfa_part *part); // idempotent; start with all zero

// Makes a part: start, add, ..., write (under a temporary name first). Local.
void rfa_part_start(rfa_part *part, const rfa_part_key *key);
RFA_NODISCARD rfa_status rfa_part_add(rfa_part *part, const rfa_example *example);
RFA_NODISCARD rfa_status rfa_part_write(rfa_part *part, const char *path);

// Reads a part whole. RFA_ERR_IO, with the file, when it is missing, damaged, or of another key.
// Local.
RFA_NODISCARD rfa_status rfa_part_read(rfa_part *part, const char *path, const rfa_part_key *key);
// The next example; false at the end.
bool rfa_part_next(rfa_part *part, rfa_part_example *example);

#endif
