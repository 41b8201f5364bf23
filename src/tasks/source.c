#include "tasks/source.h"

#include <stdio.h>

const char *const rfa_splits[RFA_SPLITS] = {"train", "val", "test"};

void rfa_byte_ids(uint16_t *ids, const unsigned char *bytes, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        ids[i] = (uint16_t)(bytes[i] + 1);
    }
}

enum { SYMBOL_SIZE = 12 };

const char *const *rfa_byte_symbols(void)
{
    static char text[RFA_BYTE_SYMBOLS][SYMBOL_SIZE];
    static const char *symbols[RFA_BYTE_SYMBOLS];
    symbols[0] = "<pad>";
    for (int byte = 0; byte < 256; byte++) {
        const char *format = byte > ' ' && byte < 127 ? "%c" : "<0x%02x>";
        snprintf(text[byte + 1], SYMBOL_SIZE, format, byte);
        symbols[byte + 1] = text[byte + 1];
    }
    return symbols;
}

const char *const *rfa_pixel_symbols(void)
{
    static char text[RFA_BYTE_SYMBOLS][SYMBOL_SIZE];
    static const char *symbols[RFA_BYTE_SYMBOLS];
    symbols[0] = "<pad>";
    for (int value = 0; value < 256; value++) {
        snprintf(text[value + 1], SYMBOL_SIZE, "%d", value);
        symbols[value + 1] = text[value + 1];
    }
    return symbols;
}

uint64_t rfa_hash(uint64_t start, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    uint64_t hash = start ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
}
