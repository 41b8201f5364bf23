// Precision: f32
#include "storage/digest.h"
#include "support/support.h"

#include "base/log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 203 }; // six rounds of four lanes, one whole word, three bytes

static void fill(unsigned char *bytes, size_t n)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(x >> 24);
    }
}

// Fixed for good: digests stand in files.
static void test_known_values(void **state)
{
    (void)state;
    unsigned char bytes[SIZE];
    fill(bytes, SIZE);
    check(rfa_digest(0, "", 0) == UINT64_C(0x823b1c2691a29330));
    check(rfa_digest(0, "a", 1) == UINT64_C(0x5f4683c2e0872336));
    check(rfa_digest(0, "random feature attention", 24) == UINT64_C(0x86bbf66d6459c377));
    check(rfa_digest(0, bytes, SIZE) == UINT64_C(0x98610743322843c3));
    check(rfa_digest(7, bytes, SIZE) == UINT64_C(0x528204a506b01b4c));
}

// Every flipped bit flips about half of the digest, whatever the length.
static void test_every_bit_counts(void **state)
{
    (void)state;
    unsigned char bytes[SIZE];
    fill(bytes, SIZE);
    int64_t flipped = 0, trials = 0;
    for (size_t n = 1; n <= SIZE; n++) {
        const uint64_t plain = rfa_digest(0, bytes, n);
        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            const int changed = __builtin_popcountll(plain ^ rfa_digest(0, bytes, n));
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            if (changed < 8) {
                check(changed >= 8);
            }
            flipped += changed;
            trials++;
        }
    }
    const double mean = (double)flipped / (double)trials;
    check(mean > 31.9 && mean < 32.1);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = 0, y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

// Zeros of any length, any order of words, any seed: all different.
static void test_length_order_and_seed(void **state)
{
    (void)state;
    enum { ZEROS = 300, WORDS = 40, SEEDS = 100 };
    static uint64_t seen[ZEROS + WORDS * WORDS + SEEDS];
    size_t count = 0;
    const unsigned char zeros[ZEROS] = {0};
    for (size_t n = 0; n < ZEROS; n++) {
        seen[count++] = rfa_digest(0, zeros, n);
    }
    uint64_t words[WORDS];
    for (uint64_t i = 0; i < WORDS; i++) {
        words[i] = i + 1;
    }
    seen[count++] = rfa_digest(0, words, sizeof words);
    for (int i = 0; i < WORDS; i++) {
        for (int j = 0; j < i; j++) {
            const uint64_t kept = words[i];
            words[i] = words[j];
            words[j] = kept;
            seen[count++] = rfa_digest(0, words, sizeof words);
            words[j] = words[i];
            words[i] = kept;
        }
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        seen[count++] = rfa_digest(seed, words, sizeof words);
    }
    qsort(seen, count, sizeof *seen, compare);
    for (size_t i = 1; i < count; i++) {
        if (seen[i] == seen[i - 1]) {
            check(seen[i] != seen[i - 1]);
        }
    }
}

static void test_chaining(void **state)
{
    (void)state;
    unsigned char bytes[SIZE];
    fill(bytes, SIZE);
    const uint64_t whole = rfa_digest(0, bytes, SIZE);
    for (size_t cut = 0; cut <= SIZE; cut++) {
        const uint64_t chained = rfa_digest(rfa_digest(0, bytes, cut), bytes + cut, SIZE - cut);
        const uint64_t other = rfa_digest(rfa_digest(0, bytes + cut, SIZE - cut), bytes, cut);
        if (chained == whole || chained == other) {
            check(chained != whole && chained != other);
        }
    }
}

static void test_alignment_and_speed(void **state)
{
    (void)state;
    const size_t n = (size_t)8 << 20;
    unsigned char *bytes = NULL;
    check_ok(rfa_alloc(&bytes, (ptrdiff_t)n + 8, 1, "test"));
    fill(bytes, n);
    const uint64_t aligned = rfa_digest(0, bytes, n);
    double seconds = 1;
    for (int i = 0; i < 10; i++) {
        const double begin = rfa_now();
        check(rfa_digest(0, bytes, n) == aligned);
        seconds = fmin(seconds, rfa_now() - begin);
    }
    print_message("8 MiB in %.2f ms, %.1f GB/s\n", 1e3 * seconds, 1e-9 * (double)n / seconds);
    check(seconds < 0.5); // also under sanitizers; 1 ms as the program is built
    memmove(bytes + 3, bytes, n);
    check(rfa_digest(0, bytes + 3, n) == aligned);
    rfa_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),          cmocka_unit_test(test_every_bit_counts),
        cmocka_unit_test(test_length_order_and_seed), cmocka_unit_test(test_chaining),
        cmocka_unit_test(test_alignment_and_speed),
    };
    return test_main(tests);
}
