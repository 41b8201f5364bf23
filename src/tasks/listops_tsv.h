// The released ListOps files: basic_{train,val,test}.tsv, header "Source<TAB>Target", one
// expression and its digit a line.
#ifndef RFA_TASKS_LISTOPS_TSV_H
#define RFA_TASKS_LISTOPS_TSV_H

#include "base/status.h"

#include <stdint.h>

enum { RFA_LISTOPS_SPLITS = 3 };
extern const char *const rfa_listops_splits[RFA_LISTOPS_SPLITS]; // "train", "val", "test"

// Finds the folder that holds the three files: root itself, or listops-1000 in it, in its
// lra_release or in its lra_release/lra_release, as the archive unpacks. RFA_ERR_IO names every
// file that is missing and what was found instead. folder holds size bytes. Local.
RFA_NODISCARD rfa_status rfa_listops_tsv_find(char *folder, size_t size, const char *root);

typedef struct rfa_listops_tsv rfa_listops_tsv; // one open file

// Opens folder/basic_<split>.tsv and checks its header. Local.
RFA_NODISCARD rfa_status rfa_listops_tsv_open(rfa_listops_tsv **out,
                                              const char *folder,
                                              const char *split);
void rfa_listops_tsv_close(rfa_listops_tsv **tsv); // NULL-safe

// The next example: ids [length] borrowed until the next call, its line in the file; length 0 at
// the end. Checks columns, symbols, brackets, and the label against the value of the expression:
// RFA_ERR_IO with file:line. A file without examples is RFA_ERR_IO too. Local.
typedef struct {
    const uint16_t *ids;
    ptrdiff_t length;
    int label;
    int64_t line;
} rfa_listops_row;
RFA_NODISCARD rfa_status rfa_listops_tsv_next(rfa_listops_tsv *tsv, rfa_listops_row *row);

#endif
