#include "reference/differences.h"

void ref_differences(double *out,
                     double *x,
                     ptrdiff_t n,
                     double step,
                     double (*loss)(const void *context),
                     const void *context)
{
    static const double weight[5] = {1, -8, 0, 8, -1}; // over 12 step
    for (ptrdiff_t i = 0; i < n; i++) {
        const double here = x[i];
        out[i] = 0;
        for (int k = -2; k <= 2; k++) {
            if (k != 0) {
                x[i] = here + k * step;
                out[i] += weight[k + 2] * loss(context) / (12 * step);
            }
        }
        x[i] = here;
    }
}
