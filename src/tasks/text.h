// Classification of texts as bytes: IMDb's folder tree, and tables with a label and a text.
#ifndef RFA_TASKS_TEXT_H
#define RFA_TASKS_TEXT_H

#include "tasks/bytes.h"
#include "tasks/tree.h"

typedef struct {
    int64_t max_length; // bytes that are kept of each text
    int percent;        // of train that is val; 0: val is test
    bool percent_given;
    char columns[256]; // of a table: "label,text", "label,-,text", ...; "": its header says, or the
                       // former
    char labels[1024]; // of a table: names of classes 0, 1, ...; "": they are numbers
} rfa_text_options;

// What was found, besides the index.
typedef struct {
    char format[64]; // "folder tree", "tab-separated table", ...
    char validation[64];
    rfa_classes classes;
} rfa_text_facts;

// Lists the examples below root: train/CLASS/*.txt and test/CLASS/*.txt (IMDb: aclImdb; unsup is
// left out), or train.tsv and test.tsv and perhaps val.tsv, or .csv, each also .gz. Local.
RFA_NODISCARD rfa_status rfa_text_list(rfa_index *index,
                                       rfa_text_facts *facts,
                                       const char *root,
                                       const rfa_text_options *options);

// The source over an index: self is a rfa_text_reader.
typedef struct {
    const rfa_index *index;
    rfa_bytes bytes;
    unsigned char *buffer; // [2 * max_length + 2]
    int64_t max_length;
} rfa_text_reader;
RFA_NODISCARD rfa_status rfa_text_load(void *self, rfa_example *example, int split, int64_t index);

// Document d of an entry into the example, cut at max_length; buffer has 2 * max_length + 2 bytes.
RFA_NODISCARD rfa_status rfa_text_document(rfa_bytes *bytes,
                                           const rfa_index *index,
                                           const rfa_entry *entry,
                                           rfa_example *example,
                                           int document,
                                           int64_t max_length,
                                           unsigned char *buffer);

#endif
