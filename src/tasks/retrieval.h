// Pairs of documents: does the one cite the other?
#ifndef RFA_TASKS_RETRIEVAL_H
#define RFA_TASKS_RETRIEVAL_H

#include "tasks/bytes.h"
#include "tasks/index.h"

// Lists the pairs in or below root: new_aan_pairs.{train,eval,test}.tsv of the Long Range Arena
// (label "0.0" or "1.0", two ids, two texts; no header, quotes are characters like others), also as
// .gz, or papers.tsv (id, text) with pairs.{train,eval,test}.tsv (label, two ids); "val" stands for
// "eval" as well. format [64] gets a name. Pairs with an empty text are skipped and counted.
// RFA_ERR_IO with file:line for a wrong number of columns, a label that is not 0 or 1, an id twice
// or of no paper.
RFA_NODISCARD rfa_status rfa_retrieval_list(rfa_index *index, char format[64], const char *root);

// The source over an index: self is a rfa_retrieval_reader.
typedef struct {
    const rfa_index *index;
    rfa_bytes bytes;
    unsigned char *buffer; // [2 * max_length + 2]
    int64_t max_length;
} rfa_retrieval_reader;
RFA_NODISCARD rfa_status rfa_retrieval_load(void *self,
                                            rfa_example *example,
                                            int split,
                                            int64_t index);

#endif
