// Precision: f32
// Intervals and means against numbers worked out by hand and by R's prop.test(correct = FALSE).
#include "base/metrics.h"
#include "support/support.h"

#include <math.h>

static void check_near(double got, double want)
{
    if (!(fabs(got - want) < 5e-7)) {
        print_error("%.9g instead of %.9g\n", got, want);
    }
    check(fabs(got - want) < 5e-7);
}

static void intervals(void **state)
{
    (void)state;
    static const struct {
        int64_t correct, n;
        double low, high;
    } want[] = {
        {50, 100, 0.4038315, 0.5961685}, // (50 + 1.9207) / 103.8415 -+ ...
        {0, 10, 0, 0.2775328},           // z^2 / (n + z^2)
        {10, 10, 0.7224672, 1},          {1, 1, 0.2065493, 1}, {757, 2000, 0.3574958, 0.3999701},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        const rfa_interval got = rfa_wilson(want[i].correct, want[i].n);
        check_near(got.low, want[i].low);
        check_near(got.high, want[i].high);
    }
}

static void means(void **state)
{
    (void)state;
    const int64_t even[4] = {3, 1, 1, 3};                   // F1 3/4 each
    const int64_t lazy[4] = {6, 0, 2, 0};                   // 12/14 and 0
    const int64_t absent[9] = {2, 0, 0, 0, 0, 0, 1, 0, 1};  // class 1 nowhere: 4/5 and 2/3
    const int64_t guessed[9] = {2, 1, 0, 0, 0, 0, 0, 0, 1}; // class 1 guessed alone: 4/5, 0, 1
    check_near(rfa_macro_f1(even, 2), 0.75);
    check_near(rfa_macro_f1(lazy, 2), 3.0 / 7);
    check_near(rfa_macro_f1(absent, 3), (0.8 + 2.0 / 3) / 2);
    check_near(rfa_macro_f1(guessed, 3), 0.6);
    const int64_t nothing[4] = {0};
    check(isnan(rfa_macro_f1(nothing, 2)));
    check(rfa_majority(lazy, 2) == 6 && rfa_majority(guessed, 3) == 3 &&
          rfa_majority(even, 2) == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals),
        cmocka_unit_test(means),
    };
    return test_main(tests);
}
