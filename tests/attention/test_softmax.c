#include "reference/softmax.h"
#include "support/softmax_head.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void check_same(const head *a, const head *b, const layout *at)
{
    const ptrdiff_t n = at->len * at->d;
    check(same_bits(a->out, b->out, n));
    check(same_bits(a->lse, b->lse, at->len));
    check(same_bits(a->dq, b->dq, n));
    check(same_bits(a->dk, b->dk, n));
    check(same_bits(a->dv, b->dv, n));
}

static double *to_doubles(const rfa_real *x, ptrdiff_t n)
{
    double *out = test_doubles(n);
    for (ptrdiff_t i = 0; i < n; i++) {
        out[i] = (double)x[i];
    }
    return out;
}

// A score carries d / 2 roundings of its own size, hence a weight a relative error of eps times it;
// sums of N terms add sqrt(N) eps; the untouched 123 in dkv 123 eps of double.
static void check_against_reference(const layout *at)
{
    const ptrdiff_t n = at->len * at->d;
    head x = head_create(at, 7);
    head_run(&x, at, ~0u);
    double *q = to_doubles(x.q, n), *k = to_doubles(x.k, n), *v = to_doubles(x.v, n);
    double *dout = to_doubles(x.dout, n);
    double *out = test_doubles(n), *lse = test_doubles(at->len);
    double *dq = test_doubles(n), *dk = test_doubles(n), *dv = test_doubles(n);
    const ref_softmax reference = {at->len, at->d, at->causal, q, k, v};
    ref_softmax_forward(out, lse, &reference);
    ref_softmax_backward(dq, dk, dv, dout, &reference);
    const ref_softmax_sizes size = ref_softmax_magnitudes(dout, &reference);
    const double unit = test_eps() * (2 + size.score + sqrt((double)at->len));
    check_close("out", x.out, out, n, unit * size.out);
    check_close("lse", x.lse, lse, at->len, unit);
    check_close("dq", x.dq, dq, n, unit * size.dq);
    check_close("dk", x.dk, dk, n, unit * size.dk + untouched * 0x1p-51);
    check_close("dv", x.dv, dv, n, unit * size.dv + untouched * 0x1p-51);
    double *all[] = {q, k, v, dout, out, lse, dq, dk, dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
    head_destroy(&x);
}

static void test_equals_reference(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[] = {1, 15, 16, 17, 63, 64, 65, 127, 257};
    static const int segments[] = {1, 2, 5, 16}; // with empty ones
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (size_t s = 0; s < sizeof segments / sizeof *segments; s++) {
            for (int causal = 0; causal < 2; causal++) {
                const layout at = {lengths[l], l % 2 ? 8 : 5, segments[s], causal, 1, 0, 3, 99};
                check_against_reference(&at);
            }
        }
    }
}

// Segments longer than a piece are cut within.
static void test_pieces_equal_reference(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        check_against_reference(&(layout){601, 32, 1, causal, 1, 0, 0, 99});
        check_against_reference(&(layout){913, 2, 3, causal, 1, 0, 1, 99});
    }
}

static void test_large_scores(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        const layout at = {300, 8, 4, causal, 12, 0, 0, 99};
        check_against_reference(&at); // fails on anything that is not finite
    }
}

// All scores far below and far above zero: the running maximum is what keeps exp in range.
static void test_shifted_scores(void **state)
{
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2) {
        const layout at = {40, 4, 2, false, 0, 0, 0, 99};
        head x = head_create(&at, 1);
        for (ptrdiff_t i = 0; i < at.len * at.d; i++) {
            x.q[i] = 1000;
            x.k[i] = (rfa_real)sign;
        }
        head_run(&x, &at, ~0u);
        double *mean = test_doubles(at.len * at.d);
        for (ptrdiff_t i = 0; i < at.len * at.d; i++) {
            for (ptrdiff_t t = 0; t < at.len; t++) {
                mean[i] += (double)x.v[t * at.d + i % at.d] / (double)at.len;
            }
        }
        check_close("mean", x.out, mean, at.len * at.d, 20 * test_eps());
        check(fabs((double)x.lse[7] - (2000 * sign + log(40))) < 4000 * test_eps());
        rfa_free(mean);
        head_destroy(&x);
    }
}

static double loss(head *x, const layout *at)
{
    head_run(x, at, ~0u);
    double sum = 0;
    for (ptrdiff_t i = 0; i < at->len * at->d; i++) {
        sum += (double)x->out[i] * (double)x->dout[i];
    }
    return sum;
}

static void test_finite_differences(void **state)
{
    (void)state;
    if (sizeof(rfa_real) == sizeof(float)) {
        return; // differences need double
    }
    const double h = 1e-5; // errors: h^2 of the formula, eps / h of rounding
    for (int causal = 0; causal < 2; causal++) {
        const layout at = {21, 3, 2, causal, 1, 0, 0, 99};
        head x = head_create(&at, 3);
        head_run(&x, &at, ~0u);
        const ptrdiff_t n = at.len * at.d;
        double *given[] = {to_doubles(x.dq, n), to_doubles(x.dk, n), to_doubles(x.dv, n)};
        rfa_real *inputs[] = {x.q, x.k, x.v};
        for (int which = 0; which < 3; which++) {
            double worst = 0;
            for (ptrdiff_t i = 0; i < n; i++) {
                const rfa_real held = inputs[which][i];
                inputs[which][i] = held + (rfa_real)h;
                const double above = loss(&x, &at);
                inputs[which][i] = held - (rfa_real)h;
                const double below = loss(&x, &at);
                inputs[which][i] = held;
                worst = fmax(worst, fabs((above - below) / (2 * h) - given[which][i]));
            }
            check(worst < 1e-8);
            rfa_free(given[which]);
        }
        head_destroy(&x);
    }
}

static void test_causal_sees_no_future(void **state)
{
    (void)state;
    static const struct {
        ptrdiff_t len, step;
        int segments;
    } cases[] = {{37, 1, 1}, {37, 1, 2}, {130, 9, 3}, {400, 37, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const layout at = {cases[i].len, 4, cases[i].segments, true, 1, 0, 0, 99};
        head x = head_create(&at, 5), y = head_create(&at, 5);
        head_run(&x, &at, ~0u);
        for (ptrdiff_t t = 0; t < at.len; t += cases[i].step) {
            for (ptrdiff_t c = 0; c < at.d; c++) {
                y.q[t * at.d + c] += 1;
                y.k[t * at.d + c] += 50;
                y.v[t * at.d + c] -= 1e6f;
            }
            head_run(&y, &at, ~0u);
            check(same_bits(x.out, y.out, t * at.d));
            check(same_bits(x.lse, y.lse, t));
            check(!same_bits(x.out + t * at.d, y.out + t * at.d, at.d));
            memcpy(y.q, x.q, (size_t)(at.len * at.d) * sizeof *x.q);
            memcpy(y.k, x.k, (size_t)(at.len * at.d) * sizeof *x.k);
            memcpy(y.v, x.v, (size_t)(at.len * at.d) * sizeof *x.v);
        }
        head_destroy(&x);
        head_destroy(&y);
    }
}

// Rows of padding, what they hold, and the columns beside the head change no bit.
static void test_layout_changes_no_bit(void **state)
{
    (void)state;
    static const ptrdiff_t extra[] = {0, 1, 37}, columns[] = {0, 1, 32};
    static const double garbage[] = {-3e4, 1e38, NAN};
    static const ptrdiff_t lengths[] = {1, 33, 270};
    for (int causal = 0; causal < 2; causal++) {
        for (int l = 0; l < 3; l++) {
            const layout plain = {lengths[l], 6, 1 + l % 2, causal, 1, 0, 0, 0};
            head x = head_create(&plain, 9), y = head_create(&plain, 9);
            head_run(&x, &plain, ~0u);
            for (int i = 0; i < 27; i++) {
                layout at = plain;
                at.extra = extra[i % 3];
                at.columns = columns[i / 3 % 3];
                at.garbage = garbage[i / 9];
                head_run(&y, &at, ~0u);
                check_same(&x, &y, &plain);
            }
            head_destroy(&x);
            head_destroy(&y);
        }
    }
}

// What a rank computes for its own segments does not depend on which others it owns.
static void test_segments_stand_alone(void **state)
{
    (void)state;
    for (int causal = 0; causal < 2; causal++) {
        const layout at = {150, 4, 4, causal, 1, 0, 2, 99};
        rfa_softmax_block blocks[MOST_BLOCKS];
        head_cut(blocks, &at);
        head x = head_create(&at, 11), y = head_create(&at, 11);
        head_run(&x, &at, ~0u);
        double *dkv_sum = test_doubles(2 * at.len * at.d);
        for (int g = 0; g < at.segments; g++) {
            head_run(&y, &at, 1u << g);
            const ptrdiff_t from = blocks[g].begin * at.d, count = blocks[g].tokens * at.d;
            check(same_bits(x.out + from, y.out + from, count));
            check(same_bits(x.dq + from, y.dq + from, count));
            check(same_bits(x.lse + blocks[g].begin, y.lse + blocks[g].begin, blocks[g].tokens));
            for (ptrdiff_t i = 0; i < at.len * at.d; i++) {
                dkv_sum[i] += (double)y.dk[i];
                dkv_sum[at.len * at.d + i] += (double)y.dv[i];
            }
        }
        // Contributions add up; each is rounded to rfa_real here.
        check_close("dk", x.dk, dkv_sum, at.len * at.d, 100 * test_eps());
        check_close("dv", x.dv, dkv_sum + at.len * at.d, at.len * at.d, 100 * test_eps());
        head_destroy(&x);
        head_destroy(&y);
        rfa_free(dkv_sum);
    }
}

// 16 queries at 0 and 20 keys at 8: the first 8 see nothing, the rest what a plain run shows.
static void test_queries_without_keys(void **state)
{
    (void)state;
    enum { D = 4, KEYS = 32 };
    const rfa_softmax_block queries = {0, 16, 16, 0}, keys = {0, KEYS, 20, 8};
    rfa_real q[16 * D], out[16 * D], dq[16 * D], lse[16], k[KEYS * D], v[KEYS * D];
    double dkv[KEYS * 2 * D] = {0};
    rfa_real *work = test_reals(rfa_softmax_work_size(KEYS, D));
    test_fill(q, 16 * D, 1, 1);
    test_fill(k, KEYS * D, 2, 1);
    test_fill(v, KEYS * D, 3, 1);
    rfa_softmax_keys seen_keys = {.k = k, .v = v, .ld_k = D, .ld_v = D, .blocks = &keys, .n = 1};
    const rfa_softmax_gradient dkeys = {.k = dkv, .v = dkv + D, .ld = 2 * D};
    rfa_softmax_read(out, D, lse, q, D, &queries, &seen_keys, D, true, work);
    rfa_softmax_read_backward(dq, D, &dkeys, q, D, out, D, lse, q, D, &queries, &seen_keys, D, true,
                              work);
    for (int i = 0; i < 16; i++) {
        check(i < 8 ? lse[i] == (rfa_real)-INFINITY : isfinite(lse[i]));
        for (int c = 0; c < D; c++) {
            check(i < 8 ? out[i * D + c] == 0 && dq[i * D + c] == 0 : isfinite(dq[i * D + c]));
        }
    }
    check(same_bits(out + 8 * D, v, D)); // query 8 sees key 8 alone: its v as it is
    for (int j = 0; j < KEYS; j++) {
        const bool seen = j < 8; // query 15 sees the keys at 8 to 15
        check((dkv[j * 2 * D + D] != 0) == seen);
    }

    // No keys at all: none in the list, only empty blocks, or all in the future.
    const rfa_softmax_block empty = {0, 16, 0, 0}, future = {0, KEYS, 20, 16};
    const struct {
        const rfa_softmax_block *blocks;
        int n;
    } none[] = {{NULL, 0}, {&empty, 1}, {&future, 1}};
    for (int i = 0; i < 3; i++) {
        memset(dkv, 0, sizeof dkv);
        seen_keys.blocks = none[i].blocks;
        seen_keys.n = none[i].n;
        rfa_softmax_read(out, D, lse, q, D, &queries, &seen_keys, D, true, work);
        rfa_softmax_read_backward(dq, D, &dkeys, q, D, out, D, lse, q, D, &queries, &seen_keys, D,
                                  true, work);
        for (int e = 0; e < 16 * D; e++) {
            check(out[e] == 0 && dq[e] == 0 && lse[e / D] == (rfa_real)-INFINITY);
        }
        for (int e = 0; e < KEYS * 2 * D; e++) {
            check(dkv[e] == 0);
        }
    }
    rfa_free(work);
}

// A NaN that a query sees must reach its output; padding and masks must not swallow it.
static void test_nan_is_not_hidden(void **state)
{
    (void)state;
    const layout at = {40, 4, 2, true, 1, 0, 0, 99};
    head x = head_create(&at, 13);
    x.k[17 * at.d] = (rfa_real)NAN;
    head_run(&x, &at, ~0u);
    for (ptrdiff_t t = 0; t < at.len; t++) {
        check((bool)isnan(x.out[t * at.d]) == (t >= 17));
    }
    head_destroy(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_reference),      cmocka_unit_test(test_pieces_equal_reference),
        cmocka_unit_test(test_large_scores),          cmocka_unit_test(test_shifted_scores),
        cmocka_unit_test(test_finite_differences),    cmocka_unit_test(test_causal_sees_no_future),
        cmocka_unit_test(test_layout_changes_no_bit), cmocka_unit_test(test_segments_stand_alone),
        cmocka_unit_test(test_queries_without_keys),  cmocka_unit_test(test_nan_is_not_hidden),
    };
    return test_main(tests);
}
