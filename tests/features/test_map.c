#include "features/map.h"

#include "features/map_case.h"
#include "reference/differences.h"

static void for_all(void (*test)(world *a))
{
    for (int kind = 0; kind < MAPS; kind++) {
        for (int variant = 0; variant < 4; variant++) {
            for (int shape = 0; shape < SHAPES; shape++) {
                world a = world_create(kind, variant, shape);
                test(&a);
                world_destroy(&a);
            }
        }
    }
}

static void facts_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ptrdiff_t F; // at d = 3, D = 5
        bool weighted_free, weighted_unit;
        double floor;
    } want[MAPS] = {{"gaussian", 10, true, false, 0.16},
                    {"arccos", 5, false, false, 1e-6},
                    {"positive", 5, true, true, 1e-20},
                    {"oprf", 5, true, true, 1e-20},
                    {"elu", 3, false, false, 1e-20}};
    for (int kind = 0; kind < MAPS; kind++) {
        rfa_feature_map map = {.kind = (rfa_map_kind)kind, .width = 3, .projections = 5};
        assert_string_equal(rfa_map_name(map.kind), want[kind].name);
        check(rfa_feature_count(&map) == want[kind].F);
        check(rfa_feature_floor(&map) == want[kind].floor);
        check(rfa_feature_is_weighted(&map) == want[kind].weighted_free);
        map.unit_norm = true;
        check(rfa_feature_is_weighted(&map) == want[kind].weighted_unit);
    }
}

// Features, and a row's shift: what the reference takes out of it.
static void forward(rfa_real *phi, double *shift, bool is_key, const rfa_real *mask, world *a)
{
    rfa_real *log_weight = test_reals(a->rows);
    rfa_features_forward(phi, is_key ? log_weight : NULL, a->x, a->ld, mask, &a->map, a->rows, 0,
                         a->work);
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        shift[t] =
            is_key ? (double)log_weight[t] : ref_map_greatest(a->x_wide + t * a->ld, &a->truth);
    }
    rfa_free(log_weight);
}

static void check_definition(world *a)
{
    rfa_real *phi = test_reals(a->rows * a->F);
    double *want = test_doubles(a->F), *shift = test_doubles(a->rows);
    for (int is_key = 0; is_key < 2; is_key++) {
        forward(phi, shift, is_key, NULL, a);
        for (ptrdiff_t t = 0; t < a->rows; t++) {
            check(isfinite(shift[t]) && (a->is_weighted || shift[t] == 0));
            ref_map_features(want, a->x_wide + t * a->ld, is_key, shift[t], &a->truth);
            check_close(rfa_map_name(a->map.kind), phi + t * a->F, want, a->F,
                        4 * test_eps() * (1 + a->exponent) * (a->largest + a->steepest));
        }
    }
    rfa_free(phi);
    rfa_free(want);
    rfa_free(shift);
}

static void features_are_the_definition(void **state)
{
    (void)state;
    for_all(check_definition);
}

static void check_mask(world *a)
{
    rfa_real *bare = test_reals(a->rows * a->F), *masked = test_reals(a->rows * a->F);
    rfa_real *mask = test_reals(a->rows);
    double *bare_weight = test_doubles(a->rows), *weight = test_doubles(a->rows);
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        mask[t] = t % 3 != 0;
    }
    forward(bare, bare_weight, true, NULL, a);
    forward(masked, weight, true, mask, a);
    for (ptrdiff_t i = 0; i < a->rows * a->F; i++) {
        check(masked[i] == (mask[i / a->F] != 0 ? bare[i] : 0));
    }
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        check(weight[t] == (mask[t] != 0 ? bare_weight[t] : -INFINITY));
    }
    // And no gradient comes out of them.
    const rfa_map_gradient none = {0};
    rfa_real *dx = test_reals(a->rows * a->d);
    test_fill(bare, a->rows * a->F, 4, 1);
    rfa_features_backward(dx, a->d, &none, bare, masked, true, a->x, a->ld, &a->map, a->rows,
                          a->work);
    for (ptrdiff_t i = 0; i < a->rows * a->d; i++) {
        check(mask[i / a->d] != 0 ? isfinite(dx[i]) : dx[i] == 0);
    }
    rfa_free(bare);
    rfa_free(masked);
    rfa_free(mask);
    rfa_free(bare_weight);
    rfa_free(weight);
    rfa_free(dx);
}

static void masked_rows_are_exactly_zero_and_others_keep_their_bits(void **state)
{
    (void)state;
    for_all(check_mask);
}

// sum(c o exp(log-weight - shift) phi) of the definition over rows [first, end), shift fixed: its
// derivative is that with respect to phi as it stands and, of a key, to its log-weight.
typedef struct {
    const world *a;
    bool is_key;
    ptrdiff_t first, end;
    const double *c, *shift; // [rows][F], [rows]
    double *feature;         // [F]
} loss_context;

static double loss(const void *context)
{
    const loss_context *at = context;
    const world *a = at->a;
    double sum = 0;
    for (ptrdiff_t t = at->first; t < at->end; t++) {
        ref_map_features(at->feature, a->x_wide + t * a->ld, at->is_key, at->shift[t], &a->truth);
        for (ptrdiff_t f = 0; f < a->F; f++) {
            sum += at->c[t * a->F + f] * at->feature[f];
        }
    }
    return sum;
}

// dphi, but 0 where a step of the differences could cross the corner at 0 of arccos and elu.
static void fill_dphi(rfa_real *dphi, const world *a, double relative_step)
{
    double product[64];
    test_fill(dphi, a->rows * a->F, 4, 1);
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        ref_map_products(product, a->x_wide + t * a->ld, &a->truth);
        for (ptrdiff_t f = 0; f < a->F; f++) {
            if ((a->map.kind == RFA_MAP_ARCCOS || a->map.kind == RFA_MAP_ELU) &&
                fabs(product[f]) <= 4 * relative_step * a->exponent) {
                dphi[t * a->F + f] = 0;
            }
        }
    }
}

// The largest sums of absolute terms behind an element of each gradient.
typedef struct {
    double dy, dsigma, dw, c;
} sizes;

static sizes magnitudes(const world *a, const double *c, bool is_key)
{
    sizes s = {0};
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        const double y = scaled_length(a, t);
        double dy = 0, most = 0;
        for (ptrdiff_t f = 0; f < a->F; f++) {
            const double size = fabs(c[t * a->F + f]);
            dy += size * (a->steepest * (a->map.kind == RFA_MAP_ELU ? 1 : a->w_row) +
                          (is_key && a->is_weighted ? y * a->largest : 0));
            most = fmax(most, size);
            s.c = fmax(s.c, size);
        }
        const double u =
            a->map.unit_norm ? 1 : length(a->x_wide + t * a->ld, a->d) * pow((double)a->d, -0.25);
        s.dy = fmax(s.dy, dy);
        s.dsigma += dy * u;
        s.dw += 2 * most * (a->steepest * y + 2 * a->largest * fabs(a->map.a) * a->w_row);
    }
    return s;
}

// dx of row t, unless it is 0, where unit norm has a corner; the step follows the row's length.
static void check_dx(const rfa_real *dx, ptrdiff_t t, double unit, double step, loss_context *at)
{
    const world *a = at->a;
    const bool is_unit = a->map.unit_norm && a->map.kind != RFA_MAP_ELU;
    const double norm = length(a->x_wide + t * a->ld, a->d);
    double want[64], sigma = 0;
    if (norm == 0) {
        return;
    }
    for (ptrdiff_t j = 0; j < a->d; j++) {
        sigma = fmax(sigma, fabs(a->sigma_wide[j]));
    }
    const double inverse = a->map.kind == RFA_MAP_ELU ? 1
                           : is_unit                  ? 2 * sigma / (norm + 1e-3)
                                                      : sigma * pow((double)a->d, -0.25);
    at->first = t;
    at->end = t + 1;
    ref_differences(want, a->x_wide + t * a->ld, a->d, step * norm, loss, at);
    check_close("dx", dx, want, a->d, unit * inverse);
}

static void check_gradients(world *a, bool is_key)
{
    static const double before = 3, untouched = 123;
    const double step = 2e-3 / (1 + a->exponent);
    const ptrdiff_t n = a->rows * a->F, ld = a->d + 1, d = a->d;
    rfa_real *phi = test_reals(n), *dphi = test_reals(n), *dx = test_reals(a->rows * ld);
    rfa_real *dsigma = test_reals(d), *dw = test_reals(a->D * d);
    double *c = test_doubles(n), *shift = test_doubles(a->rows), *feature = test_doubles(a->F);
    double *want = test_doubles(d);
    forward(phi, shift, is_key, NULL, a);
    fill_dphi(dphi, a, step);
    widen(c, dphi, n);
    for (ptrdiff_t i = 0; i < a->rows * ld; i++) {
        dx[i] = (rfa_real)untouched;
    }
    for (ptrdiff_t i = 0; i < a->D * d; i++) {
        dw[i] = (rfa_real)before;
    }
    for (ptrdiff_t i = 0; i < d; i++) {
        dsigma[i] = (rfa_real)before;
    }
    const rfa_map_gradient gradient = {.sigma = dsigma, .w = dw};
    rfa_features_backward(dx, ld, &gradient, dphi, phi, is_key, a->x, a->ld, &a->map, a->rows,
                          a->work);
    // phi is good to (1 + exponent) rounding units of itself, the differences to 1e-10.
    const sizes size = magnitudes(a, c, is_key);
    const double unit = 8 * test_eps() * (1 + a->exponent) + 1e-10 * (1 + a->exponent);
    loss_context at = {a, is_key, 0, a->rows, c, shift, feature};
    for (ptrdiff_t t = 0; t < a->rows; t++) {
        check_dx(dx + t * ld, t, unit * size.dy, step, &at);
        check(dx[t * ld + d] == (rfa_real)untouched);
    }
    at.first = 0;
    at.end = a->rows;
    ref_differences(want, a->sigma_wide, d, step, loss, &at);
    for (ptrdiff_t j = 0; j < d; j++) {
        want[j] += before;
    }
    check_close("dsigma", dsigma, want, d, unit * (before + size.dsigma));
    for (ptrdiff_t f = 0; f<a->D; f += a->D> 2 ? a->D / 2 : 1) {
        ref_differences(want, a->w_wide + f * d, d, step, loss, &at);
        for (ptrdiff_t j = 0; j < d; j++) {
            want[j] += before;
        }
        check_close("dw", dw + f * d, want, d, unit * (before + size.dw));
    }
    rfa_free(phi);
    rfa_free(dphi);
    rfa_free(dx);
    rfa_free(dsigma);
    rfa_free(dw);
    rfa_free(c);
    rfa_free(shift);
    rfa_free(feature);
    rfa_free(want);
}

static void check_backward(world *a)
{
    check_gradients(a, false);
    check_gradients(a, true);
}

static void backward_is_the_derivative(void **state)
{
    (void)state;
    for_all(check_backward);
}

// What isn't wanted isn't needed either, and leaves dx as it is.
static void check_not_wanted(world *a)
{
    const ptrdiff_t n = a->rows * a->F, m = a->rows * a->d;
    rfa_real *phi = test_reals(n), *dphi = test_reals(n), *dx = test_reals(m),
             *same = test_reals(m);
    rfa_real *dsigma = test_reals(a->d), *dw = test_reals(a->D * a->d);
    double *shift = test_doubles(a->rows);
    const rfa_map_gradient all = {.sigma = dsigma, .w = dw}, none = {0};
    forward(phi, shift, true, NULL, a);
    test_fill(dphi, n, 4, 1);
    rfa_features_backward(dx, a->d, &all, dphi, phi, true, a->x, a->ld, &a->map, a->rows, a->work);
    test_fill(dphi, n, 4, 1);
    rfa_features_backward(same, a->d, &none, dphi, phi, true, a->x, a->ld, &a->map, a->rows,
                          a->work);
    check(memcmp(dx, same, (size_t)m * sizeof *dx) == 0);
    rfa_free(phi);
    rfa_free(dphi);
    rfa_free(dx);
    rfa_free(same);
    rfa_free(dsigma);
    rfa_free(dw);
    rfa_free(shift);
}

static void gradients_that_are_not_wanted_change_nothing(void **state)
{
    (void)state;
    for_all(check_not_wanted);
}

// d loss / d product f at x = 0, where products are 0 and log-weights have no slope.
static double slope_at_zero(const world *a, const rfa_real *dphi, ptrdiff_t f)
{
    const double scale = 1 / sqrt((double)a->D), c = (double)dphi[f];
    double greatest = 0;
    switch (a->map.kind) {
    case RFA_MAP_GAUSSIAN: // dsin
    case RFA_MAP_POSITIVE: return c * scale;
    case RFA_MAP_ARCCOS: // the corner counts as flat
        return 0;
    case RFA_MAP_OPRF:
        greatest = ref_map_greatest(a->x_wide + ZERO_ROW * a->ld, &a->truth);
        return c * scale * sqrt(1 - 4 * a->map.a) *
               exp(a->map.a * pow(length(a->w_wide + f * a->d, a->d), 2) - greatest);
    case RFA_MAP_ELU: return c;
    }
    return 0;
}

static void check_zero_row(world *a)
{
    if (a->rows <= ZERO_ROW) {
        return;
    }
    const ptrdiff_t n = a->rows * a->F, d = a->d;
    const bool is_elu = a->map.kind == RFA_MAP_ELU;
    rfa_real *phi = test_reals(n), *dphi = test_reals(n), *dx = test_reals(a->rows * d);
    double *want = test_doubles(d), *shift = test_doubles(a->rows);
    const double inverse = is_elu ? 1 : a->map.unit_norm ? 1e3 : pow((double)d, -0.25);
    const rfa_map_gradient none = {0};
    double size = 0;
    forward(phi, shift, true, NULL, a);
    test_fill(dphi, n, 5, 1);
    const rfa_real *row = dphi + ZERO_ROW * a->F;
    for (ptrdiff_t f = 0; f < (is_elu ? d : a->D); f++) {
        const double slope = slope_at_zero(a, row, f) * inverse;
        for (ptrdiff_t j = 0; j < d; j++) {
            want[j] +=
                is_elu ? (j == f ? slope : 0) : slope * a->w_wide[f * d + j] * a->sigma_wide[j];
        }
        size += fabs(slope) * fmax(1, a->w_row) * 3; // sigma is below 3
    }
    rfa_features_backward(dx, d, &none, dphi, phi, true, a->x, a->ld, &a->map, a->rows, a->work);
    check_close("dx of 0", dx + ZERO_ROW * d, want, d, 8 * test_eps() * (1 + a->exponent) * size);
    rfa_free(phi);
    rfa_free(dphi);
    rfa_free(dx);
    rfa_free(want);
    rfa_free(shift);
}

static void a_row_of_zeros_is_smooth(void **state)
{
    (void)state;
    for_all(check_zero_row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_are_those_of_the_table),
        cmocka_unit_test(features_are_the_definition),
        cmocka_unit_test(masked_rows_are_exactly_zero_and_others_keep_their_bits),
        cmocka_unit_test(backward_is_the_derivative),
        cmocka_unit_test(gradients_that_are_not_wanted_change_nothing),
        cmocka_unit_test(a_row_of_zeros_is_smooth),
    };
    return test_main(tests);
}
