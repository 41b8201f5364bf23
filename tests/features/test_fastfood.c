#include "features/fastfood.h"

#include "reference/differences.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

static const struct {
    ptrdiff_t D, d;
} shapes[] = {{8, 8}, {16, 8}, {5, 8}, {13, 6}, {19, 5}, {64, 16}, {3, 2}, {4, 1}, {70, 33}};
enum { SHAPES = sizeof shapes / sizeof *shapes, MOST_N = 64 };

static ptrdiff_t power_of_two(ptrdiff_t d)
{
    ptrdiff_t n = 1;
    while (n < d) {
        n *= 2;
    }
    return n;
}

static double sign(ptrdiff_t i, ptrdiff_t j) // H_ij
{
    return __builtin_parityll((unsigned long long)(i & j)) ? -1 : 1;
}

static rfa_rng stream_of(uint32_t number)
{
    return rfa_rng_stream(29, RFA_RNG_TEST, number, 0);
}

// Parameters, a stream and its permutations, [blocks][n].
typedef struct {
    ptrdiff_t D, d, n, blocks, size;
    rfa_rng stream;
    rfa_real *parameters, *w, *work;
    double *wide;
    ptrdiff_t order[128];
} world;

// With S = B = 1 and G = e_k, W_0j = n^(-1/2) H_P(k)j, whose columns 1, 2, 4, ... < d tell P(k).
static void read_permutations(world *a)
{
    for (ptrdiff_t k = 0; k < a->n; k++) {
        for (ptrdiff_t i = 0; i < a->size; i++) {
            const ptrdiff_t part = i / a->n % 3;
            a->parameters[i] = part == 1 && i % a->n != k ? 0 : 1;
        }
        rfa_fastfood_forward(a->w, a->parameters, &a->stream, a->D, a->d, a->work);
        for (ptrdiff_t block = 0; block < a->blocks; block++) {
            ptrdiff_t row = 0;
            for (ptrdiff_t bit = 1; bit < a->n; bit *= 2) {
                row += a->w[block * a->n * a->d + bit] < 0 ? bit : 0;
            }
            a->order[block * a->n + k] = row;
        }
    }
}

static world world_create(int shape, uint32_t number)
{
    world a = {.D = shapes[shape].D, .d = shapes[shape].d, .stream = stream_of(number)};
    a.n = power_of_two(a.d);
    a.blocks = (a.D + a.n - 1) / a.n;
    a.size = rfa_fastfood_size(a.D, a.d);
    a.parameters = test_reals(a.size);
    a.wide = test_doubles(a.size);
    a.w = test_reals(a.D * a.d);
    a.work = test_reals(rfa_fastfood_work(a.D, a.d));
    read_permutations(&a);
    test_fill(a.parameters, a.size, 7, 1);
    for (ptrdiff_t i = 0; i < a.size; i++) {
        a.wide[i] = (double)a.parameters[i];
    }
    return a;
}

static void world_destroy(world *a)
{
    rfa_free(a->parameters);
    rfa_free(a->wide);
    rfa_free(a->w);
    rfa_free(a->work);
}

// W_ij = n^(-1/2) s_i sum_k H_ik g_k H_P(k)j b_j
static double entry(const world *a, ptrdiff_t row, ptrdiff_t column)
{
    const ptrdiff_t n = a->n, block = row / n, i = row % n;
    const double *s = a->wide + block * 3 * n, *g = s + n, *b = g + n;
    double sum = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        sum += sign(i, k) * g[k] * sign(a->order[block * n + k], column);
    }
    return s[i] * sum * b[column] / sqrt((double)n);
}

// Sum of absolute terms of the sum above, at the most.
static double largest(const world *a)
{
    double most = 0;
    for (ptrdiff_t i = 0; i < a->size; i++) {
        most = fmax(most, fabs(a->wide[i]));
    }
    return pow(most, 3) * sqrt((double)a->n);
}

static void permutations_are_permutations(void **state)
{
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        world a = world_create(shape, 1);
        check(a.size == a.blocks * 3 * a.n);
        for (ptrdiff_t block = 0; block < a.blocks; block++) {
            bool seen[MOST_N] = {0};
            for (ptrdiff_t k = 0; k < a.n; k++) {
                seen[a.order[block * a.n + k]] = true;
            }
            for (ptrdiff_t k = 0; k < a.n; k++) {
                check(seen[k]);
            }
        }
        world_destroy(&a);
    }
    // They are those of the stream and the block, and uniform: each of 24 comes up 1 / 24 of the
    // times, within 4.5 standard errors.
    enum { STREAMS = 4800, n = 4 };
    int counts[256] = {0}, alike = 0;
    for (uint32_t number = 0; number < STREAMS; number++) {
        world a = {.D = 8, .d = 4, .n = n, .blocks = 2, .size = 24, .stream = stream_of(number)};
        rfa_real parameters[24], w[32], work[64];
        check(rfa_fastfood_work(8, 4) <= 64);
        a.parameters = parameters, a.w = w, a.work = work;
        read_permutations(&a);
        counts[a.order[0] * 64 + a.order[1] * 16 + a.order[2] * 4 + a.order[3]]++;
        alike += memcmp(a.order, a.order + n, n * sizeof *a.order) == 0;
    }
    const double mean = STREAMS / 24.0, bound = 4.5 * sqrt(mean * (23 / 24.0));
    int different = 0;
    for (int i = 0; i < 256; i++) {
        check(counts[i] == 0 || fabs(counts[i] - mean) < bound);
        different += counts[i] > 0;
    }
    check(different == 24);
    check(fabs(alike - mean) < bound);
}

static void forward_is_the_product(void **state)
{
    (void)state;
    for (int shape = 0; shape < SHAPES; shape++) {
        world a = world_create(shape, 1);
        double *want = test_doubles(a.D * a.d);
        for (ptrdiff_t i = 0; i < a.D * a.d; i++) {
            want[i] = entry(&a, i / a.d, i % a.d);
        }
        rfa_fastfood_forward(a.w, a.parameters, &a.stream, a.D, a.d, a.work);
        check_close("w", a.w, want, a.D * a.d, (3 + log2((double)a.n)) * test_eps() * largest(&a));
        rfa_free(want);
        world_destroy(&a);
    }
}

typedef struct {
    const world *a;
    const rfa_real *dw;
} loss_context;

static double loss(const void *context)
{
    const loss_context *at = context;
    double sum = 0;
    for (ptrdiff_t i = 0; i < at->a->D * at->a->d; i++) {
        sum += (double)at->dw[i] * entry(at->a, i / at->a->d, i % at->a->d);
    }
    return sum;
}

static void backward_is_the_derivative(void **state)
{
    (void)state;
    static const double before = 3;
    for (int shape = 0; shape < SHAPES - 1; shape++) { // the last is slow to differentiate
        world a = world_create(shape, 1);
        rfa_real *dparameters = test_reals(a.size), *dw = test_reals(a.D * a.d);
        double *want = test_doubles(a.size), size = 0;
        test_fill(dw, a.D * a.d, 8, 1);
        for (ptrdiff_t i = 0; i < a.size; i++) {
            dparameters[i] = (rfa_real)before;
        }
        for (ptrdiff_t i = 0; i < a.D * a.d; i++) {
            size += fabs((double)dw[i]);
        }
        rfa_fastfood_backward(dparameters, dw, a.parameters, &a.stream, a.D, a.d, a.work);
        const loss_context context = {&a, dw};
        ref_differences(want, a.wide, a.size, 1e-2, loss, &context); // exact: W is linear in each
        for (ptrdiff_t i = 0; i < a.size; i++) {
            want[i] += before;
        }
        check_close("dparameters", dparameters, want, a.size,
                    (4 + 2 * log2((double)a.n)) * test_eps() * (before + size * largest(&a)) +
                        1e-13 * size * largest(&a));
        rfa_free(dparameters);
        rfa_free(dw);
        rfa_free(want);
        world_destroy(&a);
    }
}

// B is +-1 and fair, G is N(0, 1), rows have chi(d) lengths: moments within 4.5 standard errors
// over all draws. Rows of cut blocks too, at each d.
static void initial_rows_look_normal(void **state)
{
    (void)state;
    enum { DRAWS = 600 };
    for (int shape = 0; shape < SHAPES; shape++) {
        world a = world_create(shape, 1);
        const double d = (double)a.d;
        double flips = 0, normal = 0, normal_square = 0, square = 0, fourth = 0, cross = 0;
        ptrdiff_t diagonal = 0, rows = 0;
        for (uint32_t draw = 0; draw < DRAWS; draw++) {
            a.stream = stream_of(draw);
            rfa_fastfood_init(a.parameters, &a.stream, a.D, a.d, a.work);
            rfa_fastfood_forward(a.w, a.parameters, &a.stream, a.D, a.d, a.work);
            for (ptrdiff_t i = 0; i < a.size; i++) {
                const double value = (double)a.parameters[i];
                const ptrdiff_t part = i / a.n % 3;
                check(part == 2 ? fabs(value) == 1 : isfinite(value) && (part == 1 || value > 0));
                flips += part == 2 ? value : 0;
                normal += part == 1 ? value : 0;
                normal_square += part == 1 ? value * value : 0;
            }
            diagonal += a.blocks * a.n;
            for (ptrdiff_t i = 0; i < a.D; i++) {
                const rfa_real *row = a.w + i * a.d;
                double l2 = 0;
                for (ptrdiff_t j = 0; j < a.d; j++) {
                    l2 += (double)row[j] * (double)row[j];
                }
                square += l2;
                fourth += l2 * l2;
                cross += a.d > 1 ? (double)row[0] * (double)row[1] : 0;
            }
            rows += a.D;
        }
        const double n = (double)diagonal, m = (double)rows;
        check(fabs(flips) < 4.5 * sqrt(n));
        check(fabs(normal) < 4.5 * sqrt(n));
        check(fabs(normal_square - n) < 4.5 * sqrt(2 * n));
        check(fabs(square / m - d) < 4.5 * sqrt(2 * d / m));
        check(fabs(fourth / m - d * (d + 2)) < 4.5 * sqrt(8 * d * (d + 2) * (d + 3) / m));
        // Rows of a block share the signs of B: at the worst it has one independent sign, and E
        // w_0^2 w_1^2 is 3 at most (1 for normal rows).
        const double independent = DRAWS * (double)a.blocks;
        check(fabs(cross / m) < 4.5 * sqrt(3 / independent));
        world_destroy(&a);
    }
}

static void init_follows_from_the_stream(void **state)
{
    (void)state;
    world a = world_create(3, 1);
    rfa_real *same = test_reals(a.size), *other = test_reals(a.size);
    const rfa_rng next = stream_of(2);
    rfa_fastfood_init(a.parameters, &a.stream, a.D, a.d, a.work);
    rfa_fastfood_init(same, &a.stream, a.D, a.d, a.work);
    rfa_fastfood_init(other, &next, a.D, a.d, a.work);
    check(memcmp(a.parameters, same, (size_t)a.size * sizeof *same) == 0);
    for (ptrdiff_t part = 0; part < 3 * a.blocks; part++) { // of each block, unlike all others
        const size_t bytes = (size_t)a.n * sizeof *same;
        const rfa_real *own = a.parameters + part * a.n;
        check(memcmp(own, other + part * a.n, bytes) != 0);
        check(part < 3 || memcmp(own, own - 3 * a.n, bytes) != 0);
    }
    rfa_free(same);
    rfa_free(other);
    world_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutations_are_permutations), cmocka_unit_test(forward_is_the_product),
        cmocka_unit_test(backward_is_the_derivative),    cmocka_unit_test(initial_rows_look_normal),
        cmocka_unit_test(init_follows_from_the_stream),
    };
    return test_main(tests);
}
