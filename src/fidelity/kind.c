#include "fidelity/kind.h"

#include <stdio.h>
#include <string.h>

static const char known[] = "rfa, performer, elu, ra, lara, eva, mean; with free, arccos, oprf, "
                            "iid, orthogonal, simplex, balance, biased, antithetic, quiet";

bool rfa_fidelity_word(char word[RFA_FIDELITY_WORD], const char **text)
{
    static const char blanks[] = ", \t\n";
    const char *at = *text + strspn(*text, blanks);
    const size_t length = strcspn(at, blanks);
    *text = at + length;
    snprintf(word, RFA_FIDELITY_WORD, "%.*s", (int)length, at);
    return length > 0;
}

// The kind itself: the first word.
static bool begin(rfa_fidelity_kind *k, const char *word)
{
    static const struct {
        const char *word;
        rfa_attention_kind kind;
        rfa_map_kind map;
        rfa_rows_kind rows;
    } kinds[] = {
        {"rfa", RFA_ATTENTION_RFA, RFA_MAP_GAUSSIAN, RFA_ROWS_IID},
        {"performer", RFA_ATTENTION_PERFORMER, RFA_MAP_POSITIVE, RFA_ROWS_ORTHOGONAL},
        {"elu", RFA_ATTENTION_ELU, RFA_MAP_ELU, RFA_ROWS_IID},
        {"ra", RFA_ATTENTION_RA, RFA_MAP_ELU, RFA_ROWS_IID},
        {"lara", RFA_ATTENTION_LARA, RFA_MAP_ELU, RFA_ROWS_IID},
        {"eva", RFA_ATTENTION_EVA, RFA_MAP_ELU, RFA_ROWS_IID},
        {"mean", RFA_ATTENTION_ELU, RFA_MAP_ELU, RFA_ROWS_IID},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kinds[i].word, word) == 0) {
            k->kind = kinds[i].kind;
            k->map = kinds[i].map;
            k->rows = kinds[i].rows;
            k->is_mean = strcmp(word, "mean") == 0;
            k->unit_norm = k->kind == RFA_ATTENTION_RFA;
            k->weights = RFA_WEIGHTS_SPECIFIC;
            k->noise = true;
            return true;
        }
    }
    return false;
}

static bool is(const char *word, const char *name)
{
    return strcmp(word, name) == 0;
}

// A word that changes what the kind allows.
static bool change(rfa_fidelity_kind *k, const char *word)
{
    const bool rfa = k->kind == RFA_ATTENTION_RFA, performer = k->kind == RFA_ATTENTION_PERFORMER;
    const bool lara = k->kind == RFA_ATTENTION_LARA;
    if (rfa && is(word, "free")) {
        k->unit_norm = false;
    } else if (rfa && is(word, "arccos")) {
        k->map = RFA_MAP_ARCCOS;
    } else if (performer && is(word, "oprf")) {
        k->map = RFA_MAP_OPRF;
    } else if ((rfa || performer) && is(word, "iid")) {
        k->rows = RFA_ROWS_IID;
    } else if ((rfa || performer) && is(word, "orthogonal")) {
        k->rows = RFA_ROWS_ORTHOGONAL;
    } else if ((rfa || performer) && is(word, "simplex")) {
        k->rows = RFA_ROWS_SIMPLEX;
    } else if (lara && is(word, "balance")) {
        k->weights = RFA_WEIGHTS_BALANCE;
    } else if (lara && is(word, "biased")) {
        k->weights = RFA_WEIGHTS_BIASED;
    } else if (lara && is(word, "antithetic")) {
        k->antithetic = true;
    } else if ((lara || k->kind == RFA_ATTENTION_RA || k->kind == RFA_ATTENTION_EVA) &&
               is(word, "quiet")) {
        k->noise = false;
    } else {
        return false;
    }
    return true;
}

rfa_status rfa_fidelity_kind_parse(rfa_fidelity_kind *kind, const char *name)
{
    char word[RFA_FIDELITY_WORD];
    *kind = (rfa_fidelity_kind){.kind = RFA_ATTENTION_SOFTMAX};
    snprintf(kind->name, sizeof kind->name, "%s", name);
    for (const char *at = name; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, "+"), at);
        if (at == name ? !begin(kind, word) : !change(kind, word)) {
            return rfa_fail(RFA_ERR_USAGE, "fidelity.kinds: no '%s' in '%s': %s", word, name,
                            known);
        }
    }
    return RFA_OK;
}

ptrdiff_t rfa_fidelity_kind_size(const rfa_fidelity_kind *kind, ptrdiff_t features)
{
    switch (kind->kind) {
    case RFA_ATTENTION_RFA: return kind->map == RFA_MAP_GAUSSIAN ? features / 2 : features;
    case RFA_ATTENTION_LARA: return kind->antithetic ? features / 2 : features;
    case RFA_ATTENTION_PERFORMER:
    case RFA_ATTENTION_EVA: return features;
    default: return 0;
    }
}

bool rfa_fidelity_kind_is_random(const rfa_fidelity_kind *kind)
{
    return !kind->is_mean && kind->kind != RFA_ATTENTION_ELU &&
           (kind->noise || kind->kind == RFA_ATTENTION_RFA ||
            kind->kind == RFA_ATTENTION_PERFORMER);
}
