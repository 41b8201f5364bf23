// The columns of starts, steps, phases and evaluations: one table for the HDF5 file, the lines and
// inspect.
#ifndef RFA_STORAGE_COLUMNS_H
#define RFA_STORAGE_COLUMNS_H

#include "storage/json.h"

#include <stddef.h>

typedef enum { RFA_COLUMN_INT, RFA_COLUMN_DOUBLE, RFA_COLUMN_DIGEST } rfa_column_kind;

typedef struct {
    const char *name, *units, *long_name;
    size_t offset; // in the record, of 8 bytes
    rfa_column_kind kind;
} rfa_column;

typedef struct {
    const char *name, *long_name;
    size_t offset, size; // of the array of characters in the record
} rfa_text_column;

enum {
    RFA_START_COLUMNS = 4,
    RFA_START_TEXTS = 3,
    RFA_STEP_COLUMNS = 9,
    RFA_EVALUATION_COLUMNS = 4,
    RFA_PHASE_COLUMNS = 8,
    RFA_PHASE_TEXTS = 1
};
extern const rfa_column rfa_start_columns[RFA_START_COLUMNS]; // of rfa_start_record
extern const rfa_text_column rfa_start_texts[RFA_START_TEXTS];
extern const rfa_column rfa_step_columns[RFA_STEP_COLUMNS];             // of rfa_step_record
extern const rfa_column rfa_evaluation_columns[RFA_EVALUATION_COLUMNS]; // of rfa_evaluation_record
extern const rfa_column rfa_phase_columns[RFA_PHASE_COLUMNS];           // of rfa_phase_record
extern const rfa_text_column rfa_phase_texts[RFA_PHASE_TEXTS];

// The column of a record as a word of JSON: digests as 16 hex digits in quotes.
const char *
rfa_column_word(char out[RFA_JSON_NUMBER], const rfa_column *column, const void *record);

#endif
