#include "support/support.h"
#include "tensor/vmath.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const bool single = sizeof(rfa_real) == sizeof(float);

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static rfa_real next_above(rfa_real x)
{
#ifdef RFA_DOUBLE
    return nextafter(x, (double)INFINITY);
#else
    return nextafterf(x, INFINITY);
#endif
}

// Error of got in units of the last place of want, which is normal or 0.
static double ulps(rfa_real got, long double want)
{
    const rfa_real size = (rfa_real)fabsl(want);
    return (double)(fabsl((long double)got - want) / ((long double)next_above(size) - size));
}

static void test_exp_is_accurate(void **state)
{
    (void)state;
    enum { COUNT = 300000 };
    rfa_real *x = test_reals(COUNT), *y = test_reals(COUNT);
    const double low = single ? -87.3 : -708.3, high = single ? 88.7 : 709.7;
    for (int i = 0; i < COUNT; i++) {
        const double sweep = low + (high - low) * i / COUNT;
        x[i] = (rfa_real)(i % 3 ? sweep : sweep * pow(2, -i % 40)); // and small ones
    }
    rfa_vexp(y, x, COUNT);
    double worst = 0;
    for (int i = 0; i < COUNT; i++) {
        worst = fmax(worst, ulps(y[i], expl((long double)x[i])));
    }
    check(worst < 1.1);
    rfa_free(x);
    rfa_free(y);
}

static void test_exp_at_the_ends(void **state)
{
    (void)state;
    const double far = single ? 89 : 710;
    const rfa_real x[] = {0,
                          (rfa_real)-0.0,
                          (rfa_real)INFINITY,
                          (rfa_real)-INFINITY,
                          (rfa_real)far,
                          (rfa_real)(-1.2 * far),
                          (rfa_real)1e30,
                          (rfa_real)-1e30,
                          (rfa_real)NAN,
                          (rfa_real)-NAN};
    rfa_real y[10];
    rfa_vexp(y, x, 10);
    check(y[0] == 1 && y[1] == 1);
    check(y[2] == (rfa_real)INFINITY && y[4] == (rfa_real)INFINITY && y[6] == (rfa_real)INFINITY);
    check(y[3] == 0 && y[5] == 0 && y[7] == 0);
    check(isnan(y[8]) && isnan(y[9]));

    // The outermost arguments whose results are finite and normal, and their outer neighbours.
    const rfa_real greatest = single ? FLT_MAX : (rfa_real)DBL_MAX;
    const rfa_real smallest = single ? FLT_MIN : (rfa_real)DBL_MIN;
    rfa_real high = (rfa_real)logl((long double)greatest);
    while (expl((long double)high) > (long double)greatest) {
        high = -next_above(-high);
    }
    rfa_real low = (rfa_real)logl((long double)smallest);
    while (expl((long double)low) < (long double)smallest) {
        low = next_above(low);
    }
    rfa_vexp(y, (rfa_real[]){high, next_above(high), low, -next_above(-low)}, 4);
    check(isfinite(y[0]) && y[0] > greatest / 2 && y[1] == (rfa_real)INFINITY);
    check(y[2] >= smallest && y[2] < smallest * (rfa_real)1.01);
    check(single ? y[3] == 0 : y[3] < smallest);
}

static void test_sin_cos_are_accurate(void **state)
{
    (void)state;
    enum { COUNT = 400000 };
    rfa_real *x = test_reals(COUNT), *s = test_reals(COUNT), *c = test_reals(COUNT);
    test_fill(x, COUNT, 5, 1);
    for (int i = 0; i < COUNT; i++) {
        const int quarter = i / 4 - COUNT / 8;
        switch (i % 4) {
        case 0: x[i] *= (rfa_real)pow(2, i % 97 - 40); break; // all magnitudes, to 2^56
        case 1: x[i] *= 30; break;
        case 2: x[i] = (rfa_real)(M_PI_2 * quarter); break; // next to the zeros
        default: x[i] *= 20000; break;
        }
    }
    rfa_vsin_cos(s, c, x, COUNT);
    double worst_sin = 0, worst_cos = 0;
    for (int i = 0; i < COUNT; i++) {
        worst_sin = fmax(worst_sin, ulps(s[i], sinl((long double)x[i])));
        worst_cos = fmax(worst_cos, ulps(c[i], cosl((long double)x[i])));
    }
    check(worst_sin < 1.6);
    check(worst_cos < 1.6);

    const rfa_real ends[] = {0, (rfa_real)INFINITY, (rfa_real)-INFINITY, (rfa_real)NAN,
                             (rfa_real)FLT_MAX};
    rfa_vsin_cos(s, c, ends, 5);
    check(s[0] == 0 && c[0] == 1);
    check(isnan(s[1]) && isnan(c[1]) && isnan(s[2]) && isnan(c[2]) && isnan(s[3]) && isnan(c[3]));
    check(ulps(s[4], sinl((long double)ends[4])) < 1.6);
    check(ulps(c[4], cosl((long double)ends[4])) < 1.6);
    rfa_free(x);
    rfa_free(s);
    rfa_free(c);
}

// Every slice of an array, computed alone, gives the bits of the whole.
static void test_bits_do_not_depend_on_place(void **state)
{
    (void)state;
    enum { COUNT = 128, LONGEST = 40 };
    rfa_real x[COUNT], y[COUNT], s[COUNT], c[COUNT], part[COUNT], part_s[COUNT], part_c[COUNT];
    test_fill(x, COUNT, 8, 20);
    x[20] = (rfa_real)INFINITY; // neighbours that take other paths
    x[37] = (rfa_real)NAN;
    x[50] = (rfa_real)3e7;
    x[64] = (rfa_real)-3e7;
    rfa_vexp(y, x, COUNT);
    rfa_vsin_cos(s, c, x, COUNT);
    bool same = true;
    for (ptrdiff_t from = 0; from < COUNT - LONGEST; from++) {
        for (ptrdiff_t n = 1; n <= LONGEST; n++) {
            const ptrdiff_t to = (from + n) % 9; // another alignment of the results
            rfa_vexp(part + to, x + from, n);
            rfa_vsin_cos(part_s + to, part_c + to, x + from, n);
            same = same && same_bits(part + to, y + from, n) &&
                   same_bits(part_s + to, s + from, n) && same_bits(part_c + to, c + from, n);
        }
    }
    check(same);
    memcpy(part, x, sizeof x);
    rfa_vexp(part, part, COUNT);
    check(same_bits(part, y, COUNT));
}

static void test_exp_sum(void **state)
{
    (void)state;
    enum { LONGEST = 200 };
    rfa_real x[LONGEST + 16], moved[LONGEST + 16], y[LONGEST + 16], want[LONGEST + 16];
    const rfa_real shift = (rfa_real)1.25;
    test_fill(x, LONGEST, 2, 3);
    for (ptrdiff_t n = 0; n <= LONGEST; n++) {
        double total = 0;
        for (ptrdiff_t i = 0; i < n; i++) {
            want[i] = x[i] - shift;
        }
        rfa_vexp(want, want, n);
        for (ptrdiff_t i = 0; i < n; i++) {
            total += (double)want[i];
        }
        y[n] = 77;
        const rfa_real sum = rfa_vexp_sum(y, x, shift, n);
        check(same_bits(y, want, n) && y[n] == 77);
        const ptrdiff_t additions = n / 16 + 5; // at most, on any term's way
        check(fabs((double)sum - total) <= (double)additions * test_eps() * total);
        for (ptrdiff_t offset = 1; offset < 16; offset += 3) {
            memcpy(moved + offset, x, (size_t)n * sizeof *x);
            const rfa_real again = rfa_vexp_sum(moved + offset, moved + offset, shift, n);
            check(same_bits(&again, &sum, 1));
            check(same_bits(moved + offset, want, n));
        }
    }
    x[3] = (rfa_real)NAN;
    check(isnan(rfa_vexp_sum(y, x, 0, 20)));
}

// Whole rows and factors give the bits of one array after another, large arguments as well.
static void test_rows_and_factors(void **state)
{
    (void)state;
    enum { ROWS = 5, MOST = 40, LD = 2 * MOST + 3 };
    rfa_real x[ROWS * MOST], s[ROWS * LD], *c = s + MOST, want_s[MOST], want_c[MOST], y[MOST];
    const rfa_real factor[ROWS] = {1, (rfa_real)0.3, 0, -7, (rfa_real)1e-3};
    const rfa_real shift = (rfa_real)0.7;
    for (ptrdiff_t n = 1; n <= MOST; n++) {
        test_fill(x, ROWS * n, (uint32_t)n, 20);
        x[n / 2] = (rfa_real)3e7;
        x[(ROWS - 1) * n] = (rfa_real)-3e7;
        for (ptrdiff_t i = 0; i < ROWS * LD; i++) {
            s[i] = 77;
        }
        rfa_vsin_cos_rows(s, c, LD, x, factor, ROWS, n);
        for (ptrdiff_t t = 0; t < ROWS; t++) {
            rfa_vsin_cos(want_s, want_c, x + t * n, n);
            for (ptrdiff_t i = 0; i < n; i++) {
                want_s[i] *= factor[t];
                want_c[i] *= factor[t];
            }
            check(same_bits(s + t * LD, want_s, n) && same_bits(c + t * LD, want_c, n));
            check(n == MOST || s[t * LD + n] == 77); // and nothing beside them
            check(s[t * LD + MOST + n] == 77);

            for (ptrdiff_t i = 0; i < n; i++) {
                want_s[i] = x[t * n + i] - shift;
            }
            rfa_vexp(want_s, want_s, n);
            for (ptrdiff_t i = 0; i < n; i++) {
                want_s[i] *= factor[t];
            }
            rfa_vexp_scaled(y, x + t * n, shift, factor[t], n);
            check(same_bits(y, want_s, n));
        }
    }
}

static void test_max(void **state)
{
    (void)state;
    rfa_real x[48];
    for (int n = 1; n <= 40; n++) {
        for (int at = 0; at < n; at++) {
            for (int i = 0; i < 48; i++) {
                x[i] = (rfa_real)(i < n ? -100 - i % 7 : 1000);
            }
            x[at] = -99;
            check(rfa_vmax(x, n) == -99);
            x[at] = (rfa_real)NAN;
            check(n == 1 ? rfa_vmax(x, n) == (rfa_real)-INFINITY : rfa_vmax(x, n) <= -100);
        }
    }
    check(rfa_vmax(x, 0) == (rfa_real)-INFINITY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_is_accurate),
        cmocka_unit_test(test_exp_at_the_ends),
        cmocka_unit_test(test_sin_cos_are_accurate),
        cmocka_unit_test(test_bits_do_not_depend_on_place),
        cmocka_unit_test(test_exp_sum),
        cmocka_unit_test(test_rows_and_factors),
        cmocka_unit_test(test_max),
    };
    return test_main(tests);
}
