#include "optim/adamw.h"

#include "base/profile.h"
#include "tensor/vmath.h"

#include <math.h>

rfa_status rfa_adamw_create(rfa_adamw *optimiser, const rfa_adamw_options *options, ptrdiff_t size)
{
    *optimiser = (rfa_adamw){.options = *options};
    RFA_TRY(rfa_alloc(&optimiser->moment1, size, sizeof(rfa_real), "moments"));
    return rfa_alloc(&optimiser->moment2, size, sizeof(rfa_real), "moments");
}

void rfa_adamw_destroy(rfa_adamw *optimiser)
{
    rfa_free(optimiser->moment1);
    rfa_free(optimiser->moment2);
    *optimiser = (rfa_adamw){0};
}

static double global_norm(const rfa_real *gradient, ptrdiff_t size)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < size; i++) {
        sum += (double)gradient[i] * (double)gradient[i];
    }
    return sqrt(sum);
}

double rfa_adamw_step(rfa_adamw *optimiser,
                      rfa_real *values,
                      const rfa_real *gradient,
                      const rfa_parameters *table,
                      int64_t step,
                      double rate)
{
    RFA_PROFILE(RFA_PHASE_OPTIMISER);
    const rfa_adamw_options *o = &optimiser->options;
    const double norm = global_norm(gradient, table->size);
    if (!isfinite(norm)) {
        return norm;
    }
    const rfa_real shrink = (rfa_real)(o->clip > 0 && norm > o->clip ? o->clip / norm : 1);
    const rfa_real beta1 = (rfa_real)o->beta1, beta2 = (rfa_real)o->beta2;
    const rfa_real epsilon = (rfa_real)o->epsilon;
    const rfa_real correct1 = (rfa_real)(rate / (1 - pow(o->beta1, (double)step)));
    const rfa_real correct2 = (rfa_real)(1 / sqrt(1 - pow(o->beta2, (double)step)));
    for (int p = 0; p < table->count; p++) {
        const rfa_parameter *entry = &table->list[p];
        const rfa_real keep = (rfa_real)(entry->decay ? 1 - rate * o->weight_decay : 1);
        rfa_real *restrict x = values + entry->offset;
        rfa_real *restrict m1 = optimiser->moment1 + entry->offset;
        rfa_real *restrict m2 = optimiser->moment2 + entry->offset;
        const rfa_real *restrict g = gradient + entry->offset;
        for (ptrdiff_t i = 0; i < entry->count; i++) {
            const rfa_real clipped = g[i] * shrink;
            m1[i] = beta1 * m1[i] + (1 - beta1) * clipped;
            m2[i] = beta2 * m2[i] + (1 - beta2) * clipped * clipped;
            x[i] = keep * x[i] - correct1 * m1[i] / (rfa_sqrt(m2[i]) * correct2 + epsilon);
        }
    }
    return norm;
}
