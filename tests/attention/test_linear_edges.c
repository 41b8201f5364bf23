#include "attention/linear_truth.h"

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static double furthest(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
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

// Results and gradients alike, to the bit.
static bool same_results(const linear_values *a, const linear_values *b, const linear_case *at)
{
    const ptrdiff_t n = at->tokens * at->d;
    return same_bits(a->out, b->out, n) && same_bits(a->dq, b->dq, n) &&
           same_bits(a->dk, b->dk, n) && same_bits(a->dv, b->dv, n) &&
           same_bits(a->den, b->den, at->tokens) && same_bits(a->dsigma, b->dsigma, at->d) &&
           a->guards == b->guards;
}

static void padding_on_any_side_changes_nothing(void **state)
{
    (void)state;
    static const ptrdiff_t extra[] = {0, 1, 37};
    for (int causal = 0; causal < 2; causal++) {
        for (int i = 0; i < 9; i++) {
            linear_case at = case_of(130, 16, 8, 3, causal);
            linear_values x = values_create(&at, 100);
            linear_truth truth = truth_create(&x, &at);
            ref_linear_forward(truth.out, truth.den, &truth.problem);
            ref_linear_backward(&truth.gradient, truth.dout, &truth.problem);
            const ref_linear_sizes size = ref_linear_magnitudes(truth.dout, &truth.problem);
            at.left = extra[i % 3];
            at.right = extra[i / 3];
            case_run(&x, &at, true); // which also checks that padded rows of all results are 0
            case_check("padded", &x, &at, &truth, &size);
            check(x.guards == 0);
            truth_destroy(&truth);
            values_destroy(&x);
        }
    }
}

static void what_padding_holds_is_not_seen(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        for (int left = 0; left < 2; left++) {
            linear_case at = case_of(75, 16, 8, 2, causal);
            at.left = left ? 5 : 0;
            at.right = 37;
            linear_values x = values_create(&at, 200), y = values_create(&at, 200);
            case_run(&x, &at, true);
            at.garbage = -1e-2;
            case_run(&y, &at, true);
            check(same_results(&x, &y, &at));
            values_destroy(&x);
            values_destroy(&y);
        }
    }
}

// Rows added on the right keep all bits where they don't change how the rows before are chunked.
static void padding_on_the_right_keeps_bits(void **state)
{
    (void)state;
    const struct {
        ptrdiff_t tokens, right;
        bool causal;
    } pairs[] = {{9, 1, false},     {9, 7, true},   {91, 5, false},  {91, 5, true}, // same rows
                 {256, 256, false}, {64, 64, true}, {256, 128, true}}; // whole chunks more
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        linear_case at = case_of(pairs[i].tokens, 16, 8, 1, pairs[i].causal);
        linear_values x = values_create(&at, 300), y = values_create(&at, 300);
        case_run(&x, &at, true);
        at.right = pairs[i].right;
        case_run(&y, &at, true);
        check(same_results(&x, &y, &at));
        values_destroy(&x);
        values_destroy(&y);
    }
    // 304 rows are causal chunks of 64, 64, 64, 64 and 48, 352 are five of 64 and one of 32.
    linear_case at = case_of(300, 16, 8, 1, true);
    linear_values x = values_create(&at, 310), y = values_create(&at, 310);
    case_run(&x, &at, false);
    at.right = 37;
    case_run(&y, &at, false);
    check(same_bits(x.out, y.out, 256 * at.d));
    values_destroy(&x);
    values_destroy(&y);
}

// A head all of whose rows are masked, by every kernel.
static void nothing_but_padding_gives_zeros(void **state)
{
    (void)state;
    enum { ROWS = 80, d = 4, D = 8 };
    const linear_case at = case_of(ROWS, d, D, 1, false);
    linear_values x = values_create(&at, 400);
    const rfa_feature_map map = case_map(&x, &at);
    const ptrdiff_t size = rfa_linear_state_size(&map);
    rfa_real *mask = test_reals(ROWS), *zeros = test_reals(size), *work, *ones;
    work = test_reals(rfa_linear_work(&map, ROWS));
    ones = filled(size, 1);
    double *sums = test_doubles(size), *none = test_doubles(size), *zero = test_doubles(ROWS * d);
    const rfa_head head = {
        .q = x.q, .k = x.k, .v = x.v, .ld = d, .rows = ROWS, .mask = mask, .map = &map};
    const rfa_reading reading = {x.out, d, x.den, NULL};
    const rfa_head_gradient gradient = {
        .q = x.dq, .k = x.dk, .v = x.dv, .ld = d, .map = {.sigma = x.dsigma}};
    sums[3] = 7;
    rfa_linear_state(sums, &head, work);
    check(memcmp(sums, none, (size_t)size * sizeof *sums) == 0);
    for (int causal = 0; causal < 2; causal++) {
        const int64_t guards = causal ? rfa_causal_read(&reading, &head, none, work)
                                      : rfa_linear_read(&reading, &head, zeros, work);
        check(guards == 0); // padding is not counted
        check_close("out", x.out, zero, ROWS * d, 0);
        if (causal) {
            rfa_causal_adjoint(sums, x.dout, &reading, &head, work);
        } else {
            rfa_linear_read_backward(&gradient, sums, x.dout, &reading, &head, ones, work);
        }
        for (ptrdiff_t e = 0; e < size; e++) {
            check(sums[e] == 0);
        }
        if (causal) {
            rfa_causal_backward(&gradient, x.dout, &reading, &head, none, none, work);
        } else {
            rfa_linear_state_backward(&gradient, &head, 0, ones, work);
        }
        check_close("dq", x.dq, zero, ROWS * d, 0);
        check_close("dk", x.dk, zero, ROWS * d, 0);
        check_close("dv", x.dv, zero, ROWS * d, 0);
        check_close("dsigma", x.dsigma, zero, d, 0);
    }
    values_destroy(&x);
    rfa_free(mask);
    rfa_free(zeros);
    rfa_free(work);
    rfa_free(ones);
    rfa_free(sums);
    rfa_free(none);
    rfa_free(zero);
}

static void causal_outputs_see_no_later_token(void **state)
{
    (void)state;
    for (int segments = 1; segments <= 3; segments++) {
        const linear_case at = case_of(140, 4, 8, segments, true);
        const ptrdiff_t d = at.d;
        linear_values before = values_create(&at, 500), x = values_create(&at, 500);
        case_run(&before, &at, false);
        for (ptrdiff_t t = 0; t < at.tokens; t++) {
            rfa_real kept[3][4];
            rfa_real *rows[] = {x.q + t * d, x.k + t * d, x.v + t * d};
            for (int i = 0; i < 3; i++) {
                memcpy(kept[i], rows[i], sizeof kept[i]);
                for (ptrdiff_t c = 0; c < d; c++) {
                    rows[i][c] = rows[i][c] * -3 + 1;
                }
            }
            case_run(&x, &at, false);
            check(same_bits(x.out, before.out, t * d));
            check(furthest(x.out + t * d, before.out + t * d, d) > 1e-3);
            check(t + 1 == at.tokens || // and the rest sees it
                  furthest(x.out + (t + 1) * d, before.out + (t + 1) * d, (at.tokens - t - 1) * d) >
                      1e-6);
            for (int i = 0; i < 3; i++) {
                memcpy(rows[i], kept[i], sizeof kept[i]);
            }
        }
        values_destroy(&before);
        values_destroy(&x);
    }
}

// Gradients know of no order either: dk and dv move along with their keys.
static void order_of_keys_does_not_matter(void **state)
{
    (void)state;
    const linear_case at = case_of(101, 16, 8, 2, false);
    const ptrdiff_t n = at.tokens, d = at.d;
    linear_values x = values_create(&at, 600), y = values_create(&at, 600);
    linear_truth truth = truth_create(&x, &at);
    const ref_linear_sizes size = ref_linear_magnitudes(truth.dout, &truth.problem);
    for (ptrdiff_t t = 0; t < n; t++) { // 37 is prime to 101
        memcpy(y.k + 37 * t % n * d, x.k + t * d, (size_t)d * sizeof *x.k);
        memcpy(y.v + 37 * t % n * d, x.v + t * d, (size_t)d * sizeof *x.v);
    }
    case_run(&x, &at, true);
    case_run(&y, &at, true);
    const double unit = case_unit(&at);
    check(furthest(x.out, y.out, n * d) <= unit * size.out);
    check(furthest(x.dq, y.dq, n * d) <= unit * size.q);
    check(furthest(x.dsigma, y.dsigma, d) <= unit * size.sigma);
    for (ptrdiff_t t = 0; t < n; t++) {
        check(furthest(x.dk + t * d, y.dk + 37 * t % n * d, d) <= unit * size.k);
        check(furthest(x.dv + t * d, y.dv + 37 * t % n * d, d) <= unit * size.v);
    }
    truth_destroy(&truth);
    values_destroy(&x);
    values_destroy(&y);
}

// With a wide sigma the features of different tokens are unrelated, and sums of kernels come out
// negative: these denominators are the floor.
static void small_denominators_are_clamped(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        linear_case at = case_of(48, 4, 8, 3, causal);
        at.sigma = 40;
        const ptrdiff_t n = at.tokens, d = at.d;
        const rfa_real floor = (rfa_real)FLOOR;
        linear_values x = values_create(&at, 700);
        linear_truth truth = truth_create(&x, &at);
        const ptrdiff_t clamped = ref_linear_forward(truth.out, truth.den, &truth.problem);
        ref_linear_backward(&truth.gradient, truth.dout, &truth.problem);
        const ref_linear_sizes size = ref_linear_magnitudes(truth.dout, &truth.problem);
        check(clamped >= 5 && clamped <= n - 5);
        case_run(&x, &at, true);
        check(x.guards == clamped);
        for (ptrdiff_t t = 0; t < n; t++) {
            check((x.den[t] == floor) == (truth.den[t] == truth.problem.floor));
        }
        check(all_finite(x.out, n * d) && all_finite(x.dq, n * d) && all_finite(x.dk, n * d) &&
              all_finite(x.dv, n * d) && all_finite(x.dsigma, d));
        case_check("clamped", &x, &at, &truth, &size);
        truth_destroy(&truth);
        values_destroy(&x);
    }
}

// One clamped query: with v = 1, out is 1 / floor times the kernels' sum, and a denominator that
// passed a gradient would cancel the numerator's; its own adjoint must be that of the numerator.
static void a_clamped_denominator_passes_no_gradient(void **state)
{
    (void)state;
    enum { d = 2, D = 2 };
    for (int causal = 0; causal < 2; causal++) {
        const linear_case at = case_of(1, d, D, 1, causal);
        linear_values x = values_create(&at, 800);
        // Angles of q and k differ by pi: the kernel is cos(pi) = -1.
        const double u = 1 / 1.001;
        const rfa_real w[] = {1, 0, 1, 0}, q[] = {1, 0}, k[] = {-1, 0};
        memcpy(x.w, w, sizeof w);
        memcpy(x.q, q, sizeof q);
        memcpy(x.k, k, sizeof k);
        x.sigma[0] = (rfa_real)(M_PI / 2 / u);
        x.v[0] = x.dout[0] = 1;
        x.v[1] = x.dout[1] = 0;
        case_run(&x, &at, true);
        check(x.guards == 1 && x.den[0] == (rfa_real)FLOOR);
        const double floor = (double)(rfa_real)FLOOR, bound = 8 * test_eps() / floor;
        const double out[] = {-1 / floor, 0}, dv[] = {-1 / floor, 0};
        check_close("out", x.out, out, 2, bound);
        check_close("dv", x.dv, dv, 2, bound);
        // Beside the minimum of the kernel its slope shows: -sin(angle) dangle/dq through v alone.
        x.sigma[0] *= (rfa_real)0.75;
        case_run(&x, &at, true);
        check(x.guards == 1);
        const double angle = 2 * (double)x.sigma[0] * u, r = 1.001;
        // du/dx along x is 1 / r - |x| / r^2.
        const double slope = -sin(angle) * (double)x.sigma[0] * (1 / r - 1 / (r * r)) / floor;
        const double dq[] = {slope, 0}, dk[] = {-slope, 0};
        const double dsigma[] = {-sin(angle) * 2 * u / floor, 0};
        check_close("dq", x.dq, dq, 2, bound);
        check_close("dk", x.dk, dk, 2, bound);
        check_close("dsigma", x.dsigma, dsigma, 2, 2 * bound);
        values_destroy(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_on_any_side_changes_nothing),
        cmocka_unit_test(what_padding_holds_is_not_seen),
        cmocka_unit_test(padding_on_the_right_keeps_bits),
        cmocka_unit_test(nothing_but_padding_gives_zeros),
        cmocka_unit_test(causal_outputs_see_no_later_token),
        cmocka_unit_test(order_of_keys_does_not_matter),
        cmocka_unit_test(small_denominators_are_clamped),
        cmocka_unit_test(a_clamped_denominator_passes_no_gradient),
    };
    return test_main(tests);
}
