#include "tensor/vmath.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { LANES = 16 }; // partial sums and maxima: a fixed order, in whole vectors

// Each loop is compiled twice, the second time for vectors of 512 bits, which processors that have
// them use: the same operations on each element, hence the same bits.
#if defined __x86_64__ && !defined RFA_DOUBLE
#define WIDE __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))
#define HAS_WIDE __builtin_cpu_supports("avx512vl")
#else
#define WIDE
#define HAS_WIDE false
#endif
#define LOOP static inline __attribute__((always_inline))

#ifdef RFA_DOUBLE

LOOP double exp_of(double x)
{
    return exp(x);
}

LOOP void sin_cos_of(double *s, double *c, double x)
{
    *s = sin(x);
    *c = cos(x);
}

LOOP bool any_beyond_fast_range(const double *x, ptrdiff_t n)
{
    (void)x, (void)n;
    return false;
}

static void
sin_cos_beyond_fast_range(double *s, double *c, const double *x, double factor, ptrdiff_t n)
{
    (void)s, (void)c, (void)x, (void)factor, (void)n;
}

#else

static const float fast_range = 0x1p16f; // of sin and cos: three parts of pi / 2 suffice

LOOP uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

LOOP float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

// x + magic is rounded to a whole number, which the low bits of the sum then hold.
static const float magic = 0x1.8p23f;

// exp(x) = 2^n exp(r), |r| <= log(2) / 2, exp(r) = 1 + r + r^2 p(r) with a minimax p of degree 4.
LOOP float exp_of(float x)
{
    const float sum = fmaf(x, 0x1.715476p+0f, magic);
    const float n = sum - magic;
    const float r = fmaf(n, 0x1.05c610p-29f, fmaf(n, -0x1.62e430p-1f, x)); // log(2) in two parts
    float p = fmaf(0x1.6a1a62p-10f, r, 0x1.123fc8p-7f);
    p = fmaf(p, r, 0x1.555916p-5f);
    p = fmaf(p, r, 0x1.55548ap-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = 1.0f + fmaf(p, r * r, r);
    float y = float_of(bits_of(p) + (bits_of(sum) << 23)); // p 2^n
    y = x < -0x1.5d589ep+6f ? 0.0f : y;                    // log of the smallest normal number
    return x <= 0x1.62e42ep+6f ? y : x + INFINITY;         // log of the greatest; NaN goes here
}

// x = n pi / 2 + r, |r| <= pi / 4; odd n swap sine and cosine, bit 1 of n or n + 1 is their sign.
LOOP void sin_cos_of(float *s, float *c, float x)
{
    const float sum = fmaf(x, 0x1.45f306p-1f, magic);
    const float n = sum - magic;
    const uint32_t quadrant = bits_of(sum);
    float r = fmaf(n, -0x1.921fb6p+0f, x);
    r = fmaf(n, 0x1.777a5cp-25f, r);
    r = fmaf(n, 0x1.ee59dap-50f, r);
    const float z = r * r;
    float sine = fmaf(fmaf(-0x1.992c00p-13f, z, 0x1.1106fcp-7f), z, -0x1.555544p-3f);
    sine = fmaf(sine * z, r, r);
    float cosine = fmaf(fmaf(0x1.99cb78p-16f, z, -0x1.6c0bc4p-10f), z, 0x1.55554ap-5f);
    cosine = fmaf(cosine, z * z, fmaf(-0.5f, z, 1.0f));
    const float a = quadrant & 1 ? cosine : sine;
    const float b = quadrant & 1 ? sine : cosine;
    *s = float_of(bits_of(a) ^ (quadrant & 2) << 30);
    *c = float_of(bits_of(b) ^ ((quadrant + 1) & 2) << 30);
}

LOOP bool any_beyond_fast_range(const float *x, ptrdiff_t n)
{
    int beyond = 0;
#pragma omp simd reduction(| : beyond)
    for (ptrdiff_t i = 0; i < n; i++) {
        beyond |= !(fabsf(x[i]) <= fast_range);
    }
    return beyond;
}

static void sin_cos_beyond_fast_range(float *s, float *c, const float *x, float factor, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        if (!(fabsf(x[i]) <= fast_range)) {
            s[i] = sinf(x[i]) * factor;
            c[i] = cosf(x[i]) * factor;
        }
    }
}

#endif

LOOP rfa_real greater(rfa_real a, rfa_real b)
{
    return a > b ? a : b;
}

LOOP void exp_loop(rfa_real *y, const rfa_real *x, ptrdiff_t n)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] = exp_of(x[i]);
    }
}

WIDE static void exp_wide(rfa_real *y, const rfa_real *x, ptrdiff_t n)
{
    exp_loop(y, x, n);
}

void rfa_vexp(rfa_real *y, const rfa_real *x, ptrdiff_t n)
{
    if (HAS_WIDE) {
        exp_wide(y, x, n);
    } else {
        exp_loop(y, x, n);
    }
}

LOOP void
exp_scaled_loop(rfa_real *y, const rfa_real *x, rfa_real shift, rfa_real factor, ptrdiff_t n)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] = exp_of(x[i] - shift) * factor;
    }
}

WIDE static void
exp_scaled_wide(rfa_real *y, const rfa_real *x, rfa_real shift, rfa_real factor, ptrdiff_t n)
{
    exp_scaled_loop(y, x, shift, factor, n);
}

void rfa_vexp_scaled(rfa_real *y, const rfa_real *x, rfa_real shift, rfa_real factor, ptrdiff_t n)
{
    if (HAS_WIDE) {
        exp_scaled_wide(y, x, shift, factor, n);
    } else {
        exp_scaled_loop(y, x, shift, factor, n);
    }
}

LOOP rfa_real exp_sum_loop(rfa_real *y, const rfa_real *x, rfa_real shift, ptrdiff_t n)
{
    rfa_real sums[LANES] = {0};
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES) {
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            y[i + l] = exp_of(x[i + l] - shift);
            sums[l] += y[i + l];
        }
    }
    for (int l = 0; i + l < n; l++) {
        y[i + l] = exp_of(x[i + l] - shift);
        sums[l] += y[i + l];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++) {
            sums[l] += sums[l + half];
        }
    }
    return sums[0];
}

WIDE static rfa_real exp_sum_wide(rfa_real *y, const rfa_real *x, rfa_real shift, ptrdiff_t n)
{
    return exp_sum_loop(y, x, shift, n);
}

rfa_real rfa_vexp_sum(rfa_real *y, const rfa_real *x, rfa_real shift, ptrdiff_t n)
{
    return HAS_WIDE ? exp_sum_wide(y, x, shift, n) : exp_sum_loop(y, x, shift, n);
}

LOOP bool sin_cos_loop(rfa_real *restrict s,
                       rfa_real *restrict c,
                       ptrdiff_t ld,
                       const rfa_real *restrict x,
                       const rfa_real *restrict factor,
                       ptrdiff_t rows,
                       ptrdiff_t n)
{
    const bool beyond = any_beyond_fast_range(x, rows * n);
    for (ptrdiff_t t = 0; t < rows; t++) {
#pragma omp simd
        for (ptrdiff_t i = 0; i < n; i++) {
            rfa_real sine, cosine;
            sin_cos_of(&sine, &cosine, x[t * n + i]);
            s[t * ld + i] = sine * factor[t];
            c[t * ld + i] = cosine * factor[t];
        }
    }
    return beyond;
}

WIDE static bool sin_cos_wide(rfa_real *s,
                              rfa_real *c,
                              ptrdiff_t ld,
                              const rfa_real *x,
                              const rfa_real *factor,
                              ptrdiff_t rows,
                              ptrdiff_t n)
{
    return sin_cos_loop(s, c, ld, x, factor, rows, n);
}

void rfa_vsin_cos_rows(rfa_real *s,
                       rfa_real *c,
                       ptrdiff_t ld,
                       const rfa_real *x,
                       const rfa_real *factor,
                       ptrdiff_t rows,
                       ptrdiff_t n)
{
    const bool beyond = HAS_WIDE ? sin_cos_wide(s, c, ld, x, factor, rows, n)
                                 : sin_cos_loop(s, c, ld, x, factor, rows, n);
    for (ptrdiff_t t = 0; beyond && t < rows; t++) {
        sin_cos_beyond_fast_range(s + t * ld, c + t * ld, x + t * n, factor[t], n);
    }
}

void rfa_vsin_cos(rfa_real *s, rfa_real *c, const rfa_real *x, ptrdiff_t n)
{
    rfa_vsin_cos_rows(s, c, n, x, &(rfa_real){1}, 1, n);
}

LOOP rfa_real max_loop(const rfa_real *x, ptrdiff_t n)
{
    rfa_real most[LANES];
    for (int l = 0; l < LANES; l++) {
        most[l] = (rfa_real)-INFINITY;
    }
    ptrdiff_t i = 0;
    for (; i + LANES <= n; i += LANES) {
#pragma omp simd
        for (int l = 0; l < LANES; l++) {
            most[l] = greater(x[i + l], most[l]);
        }
    }
    for (int l = 0; i + l < n; l++) {
        most[l] = greater(x[i + l], most[l]);
    }
    for (int l = 1; l < LANES; l++) {
        most[0] = greater(most[l], most[0]);
    }
    return most[0];
}

WIDE static rfa_real max_wide(const rfa_real *x, ptrdiff_t n)
{
    return max_loop(x, n);
}

rfa_real rfa_vmax(const rfa_real *x, ptrdiff_t n)
{
    return HAS_WIDE ? max_wide(x, n) : max_loop(x, n);
}
