// The results of a linear_case held against the definition (reference/linear.h).
#ifndef TESTS_ATTENTION_LINEAR_TRUTH_H
#define TESTS_ATTENTION_LINEAR_TRUTH_H

#include "attention/linear_case.h"
#include "reference/linear.h"

// The same numbers in double, for the reference.
typedef struct {
    ref_linear problem;
    double *q, *k, *v, *dout, *w, *sigma;
    double *out, *den;
    ref_linear_gradient gradient;
} linear_truth;

static inline linear_truth truth_create(const linear_values *x, const linear_case *at)
{
    const ptrdiff_t n = at->tokens * at->d;
    linear_truth truth = {
        .q = widened(x->q, n),
        .k = widened(x->k, n),
        .v = widened(x->v, n),
        .dout = widened(x->dout, n),
        .w = widened(x->w, at->D * at->d),
        .sigma = widened(x->sigma, at->d),
        .out = test_doubles(n),
        .den = test_doubles(at->tokens),
        .gradient = {test_doubles(n), test_doubles(n), test_doubles(n), test_doubles(at->d)}};
    truth.problem = (ref_linear){.tokens = at->tokens,
                                 .d = at->d,
                                 .D = at->D,
                                 .causal = at->causal,
                                 .floor = (double)(rfa_real)FLOOR,
                                 .q = truth.q,
                                 .k = truth.k,
                                 .v = truth.v,
                                 .w = truth.w,
                                 .sigma = truth.sigma};
    return truth;
}

static inline void truth_destroy(linear_truth *truth)
{
    double *all[] = {truth->q,          truth->k,          truth->v,
                     truth->dout,       truth->w,          truth->sigma,
                     truth->out,        truth->den,        truth->gradient.q,
                     truth->gradient.k, truth->gradient.v, truth->gradient.sigma};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

// Rounding units that a result may be off, of ref_linear_magnitudes; angles are as large as sigma.
// At most a thirteenth of it was seen.
static inline double case_unit(const linear_case *at)
{
    return 4 * test_eps() * (1 + at->sigma);
}

// Holds the results of case_run against the truth.
static inline void case_check(const char *what,
                              const linear_values *x,
                              const linear_case *at,
                              const linear_truth *truth,
                              const ref_linear_sizes *size)
{
    const ptrdiff_t n = at->tokens * at->d;
    const double unit = case_unit(at);
    char text[160];
#define HOLD(name, got, want, count, bound)                                                        \
    do {                                                                                           \
        snprintf(text, sizeof text, "%s %s: %td tokens, d %td, D %td, %d segments%s", what, name,  \
                 at->tokens, at->d, at->D, at->segments, at->causal ? ", causal" : "");            \
        check_close(text, got, want, count, unit *(bound));                                        \
    } while (0)
    HOLD("out", x->out, truth->out, n, size->out);
    HOLD("dq", x->dq, truth->gradient.q, n, size->q);
    HOLD("dk", x->dk, truth->gradient.k, n, size->k);
    HOLD("dv", x->dv, truth->gradient.v, n, size->v);
    HOLD("dsigma", x->dsigma, truth->gradient.sigma, at->d, size->sigma);
#undef HOLD
}

#endif
