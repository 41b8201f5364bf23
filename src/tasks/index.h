// What an importer finds on disk: where each example lies. One rank makes it; as plain blocks of
// bytes it goes to the others, who then load any example.
#ifndef RFA_TASKS_INDEX_H
#define RFA_TASKS_INDEX_H

#include "tasks/source.h"

#include <stdbool.h>

// An example. What of it is used is the importer's business. Plain bytes, no padding.
typedef struct {
    int64_t file[RFA_DOCUMENTS];  // name of the file: its place in names
    int64_t place[RFA_DOCUMENTS]; // first byte in the file
    int64_t size[RFA_DOCUMENTS];  // bytes
    int64_t origin;               // line, record: what people call it
    uint64_t key;                 // of the order
    int32_t label;
    int32_t quoted; // bit d: document d is the inside of a quoted field
} rfa_entry;

typedef struct {
    rfa_entry *entries;
    int64_t count, capacity;
    char *names; // texts, each with its end
    int64_t names_size, names_capacity;
    int64_t first[RFA_SPLITS], last[RFA_SPLITS]; // split s: entries [first, last); val may be test
    uint64_t stamp;                              // of names, sizes and dates of the files
    int64_t skipped;                             // files and lines that give no example
    int64_t not_text;                            // texts that are not valid UTF-8
    char skipped_first[512], not_text_first[512];
} rfa_index;

void rfa_index_destroy(rfa_index *index); // idempotent
RFA_NODISCARD rfa_status rfa_index_add(rfa_index *index, const rfa_entry *entry);
// *at: where text now stands in names.
RFA_NODISCARD rfa_status rfa_index_name(rfa_index *index, int64_t *at, const char *text);
// Counts something that gives no example, and keeps the first of them as text.
void rfa_index_skip(rfa_index *index, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
// Takes a file into the stamp. Local.
RFA_NODISCARD rfa_status rfa_index_stamp(rfa_index *index, const char *path);
// Sorts entries [begin, end) by key, then label, then name.
void rfa_index_sort(rfa_index *index, int64_t begin, int64_t end);
const char *rfa_index_file(const rfa_index *index, const rfa_entry *entry, int document);
static inline int64_t rfa_index_examples(const rfa_index *index, int split)
{
    return index->last[split] - index->first[split];
}

// Splits for files that know train and test only: train are the entries [0, train), test those from
// there to the end. percent > 0: val is the last percent of train; 0: val is test, by wish.
// RFA_ERR_USAGE when a split is left without examples.
RFA_NODISCARD rfa_status rfa_index_split(rfa_index *index, int64_t train, int percent);

// Finds the folder in or below root, at most two levels deeper, that has an entry of this name:
// what archives unpack to. RFA_ERR_IO when there is none, or two on one level. out holds size
// bytes.
RFA_NODISCARD rfa_status rfa_find_folder(char *out,
                                         size_t size,
                                         const char *root,
                                         const char *name);
bool rfa_is_folder(const char *path);
bool rfa_is_file(const char *path);

#endif
