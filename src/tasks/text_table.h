// Tables of labels and texts, as examples of an index.
#ifndef RFA_TASKS_TEXT_TABLE_H
#define RFA_TASKS_TEXT_TABLE_H

#include "tasks/columns.h"
#include "tasks/labels.h"
#include "tasks/text.h"

// What the tables of all splits have in common. Start with all zero but what is given.
typedef struct {
    const char *columns; // names with commas between, or ""
    bool any_kind;       // two documents and token ids are welcome
    int vocabulary;      // token ids are below
    rfa_labels labels;
    rfa_columns found;
    int highest;     // token id
    int64_t longest; // bytes of a document
} rfa_text_tables;

// Adds the records of a table. Its columns are those that were found before, or are given, or those
// that its header names, or else label and text. Local.
RFA_NODISCARD rfa_status rfa_text_table(rfa_index *index,
                                        rfa_text_tables *tables,
                                        const char *path);

#endif
