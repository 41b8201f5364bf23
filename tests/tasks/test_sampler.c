#include "tasks/batch.h"

#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// P21: every example once an epoch, and epochs end.
static void each_epoch_is_a_permutation(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 97, 5000};
    for (int s = 0; s < 5; s++) {
        const int64_t n = sizes[s];
        rfa_sampler sampler;
        check_ok(rfa_sampler_create(&sampler, 1, n));
        bool *seen = NULL;
        int64_t *first = NULL;
        check_ok(rfa_alloc(&seen, n, sizeof *seen, "test"));
        check_ok(rfa_alloc(&first, n, sizeof *first, "test"));
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            int64_t moved = 0, in_place = 0;
            memset(seen, 0, (size_t)n * sizeof *seen);
            for (int64_t i = 0; i < n; i++) {
                const int64_t example = rfa_sampler_at(&sampler, epoch * n + i);
                check(example >= 0 && example < n && !seen[example]);
                seen[example] = true;
                moved += epoch > 0 && example != first[i];
                in_place += example == i;
                first[i] = epoch == 0 ? example : first[i];
            }
            // Chance leaves about one example where it was.
            check(n < 97 || (in_place < 10 && (epoch == 0 || moved > n - 10)));
        }
        rfa_free(seen);
        rfa_free(first);
        rfa_sampler_destroy(&sampler);
        rfa_sampler_destroy(&sampler); // idempotent
    }
}

// P21: examples that share a batch are others in the next epoch; of neighbours in the file, which
// may be alike, hardly any share one.
static void batches_have_other_members_each_epoch(void **state)
{
    (void)state;
    enum { N = 4096, BATCH = 32 };
    static int batch_of[2][N];
    rfa_sampler sampler;
    check_ok(rfa_sampler_create(&sampler, 1, N));
    for (int64_t i = 0; i < 2 * N; i++) {
        batch_of[i / N][rfa_sampler_at(&sampler, i)] = (int)(i % N / BATCH);
    }
    int64_t pairs = 0, again = 0, neighbours = 0;
    for (int a = 0; a < N; a++) {
        for (int b = a + 1; b < N; b++) {
            const bool now = batch_of[0][a] == batch_of[0][b];
            pairs += now;
            again += now && batch_of[1][a] == batch_of[1][b];
        }
        neighbours += a > 0 && batch_of[0][a] == batch_of[0][a - 1];
    }
    // By chance 31 of 4095 others share a batch: 481 of the pairs again, 31 of the neighbours.
    check(pairs == N / BATCH * (BATCH * (BATCH - 1) / 2));
    check(llabs(again - 481) < 6 * 22 && llabs(neighbours - 31) < 6 * 6);
    rfa_sampler_destroy(&sampler);
}

static void random_access_is_sequential_access(void **state)
{
    (void)state;
    enum { N = 41, EPOCHS = 5, TOTAL = N * EPOCHS };
    rfa_sampler one, other;
    int64_t order[TOTAL];
    check_ok(rfa_sampler_create(&one, 9, N));
    for (int64_t k = 0; k < TOTAL; k++) {
        order[k] = rfa_sampler_at(&one, k);
    }
    check_ok(rfa_sampler_create(&other, 9, N)); // starts in the middle, jumps about
    for (int64_t k = 0; k < TOTAL; k++) {
        const int64_t at = (100 + k * 83) % TOTAL; // 83 is prime to 205
        check(rfa_sampler_at(&other, at) == order[at]);
        check(rfa_sampler_at(&one, at) == order[at]);
    }
    // Batches across an epoch's end, and far out.
    const int64_t far = (int64_t)1 << 35;
    const int64_t there = rfa_sampler_at(&one, far);
    rfa_sampler_at(&one, 0);
    check(rfa_sampler_at(&one, far) == there && rfa_sampler_at(&other, far) == there);
    rfa_sampler_destroy(&one);
    rfa_sampler_destroy(&other);
}

static void seeds_have_their_own_orders(void **state)
{
    (void)state;
    enum { N = 1000, SEEDS = 4 };
    static const uint64_t seeds[SEEDS] = {0, 1, (uint64_t)1 << 32, UINT64_MAX};
    rfa_sampler samplers[SEEDS];
    for (int s = 0; s < SEEDS; s++) {
        check_ok(rfa_sampler_create(&samplers[s], seeds[s], N));
        for (int o = 0; o < s; o++) {
            int same = 0;
            for (int64_t k = 0; k < N; k++) {
                same += rfa_sampler_at(&samplers[s], k) == rfa_sampler_at(&samplers[o], k);
            }
            check(same < 10); // Poisson with mean 1
        }
    }
    for (int s = 0; s < SEEDS; s++) {
        rfa_sampler_destroy(&samplers[s]);
    }
}

// Where example 0 stands, who stands first, and who follows example 0, over 8,000 epochs of eight:
// chi-square with 7 degrees of freedom is below 0.4 or above 29.9 once in 10,000 each (6: 0.2 and
// 27.9).
static void orders_are_uniform(void **state)
{
    (void)state;
    enum { N = 8, EPOCHS = 8000 };
    rfa_sampler sampler;
    check_ok(rfa_sampler_create(&sampler, 3, N));
    int place[N] = {0}, first[N] = {0}, after[N] = {0}, pairs = 0;
    for (int64_t epoch = 0; epoch < EPOCHS; epoch++) {
        for (int64_t i = 0; i < N; i++) {
            const int64_t example = rfa_sampler_at(&sampler, epoch * N + i);
            place[i] += example == 0;
            first[example] += i == 0;
            if (example == 0 && i + 1 < N) {
                after[rfa_sampler_at(&sampler, epoch * N + i + 1)]++;
                pairs++;
            }
        }
    }
    double chi_place = 0, chi_first = 0, chi_after = 0;
    for (int i = 0; i < N; i++) {
        const double mean = EPOCHS / (double)N, mean_after = pairs / (N - 1.0);
        chi_place += pow(place[i] - mean, 2) / mean;
        chi_first += pow(first[i] - mean, 2) / mean;
        chi_after += i > 0 ? pow(after[i] - mean_after, 2) / mean_after : 0;
    }
    check(chi_place > 0.4 && chi_place < 29.9);
    check(chi_first > 0.4 && chi_first < 29.9);
    check(chi_after > 0.2 && chi_after < 27.9);
    check(after[0] == 0);
    rfa_sampler_destroy(&sampler);
}

static void shares_cover_a_batch_in_order(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= 33; n++) {
        for (int D = 1; D <= 9; D++) {
            check(rfa_share(n, 0, D) == 0 && rfa_share(n, D, D) == n);
            for (int d = 0; d < D; d++) {
                const int64_t size = rfa_share(n, d + 1, D) - rfa_share(n, d, D);
                check(size == n / D || size == (n + D - 1) / D);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_epoch_is_a_permutation),
        cmocka_unit_test(batches_have_other_members_each_epoch),
        cmocka_unit_test(random_access_is_sequential_access),
        cmocka_unit_test(seeds_have_their_own_orders),
        cmocka_unit_test(orders_are_uniform),
        cmocka_unit_test(shares_cover_a_batch_in_order),
    };
    return test_main(tests);
}
