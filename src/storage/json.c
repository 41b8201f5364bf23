#include "storage/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Bytes of the well-formed UTF-8 sequence at s (Unicode 15, table 3-7), 0 when it is not one.
static int sequence_length(const unsigned char *s)
{
    if (s[0] < 0x80) {
        return 1;
    }
    int length = 0;
    unsigned char low = 0x80, high = 0xbf; // bounds of the second byte
    if (s[0] >= 0xc2 && s[0] <= 0xdf) {
        length = 2;
    } else if (s[0] >= 0xe0 && s[0] <= 0xef) {
        length = 3;
        low = s[0] == 0xe0 ? 0xa0 : low;
        high = s[0] == 0xed ? 0x9f : high; // no surrogates
    } else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        length = 4;
        low = s[0] == 0xf0 ? 0x90 : low;
        high = s[0] == 0xf4 ? 0x8f : high;
    } else {
        return 0;
    }
    if (s[1] < low || s[1] > high) {
        return 0;
    }
    for (int i = 2; i < length; i++) {
        if (s[i] < 0x80 || s[i] > 0xbf) {
            return 0;
        }
    }
    return length;
}

size_t rfa_json_quoted_size(const char *text)
{
    return 6 * strlen(text) + 3; // at most \u001f each
}

char *rfa_json_quote(char *out, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    char *to = out;
    *to++ = '"';
    while (*s) {
        const int length = sequence_length(s);
        if (length == 0) {
            to = stpcpy(to, "\xef\xbf\xbd");
            s++;
        } else if (*s == '"' || *s == '\\') {
            *to++ = '\\';
            *to++ = (char)*s++;
        } else if (*s == '\n') {
            to = stpcpy(to, "\\n");
            s++;
        } else if (*s < 0x20 || *s == 0x7f) {
            to += sprintf(to, "\\u%04x", *s);
            s++;
        } else {
            memcpy(to, s, (size_t)length);
            to += length;
            s += length;
        }
    }
    *to++ = '"';
    *to = '\0';
    return out;
}

char *rfa_json_number(char out[RFA_JSON_NUMBER], double value)
{
    if (isfinite(value)) {
        snprintf(out, RFA_JSON_NUMBER, "%.17g", value);
    } else {
        snprintf(out, RFA_JSON_NUMBER, "null");
    }
    return out;
}
