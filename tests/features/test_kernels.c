// Statistics of the estimates of kernels over many draws. Seeds are fixed, so a right map passes
// always; the bounds are such that a right map fails for one seed in thousands.
#include "features/draw.h"
#include "features/map.h"
#include "support/support.h"

#include <math.h>

enum { d = 8 };

// Two rows x and y of width d, and what their estimates and kernels need.
typedef struct {
    rfa_real x[2 * d], sigma[d];
    double y[2][d]; // as the table of features/map.h has it
} pair;

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int j = 0; j < d; j++) {
        sum += a[j] * b[j];
    }
    return sum;
}

// |x + y|^2, or |x - y|^2
static double distance(const pair *p, double sign)
{
    return dot(p->y[0], p->y[0]) + dot(p->y[1], p->y[1]) + 2 * sign * dot(p->y[0], p->y[1]);
}

static pair pair_create(uint32_t number, bool unit_norm, double scale)
{
    pair p;
    test_fill(p.x, 2 * d, 100 + number, scale);
    for (int j = 0; j < d; j++) {
        p.sigma[j] = (rfa_real)(0.5 + 0.125 * j);
    }
    for (int t = 0; t < 2; t++) {
        double norm = 0;
        for (int j = 0; j < d; j++) {
            norm += pow((double)p.x[t * d + j], 2);
        }
        for (int j = 0; j < d; j++) {
            p.y[t][j] = (double)p.sigma[j] * (double)p.x[t * d + j] *
                        (unit_norm ? 1 / (sqrt(norm) + 1e-3) : pow(d, -0.25));
        }
    }
    return p;
}

// The a that is best for this pair alone.
static double pair_a(const pair *p)
{
    double sums[2 + 2 * d] = {dot(p->y[0], p->y[0]), dot(p->y[1], p->y[1])};
    for (int j = 0; j < d; j++) {
        sums[2 + j] = p->y[0][j];
        sums[2 + d + j] = p->y[1][j];
    }
    return rfa_oprf_a(sums, 1, d);
}

static double kernel(const pair *p, rfa_map_kind kind, bool unit_norm)
{
    const double size = sqrt(dot(p->y[0], p->y[0]) * dot(p->y[1], p->y[1]));
    const double angle = acos(dot(p->y[0], p->y[1]) / size);
    switch (kind) {
    case RFA_MAP_GAUSSIAN:
        return unit_norm ? exp(-distance(p, -1) / 2) : exp(dot(p->y[0], p->y[1]));
    case RFA_MAP_ARCCOS: return size * (sin(angle) + (M_PI - angle) * cos(angle)) / (2 * M_PI);
    case RFA_MAP_POSITIVE:
    case RFA_MAP_OPRF: return exp(dot(p->y[0], p->y[1]));
    case RFA_MAP_ELU: break;
    }
    fail();
    return 0;
}

// A map with its rows of D projections, drawn anew for each estimate.
enum { MOST_D = 256 };

typedef struct {
    rfa_feature_map map;
    rfa_rows_kind rows;
    rfa_real *w, *squares, *phi, *work;
    double *draw_work;
} estimator;

static estimator
estimator_create(rfa_map_kind kind, bool unit_norm, rfa_rows_kind rows, ptrdiff_t D)
{
    estimator e = {.map = {.kind = kind, .unit_norm = unit_norm, .width = d, .projections = D},
                   .rows = rows};
    e.w = test_reals(D * d);
    e.squares = test_reals(D);
    e.phi = test_reals(2 * rfa_feature_count(&e.map));
    e.work = test_reals(rfa_feature_work(&e.map, 2));
    e.draw_work = test_doubles(rfa_draw_work(d));
    e.map.w = e.w;
    e.map.w_squares = e.squares;
    return e;
}

static void estimator_destroy(estimator *e)
{
    rfa_free(e->w);
    rfa_free(e->squares);
    rfa_free(e->phi);
    rfa_free(e->work);
    rfa_free(e->draw_work);
}

// The estimate of the kernel of p with the rows of draw (number, draw); the log-weights of both
// rows give the factors that attention leaves out.
static double estimate(estimator *e, const pair *p, double a, uint32_t number, uint32_t draw)
{
    const rfa_rng stream = rfa_rng_stream(31, RFA_RNG_TEST, draw, number);
    const ptrdiff_t D = e->map.projections, F = rfa_feature_count(&e->map);
    const bool is_weighted = rfa_feature_is_weighted(&e->map);
    rfa_real weight[2] = {0, 0};
    double sum = 0;
    rfa_draw_rows(e->w, e->rows, &stream, D, d, e->draw_work);
    for (ptrdiff_t f = 0; f < D; f++) {
        e->squares[f] = 0;
        for (int j = 0; j < d; j++) {
            e->squares[f] += e->w[f * d + j] * e->w[f * d + j];
        }
    }
    e->map.sigma = p->sigma;
    e->map.a = a;
    rfa_features_forward(e->phi, is_weighted ? weight : NULL, p->x, d, NULL, &e->map, 2, 0,
                         e->work);
    for (ptrdiff_t f = 0; f < F; f++) {
        sum += (double)e->phi[f] * (double)e->phi[F + f];
    }
    sum *= exp((double)weight[0] + (double)weight[1]);
    return e->map.kind == RFA_MAP_OPRF ? sum * pow(1 - 4 * a, d / 2.0) : sum;
}

// Mean, variance, and the standard errors of both, of n estimates.
typedef struct {
    double mean, variance, mean_error, variance_error;
} moments;

static moments moments_of(const double *x, int n)
{
    moments m = {0};
    double fourth = 0;
    for (int i = 0; i < n; i++) {
        m.mean += x[i] / n;
    }
    for (int i = 0; i < n; i++) {
        m.variance += pow(x[i] - m.mean, 2) / (n - 1);
        fourth += pow(x[i] - m.mean, 4) / n;
    }
    m.mean_error = sqrt(m.variance / n);
    m.variance_error = sqrt((fourth - m.variance * m.variance) / n);
    return m;
}

static moments sample(estimator *e, const pair *p, double a, uint32_t number, int draws)
{
    double *x = test_doubles(draws);
    for (int i = 0; i < draws; i++) {
        x[i] = estimate(e, p, a, number, (uint32_t)i);
    }
    const moments m = moments_of(x, draws);
    rfa_free(x);
    return m;
}

static const struct {
    rfa_map_kind kind;
    bool unit_norm;
    rfa_rows_kind rows;
} maps[] = {
    {RFA_MAP_GAUSSIAN, true, RFA_ROWS_IID},
    {RFA_MAP_GAUSSIAN, false, RFA_ROWS_IID},
    {RFA_MAP_GAUSSIAN, true, RFA_ROWS_ORTHOGONAL},
    {RFA_MAP_GAUSSIAN, false, RFA_ROWS_SIMPLEX},
    {RFA_MAP_ARCCOS, true, RFA_ROWS_IID},
    {RFA_MAP_ARCCOS, false, RFA_ROWS_ORTHOGONAL},
    {RFA_MAP_POSITIVE, false, RFA_ROWS_IID},
    {RFA_MAP_POSITIVE, true, RFA_ROWS_IID},
    {RFA_MAP_POSITIVE, false, RFA_ROWS_ORTHOGONAL},
    {RFA_MAP_POSITIVE, false, RFA_ROWS_SIMPLEX},
    {RFA_MAP_OPRF, false, RFA_ROWS_IID},
    {RFA_MAP_OPRF, true, RFA_ROWS_ORTHOGONAL},
    {RFA_MAP_OPRF, false, RFA_ROWS_SIMPLEX},
};

// Over 128 independent pairs, each with 64 draws of 36 rows (a cut block among them), the mean of
// each is within 4.5 standard errors of the kernel, and z^2 has the mean 1 (Student's t: 1.03) with
// a standard error of 2^(1/2) / 128^(1/2) = 0.125. A kernel that is 10 % off must show in it.
static void kernels_are_unbiased(void **state)
{
    (void)state;
    enum { PAIRS = 128, DRAWS = 64, D = 36 };
    for (int i = 0; i < (int)(sizeof maps / sizeof *maps); i++) {
        const rfa_map_kind kind = maps[i].kind;
        estimator e = estimator_create(kind, maps[i].unit_norm, maps[i].rows, D);
        double worst = 0, square = 0, wrong = 0;
        for (uint32_t number = 0; number < PAIRS; number++) {
            const pair p = pair_create(number, maps[i].unit_norm, 0.5);
            const moments m = sample(&e, &p, pair_a(&p), number, DRAWS);
            const double want = kernel(&p, kind, maps[i].unit_norm);
            const double z = (m.mean - want) / m.mean_error;
            worst = fmax(worst, fabs(z));
            square += z * z / PAIRS;
            wrong += pow((m.mean - 1.1 * want) / m.mean_error, 2) / PAIRS;
        }
        if (!(worst < 4.5 && fabs(square - 1.03) < 5 * 0.125 && wrong > 1.03 + 5 * 0.125)) {
            print_error(
                "%s, unit norm %d, rows %d: worst z %.2f, mean z^2 %.2f, %.2f if 10 %% off\n",
                rfa_map_name(kind), maps[i].unit_norm, maps[i].rows, worst, square, wrong);
        }
        check(worst < 4.5);
        check(fabs(square - 1.03) < 5 * 0.125);
        check(wrong > 1.03 + 5 * 0.125);
        estimator_destroy(&e);
    }
}

// One block, D = d: the variance of positive features falls from iid to orthogonal rows (Yu et al.;
// Choromanski et al. 2021, theorem 2) to a simplex (Reid et al. 2023), each by more than 5 standard
// errors. That of iid rows is exp(2 x . y) (exp(|x + y|^2) - 1) / D.
static void coupled_rows_vary_less(void **state)
{
    (void)state;
    enum { PAIRS = 3, DRAWS = 30000 };
    for (uint32_t number = 0; number < PAIRS; number++) {
        const pair p = pair_create(number, false, 0.35);
        moments m[3];
        for (int rows = RFA_ROWS_IID; rows <= RFA_ROWS_SIMPLEX; rows++) {
            estimator e = estimator_create(RFA_MAP_POSITIVE, false, (rfa_rows_kind)rows, d);
            m[rows] = sample(&e, &p, 0, number, DRAWS);
            estimator_destroy(&e);
        }
        const double want = exp(2 * dot(p.y[0], p.y[1])) * (exp(distance(&p, 1)) - 1) / d;
        check(fabs(m[RFA_ROWS_IID].variance - want) < 5 * m[RFA_ROWS_IID].variance_error);
        for (int rows = RFA_ROWS_IID; rows < RFA_ROWS_SIMPLEX; rows++) {
            const double gap = m[rows].variance - m[rows + 1].variance;
            const double error = hypot(m[rows].variance_error, m[rows + 1].variance_error);
            if (!(gap > 5 * error)) {
                print_error("variance of rows %d %g, of rows %d %g, error %g\n", rows,
                            m[rows].variance, rows + 1, m[rows + 1].variance, error);
            }
            check(gap > 5 * error);
        }
    }
}

// D times the variance is the same at each D of iid rows, within 5 standard errors.
static void errors_fall_with_projections(void **state)
{
    (void)state;
    enum { DRAWS = 2000 };
    static const ptrdiff_t sizes[] = {4, 32, MOST_D};
    for (int kind = RFA_MAP_GAUSSIAN; kind <= RFA_MAP_OPRF; kind++) {
        const pair p = pair_create(3, true, 1);
        double scaled[3], error[3];
        for (int i = 0; i < 3; i++) {
            estimator e = estimator_create((rfa_map_kind)kind, true, RFA_ROWS_IID, sizes[i]);
            const moments m = sample(&e, &p, pair_a(&p), 1, DRAWS);
            scaled[i] = m.variance * (double)sizes[i];
            error[i] = m.variance_error * (double)sizes[i];
            estimator_destroy(&e);
        }
        for (int i = 1; i < 3; i++) {
            check(error[i] < 0.2 * scaled[i]);
            check(fabs(scaled[i] - scaled[0]) < 5 * hypot(error[i], error[0]));
        }
    }
}

// Of oprf with iid rows, with m = |x + y|^2: the second moment of one row's estimate is
// (1 - 4 a)^d (1 - 8 a)^(-d / 2) exp(2 m (1 - 4 a) / (1 - 8 a) - |x|^2 - |y|^2).
static double oprf_variance(const pair *p, double a)
{
    const double squares = dot(p->y[0], p->y[0]) + dot(p->y[1], p->y[1]);
    return pow(1 - 4 * a, d) * pow(1 - 8 * a, -d / 2.0) *
               exp(2 * distance(p, 1) * (1 - 4 * a) / (1 - 8 * a) - squares) -
           exp(2 * dot(p->y[0], p->y[1]));
}

static void oprf_varies_less_than_positive_features(void **state)
{
    (void)state;
    enum { DRAWS = 60000, D = 2 };
    for (uint32_t number = 0; number < 3; number++) {
        pair p = pair_create(number, false, 0.3);
        for (int j = 0; j < d; j++) { // alike rows, whose sum is long
            p.x[d + j] = p.x[j];
            p.y[1][j] = p.y[0][j];
        }
        const double a = pair_a(&p);
        estimator positive = estimator_create(RFA_MAP_POSITIVE, false, RFA_ROWS_IID, D);
        estimator oprf = estimator_create(RFA_MAP_OPRF, false, RFA_ROWS_IID, D);
        const moments plain = sample(&positive, &p, 0, number, DRAWS);
        const moments best = sample(&oprf, &p, a, number, DRAWS);
        check(a < -0.01);
        check(fabs(best.variance - oprf_variance(&p, a) / D) < 5 * best.variance_error);
        check(plain.variance - best.variance >
              5 * hypot(plain.variance_error, best.variance_error));
        check(oprf_variance(&p, a) < oprf_variance(&p, 0.9 * a));
        check(oprf_variance(&p, a) < oprf_variance(&p, 1.1 * a));
        estimator_destroy(&positive);
        estimator_destroy(&oprf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_unbiased),
        cmocka_unit_test(coupled_rows_vary_less),
        cmocka_unit_test(errors_fall_with_projections),
        cmocka_unit_test(oprf_varies_less_than_positive_features),
    };
    return test_main(tests);
}
