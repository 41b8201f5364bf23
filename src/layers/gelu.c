#include "layers/gelu.h"

#include "base/profile.h"
#include "tensor/vmath.h"

enum { BLOCK = 512 };

static const rfa_real twice_c = (rfa_real)1.5957691216057308;
static const rfa_real cubic = (rfa_real)0.044715;

static ptrdiff_t block_size(ptrdiff_t left)
{
    return left < BLOCK ? left : BLOCK;
}

// e[i] = exp(-2 c (x + 0.044715 x^3))
static void gate(rfa_real e[BLOCK], const rfa_real *x, ptrdiff_t n)
{
    rfa_real argument[BLOCK];
    for (ptrdiff_t i = 0; i < n; i++) {
        argument[i] = -twice_c * x[i] * (1 + cubic * x[i] * x[i]);
    }
    rfa_vexp(e, argument, n);
}

void rfa_gelu_forward(rfa_real *y, const rfa_real *x, ptrdiff_t n)
{
    RFA_PROFILE(RFA_PHASE_GELU);
    for (ptrdiff_t at = 0; at < n; at += BLOCK) {
        const ptrdiff_t count = block_size(n - at);
        rfa_real e[BLOCK];
        gate(e, x + at, count);
        for (ptrdiff_t i = 0; i < count; i++) {
            y[at + i] = x[at + i] * (1 / (1 + e[i]));
        }
    }
}

void rfa_gelu_slope(rfa_real *y, rfa_real *slope, const rfa_real *x, ptrdiff_t n)
{
    RFA_PROFILE(RFA_PHASE_GELU);
    for (ptrdiff_t at = 0; at < n; at += BLOCK) {
        const ptrdiff_t count = block_size(n - at);
        rfa_real e[BLOCK];
        gate(e, x + at, count);
        for (ptrdiff_t i = 0; i < count; i++) {
            const rfa_real u = x[at + i], s = 1 / (1 + e[i]);
            y[at + i] = u * s;
            slope[at + i] = s + u * twice_c * (1 + 3 * cubic * u * u) * s * (1 - s);
        }
    }
}
