// Data sets: one HDF5 file per task, read in parallel.
//
//   /                 attributes: task, created_by, source, generator parameters, digest, complete
//   = 1 (last) /vocabulary       [V] UTF-8 strings, id = index, 0 = padding
//   /<split>/tokens   [sum of lengths] unsigned 8-bit ids (16-bit beyond 256 symbols), packed
//   /<split>/offsets  [n + 1] int64: example i is tokens[offsets[i] .. offsets[i + 1])
//   /<split>/lengths  [n] int32      /<split>/labels [n] int32
//   /<split>/<origin> [n] int64: what the example is at its source (line, record, candidate)
//
// tokens may have an attribute first_id, 0 or 1: id = stored value + first_id. Bytes and pixels are
// stored so, as they are, while their ids leave 0 to padding.
//
// Pairs: attribute documents = 2; the second documents are tokens2, offsets2, lengths2.
//
// Attributes of the root that every data set has: task, title, classes, padding_id (0), source,
// generator, duplicates_within and duplicates_across (examples equal to an earlier one of the same
// or of another split), examples_<split>, tokens_<split>, class_counts_<split>, digest, created,
// created_by, commit, commit_dirty, complete; then the parameters of the generator or importer.
#ifndef RFA_STORAGE_DATASET_H
#define RFA_STORAGE_DATASET_H

#include "base/status.h"
#include "exchange/partition.h"

#include <stdint.h>

typedef struct rfa_dataset rfa_dataset; // opaque: the open file, one split, its offsets and labels

// Opens one split for collective reads on a duplicate of all (never on a Cartesian communicator).
// Checks schema, types, ranks, complete flag, that offsets ascend from 0 to the size of tokens,
// that every label is in [0, classes), and that no document is empty: RFA_ERR_IO with file,
// dataset, index. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_dataset_open(rfa_dataset **out,
                                          const rfa_comm *all,
                                          const char *path,
                                          const char *split);
// The same for one document of each example alone: 0, or 1 in data sets of pairs. RFA_ERR_IO when
// there is no such document.
RFA_NODISCARD rfa_status rfa_dataset_open_document(
    rfa_dataset **out, const rfa_comm *all, const char *path, const char *split, int document);
void rfa_dataset_close(rfa_dataset **dataset); // NULL-safe. Collective

int64_t rfa_dataset_examples(const rfa_dataset *dataset);
int rfa_dataset_classes(const rfa_dataset *dataset);    // attribute "classes"
int rfa_dataset_vocabulary(const rfa_dataset *dataset); // number of ids, padding included
int rfa_dataset_documents(const rfa_dataset *dataset);  // of an example in the file, 1 or 2

// What a model reads is sequences: an open data set has one an example, or where both documents of
// pairs are open two, numbered 2 example + document.
int rfa_dataset_sequences(const rfa_dataset *dataset); // an example
ptrdiff_t rfa_dataset_longest(const rfa_dataset *dataset);
const char *rfa_dataset_task(const rfa_dataset *dataset);
const char *rfa_dataset_validation(const rfa_dataset *dataset); // what it is: "last10%", "test"; ""
const char *
rfa_dataset_digest(const rfa_dataset *dataset); // 16 hex digits over all splits, from the file
const char *rfa_dataset_path(const rfa_dataset *dataset);
ptrdiff_t rfa_dataset_length(const rfa_dataset *dataset, int64_t sequence);
int rfa_dataset_label(const rfa_dataset *dataset, int64_t example);

// ids[row0 + t] of each leaf = token (begin + t) of sequence sequences[leaf.example], 0 in padded
// rows. One collective hyperslab read of just these tokens by all ranks of the file's communicator,
// two for pairs (a rank without leaves takes part with an empty selection). An id outside the
// vocabulary is RFA_ERR_IO, naming the example and position. Agreed. Collective over all.
RFA_NODISCARD rfa_status rfa_dataset_read(rfa_dataset *dataset,
                                          uint16_t *ids,
                                          const int64_t *sequences,
                                          const rfa_leaf *leaves,
                                          int leaf_count);

#endif
