// What the columns of a table of examples are, by their names.
#ifndef RFA_TASKS_COLUMNS_H
#define RFA_TASKS_COLUMNS_H

#include "tasks/source.h"
#include "tasks/table.h"

typedef struct {
    int count, label;
    int document[RFA_DOCUMENTS]; // a text, or token ids
    int documents;               // 0: nothing is known yet
    bool ids;
} rfa_columns;

// From names with commas between: one is label (sentiment, class, target), one text (review,
// sentence, document); any_kind: two of these, text2 or text,text, or ids (tokens) for all. Others
// are left out. False when it doesn't hold both, or mixes texts and ids. Local.
bool rfa_columns_set(rfa_columns *columns, const char *list, bool any_kind);

// Item n of a list with commas: its size, or -1 behind the last one.
int rfa_list_item(const char **item, const char *list, int n);

// The fields of a record as such a list.
void rfa_list_join(char *list, int size, const rfa_field *fields, int count);

#endif
