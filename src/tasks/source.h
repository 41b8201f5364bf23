// Where the examples of a data set come from: files that an importer has listed, or a generator.
// Example i of a split is a function of the source alone, on any rank and in any order.
#ifndef RFA_TASKS_SOURCE_H
#define RFA_TASKS_SOURCE_H

#include "base/status.h"

#include <stdint.h>

enum { RFA_SPLITS = 3, RFA_DOCUMENTS = 2, RFA_BYTE_SYMBOLS = 257 };
extern const char *const rfa_splits[RFA_SPLITS]; // "train", "val", "test"

// Room for one example, which a source fills.
typedef struct {
    uint16_t *ids[RFA_DOCUMENTS];    // [capacity] each; the second one only for pairs
    ptrdiff_t length[RFA_DOCUMENTS]; // ids of each, at least 1
    int label;
    int64_t origin; // its number at its source
} rfa_example;

typedef struct {
    void *self;
    // Example index of split into *example. RFA_ERR_IO names file and place. Local.
    rfa_status (*load)(void *self, rfa_example *example, int split, int64_t index);
    int64_t examples[RFA_SPLITS];
    int documents;      // 1, or 2 for pairs
    int classes;        // labels are in [0, classes)
    ptrdiff_t capacity; // most ids of a document
} rfa_source;

// ids[i] = bytes[i] + 1: 0 stays padding's.
void rfa_byte_ids(uint16_t *ids, const unsigned char *bytes, ptrdiff_t n);

// The symbols of a vocabulary of bytes: "<pad>", then a printable character as it is and any other
// byte as "<0x0a>"; or, for pixels, "<pad>", "0" to "255". Static.
const char *const *rfa_byte_symbols(void);
const char *const *rfa_pixel_symbols(void);

// 64-bit FNV-1a with a last mixing (the finaliser of SplitMix64), so that near texts lie apart;
// start: 0, or what came before.
uint64_t rfa_hash(uint64_t start, const void *bytes, size_t n);

#endif
