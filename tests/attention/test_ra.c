// Randomised attention against its definition with the same draws; gradients against differences;
// the law of the index; unbiasedness; what a query may see.
#include "attention/ra.h"
#include "reference/differences.h"
#include "reference/ra.h"
#include "reference/softmax.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { MOST_SEGMENTS = 8, GUARD = 32 };

// One head of an example cut into segments; arrays by rows, ld = d + 3, NAN in padding.
typedef struct {
    ptrdiff_t len, rows, ld;
    int segments;
    rfa_softmax_block block[MOST_SEGMENTS];
    rfa_ra ra;
    rfa_real *q, *k, *v, *dout, *out, *dq;
    rfa_ra_saved saved;
    double *dkv; // [rows][2 d]
    rfa_real *work;
    ptrdiff_t work_size;
} sample;

static void put(rfa_real *to, const rfa_real *from, const sample *x)
{
    for (ptrdiff_t i = 0; i < x->rows * x->ld; i++) {
        to[i] = (rfa_real)NAN;
    }
    for (int g = 0; g < x->segments; g++) {
        for (ptrdiff_t t = 0; t < x->block[g].tokens; t++) {
            memcpy(to + (x->block[g].row0 + t) * x->ld, from + (x->block[g].begin + t) * x->ra.d,
                   (size_t)x->ra.d * sizeof *to);
        }
    }
}

static void get(double *to, const rfa_real *from, ptrdiff_t ld, const sample *x)
{
    for (int g = 0; g < x->segments; g++) {
        for (ptrdiff_t t = 0; t < x->block[g].tokens; t++) {
            for (ptrdiff_t c = 0; c < x->ra.d; c++) {
                to[(x->block[g].begin + t) * x->ra.d + c] =
                    (double)from[(x->block[g].row0 + t) * ld + c];
            }
        }
    }
}

static void sample_fill(sample *x, uint32_t seed, double scale)
{
    const ptrdiff_t n = x->len * x->ra.d;
    rfa_real *from = test_reals(n), *to[] = {x->q, x->k, x->v, x->dout};
    for (uint32_t i = 0; i < 4; i++) {
        test_fill(from, n, seed + i, i < 2 ? scale : 1);
        put(to[i], from, x);
    }
    rfa_free(from);
}

static sample
sample_create(ptrdiff_t len, ptrdiff_t d, int segments, bool causal, ptrdiff_t draws, bool noise)
{
    sample x = {.len = len, .ld = d + 3, .segments = segments};
    const ptrdiff_t groups = rfa_padded(len) / RFA_ROWS;
    ptrdiff_t most = RFA_ROWS;
    for (int g = 0; g < segments; g++) {
        const ptrdiff_t begin = groups * g / segments * RFA_ROWS;
        const ptrdiff_t end = groups * (g + 1) / segments * RFA_ROWS;
        const ptrdiff_t tokens = (end < len ? end : len) - begin;
        x.block[g] = (rfa_softmax_block){x.rows, rfa_padded(tokens), tokens, begin};
        x.rows += x.block[g].rows;
        most = x.block[g].rows > most ? x.block[g].rows : most;
    }
    x.ra = (rfa_ra){d, draws, causal, noise, rfa_rng_stream(77, RFA_RNG_RA, 5, 6)};
    rfa_real **arrays[] = {&x.q, &x.k, &x.v, &x.dout, &x.out, &x.dq};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        *arrays[i] = test_reals(x.rows * x.ld);
    }
    x.saved = (rfa_ra_saved){
        .read = draws == 1 ? x.out : test_reals(draws * x.rows * x.ld),
        .lse = test_reals(draws * x.rows),
        .ld = x.ld,
        .rows = x.rows,
    };
    check_ok(rfa_alloc(&x.saved.index, draws * x.rows, sizeof *x.saved.index, "index"));
    x.dkv = test_doubles(x.rows * 2 * d);
    x.work_size = rfa_ra_work(most, most, x.rows, &x.ra);
    x.work = test_reals(x.work_size + GUARD);
    sample_fill(&x, 3, 1);
    return x;
}

static void sample_destroy(sample *x)
{
    if (x->saved.read != x->out) {
        rfa_free(x->saved.read);
    }
    void *all[] = {x->q,  x->k,         x->v,           x->dout, x->out,
                   x->dq, x->saved.lse, x->saved.index, x->dkv,  x->work};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

static rfa_softmax_keys keys_of(const sample *x)
{
    return (rfa_softmax_keys){
        .k = x->k, .v = x->v, .ld_k = x->ld, .ld_v = x->ld, .blocks = x->block, .n = x->segments};
}

static void forward(sample *x)
{
    const rfa_softmax_keys keys = keys_of(x);
    for (ptrdiff_t i = 0; i < x->work_size + GUARD; i++) {
        x->work[i] = i < x->work_size ? (rfa_real)NAN : 123;
    }
    for (int g = 0; g < x->segments; g++) {
        rfa_ra_forward(x->out, &x->saved, x->q, x->ld, x->block + g, &keys, &x->ra, x->work);
    }
}

static void backward(sample *x)
{
    const rfa_softmax_keys keys = keys_of(x);
    const ptrdiff_t d = x->ra.d;
    const rfa_softmax_gradient dkeys = {x->dkv, x->dkv + d, 2 * d, NULL};
    memset(x->dkv, 0, (size_t)(x->rows * 2 * d) * sizeof *x->dkv);
    for (int g = 0; g < x->segments; g++) {
        rfa_ra_backward(x->dq, x->ld, &dkeys, x->dout, &x->saved, x->q, x->ld, x->block + g, &keys,
                        &x->ra, x->work);
    }
    for (int i = 0; i < GUARD; i++) {
        check(x->work[x->work_size + i] == 123);
    }
}

// The same example for the reference, with the kernel's indices.
typedef struct {
    ref_ra x;
    double *q, *k, *v, *dout, *noise;
    int *index;
} mirror;

static mirror mirror_create(const sample *x)
{
    const ptrdiff_t n = x->len * x->ra.d, S = x->ra.draws;
    mirror m = {.q = test_doubles(n), .k = test_doubles(n), .v = test_doubles(n)};
    m.dout = test_doubles(n);
    m.noise = test_doubles(S * n);
    check_ok(rfa_alloc(&m.index, S * x->len, sizeof *m.index, "index"));
    get(m.q, x->q, x->ld, x);
    get(m.k, x->k, x->ld, x);
    get(m.v, x->v, x->ld, x);
    get(m.dout, x->dout, x->ld, x);
    for (int g = 0; x->ra.noise && g < x->segments; g++) {
        for (ptrdiff_t t = 0; t < x->block[g].tokens; t++) {
            for (ptrdiff_t s = 0; s < S; s++) {
                const ptrdiff_t at = s * x->len + x->block[g].begin + t;
                const ptrdiff_t row = x->saved.index[s * x->rows + x->block[g].row0 + t];
                rfa_ra_normals(m.noise + at * x->ra.d, &x->ra, x->block[g].begin + t, s);
                m.index[at] = -1;
                for (int b = 0; b < x->segments; b++) {
                    if (row >= x->block[b].row0 && row < x->block[b].row0 + x->block[b].tokens) {
                        m.index[at] = (int)(x->block[b].begin + row - x->block[b].row0);
                    }
                }
                check(m.index[at] >= 0);
            }
        }
    }
    m.x = (ref_ra){.tokens = x->len,
                   .d = x->ra.d,
                   .draws = S,
                   .causal = x->ra.causal,
                   .q = m.q,
                   .k = m.k,
                   .v = m.v,
                   .noise = x->ra.noise ? m.noise : NULL,
                   .index = m.index};
    return m;
}

static void mirror_destroy(mirror *m)
{
    double *all[] = {m->q, m->k, m->v, m->dout, m->noise};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
    rfa_free(m->index);
}

static double mirror_loss(const void *context)
{
    const mirror *m = context;
    const ptrdiff_t n = m->x.tokens * m->x.d;
    double *out = test_doubles(n), sum = 0;
    ref_ra_forward(out, &m->x);
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += out[i] * m->dout[i];
    }
    rfa_free(out);
    return sum;
}

// Largest distance between the kernel's result at the tokens and what is wanted.
static double
distance(const sample *x, const double *want, const rfa_real *got, const double *got_double)
{
    double worst = 0;
    const ptrdiff_t d = x->ra.d;
    for (int g = 0; g < x->segments; g++) {
        for (ptrdiff_t t = 0; t < x->block[g].tokens; t++) {
            const ptrdiff_t row = x->block[g].row0 + t;
            for (ptrdiff_t c = 0; c < d; c++) {
                const double a = got          ? (double)got[row * x->ld + c]
                                 : got_double ? got_double[row * 2 * d + c]
                                              : NAN;
                const double gap = fabs(a - want[(x->block[g].begin + t) * d + c]);
                worst = gap > worst || isnan(gap) ? gap : worst; // NaN stays
            }
        }
    }
    return worst;
}

static const struct {
    ptrdiff_t len, d;
    int segments;
    ptrdiff_t draws;
} cases[] = {{1, 4, 1, 1},  {1, 2, 2, 3},  {15, 5, 1, 2}, {16, 4, 1, 1},
             {17, 4, 2, 2}, {50, 8, 3, 1}, {50, 6, 8, 2}, {300, 4, 1, 1}};

// A score carries roundings of the size of its terms, hence a weight a relative error of eps times
// it; sums of N terms add sqrt(N) eps.
static double unit_of(const ref_ra_sizes *size, ptrdiff_t n)
{
    return test_eps() * (2 + size->score + sqrt((double)n));
}

static void test_equals_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int kind = 0; kind < 4; kind++) {
            const bool noise = kind / 2;
            sample x = sample_create(cases[i].len, cases[i].d, cases[i].segments, kind % 2,
                                     noise ? cases[i].draws : 1, noise);
            forward(&x);
            mirror m = mirror_create(&x);
            double *out = test_doubles(x.len * x.ra.d);
            ref_ra_forward(out, &m.x);
            const ref_ra_sizes size = ref_ra_magnitudes(m.dout, &m.x);
            // Without noise w itself is a softmax attention: its error enters every score.
            const double unit = unit_of(&size, x.len) * (noise ? 1 : 1 + size.score);
            check(distance(&x, out, x.out, NULL) <= unit * size.out);
            for (int g = 0; g < x.segments; g++) {
                for (ptrdiff_t t = x.block[g].tokens; t < x.block[g].rows; t++) {
                    for (ptrdiff_t c = 0; c < x.ra.d; c++) {
                        check(x.out[(x.block[g].row0 + t) * x.ld + c] == 0);
                    }
                }
            }
            rfa_free(out);
            mirror_destroy(&m);
            sample_destroy(&x);
        }
    }
}

// Differences carry h^4 / 30 of the fifth derivative (of the size of the gradient at unit scale,
// times a power of d^(1/4) noise) and 2^-52 loss / h.
static void test_gradients(void **state)
{
    (void)state;
    static const double step = 1e-3;
    for (int kind = 0; kind < 8; kind++) {
        const bool noise = kind / 2 % 2, causal = kind % 2;
        if (!noise && sizeof(rfa_real) == sizeof(float)) {
            continue; // its rounding error has no simple bound
        }
        sample x = sample_create(21, 4, 2, causal, noise ? 1 + kind / 4 : 1, noise);
        sample_fill(&x, 40 + (uint32_t)kind, 0.7);
        forward(&x);
        backward(&x);
        mirror m = mirror_create(&x);
        const ptrdiff_t n = x.len * x.ra.d;
        const ref_ra_sizes size = ref_ra_magnitudes(m.dout, &m.x);
        const double unit = unit_of(&size, x.len), differences = 1e-8;
        double *want = test_doubles(n);
        ref_differences(want, m.q, n, step, mirror_loss, &m);
        check(distance(&x, want, x.dq, NULL) <= unit * size.dq + differences);
        ref_differences(want, m.k, n, step, mirror_loss, &m);
        check(distance(&x, want, NULL, x.dkv) <= unit * size.dk + differences);
        ref_differences(want, m.v, n, step, mirror_loss, &m);
        check(distance(&x, want, NULL, x.dkv + x.ra.d) <= unit * size.dv + differences);
        rfa_free(want);
        mirror_destroy(&m);
        sample_destroy(&x);
    }
}

// u lies between the distribution before and at the index; weights below the rounding of a sum of N
// of them may be taken for their neighbours.
static void test_index_inverts_distribution(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int causal = 0; causal < 2; causal++) {
            sample x = sample_create(cases[i].len, cases[i].d, cases[i].segments, causal, 3, true);
            sample_fill(&x, 60, 2);
            forward(&x);
            mirror m = mirror_create(&x);
            const ref_ra_sizes size = ref_ra_magnitudes(m.dout, &m.x);
            const double slack = unit_of(&size, x.len);
            double *cdf = test_doubles(x.len);
            for (ptrdiff_t n = 0; n < x.len; n++) {
                ref_ra_distribution(cdf, &m.x, n);
                for (ptrdiff_t s = 0; s < 3; s++) {
                    const double u = rfa_ra_uniform(&x.ra, n, s);
                    const int at = m.index[s * x.len + n];
                    check(u > 0 && u < 1);
                    check(!causal || at <= n);
                    check(u <= cdf[at] + slack);
                    check(at == 0 || u >= cdf[at - 1] - slack);
                }
            }
            rfa_free(cdf);
            mirror_destroy(&m);
            sample_destroy(&x);
        }
    }
}

// The mean over many draws is softmax attention. Under that hypothesis each of the 192 deviations,
// in units of its own standard error, is normal (draws are bounded by max |v|): one exceeds 5.8
// with probability 192 x 7e-9 < 1.3e-6. Noise of the released code's scale, d^(-1/4), gives 9.
static void test_unbiased(void **state)
{
    (void)state;
    enum { N = 24, D = 8, DRAWS = 20000 };
    for (int causal = 0; causal < 2; causal++) {
        sample x = sample_create(N, D, 2, causal, DRAWS, true);
        sample_fill(&x, 80, 1);
        forward(&x);
        mirror m = mirror_create(&x);
        double *want = test_doubles(N * D), *lse = test_doubles(N);
        const ref_softmax exact = {N, D, causal, m.q, m.k, m.v};
        ref_softmax_forward(want, lse, &exact);
        double worst = 0, squares = 0;
        ptrdiff_t free_ones = 0;
        for (int g = 0; g < x.segments; g++) {
            for (ptrdiff_t i = 0; i < x.block[g].tokens * D; i++) {
                const ptrdiff_t row = x.block[g].row0 + i / D, c = i % D;
                const double centre = want[(x.block[g].begin + i / D) * D + c];
                double sum = 0, square = 0;
                for (ptrdiff_t s = 0; s < DRAWS; s++) {
                    const double off = (double)x.saved.read[(s * x.rows + row) * x.ld + c] - centre;
                    sum += off;
                    square += off * off;
                }
                const double mean = sum / DRAWS, error = sqrt(square / DRAWS / DRAWS);
                check(fabs((double)x.out[row * x.ld + c] - centre - mean) < 1e-5);
                if (x.block[g].begin + i / D > 0 || !causal) { // the first causal query: no choice
                    const double z = mean / error;
                    worst = fmax(worst, fabs(z));
                    squares += z * z;
                    free_ones++;
                }
            }
        }
        check(worst < 5.8);
        // Mean of z^2: 1 with standard deviation sqrt(2 D / 192) if the D columns of a query were
        // wholly correlated, 5 of which allow 2.5; a tenth tells that the errors are no larger.
        check(squares / (double)free_ones < 2.5 && squares / (double)free_ones > 0.1);
        rfa_free(want);
        rfa_free(lse);
        mirror_destroy(&m);
        sample_destroy(&x);
    }
}

// Later tokens change no bit of earlier outputs.
static void test_causal_sees_no_future(void **state)
{
    (void)state;
    for (int noise = 0; noise < 2; noise++) {
        sample x = sample_create(50, 4, 2, true, 1, noise),
               y = sample_create(50, 4, 2, true, 1, noise);
        forward(&x);
        for (ptrdiff_t t = 0; t < x.len; t += 7) {
            sample_fill(&y, 3, 1);
            const int g = t >= y.block[1].begin;
            const ptrdiff_t row = y.block[g].row0 + t - y.block[g].begin;
            for (ptrdiff_t c = 0; c < y.ra.d; c++) {
                y.k[row * y.ld + c] += 3;
                y.q[row * y.ld + c] += 1;
                y.v[row * y.ld + c] -= 1e4f;
            }
            forward(&y);
            double *before = test_doubles(x.len * x.ra.d), *after = test_doubles(x.len * x.ra.d);
            get(before, x.out, x.ld, &x);
            get(after, y.out, y.ld, &y);
            check(memcmp(before, after, (size_t)(t * x.ra.d) * sizeof *before) == 0);
            check(memcmp(before + t * x.ra.d, after + t * x.ra.d, (size_t)x.ra.d * sizeof *after));
            rfa_free(before);
            rfa_free(after);
        }
        sample_destroy(&x);
        sample_destroy(&y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_reference),           cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_index_inverts_distribution), cmocka_unit_test(test_unbiased),
        cmocka_unit_test(test_causal_sees_no_future),
    };
    return test_main(tests);
}
