// Tables of text, record by record: tab-separated lines as the Long Range Arena has them, where
// quotes are characters like others, or comma-separated records (RFC 4180), where a quoted field
// may hold commas, line ends and doubled quotes. gzip is unpacked.
#ifndef RFA_TASKS_TABLE_H
#define RFA_TASKS_TABLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { RFA_TABLE_FIELDS = 16 };

typedef struct {
    char *text;     // terminated, unquoted; borrowed until the next record
    int64_t place;  // of its first byte in the file, behind the quote of a quoted field
    int64_t size;   // bytes in the file
    int64_t length; // bytes of text
    bool quoted;
} rfa_field;

typedef struct rfa_table rfa_table;

// separator: '\t' or ','. most: fields of a record; further tabs belong to the last field, when
// rest, else more fields are an error. Zero bytes are taken as they are: look at length. Local.
RFA_NODISCARD rfa_status
rfa_table_open(rfa_table **out, const char *path, char separator, int most, bool rest);
void rfa_table_close(rfa_table **table); // NULL-safe

// The next record: *count fields, 0 at the end. Lines without a byte are no records. RFA_ERR_IO
// with file:line for a record of more than 32 MiB, too many fields, a quote that is not closed or
// followed by something else than a separator.
RFA_NODISCARD rfa_status rfa_table_next(rfa_table *table, rfa_field *fields, int *count);
int64_t rfa_table_line(const rfa_table *table); // on which the last record begins, from 1

// Whether a field is a text without zero bytes that fits a line of a message: a label, a name.
bool rfa_field_is_word(const rfa_field *field);

// Takes the doubled quotes out of a field; the new size.
int64_t rfa_unquote(char *text, int64_t size);

// Whether text is valid UTF-8 (no overlong forms, surrogates, or values beyond U+10FFFF).
bool rfa_is_utf8(const char *text, int64_t size);

#endif
