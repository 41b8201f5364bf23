// Lists of named texts, numbers and flags: the root attributes of HDF5 files, and the keys of a
// configuration.
#ifndef RFA_STORAGE_ATTRIBUTES_H
#define RFA_STORAGE_ATTRIBUTES_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    const char *name;
    const char *text; // NULL: number
    double number;
    int64_t integer; // the number exactly, when whole
    bool whole;      // stored as int64
    bool flag;       // integer is 0 or 1, stored as h5py's boolean
} rfa_run_attribute;

// A list owns its names and texts. All functions are local.
typedef struct {
    int64_t count;
    rfa_run_attribute *items;
} rfa_attributes;

// Adds a copy of attribute, or replaces the one of its name. RFA_ERR_MEMORY.
RFA_NODISCARD rfa_status rfa_attributes_set(rfa_attributes *list,
                                            const rfa_run_attribute *attribute);
// The same of a text, of which NULL is left out, of a whole number and of a flag.
RFA_NODISCARD rfa_status rfa_attributes_set_text(rfa_attributes *list,
                                                 const char *name,
                                                 const char *text);
RFA_NODISCARD rfa_status rfa_attributes_set_int(rfa_attributes *list,
                                                const char *name,
                                                int64_t value);
RFA_NODISCARD rfa_status rfa_attributes_set_flag(rfa_attributes *list, const char *name, bool flag);
const rfa_run_attribute *rfa_attributes_find(const rfa_attributes *list,
                                             const char *name);                // NULL: not there
const char *rfa_attributes_text(const rfa_attributes *list, const char *name); // NULL: no text
void rfa_attributes_free(rfa_attributes *list);                                // idempotent

// The attributes of the root of any HDF5 file, by name; arrays as text, "[1, 2]". RFA_ERR_IO.
RFA_NODISCARD rfa_status rfa_attributes_read(rfa_attributes *list, const char *path);

// The scalars of a YAML text, nested keys joined by dots, each of the type that its plain spelling
// has; lists are left out. RFA_ERR_USAGE when it isn't a YAML mapping.
RFA_NODISCARD rfa_status rfa_attributes_parse(rfa_attributes *list, const char *yaml);

// Value as a word of JSON, or for people (without quotes); rfa_free(*out).
RFA_NODISCARD rfa_status rfa_attribute_word(char **out,
                                            const rfa_run_attribute *attribute,
                                            bool json);

#endif
