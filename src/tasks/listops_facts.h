// What a ListOps expression looks like, for results by kind of expression and for the rules that a
// model must beat.
#ifndef RFA_TASKS_LISTOPS_FACTS_H
#define RFA_TASKS_LISTOPS_FACTS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int root;    // RFA_LISTOPS_MIN ... SM, or a digit that is the whole expression
    int depth;   // operators above each other, 0 for a digit
    int by_rule; // value of the root operator on those of its arguments that are digits, or of a
                 // digit itself; -1 where it has none, or is SM and has others too
} rfa_listops_facts;

// Of a whole expression, as rfa_listops_evaluate accepts it. Local.
rfa_listops_facts rfa_listops_look(const uint16_t *ids, ptrdiff_t length);

#endif
