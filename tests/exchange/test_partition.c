// Ranks: 1
// Precision: f64
#include "support/support.h"

#include "exchange/partition.h"

static const ptrdiff_t lengths[] = {0, 1, 15, 16, 17, 31, 33, 100, 1024, 2000, 4000, 16001};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static void segments_cover_without_overlap(void **state)
{
    (void)state;
    for (int l = 0; l < LENGTHS; l++) {
        const ptrdiff_t len = lengths[l], blocks = (len + 15) / 16;
        for (int G = 1; G <= 64; G++) {
            check(rfa_segment_begin(len, G, 0) == 0);
            check(rfa_segment_begin(len, G, G) == len);
            ptrdiff_t smallest = blocks, largest = 0;
            for (int g = 0; g < G; g++) {
                const ptrdiff_t begin = rfa_segment_begin(len, G, g);
                const ptrdiff_t end = rfa_segment_begin(len, G, g + 1);
                check(begin <= end && (begin % 16 == 0 || begin == len));
                const ptrdiff_t own = (end - begin + 15) / 16;
                smallest = own < smallest ? own : smallest;
                largest = own > largest ? own : largest;
            }
            check(largest - smallest <= 1);
        }
    }
}

static void known_cuts(void **state)
{
    (void)state;
    // 17 tokens are two blocks: of four segments, the second and the fourth get one.
    const ptrdiff_t of17[5] = {0, 0, 16, 16, 17};
    for (int g = 0; g <= 4; g++) {
        check(rfa_segment_begin(17, 4, g) == of17[g]);
    }
    // 2000 tokens are 125 blocks over 8 segments.
    const ptrdiff_t of2000[9] = {0, 240, 496, 736, 992, 1248, 1488, 1744, 2000};
    for (int g = 0; g <= 8; g++) {
        check(rfa_segment_begin(2000, 8, g) == of2000[g]);
    }
    // 64-bit: 2^36 tokens, 2^20 segments; g * blocks needs 52 bits.
    const ptrdiff_t len = (ptrdiff_t)1 << 36;
    check(rfa_segment_begin(len, 1 << 20, (1 << 20) - 1) == len - (1 << 16));
    check(rfa_part_begin(1 << 30, 7, 7) == 1 << 30);
    check(rfa_part_begin(1 << 30, 7, 6) == 920350134);
    const int of8[4] = {0, 2, 5, 8};
    for (int p = 0; p <= 3; p++) {
        check(rfa_part_begin(8, 3, p) == of8[p]);
    }
}

// The leaves of all parts together are those of one part, and rows are packed without gaps.
static void leaves_of_parts_are_those_of_one(void **state)
{
    (void)state;
    enum { MOST = 64 };
    static const int parts[] = {1, 2, 3, 5, 7, 8};
    static rfa_leaf whole[LENGTHS * MOST], some[LENGTHS * MOST];
    for (int G = 8; G <= MOST; G *= 2) {
        const ptrdiff_t all_rows = rfa_leaves_fill(whole, lengths, LENGTHS, G, 1, 0);
        for (int i = 0; i < (int)(sizeof parts / sizeof parts[0]); i++) {
            const int P = parts[i];
            int seen = 0;
            ptrdiff_t rows = 0;
            for (int p = 0; p < P; p++) {
                const int first = rfa_part_begin(G, P, p);
                const int own = rfa_part_begin(G, P, p + 1) - first;
                ptrdiff_t next = 0;
                const ptrdiff_t part_rows = rfa_leaves_fill(some, lengths, LENGTHS, G, P, p);
                check(own > 0);
                for (int b = 0; b < LENGTHS; b++) {
                    for (int k = 0; k < own; k++) {
                        const rfa_leaf *leaf = &some[b * own + k];
                        const rfa_leaf *same = &whole[b * G + first + k];
                        check(leaf->example == b && same->example == b);
                        check(leaf->segment == first + k && same->segment == first + k);
                        check(leaf->begin == same->begin && leaf->tokens == same->tokens);
                        check(leaf->begin == rfa_segment_begin(lengths[b], G, first + k));
                        check(leaf->begin + leaf->tokens ==
                              rfa_segment_begin(lengths[b], G, first + k + 1));
                        check(leaf->rows == (leaf->tokens + 15) / 16 * 16);
                        check(leaf->rows == same->rows && leaf->row0 == next);
                        next += leaf->rows;
                        seen++;
                    }
                }
                check(part_rows == next);
                rows += part_rows;
            }
            check(seen == LENGTHS * G && rows == all_rows);
        }
    }
    check(rfa_leaves_fill(some, lengths, 0, 8, 2, 1) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_cover_without_overlap),
        cmocka_unit_test(known_cuts),
        cmocka_unit_test(leaves_of_parts_are_those_of_one),
    };
    return test_main(tests);
}
