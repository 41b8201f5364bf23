// Inside of rfa_dataset, shared by opening and reading.
#ifndef RFA_STORAGE_DATASET_IMPL_H
#define RFA_STORAGE_DATASET_IMPL_H

#include "storage/dataset.h"
#include "storage/h5.h"

enum { RFA_DATASET_TEXT = 64 };

// What rank 0 finds in the file and tells the others.
typedef struct {
    int64_t examples, tokens, longest; // of the split
    int64_t bytes;                     // of the file
    int classes, symbols, documents;
    char task[RFA_DATASET_TEXT], digest[RFA_DATASET_TEXT], validation[RFA_DATASET_TEXT];
} rfa_dataset_facts;

// A run of tokens that one leaf wants.
typedef struct {
    int64_t begin, count; // in the dataset
    ptrdiff_t source;     // in the buffer
    int leaf;
} rfa_dataset_piece;

struct rfa_dataset {
    rfa_dataset_facts facts;
    char *path, *name;   // name of the dataset: "<split>/tokens"
    int document;        // 0 or 1
    rfa_dataset *second; // the other document of a pair, of the same examples; or NULL
    rfa_comm comm;       // own duplicate
    hid_t file, tokens, type, transfer;
    int id_bytes; // 1 or 2
    int first_id; // id = stored value + first_id
    bool swap;    // 16-bit ids of the other byte order

    int64_t *offsets; // [examples + 1]
    int32_t *labels;  // [examples]

    // Work space of reads, which grows.
    rfa_dataset_piece *pieces;
    uint8_t *buffer;
    ptrdiff_t piece_capacity, buffer_capacity;
};

// Whether a type is what tokens may have: unsigned, 8 or 16 bits, either byte order. Local.
RFA_NODISCARD rfa_status rfa_dataset_check_ids(hid_t type, const char *path, const char *name);

#endif
