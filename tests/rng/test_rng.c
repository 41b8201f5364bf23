#include "rng/rng.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// All bounds on random quantities are at 5 standard deviations or at a chance under 1e-6, of a
// fixed stream: a failure is a defect, not bad luck.

static void check_block(const rfa_rng *stream, uint64_t index, const uint32_t want[4])
{
    uint32_t got[4];
    rfa_rng_block(got, stream, index);
    check(memcmp(got, want, sizeof got) == 0);
}

// The vectors that the authors of Philox publish with Random123 (kat_vectors, philox4x32 10).
static void test_known_answers(void **state)
{
    (void)state;
    check_block(&(rfa_rng){{0, 0}, 0, 0}, 0,
                (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_block(&(rfa_rng){{~0u, ~0u}, ~0u, ~0u}, ~UINT64_C(0),
                (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_block(&(rfa_rng){{0xa4093822, 0x299f31d0}, 0x13198a2e, 0x03707344},
                UINT64_C(0x85a308d3243f6a88),
                (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void test_words_equal_blocks(void **state)
{
    (void)state;
    enum { MOST = 40 };
    const rfa_rng stream = rfa_rng_stream(UINT64_C(0x123456789abcdef0), RFA_RNG_TEST, 3, 4);
    static const uint64_t starts[] = {0, 5, (UINT64_C(1) << 32) - 7, UINT64_C(0) - 3};
    for (size_t s = 0; s < sizeof starts / sizeof *starts; s++) {
        for (ptrdiff_t blocks = 0; blocks <= MOST; blocks++) {
            uint16_t words[8 * MOST + 1];
            words[8 * blocks] = 0xBEEF;
            rfa_rng_words16(words, &stream, starts[s], blocks);
            bool same = words[8 * blocks] == 0xBEEF;
            for (ptrdiff_t b = 0; b < blocks; b++) {
                uint32_t block[4];
                rfa_rng_block(block, &stream, starts[s] + (uint64_t)b);
                for (int w = 0; w < 4; w++) {
                    same = same && words[8 * b + 2 * w] == (block[w] & 0xFFFF) &&
                           words[8 * b + 2 * w + 1] == block[w] >> 16;
                }
            }
            check(same);
        }
    }
}

// A change of any one argument gives another stream; equal arguments give the same.
static void test_streams_differ(void **state)
{
    (void)state;
    const rfa_rng streams[] = {
        rfa_rng_stream(1, RFA_RNG_INIT, 0, 0),
        rfa_rng_stream(2, RFA_RNG_INIT, 0, 0),
        rfa_rng_stream(1 + (UINT64_C(1) << 32), RFA_RNG_INIT, 0, 0),
        rfa_rng_stream(1 + (UINT64_C(1) << 63), RFA_RNG_INIT, 0, 0),
        rfa_rng_stream(1, RFA_RNG_POOL, 0, 0),
        rfa_rng_stream(1, RFA_RNG_DROPOUT, 0, 0),
        rfa_rng_stream(1, RFA_RNG_INIT, 1, 0),
        rfa_rng_stream(1, RFA_RNG_INIT, 0, 1),
    };
    const int count = sizeof streams / sizeof *streams;
    uint32_t blocks[sizeof streams / sizeof *streams][4];
    for (int i = 0; i < count; i++) {
        rfa_rng_block(blocks[i], &streams[i], 0);
        for (int j = 0; j < i; j++) {
            for (int w = 0; w < 4; w++) {
                check(blocks[i][w] != blocks[j][w]); // a chance of 3e-8 in all
            }
        }
    }
    const rfa_rng again = rfa_rng_stream(1, RFA_RNG_DROPOUT, 0, 0);
    check_block(&again, 0, blocks[5]);
}

static double chi_square(const double *counts, int bins, double total)
{
    double sum = 0;
    for (int i = 0; i < bins; i++) {
        const double gap = counts[i] - total / bins;
        sum += gap * gap / (total / bins);
    }
    return sum;
}

static void test_words_are_uniform(void **state)
{
    (void)state;
    enum { BLOCKS = 20000, BINS = 64 };
    const rfa_rng stream = rfa_rng_stream(11, RFA_RNG_TEST, 0, 0);
    static uint16_t words[8 * BLOCKS];
    rfa_rng_words16(words, &stream, 0, BLOCKS);
    double high[BINS] = {0}, low[BINS] = {0}, bits[16] = {0};
    for (int i = 0; i < 8 * BLOCKS; i++) {
        high[words[i] >> 10]++;
        low[words[i] & 63]++;
        for (int b = 0; b < 16; b++) {
            bits[b] += words[i] >> b & 1;
        }
    }
    check(chi_square(high, BINS, 8 * BLOCKS) < 130); // 63 degrees: 1e-6 at 126
    check(chi_square(low, BINS, 8 * BLOCKS) < 130);
    for (int b = 0; b < 16; b++) {
        check(fabs(bits[b] - 4 * BLOCKS) < 5 * sqrt(2.0 * BLOCKS));
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_normals(void **state)
{
    (void)state;
    enum { COUNT = 1000000 };
    const rfa_rng stream = rfa_rng_stream(12, RFA_RNG_TEST, 0, 0);
    double *x = test_doubles(COUNT);
    rfa_rng_normals(x, &stream, COUNT);
    double moment[5] = {0}, pairs = 0, next = 0;
    for (int i = 0; i < COUNT; i++) {
        double power = 1;
        for (int m = 1; m <= 4; m++) {
            moment[m] += (power *= x[i]) / COUNT;
        }
        if (i + 2 < COUNT) {
            pairs += i % 2 ? 0 : x[i] * x[i + 1];
            next += x[i] * x[i + 2];
        }
    }
    // Standard deviations of the means of x, x^2, x^3, x^4: sqrt(1, 2, 15, 96 / COUNT).
    const double unit = 5 / sqrt(COUNT);
    check(fabs(moment[1]) < unit);
    check(fabs(moment[2] - 1) < unit * sqrt(2));
    check(fabs(moment[3]) < unit * sqrt(15));
    check(fabs(moment[4] - 3) < unit * sqrt(96));
    check(fabs(pairs) < 5 * sqrt(COUNT / 2.0)); // the two numbers of one block
    check(fabs(next) < 5 * sqrt(COUNT));        // neighbouring blocks

    double *sorted = test_doubles(COUNT);
    memcpy(sorted, x, COUNT * sizeof *x);
    qsort(sorted, COUNT, sizeof *sorted, ascending);
    double distance = 0; // Kolmogorov-Smirnov
    for (int i = 0; i < COUNT; i++) {
        const double expected = 0.5 * erfc(-sorted[i] * M_SQRT1_2);
        distance = fmax(distance, fabs(expected - (i + 0.5) / COUNT));
    }
    check(distance * sqrt(COUNT) < 2.7); // 2 exp(-2 2.7^2) = 1e-6

    // The first numbers don't depend on how many are drawn, and nothing is written behind them.
    for (ptrdiff_t n = 0; n < 8; n++) {
        double few[9];
        few[n] = 77;
        rfa_rng_normals(few, &stream, n);
        check(memcmp(few, x, (size_t)n * sizeof *x) == 0 && few[n] == 77);
    }
    rfa_free(x);
    rfa_free(sorted);
}

static void test_reader_walks_the_stream(void **state)
{
    (void)state;
    const rfa_rng stream = rfa_rng_stream(13, RFA_RNG_TEST, 0, 0);
    rfa_rng_reader reader = rfa_rng_reader_at(stream);
    for (uint64_t index = 0; index < 50; index++) {
        uint32_t words[4];
        for (int w = 0; w < 4; w++) {
            words[w] = rfa_rng_next(&reader);
        }
        check_block(&stream, index, words);
    }
}

static void test_below(void **state)
{
    (void)state;
    enum { COUNT = 60000 };
    rfa_rng_reader reader = rfa_rng_reader_at(rfa_rng_stream(14, RFA_RNG_TEST, 0, 0));
    static const uint32_t bounds[] = {1, 2, 3, 10, 48};
    for (size_t b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        double counts[48] = {0};
        bool inside = true;
        for (int i = 0; i < COUNT; i++) {
            const uint32_t got = rfa_rng_below(&reader, bounds[b]);
            inside = inside && got < bounds[b];
            counts[got % 48]++;
        }
        check(inside);
        const double k = bounds[b] - 1;
        check(chi_square(counts, (int)bounds[b], COUNT) <= k + 10 * sqrt(k) + 14 * (k > 0));
    }
    // Without rejection a third of these values comes twice as often: the chi square would be 7500.
    double thirds[3] = {0};
    for (int i = 0; i < COUNT; i++) {
        thirds[rfa_rng_below(&reader, 3u << 30) % 3]++;
    }
    check(chi_square(thirds, 3, COUNT) < 28); // exp(-14) = 1e-6
    uint32_t most = 0;
    for (int i = 0; i < 1000; i++) {
        const uint32_t got = rfa_rng_below(&reader, UINT32_MAX);
        most = got > most ? got : most;
    }
    check(most > UINT32_MAX / 100 * 98 && most < UINT32_MAX); // 0.98^1000 = 2e-9
}

static void test_uniform(void **state)
{
    (void)state;
    enum { COUNT = 100000, BINS = 64 };
    rfa_rng_reader reader = rfa_rng_reader_at(rfa_rng_stream(15, RFA_RNG_TEST, 0, 0));
    double counts[BINS] = {0}, sum = 0;
    bool inside = true;
    for (int i = 0; i < COUNT; i++) {
        const double got = rfa_rng_uniform(&reader);
        inside = inside && got >= 0 && got < 1;
        counts[(int)(got * BINS) % BINS]++;
        sum += got;
    }
    check(inside);
    check(fabs(sum / COUNT - 0.5) < 5 / sqrt(12.0 * COUNT));
    check(chi_square(counts, BINS, COUNT) < 130);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),  cmocka_unit_test(test_words_equal_blocks),
        cmocka_unit_test(test_streams_differ), cmocka_unit_test(test_words_are_uniform),
        cmocka_unit_test(test_normals),        cmocka_unit_test(test_reader_walks_the_stream),
        cmocka_unit_test(test_below),          cmocka_unit_test(test_uniform),
    };
    return test_main(tests);
}
