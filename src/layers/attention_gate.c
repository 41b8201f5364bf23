// Gates of the linear kinds: how fast the states of a head forget.
#include "layers/attention_linear.h"

#include <math.h>

// log(1 + exp(x))
static double softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

// Decays of a fixed gate: 1 - 2^(-5 - i) for the i-th head of its direction, horizons of 32, 64...
// tokens (Sun et al., "Retentive network", 2023).
static double fixed_decay(const rfa_attention_options *o, ptrdiff_t h)
{
    const bool second = o->direction == RFA_BOTH && rfa_linear_is_reverse(o, h);
    const ptrdiff_t i = second ? h - (o->heads + 1) / 2 : h;
    return log1p(-ldexp(1, -5 - (int)(i < 40 ? i : 40)));
}

void rfa_gates_open(const rfa_attention *attention,
                    const rfa_attention_saved *saved,
                    const rfa_plan *plan,
                    int leaf,
                    const rfa_real *x)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_leaf *part = &plan->leaves[leaf];
    const rfa_linear_tensors at = rfa_linear_tensor_places(o);
    const rfa_linear_saved *own = rfa_linear_own(saved);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        rfa_real *decay = own->decay + h * plan->rows + part->row0;
        rfa_real *input = own->input + h * plan->rows + part->row0;
        const double fixed = fixed_decay(o, h);
        for (ptrdiff_t t = 0; t < part->rows; t++) {
            decay[t] = t < part->tokens ? (rfa_real)fixed : 0;
            input[t] = 0;
        }
        if (o->gate == RFA_GATE_DECAY) {
            continue;
        }
        const rfa_real *w = rfa_attention_values(attention, saved, at.gate_weight) + h * o->width;
        const rfa_real b = rfa_attention_values(attention, saved, at.gate_bias)[h];
        for (ptrdiff_t t = 0; t < part->tokens; t++) {
            rfa_real sum = b;
#pragma omp simd reduction(+ : sum)
            for (ptrdiff_t j = 0; j < o->width; j++) {
                sum += x[t * o->width + j] * w[j];
            }
            decay[t] = (rfa_real)-softplus(-(double)sum);
            input[t] = (rfa_real)-softplus((double)sum);
        }
    }
}

void rfa_gates_close(const rfa_attention *attention,
                     const rfa_attention_saved *saved,
                     const rfa_plan *plan,
                     int leaf,
                     ptrdiff_t h,
                     const rfa_real *ddecay,
                     const rfa_real *dinput)
{
    const rfa_leaf *part = &plan->leaves[leaf];
    const rfa_linear_scratch *scratch = attention->scratch;
    const rfa_real *decay = rfa_linear_own(saved)->decay + h * plan->rows + part->row0;
    rfa_real *dgate = scratch->dgate + h * plan->rows + part->row0;
    for (ptrdiff_t t = 0; t < part->tokens; t++) {
        const double g = exp((double)decay[t]);
        dgate[t] = (rfa_real)((double)ddecay[t] * (1 - g) - (double)dinput[t] * g);
    }
}

void rfa_gates_input_backward(rfa_real *dx,
                              rfa_real *dparameters,
                              const rfa_attention *attention,
                              const rfa_attention_saved *saved,
                              const rfa_plan *plan,
                              int leaf,
                              const rfa_real *x)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_linear_tensors at = rfa_linear_tensor_places(o);
    const rfa_linear_scratch *scratch = attention->scratch;
    const rfa_leaf *part = &plan->leaves[leaf];
    const ptrdiff_t E = o->width;
    for (ptrdiff_t h = 0; at.gate_weight >= 0 && h < o->heads; h++) {
        const rfa_real *w = rfa_attention_values(attention, saved, at.gate_weight) + h * E;
        const rfa_real *dgate = scratch->dgate + h * plan->rows + part->row0;
        rfa_real *dw = dparameters + attention->tensor[at.gate_weight].at + h * E;
        rfa_real *db = dparameters + attention->tensor[at.gate_bias].at + h;
        for (ptrdiff_t t = 0; t < part->tokens; t++) {
            *db += dgate[t];
#pragma omp simd
            for (ptrdiff_t j = 0; j < E; j++) {
                dw[j] += dgate[t] * x[t * E + j];
                dx[t * E + j] += dgate[t] * w[j];
            }
        }
    }
}
