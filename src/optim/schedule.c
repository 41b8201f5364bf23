#include "optim/schedule.h"

#include <math.h>

static double line(double from, double to, double share)
{
    return from + share * (to - from);
}

// Straight from first at step 1 to middle at warmup to last at the end.
static double cycle(const rfa_schedule *s, int64_t step, double first, double middle, double last)
{
    if (step < s->warmup) {
        return line(first, middle, (double)(step - 1) / (double)(s->warmup - 1));
    }
    const int64_t top = s->warmup > 0 ? s->warmup : 1;
    return s->steps > top ? line(middle, last, (double)(step - top) / (double)(s->steps - top))
                          : middle;
}

static double share_of_peak(const rfa_schedule *s, int64_t step)
{
    const double pi = 3.14159265358979323846;
    if (s->kind == RFA_SCHEDULE_ONE_CYCLE) {
        return cycle(s, step, 1.0 / 25, 1, 1.0 / 250000);
    }
    if (step <= s->warmup) {
        return (double)step / (double)s->warmup;
    }
    const double after = (double)(step - s->warmup);
    switch (s->kind) {
    case RFA_SCHEDULE_RSQRT: return sqrt((double)(s->warmup > 0 ? s->warmup : 1) / (double)step);
    case RFA_SCHEDULE_COSINE: return (1 + cos(pi * (after - 1) / (double)s->steps)) / 2;
    default: return (double)(s->steps - step + 1) / (double)(s->steps - s->warmup + 1);
    }
}

rfa_scheduled rfa_schedule_at(const rfa_schedule *schedule, int64_t step)
{
    return (rfa_scheduled){
        .rate = schedule->peak * share_of_peak(schedule, step),
        .beta1 = schedule->cycle_beta1 ? cycle(schedule, step, 0.95, 0.85, 0.95) : schedule->beta1,
    };
}
