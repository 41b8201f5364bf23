#include "reference/weighted.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// log W_ti, -infinity where t does not see i.
static double log_weight(const ref_weighted *x, ptrdiff_t t, ptrdiff_t i)
{
    double sum = x->input ? x->input[i] : 0;
    if (x->causal && (x->reverse ? i < t : i > t)) {
        return -INFINITY;
    }
    for (ptrdiff_t j = i + 1; x->decay && !x->reverse && j <= t; j++) {
        sum += x->decay[j];
    }
    for (ptrdiff_t j = t; x->decay && x->reverse && j < i; j++) {
        sum += x->decay[j];
    }
    return sum;
}

double ref_weighted_forward(double *out, const ref_weighted *x)
{
    const ptrdiff_t F = ref_map_count(&x->map), d = x->map.d;
    double *q = calloc((size_t)(x->tokens * F), sizeof *q);
    double *k = calloc((size_t)(x->tokens * F), sizeof *k), worst = 1;
    for (ptrdiff_t t = 0; t < x->tokens; t++) {
        ref_map_features(q + t * F, x->q + t * d, false, 0, &x->map);
        ref_map_features(k + t * F, x->k + t * d, true, 0, &x->map);
    }
    for (ptrdiff_t t = 0; t < x->tokens; t++) {
        double den = 0, size = 0, most = -INFINITY;
        memset(out + t * d, 0, (size_t)d * sizeof *out);
        for (ptrdiff_t i = 0; i < x->tokens; i++) {
            most = fmax(most, log_weight(x, t, i));
        }
        for (ptrdiff_t i = 0; i < x->tokens; i++) {
            double kappa = 0;
            for (ptrdiff_t f = 0; f < F; f++) {
                kappa += q[t * F + f] * k[i * F + f];
            }
            kappa *= exp(log_weight(x, t, i) - most);
            den += kappa;
            size += fabs(kappa);
            for (ptrdiff_t j = 0; j < d; j++) {
                out[t * d + j] += kappa * x->v[i * d + j];
            }
        }
        for (ptrdiff_t j = 0; j < d; j++) {
            out[t * d + j] /= den;
        }
        worst = fmax(worst, size / fabs(den));
    }
    free(q);
    free(k);
    return worst;
}
