#include "attention/linear_truth.h"
#include "reference/differences.h"

// The reference's loss sum(dout o out), for its own derivatives.
static double reference_loss(const void *context)
{
    const linear_truth *truth = context;
    const ptrdiff_t n = truth->problem.tokens * truth->problem.d;
    ref_linear_forward(truth->out, truth->den, &truth->problem);
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += truth->dout[i] * truth->out[i];
    }
    return sum;
}

static void near(const char *what, const double *a, const double *b, ptrdiff_t n, double bound)
{
    double worst = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs(a[i] - b[i]));
    }
    if (!(worst <= bound)) {
        print_error("%s: difference %.3g, bound %.3g\n", what, worst, bound);
    }
    check(worst <= bound);
}

static void reference_has_the_derivatives_of_its_definition(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        const linear_case at = case_of(9, 4, 8, 1, causal);
        linear_values x = values_create(&at, 1);
        linear_truth truth = truth_create(&x, &at);
        double *numeric = test_doubles(36);
        ref_linear_backward(&truth.gradient, truth.dout, &truth.problem);
        const struct {
            const char *name;
            double *x;
            const double *gradient;
            ptrdiff_t n;
        } part[] = {{"dq", truth.q, truth.gradient.q, 36},
                    {"dk", truth.k, truth.gradient.k, 36},
                    {"dv", truth.v, truth.gradient.v, 36},
                    {"dsigma", truth.sigma, truth.gradient.sigma, 4}};
        for (int p = 0; p < 4; p++) {
            double most = 0;
            for (ptrdiff_t i = 0; i < part[p].n; i++) {
                most = fmax(most, fabs(part[p].gradient[i]));
            }
            ref_differences(numeric, part[p].x, part[p].n, 1e-4, reference_loss, &truth);
            near(part[p].name, part[p].gradient, numeric, part[p].n, 1e-9 * most);
        }
        rfa_free(numeric);
        truth_destroy(&truth);
        values_destroy(&x);
    }
}

// One problem through several segmentations.
static void hold(linear_case at, const int *segmentations, int count, uint32_t seed)
{
    linear_values x = values_create(&at, seed);
    linear_truth truth = truth_create(&x, &at);
    const ptrdiff_t clamped = ref_linear_forward(truth.out, truth.den, &truth.problem);
    ref_linear_backward(&truth.gradient, truth.dout, &truth.problem);
    const ref_linear_sizes size = ref_linear_magnitudes(truth.dout, &truth.problem);
    for (int i = 0; i < count; i++) {
        at.segments = segmentations[i];
        case_run(&x, &at, true);
        case_check("reference", &x, &at, &truth, &size);
        check(x.guards == clamped);
    }
    truth_destroy(&truth);
    values_destroy(&x);
}

static void parts_fit_together(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[] = {1, 15, 16, 17, 63, 64, 65, 127, 257, 300, 1000};
    static const ptrdiff_t widths[] = {4, 16, 32}, projections[] = {8, 64};
    static const int segmentations[] = {1, 2, 3, 8, 32}; // of short examples mostly empty
    for (int l = 0; l < 11; l++) {
        for (int shape = 0; shape < 12; shape++) {
            if (lengths[l] == 1000 && widths[shape % 3] != 16) {
                continue; // a second each for the reference
            }
            const linear_case at =
                case_of(lengths[l], widths[shape % 3], projections[shape / 3 % 2], 1, shape >= 6);
            hold(at, segmentations, 5, (uint32_t)(100 * l + 10 * shape));
        }
    }
}

static void large_inputs_and_an_uneven_segment(void **state)
{
    (void)state;
    static const int segmentations[] = {4};
    for (int i = 0; i < 8; i++) {
        linear_case at = case_of(257, 16, 64, 4, i & 1);
        at.scale = i & 2 ? 8 : 12;
        at.boost = i & 4 ? 3 : 1;
        hold(at, segmentations, 1, (uint32_t)(5000 + 10 * i));
    }
}

static void a_workspace_for_the_longest_segment_serves_all(void **state)
{
    (void)state;
    // 33 blocks over two segments: 256 rows go as one chunk, 272 as two of 144 and 128.
    static const int two[] = {2}, three[] = {3};
    for (int causal = 0; causal < 2; causal++) {
        hold(case_of(528, 16, 64, 2, causal), two, 1, 6000);
        hold(case_of(528, 32, 64, 2, causal), two, 1, 6010);
        hold(case_of(16 * 13, 4, 8, 3, causal), three, 1, 6020); // 64, 64, 80 rows
    }
}

static void sums_of_one_segment_are_the_definition(void **state)
{
    (void)state;
    enum { N = 40, d = 4, D = 8, F = 16 };
    const linear_case at = case_of(N, d, D, 1, false);
    linear_values x = values_create(&at, 7000);
    const rfa_feature_map map = case_map(&x, &at);
    const ptrdiff_t size = rfa_linear_state_size(&map), rows = rfa_padded(N);
    check(size == RFA_STATE_HEADER + F * (d + 1));
    rfa_real *k = filled(rows * d, 1), *v = filled(rows * d, 1), *mask = test_reals(rows);
    memcpy(k, x.k, N * d * sizeof *k);
    memcpy(v, x.v, N * d * sizeof *v);
    for (ptrdiff_t t = 0; t < N; t++) {
        mask[t] = 1;
    }
    double *sums = test_doubles(size), *want = test_doubles(size);
    rfa_real *work = test_reals(rfa_linear_work(&map, rows)), *got = test_reals(size);
    sums[0] = 99; // overwritten
    const rfa_head head = {
        .q = k, .k = k, .v = v, .ld = d, .rows = rows, .mask = mask, .map = &map};
    rfa_linear_state(sums, &head, work);
    linear_truth truth = truth_create(&x, &at);
    for (ptrdiff_t t = 0; t < N; t++) {
        double phi[F];
        ref_features(phi, truth.k + t * d, truth.w, truth.sigma, d, D);
        for (int f = 0; f < F; f++) {
            for (int c = 0; c < d; c++) {
                want[RFA_STATE_HEADER + f * d + c] += phi[f] * truth.v[t * d + c];
            }
            want[RFA_STATE_HEADER + F * d + f] += phi[f];
        }
    }
    narrow(got, sums, size);
    check_close("state", got, want, size, case_unit(&at) * N);
    truth_destroy(&truth);
    values_destroy(&x);
    double *doubles[] = {sums, want};
    rfa_real *reals[] = {k, v, mask, work, got};
    for (int i = 0; i < 2; i++) {
        rfa_free(doubles[i]);
    }
    for (int i = 0; i < 5; i++) {
        rfa_free(reals[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_has_the_derivatives_of_its_definition),
        cmocka_unit_test(sums_of_one_segment_are_the_definition),
        cmocka_unit_test(a_workspace_for_the_longest_segment_serves_all),
        cmocka_unit_test(large_inputs_and_an_uneven_segment),
        cmocka_unit_test(parts_fit_together),
    };
    return test_main(tests);
}
