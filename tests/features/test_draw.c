#include "features/draw.h"

#include "features/pool.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

// Statistics are held to MOST standard errors: a right draw misses one in 150,000.
static const double most = 4.5;

static rfa_rng stream_of(uint32_t draw)
{
    return rfa_rng_stream(17, RFA_RNG_TEST, draw, 0);
}

static double dot(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    double sum = 0;
    for (ptrdiff_t j = 0; j < n; j++) {
        sum += (double)a[j] * (double)b[j];
    }
    return sum;
}

static bool same_bits(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static double chi_mean(double d)
{
    return sqrt(2) * exp(lgamma((d + 1) / 2) - lgamma(d / 2));
}

// Numbers of which mean and variance are known.
typedef struct {
    double sum, mean, variance;
    int64_t n;
} statistic;

static void check_statistic(const char *what, const statistic *s)
{
    const double z = (s->sum / (double)s->n - s->mean) / sqrt(s->variance / (double)s->n);
    if (!(fabs(z) < most)) {
        print_error("%s: mean %g, expected %g, z %.2f\n", what, s->sum / (double)s->n, s->mean, z);
    }
    check(fabs(z) < most);
}

static const struct {
    ptrdiff_t D, d;
} shapes[] = {{64, 64}, {16, 16}, {35, 16}, {5, 16}, {7, 3}, {9, 2}, {3, 1}, {21, 7}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void iid_rows_are_the_normals_of_the_stream(void **state)
{
    (void)state;
    for (int s = 0; s < SHAPES; s++) {
        const ptrdiff_t D = shapes[s].D, d = shapes[s].d;
        rfa_real *w = test_reals(D * d);
        double *normals = test_doubles(D * d), *work = test_doubles(rfa_draw_work(d));
        rfa_pool pool;
        check_ok(rfa_pool_create(&pool, RFA_ROWS_IID, 23, 3, D, d));
        for (uint32_t m = 0; m < 3; m++) {
            const rfa_rng stream = rfa_rng_stream(23, RFA_RNG_POOL, m, 0);
            rfa_rng_normals(normals, &stream, D * d);
            rfa_draw_rows(w, RFA_ROWS_IID, &stream, D, d, work);
            for (ptrdiff_t i = 0; i < D * d; i++) {
                check(w[i] == (rfa_real)normals[i]);
                check(rfa_pool_matrix(&pool, m)[i] == w[i]);
            }
        }
        rfa_pool_destroy(&pool);
        rfa_free(w);
        rfa_free(normals);
        rfa_free(work);
    }
}

static void pools_hold_rows_of_their_kind(void **state)
{
    (void)state;
    enum { D = 20, d = 8, M = 3 };
    rfa_real w[D * d];
    double *work = test_doubles(rfa_draw_work(d));
    for (int kind = RFA_ROWS_IID; kind <= RFA_ROWS_SIMPLEX; kind++) {
        rfa_pool pool;
        check_ok(rfa_pool_create(&pool, (rfa_rows_kind)kind, 5, M, D, d));
        for (uint32_t m = 0; m < M; m++) {
            const rfa_rng stream = rfa_rng_stream(5, RFA_RNG_POOL, m, 0);
            rfa_draw_rows(w, (rfa_rows_kind)kind, &stream, D, d, work);
            check(same_bits(w, rfa_pool_matrix(&pool, m), D * d));
        }
        rfa_pool_destroy(&pool);
    }
    rfa_free(work);
}

// Gram-Schmidt of d normal rows loses at most the conditioning of the block, which for these seeds
// is below 1e4 d; then the rows are rounded.
static void rows_of_a_block_have_the_angles_of_their_kind(void **state)
{
    (void)state;
    for (int kind = RFA_ROWS_ORTHOGONAL; kind <= RFA_ROWS_SIMPLEX; kind++) {
        for (int s = 0; s < SHAPES; s++) {
            const ptrdiff_t D = shapes[s].D, d = shapes[s].d;
            const double cosine = kind == RFA_ROWS_SIMPLEX && d > 1 ? -1 / (double)(d - 1) : 0;
            const double bound = 4 * test_eps() + 1e4 * (double)d * 0x1p-52;
            rfa_real *w = test_reals(D * d);
            double *work = test_doubles(rfa_draw_work(d));
            for (uint32_t draw = 0; draw < 20; draw++) {
                const rfa_rng stream = stream_of(draw);
                rfa_draw_rows(w, (rfa_rows_kind)kind, &stream, D, d, work);
                for (ptrdiff_t i = 0; i < D; i++) {
                    for (ptrdiff_t j = i / d * d; j < i; j++) { // the rows before it in its block
                        const rfa_real *a = w + i * d, *b = w + j * d;
                        const double size = sqrt(dot(a, a, d) * dot(b, b, d));
                        check(fabs(dot(a, b, d) / size - cosine) <= bound);
                    }
                }
            }
            rfa_free(w);
            rfa_free(work);
        }
    }
}

static void rows_do_not_depend_on_how_many_there_are(void **state)
{
    (void)state;
    enum { D = 40, d = 7 };
    rfa_real all[D * d], some[D * d], other[D * d];
    double *work = test_doubles(rfa_draw_work(d));
    for (int kind = RFA_ROWS_IID; kind <= RFA_ROWS_SIMPLEX; kind++) {
        const rfa_rng stream = stream_of(1), next = stream_of(2);
        rfa_draw_rows(all, (rfa_rows_kind)kind, &stream, D, d, work);
        rfa_draw_rows(other, (rfa_rows_kind)kind, &next, D, d, work);
        for (ptrdiff_t i = 0; i < D; i++) {
            check(!same_bits(all + i * d, other + i * d, d));
            for (ptrdiff_t j = 0; j < i; j++) {
                check(!same_bits(all + i * d, all + j * d, d));
            }
        }
        for (ptrdiff_t n = 1; n <= D; n++) {
            some[n * d - 1] = 0;
            rfa_draw_rows(some, (rfa_rows_kind)kind, &stream, n, d, work);
            check(same_bits(some, all, n * d));
        }
    }
    rfa_free(work);
}

// The length of each row has the chi(d) distribution, by its first four moments: E |w|^2 = d with
// variance 2 d, E |w|^4 = d (d + 2) with variance 8 d (d + 2) (d + 3). Lengths of a block are
// independent of each other and of the directions.
static void lengths_are_chi(void **state)
{
    (void)state;
    enum { DRAWS = 4000, MOST_D = 24 };
    static const struct {
        ptrdiff_t D, d;
    } sizes[] = {{3, 1}, {4, 2}, {7, 5}, {20, 16}};
    for (int kind = RFA_ROWS_ORTHOGONAL; kind <= RFA_ROWS_SIMPLEX; kind++) {
        for (int s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
            const ptrdiff_t D = sizes[s].D, d = sizes[s].d;
            const double n = (double)d;
            statistic first = {.mean = chi_mean(n), .variance = n - pow(chi_mean(n), 2)};
            statistic square = {.mean = n, .variance = 2 * n};
            statistic fourth = {.mean = n * (n + 2), .variance = 8 * n * (n + 2) * (n + 3)};
            statistic pairs = {.variance = 4 * n * n};
            statistic directed = {.variance = 2 * n * 2 * (n - 1) / (n * n * (n + 2))};
            rfa_real w[MOST_D * 16];
            double *work = test_doubles(rfa_draw_work(d));
            for (uint32_t draw = 0; draw < DRAWS; draw++) {
                const rfa_rng stream = stream_of(draw);
                double before = 0;
                rfa_draw_rows(w, (rfa_rows_kind)kind, &stream, D, d, work);
                for (ptrdiff_t i = 0; i < D; i++) {
                    const double l2 = dot(w + i * d, w + i * d, d);
                    first.sum += sqrt(l2);
                    square.sum += l2;
                    fourth.sum += l2 * l2;
                    pairs.sum += i > 0 ? (l2 - n) * (before - n) : 0;
                    pairs.n += i > 0;
                    directed.sum += (l2 - n) * (pow((double)w[i * d], 2) / l2 - 1 / n);
                    before = l2;
                }
                first.n = square.n = fourth.n = directed.n += D;
            }
            check_statistic("|w|", &first);
            check_statistic("|w|^2", &square);
            check_statistic("|w|^4", &fourth);
            check_statistic("|w_i|^2 |w_j|^2", &pairs);
            if (d > 1) {
                check_statistic("|w|^2 and direction", &directed);
            }
            rfa_free(work);
        }
    }
}

// Directions are Haar-distributed: each entry q of each row has E q = 0 (also on the diagonal,
// which QR without care for signs makes negative), E q^2 = 1 / d, E q^4 = 3 / (d (d + 2)). For the
// minors of orthogonal rows, E q_11 q_22 q_12 q_21 = -1 / (d (d - 1) (d + 2)), in place of 0.
static void directions_are_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 20000, d = 5 };
    const double n = d;
    // E q^8 = 105 / (d (d + 2) (d + 4) (d + 6))
    const double eighth = 105 / (n * (n + 2) * (n + 4) * (n + 6)), fourth = 3 / (n * (n + 2));
    double *work = test_doubles(rfa_draw_work(d));
    for (int kind = RFA_ROWS_ORTHOGONAL; kind <= RFA_ROWS_SIMPLEX; kind++) {
        statistic entry[d * d], square[d * d], quartic[d * d];
        double minor = 0, minor_square = 0, same_sign = 0;
        for (int i = 0; i < d * d; i++) {
            entry[i] = (statistic){.variance = 1 / n, .n = DRAWS};
            square[i] = (statistic){.mean = 1 / n, .variance = fourth - 1 / (n * n), .n = DRAWS};
            quartic[i] =
                (statistic){.mean = fourth, .variance = eighth - fourth * fourth, .n = DRAWS};
        }
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            rfa_real w[d * d];
            const rfa_rng stream = stream_of(draw);
            rfa_draw_rows(w, (rfa_rows_kind)kind, &stream, d, d, work);
            double q[d * d];
            for (int i = 0; i < d * d; i++) {
                const rfa_real *row = w + i / d * d;
                q[i] = (double)w[i] / sqrt(dot(row, row, d));
                entry[i].sum += q[i];
                square[i].sum += q[i] * q[i];
                quartic[i].sum += pow(q[i], 4);
            }
            const double product = q[0] * q[d + 1] * q[1] * q[d];
            minor += product / DRAWS;
            minor_square += product * product / DRAWS;
            same_sign += q[0] * q[d + 1] / DRAWS;
        }
        for (int i = 0; i < d * d; i++) {
            check_statistic("entry", &entry[i]);
            check_statistic("entry^2", &square[i]);
            check_statistic("entry^4", &quartic[i]);
        }
        if (kind == RFA_ROWS_ORTHOGONAL) {
            const double want = -1 / (n * (n - 1) * (n + 2));
            const double error = sqrt((minor_square - minor * minor) / DRAWS);
            check(fabs(minor - want) < most * error);
            check(fabs(minor) > most * error);
        }
        check(fabs(same_sign) < most / n / sqrt(DRAWS) * 1.5); // E (q_11 q_22)^2 is about 1 / d^2
    }
    rfa_free(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iid_rows_are_the_normals_of_the_stream),
        cmocka_unit_test(pools_hold_rows_of_their_kind),
        cmocka_unit_test(rows_of_a_block_have_the_angles_of_their_kind),
        cmocka_unit_test(rows_do_not_depend_on_how_many_there_are),
        cmocka_unit_test(lengths_are_chi),
        cmocka_unit_test(directions_are_uniform),
    };
    return test_main(tests);
}
