// Words of JSON: texts and numbers that any parser takes.
#ifndef RFA_STORAGE_JSON_H
#define RFA_STORAGE_JSON_H

#include <stddef.h>

enum { RFA_JSON_NUMBER = 32 }; // bytes that hold any number

// Bytes that hold the quoted text, the terminating zero included.
size_t rfa_json_quoted_size(const char *text);

// Writes text, quoted and escaped, into out and returns out; bytes that are not UTF-8 become
// U+FFFD. out: at least rfa_json_quoted_size(text) bytes. Local.
char *rfa_json_quote(char *out, const char *text);

// Writes a number that reads back to the same bits; NaN and infinities become null. Returns out.
// Local.
char *rfa_json_number(char out[RFA_JSON_NUMBER], double value);

#endif
