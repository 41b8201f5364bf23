// Ranks: 2
// Precision: f32
// The ensembles themselves, and a part of the table of errors that an independent program in Python
// measured: medians over 15 trials at N = 512, d = 64, here of 5 trials.
#include "fidelity/run.h"
#include "support/support.h"

#include <math.h>

static double dot(const rfa_real *a, const rfa_real *b, ptrdiff_t d)
{
    double sum = 0;
    for (ptrdiff_t j = 0; j < d; j++) {
        sum += (double)a[j] * (double)b[j];
    }
    return sum;
}

// Mean cosine of query t and key t + lag.
static double cosine(const rfa_vectors *x, ptrdiff_t lag)
{
    double sum = 0;
    for (ptrdiff_t t = 0; t + lag < x->n; t++) {
        const rfa_real *q = x->q + t * x->d, *k = x->k + (t + lag) * x->d;
        sum += dot(q, k, x->d) / sqrt(dot(q, q, x->d) * dot(k, k, x->d));
    }
    return sum / (double)(x->n - lag);
}

static void ensembles(void **state)
{
    (void)state;
    enum { N = 512, D = 64, SHORT = 32 };
    for (int e = 0; e < RFA_ENSEMBLES; e++) {
        rfa_vectors x, few;
        check_ok(rfa_vectors_create(&x, N, D));
        check_ok(rfa_vectors_create(&few, SHORT, D));
        rfa_vectors_fill(&x, (rfa_ensemble)e, 2.83, 7, 0);
        rfa_vectors_fill(&few, (rfa_ensemble)e, 2.83, 7, 0);
        check(fabs(rfa_vectors_norm(&x) - 2.83) < 1e-5);
        bool same = true;
        for (ptrdiff_t i = 0; i < SHORT * D; i++) {
            same &= few.q[i] == x.q[i] && few.k[i] == x.k[i] && few.v[i] == x.v[i];
        }
        check(same);
        const double near = cosine(&x, 0), far = cosine(&x, 200);
        // The mean over N pairs has a standard deviation of 1 / sqrt(N d), times the root of the
        // number of tokens that hang together.
        const double slack = 5 / sqrt(N * (double)D) * (e == RFA_ENSEMBLE_SMOOTH ? sqrt(40) : 1);
        // shared: 0.75^2 / (1 + 0.75^2); smooth: 1 / (1 + 0.5^2).
        check(fabs(near - (e == 0 ? 0 : e == 1 ? 0.36 : 0.8)) < slack);
        check(fabs(far - (e == 1 ? 0.36 : 0)) < slack);
        rfa_vectors_destroy(&x);
        rfa_vectors_destroy(&few);
    }
}

static void table(void **state)
{
    (void)state;
    static const struct {
        int group, kind, feature, c;
        double error;
    } known[] = {
        // iid, norms 1 and 2: rfa, performer, lara, eva, mean; F = 16 and 64
        {0, 0, 0, 0, .41},  {0, 0, 1, 0, .044}, {0, 1, 0, 0, .21},  {0, 1, 1, 0, .054},
        {0, 2, 0, 0, .23},  {0, 2, 1, 0, .071}, {0, 3, 0, 0, .014}, {0, 4, 0, 0, .015},
        {0, 3, 0, 1, .21},  {0, 4, 0, 1, .22},  {0, 2, 1, 1, 4.4},  {0, 1, 1, 1, 4.2},
        {1, 0, 0, 0, .099}, {1, 0, 1, 0, .014}, {1, 1, 1, 0, .021}, {1, 2, 0, 0, .059},
        {1, 2, 1, 0, .015}, {1, 3, 0, 0, 9e-4}, {1, 3, 0, 1, .009}, {1, 4, 0, 1, .51},
    };
    rfa_config config;
    rfa_fidelity f;
    rfa_config_defaults(&config);
    check_ok(rfa_config_set(&config, "fidelity.ensembles=iid, smooth"));
    check_ok(rfa_config_set(&config, "fidelity.norms=1, 2"));
    check_ok(rfa_config_set(&config, "fidelity.features=16, 64"));
    check_ok(rfa_config_set(&config, "fidelity.trials=5"));
    check_ok(rfa_config_set(&config, "fidelity.matrix=false"));
    check_ok(rfa_config_set(&config, "fidelity.ceiling=64"));
    check_ok(rfa_config_set(
        &config, "fidelity.kinds=rfa+free+orthogonal,performer,lara+balance,eva+quiet,mean"));
    check_ok(rfa_fidelity_run(&f, &config, &test_world));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const double got =
            rfa_fidelity_summarise(&f, known[i].group, known[i].kind, known[i].feature, known[i].c,
                                   RFA_FIDELITY_OUTPUT_ERROR)
                .median;
        // Medians of 5 and of 15 draws of errors that scatter by a factor of 1.3 (linear regime)
        // to 2 (heavy tails at norm 2) are within 2 of each other.
        if (!(got < 2 * known[i].error && got > known[i].error / 2)) {
            print_error("%s, %s, F = %g, norm %g: %.3g, the table has %.3g\n",
                        f.group[known[i].group], f.kind[known[i].kind].name,
                        f.feature[known[i].feature], f.scale[known[i].c], got, known[i].error);
        }
        check(got < 2 * known[i].error && got > known[i].error / 2);
    }
    check(f.ceiling > 0 && f.rows * f.columns == test_world.size);
    check(isnan(rfa_fidelity_error(&f, 0, 0, 0, 0, 0)[RFA_FIDELITY_FROBENIUS]));
    rfa_fidelity_destroy(&f);
}

// Singular values of the exact and estimated matrices, by both ways.
static void spectra(void **state)
{
    (void)state;
    rfa_config config;
    rfa_fidelity whole, range;
    rfa_config_defaults(&config);
    check_ok(rfa_config_set(&config, "fidelity.ensembles=smooth"));
    check_ok(rfa_config_set(&config, "fidelity.norms=2"));
    check_ok(rfa_config_set(&config, "fidelity.features=16"));
    check_ok(rfa_config_set(&config, "fidelity.trials=1"));
    check_ok(rfa_config_set(&config, "fidelity.length=300"));
    check_ok(rfa_config_set(&config, "fidelity.width=16"));
    check_ok(rfa_config_set(&config, "fidelity.values=24"));
    check_ok(rfa_config_set(&config, "fidelity.spectrum=all"));
    check_ok(rfa_config_set(&config, "fidelity.ceiling=64"));
    check_ok(rfa_config_set(&config, "fidelity.kinds=performer,lara,eva+quiet"));
    check_ok(rfa_fidelity_run(&whole, &config, &test_world));
    check_ok(rfa_config_set(&config, "fidelity.full=256"));
    check_ok(rfa_fidelity_run(&range, &config, &test_world));
    check(whole.values == 24);
    for (ptrdiff_t i = 0; i < 16; i++) { // those below are close together, and the range less sure
        const double s = whole.exact[i];
        check(range.exact[i] <= s * (1 + 1e-12) && range.exact[i] > 0.9 * s);
        check(i == 0 || (s > 0 && s <= whole.exact[i - 1]));
    }
    // A row-stochastic matrix has 1 among its eigenvalues, so no smaller first singular value.
    check(whole.exact[0] >= 1 - 1e-12);
    for (int k = 0; k < whole.kinds; k++) {
        const double error = rfa_fidelity_error(&whole, 0, k, 0, 0, 0)[RFA_FIDELITY_FROBENIUS];
        const bool low = k < 2;                // of rank F = 16
        check(!low || error >= whole.best[0]); // Eckart and Young
        check((whole.estimated[k * 24 + 16] < 1e-12 * whole.estimated[k * 24]) == low);
        check(whole.rank[k] > 1 && (!low || whole.rank[k] <= 16));
    }
    check(whole.best[0] > 0 && whole.best[0] < 1);
    check(fabs(range.best[0] - whole.best[0]) < 0.05 * whole.best[0]);
    rfa_fidelity_destroy(&whole);
    rfa_fidelity_destroy(&range);
}

static void statistics(void **state)
{
    (void)state;
    double x[] = {5, 1, 4, 2, 3}, one[] = {7};
    const double even[] = {1, 1, 1, 1}, lone[] = {3, 0, 0, 0};
    check(rfa_fidelity_quantile(x, 5, 0.5) == 3 && rfa_fidelity_quantile(x, 5, 1) == 5);
    check(fabs(rfa_fidelity_quantile(x, 5, 0.9) - 4.6) < 1e-12);
    check(rfa_fidelity_quantile(one, 1, 0.9) == 7);
    check(fabs(rfa_effective_rank(even, 4) - 4) < 1e-12 && rfa_effective_rank(lone, 4) == 1);
    double error[5 * RFA_FIDELITY_STATISTICS] = {0};
    rfa_fidelity f = {.groups = 1, .kinds = 1, .features = 1, .trials = 5, .cases = 1};
    f.error = error;
    for (int t = 0; t < 5; t++) {
        rfa_fidelity_error(&f, 0, 0, 0, t, 0)[RFA_FIDELITY_FROBENIUS] = x[t];
    }
    const rfa_fidelity_summary s = rfa_fidelity_summarise(&f, 0, 0, 0, 0, RFA_FIDELITY_FROBENIUS);
    check(s.mean == 3 && s.median == 3);
    // t(0.975; 4) = 2.776, standard deviation sqrt(2.5)
    check(fabs(s.high - (3 + 2.776 * sqrt(2.5 / 5))) < 1e-12 && fabs(s.low + s.high - 6) < 1e-12);
}

static void refusals(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "fidelity.kinds=rfa, nothing", "fidelity.kinds=,",         "fidelity.norms=1, 2x",
        "fidelity.norms=nan",          "fidelity.features=16, 33", "fidelity.features=16.5",
        "fidelity.ensembles=iid, iid", "fidelity.ensembles=iidx",  "fidelity.features=1024",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        rfa_config config;
        rfa_fidelity f;
        rfa_config_defaults(&config);
        check_ok(rfa_config_set(&config, "fidelity.trials=1"));
        check_ok(rfa_config_set(&config, "fidelity.length=64"));
        check_ok(rfa_config_set(&config, "fidelity.ceiling=64"));
        check_ok(rfa_config_set(&config, wrong[i]));
        check_status(rfa_fidelity_run(&f, &config, &test_world), RFA_ERR_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ensembles),  cmocka_unit_test(table),    cmocka_unit_test(spectra),
        cmocka_unit_test(statistics), cmocka_unit_test(refusals),
    };
    return test_main(tests);
}
