#include "exchange/element.h"

#include <math.h>
#include <string.h>

void rfa_element_clear(double *elements, ptrdiff_t count, ptrdiff_t unit)
{
    memset(elements, 0, (size_t)(count * unit) * sizeof *elements);
    for (ptrdiff_t e = 0; e < count; e++) {
        elements[e * unit] = -INFINITY;
    }
}

// The scale, the decay and the two factors of a combination.
typedef struct {
    double m, L, far, near;
} factors;

static factors weigh(const double *far, const double *near)
{
    const double passed = far[0] + near[1];
    const double m = passed > near[0] ? passed : near[0];
    return (factors){
        .m = m,
        .L = far[1] + near[1],
        .far = passed == m ? 1 : exp(passed - m), // 1 also where both are empty
        .near = near[0] == m ? 1 : exp(near[0] - m),
    };
}

void rfa_element_combine(
    double *out, const double *far, const double *near, ptrdiff_t count, ptrdiff_t unit)
{
    for (ptrdiff_t e = 0; e < count; e++, out += unit, far += unit, near += unit) {
        const factors f = weigh(far, near);
        for (ptrdiff_t i = RFA_ELEMENT_HEADER; i < unit; i++) {
            out[i] = far[i] * f.far + near[i] * f.near;
        }
        out[0] = f.m;
        out[1] = f.L;
    }
}

void rfa_element_step(double *inner, double *outer, ptrdiff_t count, ptrdiff_t unit)
{
    for (ptrdiff_t e = 0; e < count; e++, inner += unit, outer += unit) {
        const factors f = weigh(outer, inner);
        const double L = outer[1];
        inner[0] = outer[0];
        inner[1] = L;
        for (ptrdiff_t i = RFA_ELEMENT_HEADER; i < unit; i++) {
            const double x = outer[i];
            outer[i] = x * f.far + inner[i] * f.near;
            inner[i] = x;
        }
        outer[0] = f.m;
        outer[1] = f.L;
    }
}
