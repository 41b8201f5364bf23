// Texts by their ids: where each lies in a file.
#ifndef RFA_TASKS_PAPERS_H
#define RFA_TASKS_PAPERS_H

#include "tasks/index.h"

typedef struct {
    int64_t id;                // its text, in names
    int64_t file, place, size; // as in rfa_entry
    int64_t line;
} rfa_paper;

typedef struct {
    rfa_paper *papers;
    int64_t count, capacity;
    char *names;
    int64_t names_size, names_capacity;
    int32_t *slots; // [slot_count] number + 1; 0: empty
    int64_t slot_count;
} rfa_papers;

// Reads a table of id and text. RFA_ERR_IO with file:line for an id twice, an empty one, a wrong
// number of columns, a compressed file (texts are read in any order). Local.
RFA_NODISCARD rfa_status rfa_papers_read(rfa_papers *papers, rfa_index *index, const char *path);
const rfa_paper *rfa_papers_find(const rfa_papers *papers, const char *id); // NULL: there is none
void rfa_papers_free(rfa_papers *papers); // idempotent; start with all zero

#endif
