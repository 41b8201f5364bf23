// ListOps trees with their values as the spinn project has them: lines of label, tab and tree,
// without header; train and test only.
#ifndef RFA_TASKS_LISTOPS_TREES_H
#define RFA_TASKS_LISTOPS_TREES_H

#include "tasks/bytes.h"
#include "tasks/index.h"

// Whether root has such files: train_NAME.tsv and test_NAME.tsv with the same NAME (spinn: d20s),
// or train.tsv and test.tsv. Local.
bool rfa_listops_trees_found(const char *root);

// Lists their lines. percent: as rfa_index_split. *longest: bytes of the longest tree. Local.
RFA_NODISCARD rfa_status rfa_listops_trees_list(rfa_index *index,
                                                int64_t *longest,
                                                const char *root,
                                                int percent);

// The source over an index: self is a rfa_listops_trees_reader. Symbols, brackets, and the label
// against the value of the tree are checked: RFA_ERR_IO with file:line.
typedef struct {
    const rfa_index *index;
    rfa_bytes bytes;
    char *text; // [longest + 1]
    int64_t longest;
} rfa_listops_trees_reader;
RFA_NODISCARD rfa_status rfa_listops_trees_load(void *self,
                                                rfa_example *example,
                                                int split,
                                                int64_t index);
// Symbols of a tree of so many bytes, at most.
static inline ptrdiff_t rfa_listops_trees_symbols(int64_t bytes)
{
    return (ptrdiff_t)(bytes / 2 + 1);
}

#endif
