#include "rng/rng.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif
#include <math.h>
#include <string.h>

enum { ROUNDS = 10, LANES = 16 };

static const uint32_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
static const uint32_t weyl[2] = {0x9E3779B9u, 0xBB67AE85u};

rfa_rng rfa_rng_stream(uint64_t seed, rfa_rng_purpose purpose, uint32_t a, uint32_t b)
{
    return (rfa_rng){
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32) ^ ((uint32_t)purpose * 0x85EBCA6Bu)},
        .a = a,
        .b = b,
    };
}

void rfa_rng_block(uint32_t out[4], const rfa_rng *stream, uint64_t index)
{
    uint32_t x[4] = {(uint32_t)index, (uint32_t)(index >> 32), stream->a, stream->b};
    uint32_t key[2] = {stream->key[0], stream->key[1]};
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t p0 = (uint64_t)multiplier[0] * x[0], p1 = (uint64_t)multiplier[1] * x[2];
        const uint32_t y[4] = {(uint32_t)(p1 >> 32) ^ x[1] ^ key[0], (uint32_t)p1,
                               (uint32_t)(p0 >> 32) ^ x[3] ^ key[1], (uint32_t)p0};
        memcpy(x, y, sizeof x);
        key[0] += weyl[0];
        key[1] += weyl[1];
    }
    memcpy(out, x, sizeof x);
}

// The same rounds for LANES blocks side by side. Each 32-bit word stands in the low half of a
// 64-bit lane, where its product has room: one vector multiplication a round and word. High halves
// hold whatever a round leaves there, which no multiplication reads.
typedef uint64_t vector __attribute__((vector_size(32)));
enum { VECTORS = LANES / 4 };

static inline vector product(vector x, uint32_t m)
{
#ifdef __AVX2__
    return (vector)_mm256_mul_epu32((__m256i)x, _mm256_set1_epi64x((long long)m));
#else
    return (x & 0xFFFFFFFFu) * (uint64_t)m;
#endif
}

static inline __attribute__((always_inline)) void
mix(vector word[4][VECTORS], const rfa_rng *stream, uint32_t round)
{
    const uint32_t key0 = stream->key[0] + round * weyl[0];
    const uint32_t key1 = stream->key[1] + round * weyl[1];
    for (int v = 0; v < VECTORS; v++) {
        const vector p0 = product(word[0][v], multiplier[0]);
        const vector p1 = product(word[2][v], multiplier[1]);
        word[0][v] = (p1 >> 32) ^ word[1][v] ^ key0;
        word[1][v] = p1;
        word[2][v] = (p0 >> 32) ^ word[3][v] ^ key1;
        word[3][v] = p0;
    }
}

// out: LANES blocks of two 64-bit halves, words 0 and 1, then 2 and 3. Integers: all levels give
// the same; AVX-512 has registers for all words, and xor of three.
#if defined __x86_64__ && defined __linux__ && !defined __AVX512F__
__attribute__((target_clones("arch=x86-64-v4", "default")))
#endif
static void
lanes(uint64_t out[2 * LANES], const rfa_rng *stream, uint64_t index)
{
    const vector low = (vector){0, 0, 0, 0} + 0xFFFFFFFFu;
    vector word[4][VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        const vector counter = (vector){0, 1, 2, 3} + (index + 4 * (uint64_t)v);
        word[0][v] = counter;
        word[1][v] = counter >> 32;
        word[2][v] = (vector){0, 0, 0, 0} + stream->a;
        word[3][v] = (vector){0, 0, 0, 0} + stream->b;
    }
    _Static_assert(ROUNDS == 10, "written out, as compilers keep a loop of them");
    mix(word, stream, 0), mix(word, stream, 1), mix(word, stream, 2), mix(word, stream, 3);
    mix(word, stream, 4), mix(word, stream, 5), mix(word, stream, 6), mix(word, stream, 7);
    mix(word, stream, 8), mix(word, stream, 9);
    for (int v = 0; v < VECTORS; v++) {
        const vector first = (word[0][v] & low) | word[1][v] << 32;
        const vector second = (word[2][v] & low) | word[3][v] << 32;
        for (int l = 0; l < 4; l++) {
            out[8 * v + 2 * l] = first[l];
            out[8 * v + 2 * l + 1] = second[l];
        }
    }
}

void rfa_rng_words16(uint16_t *out, const rfa_rng *stream, uint64_t index, ptrdiff_t blocks)
{
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "halves are split by copying");
    for (ptrdiff_t done = 0; done < blocks; done += LANES) {
        uint64_t halves[2 * LANES];
        lanes(halves, stream, index + (uint64_t)done);
        const ptrdiff_t now = blocks - done < LANES ? blocks - done : LANES;
        memcpy(out + done * 8, halves, (size_t)now * 2 * sizeof *halves);
    }
}

void rfa_rng_normals(double *out, const rfa_rng *stream, ptrdiff_t n)
{
    rfa_rng_normals_at(out, stream, 0, n);
}

void rfa_rng_normals_at(double *out, const rfa_rng *stream, uint64_t first, ptrdiff_t n)
{
    uint64_t block = first / 2;
    for (ptrdiff_t i = -(ptrdiff_t)(first % 2); i < n; i += 2) {
        uint32_t word[4];
        rfa_rng_block(word, stream, block++);
        const uint64_t bits[2] = {(uint64_t)word[0] << 32 | word[1],
                                  (uint64_t)word[2] << 32 | word[3]};
        const double radius = sqrt(-2.0 * log(((double)(bits[0] >> 11) + 0.5) * 0x1p-53));
        const double angle = 2.0 * M_PI * ((double)(bits[1] >> 11) * 0x1p-53);
        if (i >= 0) {
            out[i] = radius * cos(angle);
        }
        if (i + 1 < n) {
            out[i + 1] = radius * sin(angle);
        }
    }
}

rfa_rng_reader rfa_rng_reader_at(rfa_rng stream)
{
    return (rfa_rng_reader){.stream = stream};
}

uint32_t rfa_rng_next(rfa_rng_reader *reader)
{
    if (reader->left == 0) {
        rfa_rng_block(reader->words, &reader->stream, reader->index++);
        reader->left = 4;
    }
    return reader->words[4 - reader->left--];
}

// Lemire, "Fast random integer generation in an interval", 2019: rejects the biased low products.
uint32_t rfa_rng_below(rfa_rng_reader *reader, uint32_t bound)
{
    const uint32_t unfair = (0u - bound) % bound;
    for (;;) {
        const uint64_t product = (uint64_t)rfa_rng_next(reader) * bound;
        if ((uint32_t)product >= unfair) {
            return (uint32_t)(product >> 32);
        }
    }
}

double rfa_rng_uniform(rfa_rng_reader *reader)
{
    return rfa_rng_next(reader) * 0x1p-32;
}
