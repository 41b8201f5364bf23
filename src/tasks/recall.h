// Associative recall: pairs of a key and a value among fillers, and a key; the class is its value.
// After Ba, Hinton, Mnih, Leibo, Ionescu, "Using fast weights to attend to the recent past",
// NeurIPS 2016, and Arora et al., "Zoology: measuring and improving recall in efficient language
// models", ICLR 2024, with one query of each sequence, so that it is a classification.
#ifndef RFA_TASKS_RECALL_H
#define RFA_TASKS_RECALL_H

#include "tasks/source.h"

// Where the query stands: a key with the mark beside it that makes it one. The key is the very
// first token (first, both), the very last one (last, both), so that whatever reads the sequence
// out there sees it.
typedef enum { RFA_RECALL_FIRST, RFA_RECALL_LAST, RFA_RECALL_BOTH } rfa_recall_query;

typedef struct {
    uint64_t seed;
    int64_t min_length, length; // tokens, all lengths equally likely
    int pairs;                  // of a sequence, with different keys
    int keys, values, fillers;  // different symbols of each kind; values are the classes
    rfa_recall_query query;
} rfa_recall_options;

// Ids: 0 padding, 1 the mark, then fillers, keys and values.
static inline int rfa_recall_symbols(const rfa_recall_options *o)
{
    return 2 + o->fillers + o->keys + o->values;
}
// "<pad>", "?", "f0", ..., "k0", ..., "v0", ...: text has room for RFA_RECALL_SYMBOL bytes each.
enum { RFA_RECALL_SYMBOL = 16 };
void rfa_recall_vocabulary(const char **symbols, char *text, const rfa_recall_options *options);

// RFA_ERR_USAGE names the option out of range. Local.
RFA_NODISCARD rfa_status rfa_recall_check(const rfa_recall_options *options);

// Sequence `index` of a split, a function of it and the options alone. A hash of the sequence says
// to which split it may belong (train has half of the values), and it is drawn again until it does:
// no sequence is in two splits. RFA_ERR_USAGE when 1000 draws give none. work: [keys]. About 10 ns
// a token and draw. Local.
RFA_NODISCARD rfa_status rfa_recall_draw(
    rfa_example *example, int *work, const rfa_recall_options *options, int split, int64_t index);

#endif
