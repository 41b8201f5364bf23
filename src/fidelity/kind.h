// Estimators of softmax attention, by words: "performer+oprf+quiet".
#ifndef RFA_FIDELITY_KIND_H
#define RFA_FIDELITY_KIND_H

#include "base/kinds.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { RFA_FIDELITY_WORD = 64, RFA_FIDELITY_LIST = 64 };

typedef struct {
    char name[RFA_FIDELITY_WORD];
    rfa_attention_kind kind;
    bool is_mean; // the mean of the values whatever the query: what an estimate must beat
    rfa_map_kind map;
    bool unit_norm; // of rfa's map
    rfa_rows_kind rows;
    rfa_weights_kind weights; // of lara
    bool noise;               // of ra, lara, eva, as in training
    bool antithetic;          // lara
} rfa_fidelity_kind;

// RFA_ERR_USAGE names the words that there are. Local.
RFA_NODISCARD rfa_status rfa_fidelity_kind_parse(rfa_fidelity_kind *kind, const char *name);

// Projections D, or landmarks, or chunks, for F features, which are the rows of a state. 0: F has
// no meaning for the kind, whose numbers are the same for every F. Local.
ptrdiff_t rfa_fidelity_kind_size(const rfa_fidelity_kind *kind, ptrdiff_t features);

// Whether a draw changes the estimate. Local.
bool rfa_fidelity_kind_is_random(const rfa_fidelity_kind *kind);

// Copies the next word of a list separated by commas and blanks and moves *text on; false at the
// end. Longer words are cut. Local.
bool rfa_fidelity_word(char word[RFA_FIDELITY_WORD], const char **text);

#endif
