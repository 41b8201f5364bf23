// Labels of a table: numbers, or names of a list, or whatever names come up.
#ifndef RFA_TASKS_LABELS_H
#define RFA_TASKS_LABELS_H

#include "tasks/tree.h"

// Start with all zero.
typedef struct {
    rfa_classes classes;
    bool any_names; // labels that are no numbers are names
    bool named;     // they are
    bool listed;    // names of a given list
    bool closed;    // no further ones
} rfa_labels;

// Classes 0, 1, ... have the names of a list with commas. RFA_ERR_USAGE.
RFA_NODISCARD rfa_status rfa_labels_list(rfa_labels *labels, const char *list);
// Classes are 0 to count - 1.
void rfa_labels_count(rfa_labels *labels, int count);

// *label of a text. Numbers go up to the highest class when closed, else to 1023; the first text
// says whether labels are numbers. RFA_ERR_IO says what is wrong with it. Local.
RFA_NODISCARD rfa_status rfa_labels_find(rfa_labels *labels, int *label, const char *text);

// No further ones. Names that came up are put in ascending order, and the entries of the index get
// the numbers that they then have. Local.
void rfa_labels_close(rfa_labels *labels, rfa_index *index);

// A whole number without sign, also as "1.0"; -1 when text is none or above most.
int64_t rfa_label_number(const char *text, int64_t most);

#endif
