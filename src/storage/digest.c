// Four independent lanes take 8 little-endian bytes each in turn. Every step of a lane is a
// bijection of the lane for a fixed word and of the word for a fixed lane, so a change of one word
// always changes its lane; the multiplications carry it upward and the rotations back down. The
// lanes are folded one after the other, with the length, and avalanched.
#include "storage/digest.h"

#include <endian.h>
#include <string.h>

enum { LANES = 4, WORD = 8 };

// Odd, about half of the bits set, no short pattern: fractions of the golden ratio, sqrt 2, sqrt 3.
static const uint64_t multiply_word = 0x9e3779b97f4a7c15u;
static const uint64_t multiply_lane = 0x6a09e667f3bcc909u;
static const uint64_t multiply_end = 0xbb67ae8584caa73bu;

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t load(const unsigned char *bytes)
{
    uint64_t word = 0;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

static uint64_t take(uint64_t lane, uint64_t word)
{
    return rotate(lane ^ (word * multiply_word), 29) * multiply_lane;
}

static uint64_t avalanche(uint64_t x)
{
    x = (x ^ x >> 32) * multiply_word;
    x = (x ^ x >> 29) * multiply_end;
    return x ^ x >> 32;
}

uint64_t rfa_digest(uint64_t seed_or_previous, const void *bytes, size_t n)
{
    const unsigned char *at = bytes;
    size_t left = n;
    uint64_t lane[LANES];
    for (int i = 0; i < LANES; i++) {
        lane[i] = avalanche(seed_or_previous + (uint64_t)(i + 1) * multiply_end);
    }
    for (; left >= (size_t)LANES * WORD; at += LANES * WORD, left -= (size_t)LANES * WORD) {
        for (int i = 0; i < LANES; i++) {
            lane[i] = take(lane[i], load(at + (size_t)i * WORD));
        }
    }
    for (int i = 0; left > 0; i++) {
        unsigned char padded[WORD] = {0};
        const size_t part = left < WORD ? left : WORD;
        memcpy(padded, at, part);
        lane[i] = take(lane[i], load(padded));
        at += part;
        left -= part;
    }
    // The length tells padding from zeros.
    uint64_t sum = avalanche(seed_or_previous ^ (uint64_t)n);
    for (int i = 0; i < LANES; i++) {
        sum = take(sum, avalanche(lane[i]));
    }
    return avalanche(sum);
}
