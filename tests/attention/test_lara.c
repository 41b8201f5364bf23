// Linear randomised attention against its equations in double, its gradients against differences of
// those, and its statistics against exact softmax attention.
#include "attention/lara_case.h"
#include "reference/differences.h"
#include "reference/softmax.h"

static double largest(const double *x, ptrdiff_t n)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, fabs(x[i]));
    }
    return most;
}

static bool all_finite(const rfa_real *x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

// Relative error of the weights of samples: four logarithms, each a sum of d terms whose magnitudes
// add up to `exponent` at most, and an exponential; amplified where alpha cancels.
static double weight_error(const lara_truth *truth)
{
    const ref_lara_sizes size = ref_lara_magnitudes(&truth->problem);
    return 4 * test_eps() * (size.exponent + (double)truth->problem.d) * size.spread;
}

static void check_forward(const char *what, lara_values *x, const lara_case *at)
{
    const ptrdiff_t n = at->tokens * at->d;
    lara_truth truth = lara_truth_create(x, at);
    ref_lara_forward(truth.out, &truth.problem);
    lara_run(x, at);
    // A mean over samples of means over keys: both sets of weights are off.
    check_close(what, x->out, truth.out, n, 2 * weight_error(&truth) * largest(truth.v, n));
    lara_truth_destroy(&truth);
}

static double loss_of(const void *context)
{
    const lara_truth *truth = context;
    const ptrdiff_t n = truth->problem.tokens * truth->problem.d;
    double loss = 0;
    ref_lara_forward(truth->out, &truth->problem);
    for (ptrdiff_t i = 0; i < n; i++) {
        loss += truth->dout[i] * truth->out[i];
    }
    return loss;
}

static void check_gradient(
    const char *what, const rfa_real *got, double *x, const lara_truth *truth, ptrdiff_t n)
{
    // Halving the step divides the truncation of fourth order by 16: what changes is 15 times what
    // is left. A weight that crosses its clamp within a step would change much more.
    const double step = 5e-5;
    double *coarse = test_doubles(n), *want = test_doubles(n);
    ref_differences(coarse, x, n, 2 * step, loss_of, truth);
    ref_differences(want, x, n, step, loss_of, truth);
    double magnitude = 0, truncation = 0; // magnitude: of the loss
    for (ptrdiff_t i = 0; i < n; i++) {
        magnitude += fabs(truth->dout[i] * truth->out[i]);
        truncation = fmax(truncation, fabs(coarse[i] - want[i]) / 15);
    }
    check(truncation < 1e-8 * (1 + largest(want, n)));
    const double differences = 0x1p-52 * 8 * magnitude / step + truncation;
    check_close(what, got, want, n, differences + 8 * weight_error(truth) * (1 + largest(want, n)));
    rfa_free(coarse);
    rfa_free(want);
}

static void check_all(const char *what, const lara_case *at, uint32_t seed)
{
    char text[64];
    const ptrdiff_t n = at->tokens * at->d;
    lara_values x = lara_values_create(at, seed);
    check_forward(what, &x, at);
    lara_truth truth = lara_truth_create(&x, at);
    snprintf(text, sizeof text, "%s, dq", what);
    check_gradient(text, x.dq, truth.q, &truth, n);
    snprintf(text, sizeof text, "%s, dk", what);
    check_gradient(text, x.dk, truth.k, &truth, n);
    snprintf(text, sizeof text, "%s, dv", what);
    check_gradient(text, x.dv, truth.v, &truth, n);
    lara_truth_destroy(&truth);
    lara_values_destroy(&x);
}

static const char *const names[] = {"balance", "specific", "biased"};

static void equals_the_equations(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[] = {1, 2, 15, 16, 17, 50, 300};
    for (int w = 0; w < 3; w++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            for (ptrdiff_t pieces = 1; pieces <= 21; pieces += 4) {
                lara_case at = lara_case_of(lengths[i], pieces, (rfa_weights_kind)w);
                at.draws = 1 + pieces % 3;
                at.antithetic = i % 2 == 0;
                at.segments = 1 + (int)(pieces / 4 + (ptrdiff_t)i) % 4;
                at.d = 2 + (ptrdiff_t)i * 5;
                at.noise = pieces != 9;
                lara_values x = lara_values_create(&at, (uint32_t)(100 * i));
                check_forward(names[w], &x, &at);
                lara_values_destroy(&x);
            }
        }
    }
}

static void gradients_equal_differences(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[] = {1, 15, 16, 17, 50};
    static const ptrdiff_t pieces[] = {8, 1, 5, 30, 7};
    for (int w = 0; w < 3; w++) {
        for (int i = 0; i < 5; i++) {
            for (int draws = 1; draws <= 3; draws++) {
                lara_case at = lara_case_of(lengths[i], pieces[i], (rfa_weights_kind)w);
                at.draws = draws;
                at.antithetic = draws > 1;
                at.d = 5;
                at.segments = 1 + (i + draws) % 3;
                check_all(names[w], &at, (uint32_t)(17 * i + draws));
            }
        }
    }
}

static void gradients_of_independent_draws_and_of_none(void **state)
{
    (void)state;
    for (int w = 0; w < 3; w++) {
        lara_case at = lara_case_of(33, 6, (rfa_weights_kind)w);
        at.draws = 2;
        check_all(names[w], &at, 5);
        at.noise = false;
        check_all(names[w], &at, 6);
    }
}

// The clamp acts in the specific case that is differentiated, on some weights but not on all.
static void some_specific_weights_are_clamped(void **state)
{
    (void)state;
    lara_case at = lara_case_of(50, 7, RFA_WEIGHTS_SPECIFIC);
    at.scale = 2;
    lara_values x = lara_values_create(&at, 30);
    lara_truth truth = lara_truth_create(&x, &at);
    const ref_lara_sizes size = ref_lara_magnitudes(&truth.problem);
    check(size.clamped > 10 && size.clamped < 50 * 7 - 10);
    lara_truth_destroy(&truth);
    lara_values_destroy(&x);
    check_all("clamped", &at, 30);
}

static void large_scores_stay_finite(void **state)
{
    (void)state;
    for (int w = 0; w < 3; w++) {
        for (int scale = 8; scale <= 12; scale += 4) {
            lara_case at = lara_case_of(200, 12, (rfa_weights_kind)w);
            at.scale = scale;
            at.segments = 4;
            at.draws = 2;
            lara_values x = lara_values_create(&at, 50);
            lara_run(&x, &at);
            const ptrdiff_t n = at.tokens * at.d;
            check(all_finite(x.out, n) && all_finite(x.dq, n) && all_finite(x.dk, n) &&
                  all_finite(x.dv, n));
            lara_values_destroy(&x);
        }
    }
}

static void segments_with_larger_keys_count_as_they_should(void **state)
{
    (void)state;
    for (int w = 0; w < 3; w++) {
        lara_case at = lara_case_of(100, 9, (rfa_weights_kind)w);
        at.boost = 3;
        at.segments = 4;
        lara_values x = lara_values_create(&at, 60);
        check_forward("boosted", &x, &at);
        lara_values_destroy(&x);
    }
}

// Each piece of output is a weighted mean of values, so what padding holds can't hide in rounding.
static void what_padding_holds_is_not_seen(void **state)
{
    (void)state;
    for (int w = 0; w < 3; w++) {
        lara_case at = lara_case_of(75, 9, (rfa_weights_kind)w);
        const ptrdiff_t bytes = at.tokens * at.d * (ptrdiff_t)sizeof(rfa_real);
        lara_values a = lara_values_create(&at, 70), b = lara_values_create(&at, 70);
        lara_run(&a, &at);
        at.garbage = 1e3;
        lara_run(&b, &at);
        check(memcmp(a.out, b.out, (size_t)bytes) == 0 && memcmp(a.dq, b.dq, (size_t)bytes) == 0 &&
              memcmp(a.dk, b.dk, (size_t)bytes) == 0 && memcmp(a.dv, b.dv, (size_t)bytes) == 0);
        lara_values_destroy(&a);
        lara_values_destroy(&b);
    }
}

// With all proposals N(0, I) the estimator is that of positive features, phi_j(x) =
// exp(w_j . x - |x|^2 / 2), on the same draws (Performer).
static void centred_proposals_are_performer(void **state)
{
    (void)state;
    lara_case at = lara_case_of(48, 40, RFA_WEIGHTS_BALANCE);
    at.centred = true;
    at.draws = 2;
    const ptrdiff_t n = at.tokens, d = at.d, J = 80;
    lara_values x = lara_values_create(&at, 80);
    lara_run(&x, &at);
    lara_truth truth = lara_truth_create(&x, &at);
    const double temper = pow((double)d, -0.25);
    for (ptrdiff_t t = 0; t < n; t++) {
        double den = 0;
        memset(truth.out + t * d, 0, (size_t)d * sizeof(double));
        for (ptrdiff_t m = 0; m < n; m++) {
            double kernel = 0;
            for (ptrdiff_t j = 0; j < J; j++) {
                double exponent = 0;
                for (ptrdiff_t i = 0; i < d; i++) {
                    const double q = temper * truth.q[t * d + i], k = temper * truth.k[m * d + i];
                    exponent += truth.noise[j * d + i] * (q + k) - (q * q + k * k) / 2;
                }
                kernel += exp(exponent);
            }
            den += kernel;
            for (ptrdiff_t i = 0; i < d; i++) {
                truth.out[t * d + i] += kernel * truth.v[m * d + i];
            }
        }
        for (ptrdiff_t i = 0; i < d; i++) {
            truth.out[t * d + i] /= den;
        }
    }
    check_close("performer", x.out, truth.out, n * d,
                2 * weight_error(&truth) * largest(truth.v, n * d));
    lara_truth_destroy(&truth);
    lara_values_destroy(&x);
}

enum { TRIALS = 100 };

// Mean squared error of the whole against exact softmax attention, over trials draws of noise, and
// its standard error.
static double squared_error(double *error, const lara_case *from, int trials)
{
    lara_case at = *from;
    lara_values x = lara_values_create(&at, 90);
    lara_truth truth = lara_truth_create(&x, &at);
    double *want = test_doubles(at.tokens * at.d), *lse = test_doubles(at.tokens);
    const ref_softmax exact = {at.tokens, at.d, false, truth.q, truth.k, truth.v};
    ref_softmax_forward(want, lse, &exact);
    double sum = 0, squares = 0;
    for (int trial = 0; trial < trials; trial++) {
        at.stream = (uint32_t)trial;
        lara_run(&x, &at);
        double mean = 0;
        for (ptrdiff_t i = 0; i < at.tokens * at.d; i++) {
            const double gap = (double)x.out[i] - want[i];
            mean += gap * gap / (double)(at.tokens * at.d);
        }
        sum += mean;
        squares += mean * mean;
    }
    *error = sqrt((squares / trials - sum / trials * sum / trials) / trials);
    rfa_free(want);
    rfa_free(lse);
    lara_truth_destroy(&truth);
    lara_values_destroy(&x);
    return sum / trials;
}

// few / many, which the theory says is `factor`; their relative standard errors are slack / 4. Both
// errors are c / J (1 + O(1 / J)) with c / J below 1 % of the values' power here, which leaves the
// quotient a tenth.
static void check_ratio(const char *what, const double few[2], const double many[2], double factor)
{
    const double slack = 4 * (few[1] / few[0] + many[1] / many[0]), ratio = few[0] / many[0];
    printf("%s: squared error %.2e and %.2e, ratio %.1f for %.0f, 4 standard errors %.0f %%\n",
           what, few[0], many[0], ratio, factor, 100 * slack);
    check(slack < 0.5);
    check(ratio > factor * (1 - slack) * 0.9 && ratio < factor * (1 + slack) * 1.1);
}

// Self-normalised importance sampling: variance and squared bias, so the squared error falls as
// 1 / J.
static void error_falls_with_draws(void **state)
{
    (void)state;
    for (int w = 0; w < 2; w++) {
        lara_case at = lara_case_of(32, 8, (rfa_weights_kind)w);
        double few[2], many[2];
        at.d = 8;
        at.scale = 0.4;
        at.draws = 16;
        few[0] = squared_error(&few[1], &at, TRIALS);
        at.draws = 256;
        many[0] = squared_error(&many[1], &at, TRIALS);
        check_ratio(names[w], few, many, 16);
    }
}

// More landmarks, one draw of each: the same law while the proposals are about as wide, i.e. while
// landmarks are short.
static void error_falls_with_landmarks(void **state)
{
    (void)state;
    lara_case at = lara_case_of(256, 32, RFA_WEIGHTS_BALANCE);
    double few[2], many[2];
    at.d = 8;
    at.scale = 0.2;
    few[0] = squared_error(&few[1], &at, 3 * TRIALS);
    at.pieces = 256;
    many[0] = squared_error(&many[1], &at, 3 * TRIALS);
    check_ratio("landmarks", few, many, 8);
}

static void landmarks_partition_tokens(void **state)
{
    (void)state;
    for (ptrdiff_t n = 1; n < 60; n++) {
        for (ptrdiff_t C = 1; C < 70; C += 3) {
            const ptrdiff_t pieces = rfa_landmark_count(n, C);
            bool good = rfa_landmark_begin(n, pieces, 0) == 0;
            ptrdiff_t small = 0, before = 0;
            for (ptrdiff_t c = 0; c < pieces; c++) {
                const ptrdiff_t size =
                    rfa_landmark_begin(n, pieces, c + 1) - rfa_landmark_begin(n, pieces, c);
                good = good && size >= before && (size == n / pieces || size == n / pieces + 1);
                small += size == n / pieces;
                before = size;
            }
            check(good && rfa_landmark_begin(n, pieces, pieces) == n);
            check(small == (n / pieces + 1) * pieces - n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(landmarks_partition_tokens),
        cmocka_unit_test(equals_the_equations),
        cmocka_unit_test(gradients_equal_differences),
        cmocka_unit_test(gradients_of_independent_draws_and_of_none),
        cmocka_unit_test(some_specific_weights_are_clamped),
        cmocka_unit_test(large_scores_stay_finite),
        cmocka_unit_test(segments_with_larger_keys_count_as_they_should),
        cmocka_unit_test(what_padding_holds_is_not_seen),
        cmocka_unit_test(centred_proposals_are_performer),
        cmocka_unit_test(error_falls_with_draws),
        cmocka_unit_test(error_falls_with_landmarks),
    };
    return test_main(tests);
}
