#include "fidelity/run.h"

#include <math.h>
#include <stdlib.h>

const char *const rfa_fidelity_statistics[RFA_FIDELITY_STATISTICS] = {
    "output_error", "output_most", "frobenius", "matrix_most", "row_median",
    "row_tenth",    "row_worst",   "negative",  "floored",
};

double *
rfa_fidelity_error(const rfa_fidelity *f, int group, int kind, int feature, int trial, int c)
{
    const ptrdiff_t at =
        (((ptrdiff_t)group * f->kinds + kind) * f->features + feature) * f->trials + trial;
    return f->error + (at * f->cases + c) * RFA_FIDELITY_STATISTICS;
}

static int order(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double rfa_fidelity_quantile(double *numbers, ptrdiff_t n, double q)
{
    qsort(numbers, (size_t)n, sizeof *numbers, order);
    const double at = q * (double)(n - 1);
    const ptrdiff_t below = (ptrdiff_t)at, above = below + 1 < n ? below + 1 : below;
    return numbers[below] + (at - (double)below) * (numbers[above] - numbers[below]);
}

// The 97.5 % quantile of Student's t; the series in 1 / freedom is right to 1e-3 from 30 on.
static double student(int freedom)
{
    static const double table[] = {
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
        2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    };
    const int known = sizeof table / sizeof *table;
    return freedom < 1 ? NAN : freedom <= known ? table[freedom - 1] : 1.96 + 2.37 / freedom;
}

rfa_fidelity_summary rfa_fidelity_summarise(const rfa_fidelity *f,
                                            int group,
                                            int kind,
                                            int feature,
                                            int c,
                                            rfa_fidelity_statistic statistic)
{
    enum { MOST_TRIALS = 10000 };
    static double x[MOST_TRIALS];
    const int n = f->trials < MOST_TRIALS ? f->trials : MOST_TRIALS;
    double sum = 0, square = 0;
    for (int t = 0; t < n; t++) {
        x[t] = rfa_fidelity_error(f, group, kind, feature, t, c)[statistic];
        sum += x[t];
    }
    const double mean = sum / n;
    for (int t = 0; t < n; t++) {
        square += (x[t] - mean) * (x[t] - mean);
    }
    const double band = n > 1 ? student(n - 1) * sqrt(square / (n - 1) / n) : NAN;
    return (rfa_fidelity_summary){.mean = mean,
                                  .low = mean - band,
                                  .high = mean + band,
                                  .median =
                                      isnan(sum) ? (double)NAN : rfa_fidelity_quantile(x, n, 0.5)};
}

double rfa_effective_rank(const double *values, ptrdiff_t n)
{
    double sum = 0, entropy = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += values[i];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const double p = values[i] / sum;
        entropy -= p > 0 ? p * log(p) : 0;
    }
    return exp(entropy);
}

void rfa_fidelity_destroy(rfa_fidelity *f)
{
    double *const arrays[] = {f->scale,      f->norm, f->error,     f->power, f->exact,
                              f->exact_rank, f->best, f->estimated, f->rank};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        rfa_free(arrays[i]);
    }
    rfa_heads_close(&f->heads);
    *f = (rfa_fidelity){.groups = 0};
}
