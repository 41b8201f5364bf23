// Precision: f32
// P14: a rate above 0 from the first step on, and the documented values. P15: beta1 moves by wish
// only. P12: where the warm-up is cut short.
#include "optim/schedule.h"
#include "support/support.h"

#include <float.h>
#include <math.h>

static const double peak = 3e-4;

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 8 * DBL_EPSILON * fabs(b);
}

static rfa_schedule of(rfa_schedule_kind kind, int64_t warmup, int64_t steps)
{
    return (rfa_schedule){kind, peak, warmup, steps, 0.9, false};
}

static void check_shares(rfa_schedule schedule, const double *want, int steps)
{
    for (int step = 1; step <= steps; step++) {
        const rfa_scheduled at = rfa_schedule_at(&schedule, step);
        check(is_near(at.rate, peak * want[step - 1]));
        check(at.beta1 == 0.9);
    }
}

// Ten steps, four of them warm-up.
static void ten_steps_of_each(void **state)
{
    (void)state;
    const double linear[10] = {0.25,    0.5,     0.75,    1,       6.0 / 7,
                               5.0 / 7, 4.0 / 7, 3.0 / 7, 2.0 / 7, 1.0 / 7};
    // The code of Tay et al. has base min(1, t / 4) / max(t, 4)^(1/2): base is 2 peaks here.
    double rsqrt[10], cosine[10], cycle[10];
    for (int t = 1; t <= 10; t++) {
        rsqrt[t - 1] = 2 * fmin(1, t / 4.0) / sqrt(fmax(t, 4));
        cosine[t - 1] = fmin(1, t / 4.0) * (1 + cos(M_PI * fmax(0, t - 5) / 10)) / 2;
        cycle[t - 1] = t <= 4 ? 0.04 + (t - 1) * 0.96 / 3 : 1 - (t - 4) * (1 - 4e-6) / 6;
    }
    check_shares(of(RFA_SCHEDULE_LINEAR, 4, 10), linear, 10);
    check_shares(of(RFA_SCHEDULE_RSQRT, 4, 10), rsqrt, 10);
    check_shares(of(RFA_SCHEDULE_COSINE, 4, 10), cosine, 10);
    check_shares(of(RFA_SCHEDULE_ONE_CYCLE, 4, 10), cycle, 10);
}

// LRA ListOps: .05 rsqrt with 1 000 steps of warm-up, lra's own numbers.
static void published_values(void **state)
{
    (void)state;
    rfa_schedule s = of(RFA_SCHEDULE_RSQRT, 1000, 5000);
    s.peak = 0.05 / sqrt(1000);
    check(is_near(rfa_schedule_at(&s, 1).rate, 0.05 / 1000 / sqrt(1000)));
    check(fabs(rfa_schedule_at(&s, 1000).rate - 1.58e-3) < 2e-6);
    check(is_near(rfa_schedule_at(&s, 4000).rate, 0.05 / sqrt(4000)));
}

// Never 0, never above the peak, one rise and one fall, also without warm-up and with nothing else.
static void one_rise_and_one_fall(void **state)
{
    (void)state;
    static const int64_t runs[][2] = {{0, 50},  {1, 50}, {7, 50}, {49, 50},
                                      {50, 50}, {0, 1},  {1, 1}};
    for (int kind = RFA_SCHEDULE_LINEAR; kind <= RFA_SCHEDULE_ONE_CYCLE; kind++) {
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            const rfa_schedule s = of((rfa_schedule_kind)kind, runs[r][0], runs[r][1]);
            double last = 0;
            for (int64_t step = 1; step <= runs[r][1]; step++) {
                const double rate = rfa_schedule_at(&s, step).rate;
                check(rate > 0 && rate <= peak * (1 + DBL_EPSILON));
                check(step == 1 || (step <= runs[r][0] ? rate > last : rate <= last));
                last = rate;
            }
        }
    }
    const rfa_schedule none = of(RFA_SCHEDULE_LINEAR, 0, 5);
    check(is_near(rfa_schedule_at(&none, 1).rate, peak * 5 / 6));
}

// A warm-up that is longer than the run never reaches the peak.
static void warmup_cut_short(void **state)
{
    (void)state;
    for (int kind = RFA_SCHEDULE_LINEAR; kind <= RFA_SCHEDULE_COSINE; kind++) {
        const rfa_schedule s = of((rfa_schedule_kind)kind, 8000, 5000);
        check(is_near(rfa_schedule_at(&s, 5000).rate, peak * 5 / 8));
    }
    const rfa_schedule cycle = of(RFA_SCHEDULE_ONE_CYCLE, 8000, 5000);
    check(rfa_schedule_at(&cycle, 5000).rate < 0.7 * peak);
}

static void beta1_cycles_by_wish_only(void **state)
{
    (void)state;
    rfa_schedule s = of(RFA_SCHEDULE_ONE_CYCLE, 5, 11);
    check(rfa_schedule_at(&s, 5).beta1 == 0.9);
    s.cycle_beta1 = true;
    const double want[3] = {0.95, 0.85, 0.95};
    for (int i = 0; i < 3; i++) {
        check(is_near(rfa_schedule_at(&s, i == 0 ? 1 : i == 1 ? 5 : 11).beta1, want[i]));
    }
    check(is_near(rfa_schedule_at(&s, 3).beta1, 0.9) && is_near(rfa_schedule_at(&s, 8).beta1, 0.9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_steps_of_each),         cmocka_unit_test(published_values),
        cmocka_unit_test(one_rise_and_one_fall),     cmocka_unit_test(warmup_cut_short),
        cmocka_unit_test(beta1_cycles_by_wish_only),
    };
    return test_main(tests);
}
