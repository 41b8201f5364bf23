#include "exchange/partition.h"

#include "base/status.h"

ptrdiff_t rfa_segment_begin(ptrdiff_t len, int segments, int g)
{
    RFA_ASSERT(len >= 0 && segments >= 1 && g >= 0 && g <= segments);
    const int64_t blocks = rfa_padded(len) / RFA_ROWS;
    const int64_t begin = RFA_ROWS * (g * blocks / segments);
    return begin < len ? (ptrdiff_t)begin : len;
}

int rfa_part_begin(int segments, int parts, int p)
{
    RFA_ASSERT(parts >= 1 && p >= 0 && p <= parts);
    return (int)((int64_t)segments * p / parts);
}

ptrdiff_t rfa_leaves_fill(
    rfa_leaf *leaves, const ptrdiff_t *lengths, int examples, int segments, int parts, int p)
{
    const int first = rfa_part_begin(segments, parts, p);
    const int end = rfa_part_begin(segments, parts, p + 1);
    ptrdiff_t row0 = 0;
    for (int b = 0; b < examples; b++) {
        for (int g = first; g < end; g++) {
            const ptrdiff_t begin = rfa_segment_begin(lengths[b], segments, g);
            const ptrdiff_t tokens = rfa_segment_begin(lengths[b], segments, g + 1) - begin;
            *leaves++ = (rfa_leaf){.example = b,
                                   .segment = g,
                                   .begin = begin,
                                   .tokens = tokens,
                                   .rows = rfa_padded(tokens),
                                   .row0 = row0};
            row0 += rfa_padded(tokens);
        }
    }
    return row0;
}
