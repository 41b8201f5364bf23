// Writes a data set (storage/dataset.h has the schema) from one rank, in one pass and in constant
// memory besides 36 bytes an example. It stands under PATH.tmp until finish has brought it to disk.
#ifndef RFA_STORAGE_DATASET_WRITER_H
#define RFA_STORAGE_DATASET_WRITER_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct rfa_dataset_writer rfa_dataset_writer;

typedef struct {
    const char *task, *title;
    const char *const *vocabulary; // [symbols], id = index, 0 = padding
    int symbols;                   // at most 65536
    int classes;
    int documents; // 2 for pairs, else 0 or 1
    int first_id;  // 1: ids are stored less one, so that 256 of them take 8 bits; else 0
} rfa_dataset_description;

// Starts the file; RFA_ERR_USAGE when path exists and not overwrite, RFA_ERR_IO when it is being
// written by another process. Local.
RFA_NODISCARD rfa_status rfa_dataset_writer_create(rfa_dataset_writer **out,
                                                   const char *path,
                                                   const rfa_dataset_description *description,
                                                   bool overwrite);
// NULL-safe; without a successful finish the temporary file is removed.
void rfa_dataset_writer_destroy(rfa_dataset_writer **writer);

// Attributes of the root.
RFA_NODISCARD rfa_status rfa_dataset_writer_text(rfa_dataset_writer *writer,
                                                 const char *name,
                                                 const char *text);
RFA_NODISCARD rfa_status rfa_dataset_writer_texts(rfa_dataset_writer *writer,
                                                  const char *name,
                                                  const char *const *texts,
                                                  int64_t count);
RFA_NODISCARD rfa_status rfa_dataset_writer_int(rfa_dataset_writer *writer,
                                                const char *name,
                                                int64_t value);
RFA_NODISCARD rfa_status rfa_dataset_writer_double(rfa_dataset_writer *writer,
                                                   const char *name,
                                                   double value);
RFA_NODISCARD rfa_status rfa_dataset_writer_bool(rfa_dataset_writer *writer,
                                                 const char *name,
                                                 bool value);

// A split of exactly these numbers of examples and tokens; then its examples; then its end. origin:
// where each example comes from, as origin_name says ("candidate", "line").
RFA_NODISCARD rfa_status rfa_dataset_writer_begin(rfa_dataset_writer *writer,
                                                  const char *split,
                                                  int64_t examples,
                                                  int64_t tokens,
                                                  const char *origin_name);
RFA_NODISCARD rfa_status rfa_dataset_writer_add(
    rfa_dataset_writer *writer, const uint16_t *ids, ptrdiff_t length, int label, int64_t origin);
// The same for data sets of pairs: tokens, ids and length have one element for each document. The
// token ids of the second documents are a stream of their own.
RFA_NODISCARD rfa_status rfa_dataset_writer_begin_pairs(rfa_dataset_writer *writer,
                                                        const char *split,
                                                        int64_t examples,
                                                        const int64_t *tokens,
                                                        const char *origin_name);
RFA_NODISCARD rfa_status rfa_dataset_writer_add_pair(rfa_dataset_writer *writer,
                                                     const uint16_t *const *ids,
                                                     const ptrdiff_t *length,
                                                     int label,
                                                     int64_t origin);
// Writes what remains of the split, with examples_<split>, tokens_<split> and
// class_counts_<split> on the root. RFA_ERR_IO when it got fewer or more than announced.
RFA_NODISCARD rfa_status rfa_dataset_writer_end(rfa_dataset_writer *writer);

// Digest, complete = 1, flush, close, fsync, rename. digest gets 16 hex digits: FNV-1a with 64 bits
// over all splits in the order written; of each example the label as little-endian 32-bit number,
// and of each of its documents the length as such and the ids as little-endian 16-bit numbers.
RFA_NODISCARD rfa_status rfa_dataset_writer_finish(rfa_dataset_writer *writer, char digest[17]);

#endif
