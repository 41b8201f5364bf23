#include "layers/dropout.h"

#include "support/support.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 24 };

static rfa_rng stream_of(uint64_t seed, uint32_t training_step, uint32_t example_and_place)
{
    return rfa_rng_stream(seed, RFA_RNG_DROPOUT, training_step, example_and_place);
}

static rfa_real *ones(ptrdiff_t n)
{
    rfa_real *x = test_reals(n);
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] = 1;
    }
    return x;
}

static rfa_real *mask_of(rfa_rng stream, ptrdiff_t rows, ptrdiff_t width, ptrdiff_t begin, double p)
{
    rfa_real *x = ones(rows * width);
    rfa_dropout(x, NULL, rows, width, begin, &stream, p);
    return x;
}

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void mask_is_one_of_absolute_positions(void **state)
{
    (void)state;
    enum { ROWS = 200 };
    static const ptrdiff_t widths[] = {8, WIDTH, 128, 136};
    for (int w = 0; w < 4; w++) {
        const ptrdiff_t width = widths[w];
        const rfa_rng stream = stream_of(1, 2, 3);
        rfa_real *whole = mask_of(stream, ROWS, width, 0, 0.3);
        static const ptrdiff_t rows[] = {1, 5, 16, 64};
        for (int r = 0; r < 4; r++) {
            for (ptrdiff_t begin = 0; begin < ROWS; begin += rows[r]) {
                const ptrdiff_t n = begin + rows[r] < ROWS ? rows[r] : ROWS - begin;
                rfa_real *part = mask_of(stream, n, width, begin, 0.3);
                check(same_bits(part, whole + begin * width, n * width));
                rfa_free(part);
            }
        }
        rfa_free(whole);
    }
    // Far into a sequence of 2^36 tokens too: places don't wrap.
    const rfa_rng stream = stream_of(1, 2, 3);
    const ptrdiff_t far = (ptrdiff_t)1 << 36;
    rfa_real *near = mask_of(stream, 64, WIDTH, 0, 0.3);
    rfa_real *there = mask_of(stream, 64, WIDTH, far, 0.3);
    rfa_real *later = mask_of(stream, 32, WIDTH, far + 32, 0.3);
    check(!same_bits(near, there, (ptrdiff_t)64 * WIDTH));
    check(same_bits(there + (ptrdiff_t)32 * WIDTH, later, (ptrdiff_t)32 * WIDTH));
    rfa_free(near);
    rfa_free(there);
    rfa_free(later);
}

// Masks of different streams are alike with probability p^2 + (1 - p)^2 a number.
static void each_seed_step_and_place_has_its_own_mask(void **state)
{
    (void)state;
    enum { ROWS = 400, N = ROWS * WIDTH };
    const rfa_rng streams[] = {stream_of(1, 2, 3), stream_of(2, 2, 3), stream_of(1, 3, 3),
                               stream_of(1, 2, 4), stream_of(1, 3, 2)};
    const double p = 0.25, alike = p * p + (1 - p) * (1 - p);
    const double error = sqrt(alike * (1 - alike) / N);
    for (int i = 0; i < 5; i++) {
        rfa_real *a = mask_of(streams[i], ROWS, WIDTH, 0, p);
        for (int j = 0; j < i; j++) {
            rfa_real *b = mask_of(streams[j], ROWS, WIDTH, 0, p);
            int same = 0;
            for (int e = 0; e < N; e++) {
                same += a[e] == b[e];
            }
            check(fabs((double)same / N - alike) <= 4 * error);
            rfa_free(b);
        }
        rfa_free(a);
    }
}

static void rate_and_scale(void **state)
{
    (void)state;
    enum { ROWS = 10000, N = ROWS * WIDTH };
    static const double rates[] = {0.001, 0.1, 0.5, 0.9};
    for (int r = 0; r < 4; r++) {
        const double p = round(rates[r] * 65536) / 65536;
        rfa_real *x = mask_of(stream_of(7, 1, 1), ROWS, WIDTH, 0, rates[r]);
        double mean = 0;
        int kept[WIDTH] = {0}, all = 0, pairs = 0;
        for (int i = 0; i < N; i++) {
            check(x[i] == 0 || x[i] == (rfa_real)(1 / (1 - p)));
            kept[i % WIDTH] += x[i] != 0;
            all += x[i] != 0;
            pairs += i > 0 && x[i] != 0 && x[i - 1] != 0;
            mean += (double)x[i] / N;
        }
        // Binomial: 4 standard errors, for all, for every channel and for neighbours.
        check(fabs((double)all - N * (1 - p)) <= 4 * sqrt(N * p * (1 - p)));
        for (int c = 0; c < WIDTH; c++) {
            check(fabs(kept[c] - ROWS * (1 - p)) <= 4 * sqrt(ROWS * p * (1 - p)));
        }
        const double both = (1 - p) * (1 - p); // neighbouring pairs overlap: variance below 3 times
        check(fabs(pairs - N * both) <= 4 * sqrt(3 * N * both * (1 - both)));
        check(fabs(mean - 1) <= 4 * sqrt(p / (1 - p) / N) + test_eps()); // mean preserved
        rfa_free(x);
    }
}

static void a_rate_of_zero_changes_nothing(void **state)
{
    (void)state;
    enum { N = 64 * WIDTH };
    static const double rates[] = {0, 1e-6}; // less than half of 2^-16 is 0
    rfa_real x[N], before[N];
    for (int r = 0; r < 2; r++) {
        test_fill(x, N, 1, 1);
        x[5] = (rfa_real)INFINITY;
        memcpy(before, x, sizeof x);
        const rfa_rng stream = stream_of(7, 1, 1);
        rfa_dropout(x, NULL, 64, WIDTH, 0, &stream, rates[r]);
        check(same_bits(x, before, N));
    }
}

// The backward is the same call: the map is a diagonal one of 0 and scale.
static void it_is_linear_and_diagonal(void **state)
{
    (void)state;
    enum { ROWS = 64, N = ROWS * WIDTH };
    const rfa_rng stream = stream_of(9, 4, 2);
    const double scale = 65536.0 / (65536 - 13107); // p = 0.2
    rfa_real *mask = mask_of(stream, ROWS, WIDTH, 16, 0.2);
    rfa_real *twice = mask_of(stream, ROWS, WIDTH, 16, 0.2);
    rfa_dropout(twice, NULL, ROWS, WIDTH, 16, &stream, 0.2);
    rfa_real x[N], y[N];
    test_fill(x, N, 2, 1);
    memcpy(y, x, sizeof y);
    rfa_dropout(y, NULL, ROWS, WIDTH, 16, &stream, 0.2);
    for (int i = 0; i < N; i++) {
        check(mask[i] == 0 || mask[i] == (rfa_real)scale);
        check(twice[i] == mask[i] * mask[i]);
        check(y[i] == x[i] * mask[i]);
    }
    rfa_free(mask);
    rfa_free(twice);
}

static void a_second_array_gets_the_same_mask(void **state)
{
    (void)state;
    enum { ROWS = 37, N = ROWS * WIDTH };
    const rfa_rng stream = stream_of(9, 4, 2);
    rfa_real x[N], y[N], alone[N], y_before[N];
    test_fill(x, N, 3, 1);
    test_fill(y, N, 4, 1);
    memcpy(alone, x, sizeof x);
    memcpy(y_before, y, sizeof y);
    rfa_real *mask = mask_of(stream, ROWS, WIDTH, 16, 0.2);
    rfa_dropout(alone, NULL, ROWS, WIDTH, 16, &stream, 0.2);
    rfa_dropout(x, y, ROWS, WIDTH, 16, &stream, 0.2);
    check(same_bits(x, alone, N));
    for (int i = 0; i < N; i++) {
        check(y[i] == y_before[i] * mask[i]);
    }
    rfa_free(mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mask_is_one_of_absolute_positions),
        cmocka_unit_test(each_seed_step_and_place_has_its_own_mask),
        cmocka_unit_test(rate_and_scale),
        cmocka_unit_test(a_rate_of_zero_changes_nothing),
        cmocka_unit_test(it_is_linear_and_diagonal),
        cmocka_unit_test(a_second_array_gets_the_same_mask),
    };
    return test_main(tests);
}
