#include "config/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rfa_append(char *out, size_t size, size_t *used, const char *format, ...)
{
    const bool fits = *used < size;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(fits ? out + *used : NULL, fits ? size - *used : 0, format, args);
    va_end(args);
    *used += n > 0 ? (size_t)n : 0;
}

// Bytes of the UTF-8 character at text, 0 when there is none, or one that YAML or a terminal takes
// for something else than a character: controls, line separators, byte-order marks.
static size_t character(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    if (length == 0 || s[0] < 0x20 || s[0] == 0x7f) {
        return 0;
    }
    if (s[0] < 0x80) {
        return 1;
    }
    const size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n > length) {
        return 0;
    }
    uint32_t code = s[0] & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (s[i] & 0x3fu);
    }
    static const uint32_t smallest[] = {0, 0, 0xa0, 0x800, 0x10000};
    const bool bad = code < smallest[n] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
                     code == 0x2028 || code == 0x2029 || code == 0xfeff || code == 0xfffe ||
                     code == 0xffff;
    return bad ? 0 : n;
}

const char *rfa_shown(char out[RFA_SHOWN], const char *text, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        const size_t n = character(text + i, length - i), step = n ? n : 1;
        if (used + step > RFA_SHOWN - 4) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(out + used, n ? text + i : "?", step);
        used += step;
        i += step;
    }
    out[used] = '\0';
    return out;
}

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

// -?(0|[1-9][0-9]*); the sign is only there to be out of range, not out of grammar.
static bool is_whole(const char *s)
{
    s += *s == '-';
    const size_t n = digits(s);
    return n > 0 && s[n] == '\0' && (n == 1 || s[0] != '0');
}

// [-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?, the floats of YAML 1.2 without .inf and .nan
static bool is_real(const char *s)
{
    s += *s == '-' || *s == '+';
    size_t n = digits(s);
    s += n;
    if (*s == '.') {
        const size_t fraction = digits(++s);
        n += fraction;
        s += fraction;
    }
    if (n > 0 && (*s == 'e' || *s == 'E')) {
        s++;
        s += *s == '-' || *s == '+';
        n = digits(s);
        s += n;
    }
    return n > 0 && *s == '\0';
}

void rfa_key_range(char *out, size_t size, size_t *used, const rfa_key *key)
{
    switch (key->type) {
    case RFA_KEY_INT:
        rfa_append(out, size, used, "whole number, %" PRId64 " to %" PRId64, (int64_t)key->min,
                   (int64_t)key->max);
        break;
    case RFA_KEY_REAL: rfa_append(out, size, used, "real, %g to %.12g", key->min, key->max); break;
    case RFA_KEY_BOOL: rfa_append(out, size, used, "true or false"); break;
    case RFA_KEY_TEXT:
        rfa_append(out, size, used, "text, up to %d bytes", RFA_CONFIG_TEXT - 1);
        break;
    case RFA_KEY_CHOICE:
        for (int i = 0; key->choices[i]; i++) {
            rfa_append(out, size, used, "%s%s", i ? ", " : "one of ", key->choices[i]);
        }
        break;
    }
    if (*key->unit) {
        rfa_append(out, size, used, " %s", key->unit);
    }
}

static rfa_status
refuse(const rfa_key *key, const char *place, const char *value, size_t length, const char *why)
{
    char range[128] = "", shown[RFA_SHOWN];
    size_t used = 0;
    rfa_key_range(range, sizeof range, &used, key);
    if (length == 0) {
        return rfa_fail(RFA_ERR_USAGE, "%.500s: %s.%s has no value (%s)", place, key->section,
                        key->name, range);
    }
    return rfa_fail(RFA_ERR_USAGE, "%.500s: %s.%s: '%s' %s (%s)", place, key->section, key->name,
                    rfa_shown(shown, value, length), why, range);
}

static rfa_status
assign_text(char *field, const rfa_key *key, const char *value, size_t length, const char *place)
{
    if (length >= RFA_CONFIG_TEXT) {
        return refuse(key, place, value, length, "is too long");
    }
    for (size_t i = 0; i < length;) {
        const size_t n = character(value + i, length - i);
        if (n == 0) {
            return refuse(key, place, value, length, "holds a control character or is not UTF-8");
        }
        i += n;
    }
    memset(field, 0, RFA_CONFIG_TEXT);
    memcpy(field, value, length);
    return RFA_OK;
}

static rfa_status
assign_choice(int *field, const rfa_key *key, const char *value, const char *place)
{
    for (int i = 0; key->choices[i]; i++) {
        if (strcmp(value, key->choices[i]) == 0) {
            *field = i;
            return RFA_OK;
        }
    }
    return refuse(key, place, value, strlen(value), "is no choice");
}

static rfa_status
assign_number(void *field, const rfa_key *key, const char *value, const char *place)
{
    const size_t length = strlen(value);
    const bool whole = key->type == RFA_KEY_INT;
    if (!(whole ? is_whole(value) : is_real(value))) {
        return refuse(key, place, value, length,
                      whole ? "is not a whole number in plain digits" : "is not a number");
    }
    errno = 0;
    char *end = NULL;
    const long long integer = whole ? strtoll(value, &end, 10) : 0;
    const double real = whole ? (double)integer : strtod(value, &end) + 0.0; // -0 becomes 0
    if (*end) { // a locale with another decimal sign
        return refuse(key, place, value, length, "is not a number in this locale");
    }
    // ERANGE also for what vanishes: 1e-999.
    if (errno == ERANGE || !(real >= key->min) || !(real <= key->max) ||
        (whole && integer > (int64_t)key->max)) {
        return refuse(key, place, value, length, "is out of range");
    }
    if (whole) {
        *(int64_t *)field = integer;
    } else {
        *(double *)field = real;
    }
    return RFA_OK;
}

rfa_status rfa_key_assign(
    rfa_config *config, const rfa_key *key, const char *value, size_t length, const char *place)
{
    void *field = (char *)config + key->offset;
    char text[RFA_CONFIG_TEXT] = "";
    if (length == 0) {
        return refuse(key, place, value, length, "");
    }
    if (key->type == RFA_KEY_TEXT || length >= sizeof text || memchr(value, '\0', length)) {
        return key->type == RFA_KEY_TEXT
                   ? assign_text(field, key, value, length, place)
                   : refuse(key, place, value, length, "is too long or holds a NUL character");
    }
    memcpy(text, value, length);
    if (key->type == RFA_KEY_CHOICE) {
        return assign_choice(field, key, text, place);
    }
    if (key->type != RFA_KEY_BOOL) {
        return assign_number(field, key, text, place);
    }
    if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0) {
        return refuse(key, place, value, length, "is neither true nor false");
    }
    *(bool *)field = text[0] == 't';
    return RFA_OK;
}

// Shortest of 15, 16 or 17 digits that reads back as the same bits.
static void append_real(char *out, size_t size, size_t *used, double value)
{
    char text[40];
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, value);
        if (strtod(text, NULL) == value) {
            break;
        }
    }
    // A real looks like one, so that readers of the text give every run's key the same type.
    const bool whole = strspn(text, "-0123456789") == strlen(text);
    rfa_append(out, size, used, "%s%s", text, whole ? ".0" : "");
}

static void append_quoted(char *out, size_t size, size_t *used, const char *text)
{
    rfa_append(out, size, used, "\"");
    for (; *text; text++) {
        const bool escape = *text == '"' || *text == '\\';
        rfa_append(out, size, used, escape ? "\\%c" : "%c", *text);
    }
    rfa_append(out, size, used, "\"");
}

void rfa_key_value(
    char *out, size_t size, size_t *used, const rfa_config *config, const rfa_key *key)
{
    const void *field = (const char *)config + key->offset;
    switch (key->type) {
    case RFA_KEY_INT: rfa_append(out, size, used, "%" PRId64, *(const int64_t *)field); break;
    case RFA_KEY_REAL: append_real(out, size, used, *(const double *)field); break;
    case RFA_KEY_BOOL:
        rfa_append(out, size, used, "%s", *(const bool *)field ? "true" : "false");
        break;
    case RFA_KEY_CHOICE:
        rfa_append(out, size, used, "%s", key->choices[*(const int *)field]);
        break;
    case RFA_KEY_TEXT: append_quoted(out, size, used, field); break;
    }
}

bool rfa_key_equal(const rfa_key *key, const rfa_config *a, const rfa_config *b)
{
    const void *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;
    switch (key->type) {
    case RFA_KEY_INT: return *(const int64_t *)x == *(const int64_t *)y;
    case RFA_KEY_REAL: return *(const double *)x == *(const double *)y;
    case RFA_KEY_BOOL: return *(const bool *)x == *(const bool *)y;
    case RFA_KEY_CHOICE: return *(const int *)x == *(const int *)y;
    case RFA_KEY_TEXT: return strcmp(x, y) == 0;
    }
    return false;
}
