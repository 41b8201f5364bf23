// A tree of files whose folders are the splits and classes: ROOT/train/CLASS/FILE,
// ROOT/test/CLASS/FILE.
#ifndef RFA_TASKS_TREE_H
#define RFA_TASKS_TREE_H

#include "tasks/index.h"

enum { RFA_TREE_CLASSES = 1024, RFA_CLASS_NAME = 64 };

typedef struct {
    int count;
    char name[RFA_TREE_CLASSES][RFA_CLASS_NAME]; // ascending; the index is the label
} rfa_classes;

// The order of the examples of a split: by the number that file names begin with, then the class
// (IMDb: reviews of one film have neighbouring numbers), or by a hash of class and name, which
// mixes the classes.
typedef enum { RFA_TREE_BY_NUMBER, RFA_TREE_BY_HASH } rfa_tree_order;

// Adds the files of ROOT/split/CLASS that end with extension (".txt"), in order, with label, size
// and origin = number (by number) or place in the order (by hash). Empty files and other names are
// skipped and counted. Classes of the first call are the folders that there are, but `ignore`; a
// later call accepts no others. RFA_ERR_IO when there are no classes, a class without files, or, by
// number, a name that begins with none. Local.
RFA_NODISCARD rfa_status rfa_tree_list(rfa_index *index,
                                       rfa_classes *classes,
                                       const char *root,
                                       const char *split,
                                       const char *extension,
                                       const char *ignore,
                                       rfa_tree_order order);

#endif
