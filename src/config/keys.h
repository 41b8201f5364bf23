// The table of keys, and single values as text. Private to the config room.
#ifndef RFA_CONFIG_KEYS_H
#define RFA_CONFIG_KEYS_H

#include "config/config.h"

#include <stddef.h>

typedef enum {
    RFA_KEY_INT,    // int64_t
    RFA_KEY_REAL,   // double
    RFA_KEY_BOOL,   // bool
    RFA_KEY_TEXT,   // char [RFA_CONFIG_TEXT], UTF-8, no control characters
    RFA_KEY_CHOICE, // int: the index in choices
} rfa_key_type;

typedef struct {
    const char *section, *name;
    const char *text;           // default of TEXT
    const char *const *choices; // NULL-terminated; CHOICE
    const char *unit, *help;    // unit: "" without
    double number;              // default of all but TEXT; a CHOICE's index
    double min, max;            // inclusive; INT and REAL
    size_t offset;              // of the field in rfa_config
    rfa_key_type type;          // follows from the field's C type
    bool neutral;               // not mathematics: a resumed run may have another value
} rfa_key;

extern const rfa_key rfa_keys[]; // by section; keys of one section stand together
extern const int rfa_key_count;

// NULL when there is none.
const rfa_key *rfa_key_find(const char *section, const char *name);
bool rfa_key_is_section(const char *section);

// What a mistyped "section.key", section or lone key may have been, as "; did you mean
// 'train.rate'?", or the names that are known.
void rfa_key_hint(char *out, size_t size, const char *typed);

// Strict conversion of value[length] into the key's field. RFA_ERR_USAGE with
// "place: train.rate: '4x' is not a number; 0 to 1". Local.
RFA_NODISCARD rfa_status rfa_key_assign(
    rfa_config *config, const rfa_key *key, const char *value, size_t length, const char *place);

// The field as the YAML scalar that assigns the same bits; texts in double quotes. Appends as
// rfa_append does.
void rfa_key_value(
    char *out, size_t size, size_t *used, const rfa_config *config, const rfa_key *key);

// "whole number, 1 to 4096 tokens" or "one of rfa, softmax"; appends.
void rfa_key_range(char *out, size_t size, size_t *used, const rfa_key *key);

bool rfa_key_equal(const rfa_key *key, const rfa_config *a, const rfa_config *b);

enum { RFA_SHOWN = 72 };

// Foreign text made fit for one line of an error: cut, control characters and broken UTF-8
// replaced by '?'. Returns out.
const char *rfa_shown(char out[RFA_SHOWN], const char *text, size_t length);

// snprintf at out + *used; *used grows by the whole length also when size is exceeded, so that a
// first pass with size 0 measures.
void rfa_append(char *out, size_t size, size_t *used, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
