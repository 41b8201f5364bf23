// EVA's parts against their definition, and gradients against differences; one window and chunks of
// one key against softmax attention; what a query may see.
#include "attention/eva_case.h"
#include "attention/softmax.h"
#include "reference/differences.h"
#include "reference/eva.h"
#include "reference/softmax.h"

static double *to_doubles(const rfa_real *x, ptrdiff_t n)
{
    double *out = test_doubles(n);
    for (ptrdiff_t i = 0; i < n; i++) {
        out[i] = (double)x[i];
    }
    return out;
}

// The same for the reference.
typedef struct {
    ref_eva eva;
    double *q, *k, *v, *dout, *k_bar, *beta, *bias, *w, *dbeta, *noise, *result;
    ptrdiff_t results;
} mirror;

static mirror mirror_create(const sample *x)
{
    const ptrdiff_t n = x->len * x->eva.d, C = x->eva.chunks, c = C * x->eva.d;
    mirror m = {.q = to_doubles(x->q, n), .k = to_doubles(x->k, n), .v = to_doubles(x->v, n)};
    m.dout = to_doubles(x->dout, n);
    m.k_bar = to_doubles(x->k_bar, c);
    m.beta = to_doubles(x->beta, c);
    m.bias = to_doubles(x->bias, C);
    m.w = to_doubles(x->w, c);
    m.dbeta = to_doubles(x->dbeta, c);
    m.noise = test_doubles(c);
    m.result = test_doubles(n > c ? n : c);
    m.eva = (ref_eva){x->len, x->eva.d, x->eva.chunk, x->eva.window, x->eva.causal,
                      m.q,    m.k,      m.v,          NULL};
    return m;
}

static void mirror_destroy(mirror *m)
{
    double *all[] = {m->q,    m->k, m->v,     m->dout,  m->k_bar, m->beta,
                     m->bias, m->w, m->dbeta, m->noise, m->result};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

static double sum_of_products(const double *a, const double *b, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static double read_loss(const void *context)
{
    const mirror *m = context;
    ref_eva_read(m->result, m->k_bar, m->beta, m->bias, &m->eva);
    return sum_of_products(m->result, m->dout, m->eva.tokens * m->eva.d);
}

static double values_loss(const void *context)
{
    const mirror *m = context;
    const ptrdiff_t chunks = (m->eva.tokens + m->eva.chunk - 1) / m->eva.chunk;
    ref_eva_values(m->result, m->w, &m->eva);
    return sum_of_products(m->result, m->dbeta, chunks * m->eva.d);
}

static double largest(const rfa_real *x, ptrdiff_t n)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)x[i]));
    }
    return most;
}

// A score of d products carries roundings of the size of their sum, hence a weight a relative error
// of eps times it; sums of n terms add sqrt(n) eps; results are means of numbers up to `values`.
static double bound_of(double score, ptrdiff_t n, double values)
{
    return test_eps() * (2 + score + sqrt((double)n)) * values;
}

static double read_bound(const sample *x)
{
    const ptrdiff_t d = x->eva.d, C = x->eva.chunks;
    const double k = fmax(largest(x->k, x->len * d), largest(x->k_bar, C * d));
    const double score = sqrt((double)d) * largest(x->q, x->len * d) * k + largest(x->bias, C);
    return bound_of(score, x->len + C, fmax(largest(x->v, x->len * d), largest(x->beta, C * d)));
}

static double values_bound(const sample *x)
{
    const ptrdiff_t d = x->eva.d;
    const double k = largest(x->k, x->len * d), w = largest(x->w, x->eva.chunks * d);
    return bound_of(sqrt((double)d) * k * (w + k / 2), x->len, largest(x->v, x->len * d));
}

static const struct {
    ptrdiff_t len, chunk, window;
    int segments;
} cases[] = {{1, 1, 1, 1},   {1, 4, 8, 2},    {15, 1, 5, 1},   {16, 4, 8, 1},
             {17, 4, 8, 2},  {50, 4, 12, 1},  {50, 7, 14, 3},  {50, 16, 16, 8},
             {50, 3, 60, 4}, {50, 20, 40, 2}, {300, 8, 24, 4}, {333, 25, 150, 8}};

static rfa_eva eva_of(size_t i, ptrdiff_t d, bool causal)
{
    return (rfa_eva){.d = d,
                     .chunks = (cases[i].len + cases[i].chunk - 1) / cases[i].chunk + (i % 3 == 1),
                     .chunk = cases[i].chunk,
                     .window = cases[i].window,
                     .causal = causal};
}

static void test_equals_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int causal = 0; causal < 2; causal++) {
            sample x =
                sample_create(cases[i].len, cases[i].segments, eva_of(i, i % 2 ? 8 : 5, causal));
            mirror m = mirror_create(&x);
            const ptrdiff_t chunks = rfa_eva_count(&x.eva, x.len);
            run_read(&x);
            ref_eva_read(m.result, m.k_bar, m.beta, m.bias, &m.eva);
            check_close("out", x.out, m.result, x.len * x.eva.d, read_bound(&x));
            run_values(&x);
            ref_eva_values(m.result, m.w, &m.eva);
            check_close("beta", x.beta, m.result, chunks * x.eva.d, values_bound(&x));
            for (ptrdiff_t e = chunks * x.eva.d; e < x.eva.chunks * x.eva.d; e++) {
                check(x.beta[e] == 0); // chunks that a shorter example does not fill
            }
            mirror_destroy(&m);
            sample_destroy(&x);
        }
    }
}

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void check_slope(const rfa_real *real,
                        const double *given,
                        double *input,
                        ptrdiff_t n,
                        double (*loss)(const void *),
                        const mirror *m)
{
    // Differences: 1e-12 / 30 of the fifth derivative, some hundreds here, and 2^-52 loss / 1e-3.
    const double step = 1e-3, bound = 1e-9;
    double *want = test_doubles(n);
    ref_differences(want, input, n, step, loss, m);
    double worst = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double got = real ? (double)real[i] : given ? given[i] : NAN;
        const double gap = fabs(got - want[i]);
        worst = gap > worst || isnan(gap) ? gap : worst;
    }
    check(worst <= bound);
    rfa_free(want);
}

static void test_gradients(void **state)
{
    (void)state;
    if (sizeof(rfa_real) == sizeof(float)) {
        return; // its rounding would hide what differences can see
    }
    for (size_t i = 0; i < 10; i++) {
        for (int causal = 0; causal < 2; causal++) {
            sample x = sample_create(cases[i].len, cases[i].segments, eva_of(i, 4, causal));
            mirror m = mirror_create(&x);
            const ptrdiff_t n = x.len * 4, c = rfa_eva_count(&x.eva, x.len) * 4;
            run_read(&x);
            run_read_backward(&x);
            check_slope(x.dq, NULL, m.q, n, read_loss, &m);
            check_slope(NULL, x.dk, m.k, n, read_loss, &m);
            check_slope(NULL, x.dv, m.v, n, read_loss, &m);
            check_slope(NULL, x.dk_bar, m.k_bar, c, read_loss, &m);
            check_slope(NULL, x.dsummary_v, m.beta, c, read_loss, &m);
            run_values(&x);
            run_values_backward(&x);
            check_slope(NULL, x.dk, m.k, n, values_loss, &m);
            check_slope(NULL, x.dv, m.v, n, values_loss, &m);
            check_slope(NULL, x.dw, m.w, c, values_loss, &m);
            mirror_destroy(&m);
            sample_destroy(&x);
        }
    }
}

// Only the first queries are read: the same bits, and gradients of a loss of these alone.
static void test_first_queries(void **state)
{
    (void)state;
    sample x = sample_create(100, 1, (rfa_eva){6, 25, 4, 12, false});
    const rfa_eva_summary summary = summary_of(&x);
    run_read(&x);
    segment s = segment_create(&x, 0);
    rfa_real *out = test_reals(x.len * 6), *lse = test_reals(x.len);
    s.head.read = 16;
    rfa_eva_read(out, 6, lse, &s.head, &summary, &x.eva, x.work);
    check(same_bits(out, x.out, 12 * 6)); // the last window has fewer queries
    for (int i = 0; i < 16 * 6; i++) {
        check(fabs((double)(out[i] - x.out[i])) <= read_bound(&x));
    }
    for (ptrdiff_t i = 16 * 6; i < x.len * 6; i++) {
        check(out[i] == 0);
    }
    rfa_free(out);
    rfa_free(lse);
    segment_destroy(&s);
    sample_destroy(&x);
}

// All of it: plain means, noise, values, read.
static void run_all(sample *x, bool noise)
{
    const ptrdiff_t d = x->eva.d, C = x->eva.chunks;
    const rfa_rng stream = rfa_rng_stream(5, RFA_RNG_EVA, 1, 2);
    double *sums = test_doubles(C * 2 * d), *total = test_doubles(C * 2 * d);
    rfa_real *q_bar = test_reals(C * d);
    for (int g = 0; g < x->segments; g++) {
        segment s = segment_create(x, g);
        rfa_eva_sums(sums, 2 * d, s.head.q, d, d, s.head.begin, s.head.tokens, &x->eva);
        rfa_eva_sums(sums + d, 2 * d, s.head.k, d, d, s.head.begin, s.head.tokens, &x->eva);
        for (ptrdiff_t i = 0; i < C * 2 * d; i++) {
            total[i] += sums[i];
        }
        segment_destroy(&s);
    }
    for (ptrdiff_t c = 0; c < C; c++) {
        const ptrdiff_t n = rfa_eva_tokens(&x->eva, x->len, c);
        x->bias[c] = (rfa_real)log((double)(n > 0 ? n : 1));
        for (ptrdiff_t j = 0; j < d; j++) {
            q_bar[c * d + j] = (rfa_real)(total[c * 2 * d + j] / (double)(n > 0 ? n : 1));
            x->k_bar[c * d + j] = (rfa_real)(total[c * 2 * d + d + j] / (double)(n > 0 ? n : 1));
        }
    }
    rfa_eva_directions(x->w, q_bar, x->k_bar, d, noise ? &stream : NULL, &x->eva);
    run_values(x);
    run_read(x);
    rfa_free(sums);
    rfa_free(total);
    rfa_free(q_bar);
}

static void test_whole_equals_reference(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int kind = 0; kind < 4; kind++) {
            sample x =
                sample_create(cases[i].len, cases[i].segments, eva_of(i, i % 2 ? 8 : 5, kind % 2));
            run_all(&x, kind / 2);
            mirror m = mirror_create(&x);
            if (kind / 2) {
                const ptrdiff_t d = x.eva.d, stride = d + d % 2;
                const rfa_rng stream = rfa_rng_stream(5, RFA_RNG_EVA, 1, 2);
                double *normals = test_doubles(x.eva.chunks * stride);
                rfa_rng_normals(normals, &stream, x.eva.chunks * stride);
                for (ptrdiff_t e = 0; e < x.eva.chunks * d; e++) {
                    m.noise[e] = normals[e / d * stride + e % d];
                }
                m.eva.noise = m.noise;
                rfa_free(normals);
            }
            ref_eva_forward(m.result, &m.eva);
            // beta's error is a value's, and w's a score's within it.
            check_close("out", x.out, m.result, x.len * x.eva.d,
                        read_bound(&x) + 2 * values_bound(&x));
            mirror_destroy(&m);
            sample_destroy(&x);
        }
    }
}

// A window that holds the example is softmax attention to the bit; chunks of one key are it within
// rounding, causal and not.
static void test_is_softmax(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[] = {1, 15, 16, 17, 50, 300};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int causal = 0; causal < 2; causal++) {
            const ptrdiff_t N = lengths[i], d = 8;
            sample x = sample_create(N, 1, (rfa_eva){d, (N + 6) / 7, 7, (N + 6) / 7 * 7, causal});
            run_all(&x, true);
            rfa_real *out = test_reals(rfa_padded(N) * d), *lse = test_reals(rfa_padded(N));
            rfa_real *work = test_reals(rfa_softmax_work_size(N, d));
            const rfa_softmax_block all = {0, rfa_padded(N), N, 0};
            const rfa_softmax_keys keys = {
                .k = x.k, .v = x.v, .ld_k = d, .ld_v = d, .blocks = &all, .n = 1};
            rfa_softmax_read(out, d, lse, x.q, d, &all, &keys, d, causal, work);
            check(memcmp(out, x.out, (size_t)(N * d) * sizeof *out) == 0);
            check(memcmp(lse, x.lse, (size_t)N * sizeof *lse) == 0);
            sample_destroy(&x);

            x = sample_create(N, 2, (rfa_eva){d, N, 1, 5, causal});
            run_all(&x, true); // the value of one key is its own, whatever w
            mirror m = mirror_create(&x);
            double *exact = test_doubles(N * d), *exact_lse = test_doubles(N);
            const ref_softmax reference = {N, d, causal, m.q, m.k, m.v};
            ref_softmax_forward(exact, exact_lse, &reference);
            check_close("one-key chunks", x.out, exact, N * d, read_bound(&x));
            check_close("lse", x.lse, exact_lse, N, read_bound(&x));
            rfa_free(exact);
            rfa_free(exact_lse);
            rfa_free(out);
            rfa_free(lse);
            rfa_free(work);
            mirror_destroy(&m);
            sample_destroy(&x);
        }
    }
}

// Later tokens change no bit of earlier outputs, and the length of the example changes none of what
// whole segments before its end compute.
static void test_causal_sees_no_future(void **state)
{
    (void)state;
    const rfa_eva eva = {4, 13, 4, 12, true};
    sample x = sample_create(50, 1, eva), y = sample_create(50, 1, eva);
    run_all(&x, true);
    for (ptrdiff_t t = 0; t < 50; t++) {
        for (ptrdiff_t j = 0; j < 4; j++) {
            y.q[t * 4 + j] += 1;
            y.k[t * 4 + j] += 3;
            y.v[t * 4 + j] -= 1e4f;
        }
        run_all(&y, true);
        check(same_bits(x.out, y.out, t * 4));
        check(!same_bits(x.out + t * 4, y.out + t * 4, 4));
        memcpy(y.q, x.q, 50 * 4 * sizeof *x.q);
        memcpy(y.k, x.k, 50 * 4 * sizeof *x.q);
        memcpy(y.v, x.v, 50 * 4 * sizeof *x.q);
    }
    sample_destroy(&y);
    for (ptrdiff_t len = 1; len < 50; len++) { // shorter: the same constants, fewer tokens
        y = sample_create(len, 1, eva);
        memcpy(y.q, x.q, (size_t)(len * 4) * sizeof *x.q);
        memcpy(y.k, x.k, (size_t)(len * 4) * sizeof *x.q);
        memcpy(y.v, x.v, (size_t)(len * 4) * sizeof *x.q);
        run_all(&y, true);
        for (ptrdiff_t e = 0; e < len * 4; e++) {
            check(fabs((double)(x.out[e] - y.out[e])) <= read_bound(&x) + 2 * values_bound(&x));
        }
        sample_destroy(&y);
    }
    sample_destroy(&x);
}

// Borders: whole chunks in a window, all tokens in C chunks at most.
static void test_cut(void **state)
{
    (void)state;
    for (ptrdiff_t longest = 1; longest < 200; longest += 7) {
        for (ptrdiff_t chunks = 1; chunks < 70; chunks += 3) {
            for (ptrdiff_t window = 1; window < 300; window += 11) {
                const rfa_eva eva = rfa_eva_cut(longest, chunks, window, 8, false);
                check(eva.window % eva.chunk == 0 && eva.chunks <= chunks);
                check(eva.chunks * eva.chunk >= longest);
                check((eva.chunks - 1) * eva.chunk < longest);
                check(eva.window >= window || eva.window >= longest);
                check(eva.window < window + eva.chunk);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_reference),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_first_queries),
        cmocka_unit_test(test_whole_equals_reference),
        cmocka_unit_test(test_is_softmax),
        cmocka_unit_test(test_causal_sees_no_future),
        cmocka_unit_test(test_cut),
    };
    return test_main(tests);
}
