// Anybody's own data: tables of a label and one or two texts, or one or two lists of token ids.
#ifndef RFA_TASKS_OWN_H
#define RFA_TASKS_OWN_H

#include "tasks/bytes.h"
#include "tasks/text_table.h"

typedef struct {
    const char *train, *val, *test; // files; val and test NULL: the last percent of train
    int val_percent, test_percent;  // of train's examples; val_percent 0: val is test
    bool shuffle;                   // train, before it is split
    uint64_t seed;                  // of that
    int classes;                    // labels are the numbers below; 0: those that train has
    const char *labels;             // names of classes with commas between, or ""
} rfa_own_options;

// Lists the examples. tables->columns, any_kind and vocabulary are given; its found, highest,
// longest and labels.classes are filled. RFA_ERR_IO with file:line, RFA_ERR_USAGE. Local.
RFA_NODISCARD rfa_status rfa_own_list(rfa_index *index,
                                      rfa_text_tables *tables,
                                      const rfa_own_options *options);

// The source over an index: self is a rfa_own_reader.
typedef struct {
    const rfa_index *index;
    const rfa_text_tables *tables;
    rfa_bytes bytes;
    unsigned char *buffer; // [2 * max_length + 2], and at least [tables->longest] for token ids
    int64_t max_length;
} rfa_own_reader;
RFA_NODISCARD rfa_status rfa_own_load(void *self, rfa_example *example, int split, int64_t index);

#endif
