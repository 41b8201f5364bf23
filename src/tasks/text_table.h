// Tables of labels and texts, as examples of an index.
#ifndef RFA_TASKS_TEXT_TABLE_H
#define RFA_TASKS_TEXT_TABLE_H

#include "tasks/text.h"

// Which columns hold what.
typedef struct {
    int count, label, text;
} rfa_text_columns;

// Adds the records of a table. columns->count 0: not known yet; the option, the header or the
// default sets them. classes grows with numbers, up to the highest. Local.
RFA_NODISCARD rfa_status rfa_text_table(rfa_index *index,
                                        rfa_text_columns *columns,
                                        rfa_classes *classes,
                                        const char *path,
                                        const rfa_text_options *options);

// A whole number without sign, also as "1.0"; -1 when text is none or above most.
int64_t rfa_label_number(const char *text, int64_t most);

#endif
