// All linear kinds: every map x bidirectional, causal, reverse x without and with a gate, through
// segments, against the quadratic form and its differences.
#include "attention/linear_case.h"
#include "reference/differences.h"
#include "reference/weighted.h"

typedef struct {
    ref_weighted problem;
    double *x[7]; // q, k, v, sigma, decay, input, w
    double *dout, *out;
} truth;

enum { Q, K, V, SIGMA, DECAY, INPUT, W };

static truth weighted_create(const linear_values *x, const linear_case *at)
{
    const ptrdiff_t n = at->tokens * at->d;
    truth a = {.dout = widened(x->dout, n), .out = test_doubles(n)};
    const rfa_real *from[] = {x->q, x->k, x->v, x->sigma, x->decay, x->input, x->w};
    const ptrdiff_t size[] = {n, n, n, at->d, at->tokens, at->tokens, at->D * at->d};
    for (int i = 0; i < 7; i++) {
        a.x[i] = widened(from[i], size[i]);
    }
    a.problem = (ref_weighted){.tokens = at->tokens,
                               .map = {.kind = at->kind,
                                       .unit_norm = !at->free_norm,
                                       .d = at->d,
                                       .D = at->D,
                                       .w = a.x[W],
                                       .sigma = a.x[SIGMA],
                                       .a = OPRF_A},
                               .causal = at->causal,
                               .reverse = at->reverse,
                               .q = a.x[Q],
                               .k = a.x[K],
                               .v = a.x[V],
                               .decay = at->gated ? a.x[DECAY] : NULL,
                               .input = at->gated ? a.x[INPUT] : NULL};
    return a;
}

static void weighted_destroy(truth *a)
{
    for (int i = 0; i < 7; i++) {
        rfa_free(a->x[i]);
    }
    rfa_free(a->dout);
    rfa_free(a->out);
}

static double weighted_loss(const void *context)
{
    const truth *a = context;
    double sum = 0;
    ref_weighted_forward(a->out, &a->problem);
    for (ptrdiff_t i = 0; i < a->problem.tokens * a->problem.map.d; i++) {
        sum += a->dout[i] * a->out[i];
    }
    return sum;
}

static double largest(const double *x, ptrdiff_t n)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    return most;
}

// Rounding: a few units a term of the longest sum, times the condition of the quotient, which a
// derivative squares; plus what the differences of the reference can't see.
static void hold(linear_case at, const int *segmentations, int count, uint32_t seed)
{
    const ptrdiff_t n = at.tokens * at.d;
    const double terms = 4 * sqrt((double)(at.tokens + 2 * at.D + at.d));
    linear_values x = values_create(&at, seed);
    truth a = weighted_create(&x, &at);
    const double condition = ref_weighted_forward(a.out, &a.problem);
    const double unit = test_eps() * terms * condition;
    double *out = test_doubles(n), *slope[6];
    memcpy(out, a.out, (size_t)n * sizeof *out);
    const ptrdiff_t size[] = {n, n, n, at.d, at.tokens, at.tokens};
    const int parts = at.gated ? 6 : 4;
    const bool kinks = at.kind == RFA_MAP_ARCCOS; // of relu, beside a step
    double most = 0;
    for (int i = 0; i < parts; i++) {
        slope[i] = test_doubles(size[i]);
        ref_differences(slope[i], a.x[i], size[i], kinks ? 1e-7 : 1e-4, weighted_loss, &a);
        most = fmax(most, largest(slope[i], size[i]));
    }
    for (int i = 0; i < count; i++) {
        char text[160];
        at.segments = segmentations[i];
        snprintf(text, sizeof text, "%s%s%s%s%s, %td tokens, %d segments", rfa_map_name(at.kind),
                 at.free_norm ? " free" : "", at.causal ? " causal" : "",
                 at.reverse ? " reverse" : "", at.gated ? " gated" : "", at.tokens, at.segments);
        case_run(&x, &at, true);
        check(x.guards == 0);
        check_close(text, x.out, out, n, unit * largest(a.x[V], n));
        const rfa_real *got[] = {x.dq, x.dk, x.dv, x.dsigma, x.ddecay, x.dinput};
        for (int p = 0; p < parts; p++) {
            if (p != SIGMA || at.kind != RFA_MAP_ELU) {
                check_close(text, got[p], slope[p], size[p],
                            (4 * unit * condition + (kinks ? 1e-7 : 1e-9)) * fmax(most, 1) *
                                (p == SIGMA ? sqrt((double)at.tokens) : 1));
            }
        }
    }
    for (int i = 0; i < parts; i++) {
        rfa_free(slope[i]);
    }
    rfa_free(out);
    weighted_destroy(&a);
    values_destroy(&x);
}

static void every_kind_is_its_quadratic_form(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[] = {1, 15, 17, 50};
    static const int segmentations[] = {1, 2, 3, 8};
    for (int kind = 0; kind <= RFA_MAP_ELU; kind++) {
        for (int form = 0; form < 5; form++) { // both ways, forward, reverse; the last two gated
            for (int norm = 0; norm < 2; norm++) {
                for (int l = 0; l < 4; l++) {
                    linear_case at = case_of(lengths[l], 4, 24, 1, form > 0);
                    at.kind = (rfa_map_kind)kind;
                    at.reverse = form == 2 || form == 4;
                    at.gated = form > 2;
                    at.free_norm = norm;
                    at.scale = 0.7;
                    at.sigma = 0.5; // kernels of nearly 1: no denominator meets the floor
                    hold(at, segmentations, 4, (uint32_t)(1000 * kind + 100 * form + l));
                }
            }
        }
    }
}

// Chunks of 64 rows and longer decays than a float's exponent: gates of e^-3 a token on 200 tokens.
static void long_decays_underflow_to_nothing_else(void **state)
{
    (void)state;
    static const int segmentations[] = {1, 3};
    for (int form = 0; form < 4; form++) {
        linear_case at = case_of(200, 4, 24, 1, true);
        at.kind = form & 1 ? RFA_MAP_POSITIVE : RFA_MAP_ELU;
        at.free_norm = at.gated = true;
        at.reverse = form & 2;
        linear_values x = values_create(&at, 77);
        for (ptrdiff_t t = 0; t < at.tokens; t++) {
            x.decay[t] = t == 100 ? (rfa_real)-1e4 : (rfa_real)-3;
            x.input[t] = 0;
        }
        truth a = weighted_create(&x, &at);
        ref_weighted_forward(a.out, &a.problem);
        for (int i = 0; i < 2; i++) {
            at.segments = segmentations[i];
            case_run(&x, &at, true);
            check(x.guards == 0);
            // A weight is off by the rounding of the sums of decays, which reach 1e4.
            check_close("decays", x.out, a.out, at.tokens * at.d, 100 * test_eps() + 4e4 * 0x1p-52);
        }
        weighted_destroy(&a);
        values_destroy(&x);
    }
}

// A gate that never decays is no gate: the state is the plain sum.
static void open_gates_change_nothing(void **state)
{
    (void)state;
    linear_case at = case_of(150, 8, 16, 3, true);
    linear_values x = values_create(&at, 88), y = values_create(&at, 88);
    case_run(&x, &at, true);
    memset(y.decay, 0, (size_t)at.tokens * sizeof *y.decay);
    memset(y.input, 0, (size_t)at.tokens * sizeof *y.input);
    at.gated = true;
    case_run(&y, &at, true);
    double *want = widened(x.out, at.tokens * at.d), *slope = widened(x.dk, at.tokens * at.d);
    const double unit = 64 * test_eps();
    check_close("out", y.out, want, at.tokens * at.d, unit);
    check_close("dk", y.dk, slope, at.tokens * at.d, unit * (1 + largest(slope, at.tokens * at.d)));
    rfa_free(want);
    rfa_free(slope);
    values_destroy(&x);
    values_destroy(&y);
}

// Inputs far from unit size, and one segment's keys three times as large: finite, guards counted,
// weights that are right to the last token.
static void large_inputs_stay_finite(void **state)
{
    (void)state;
    for (int kind = 0; kind <= RFA_MAP_ELU; kind++) {
        for (int form = 0; form < 6; form++) {
            linear_case at = case_of(130, 16, 32, 4, form % 3 > 0);
            at.kind = (rfa_map_kind)kind;
            at.free_norm = true;
            at.gated = form % 3 == 2;
            at.scale = form < 3 ? 8 : 12;
            at.boost = 3;
            linear_values x = values_create(&at, (uint32_t)(90 + form));
            case_run(&x, &at, true);
            double sum = 0;
            for (ptrdiff_t i = 0; i < at.tokens * at.d; i++) {
                sum += (double)(x.out[i] * x.out[i] + x.dq[i] + x.dk[i] + x.dv[i]);
            }
            check(isfinite(sum));
            check(kind != RFA_MAP_ELU || x.guards == 0);
            for (ptrdiff_t t = 0; t < at.tokens; t++) {
                check(x.den[t] > 0); // never 0 / 0: a clamped one is counted
            }
            values_destroy(&x);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_its_quadratic_form),
        cmocka_unit_test(long_decays_underflow_to_nothing_else),
        cmocka_unit_test(open_gates_change_nothing),
        cmocka_unit_test(large_inputs_stay_finite),
    };
    return test_main(tests);
}
