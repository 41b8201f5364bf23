// A kind of attention as the layer runs it: one row of the table in attention_layer.c. The
// functions are those of attention_layer.h; NULL where a kind has nothing to do.
#ifndef RFA_LAYERS_ATTENTION_IMPL_H
#define RFA_LAYERS_ATTENTION_IMPL_H

#include "layers/attention_layer.h"

struct rfa_mechanism {
    int (*rounds)(const rfa_attention_options *options);     // NULL: 1
    bool (*pool_rows)(const rfa_attention_options *options); // whether it draws from the pool
    // Fills tensor[0..), without at; returns how many.
    int (*tensors)(rfa_attention_tensor *tensor, const rfa_attention_options *options);
    void (*init)(rfa_real *values, const rfa_attention *attention, ptrdiff_t layer, rfa_real *work);
    ptrdiff_t (*init_work)(const rfa_attention_options *options);
    void (*carve)(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan);
    // Kinds that keep what crosses the ranks don't exchange it again; NULL: it is exchanged again.
    double *(*carve_carry)(rfa_arena *arena, const rfa_attention *attention, const rfa_plan *plan);
    void (*carve_kept)(rfa_attention_saved *saved,
                       rfa_arena *arena,
                       const rfa_attention *attention,
                       const rfa_plan *plan,
                       double *carry);
    void (*carve_saved)(rfa_attention_saved *saved,
                        rfa_arena *arena,
                        const rfa_attention *attention,
                        const rfa_plan *plan);
    ptrdiff_t (*work)(const rfa_attention *attention, const rfa_plan *plan);
    void (*begin)(const rfa_attention *attention, rfa_attention_saved *saved, rfa_real *work);
    bool (*queries_late)(const rfa_attention_options *options); // NULL: local needs them
    void (*local)(const rfa_attention *attention,
                  rfa_attention_saved *saved,
                  const rfa_plan *plan,
                  int round,
                  int leaf,
                  const rfa_real *x,
                  rfa_real *work);
    // exchange may leave its states on their way, till exchange_end (NULL: it leaves none).
    rfa_status (*exchange)(rfa_attention *attention,
                           rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int round,
                           rfa_real *const *works);
    void (*exchange_end)(rfa_attention *attention,
                         rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         int round);
    int64_t (*read)(const rfa_attention *attention,
                    rfa_attention_saved *saved,
                    const rfa_plan *plan,
                    int leaf,
                    rfa_real *work);
    void (*read_backward)(const rfa_attention_gradient *gradient,
                          rfa_real *dparameters,
                          const rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          int leaf,
                          rfa_real *work);
    rfa_status (*exchange_backward)(const rfa_attention_gradient *gradient,
                                    rfa_attention *attention,
                                    const rfa_attention_saved *saved,
                                    const rfa_plan *plan,
                                    int round,
                                    rfa_real *const *works);
    void (*exchange_backward_end)(rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_plan *plan,
                                  int round);
    void (*local_backward)(const rfa_attention_gradient *gradient,
                           rfa_real *dparameters,
                           const rfa_attention *attention,
                           const rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int round,
                           int leaf,
                           rfa_real *work);
    void (*input_backward)(rfa_real *dx,
                           rfa_real *dparameters,
                           const rfa_attention *attention,
                           const rfa_attention_saved *saved,
                           const rfa_plan *plan,
                           int leaf,
                           const rfa_real *x);
    double (*flops)(const rfa_attention_options *options,
                    ptrdiff_t n,
                    ptrdiff_t read,
                    bool backward);
};

extern const rfa_mechanism rfa_mechanism_linear, rfa_mechanism_softmax, rfa_mechanism_ra,
    rfa_mechanism_lara, rfa_mechanism_eva;

static inline ptrdiff_t rfa_head_width(const rfa_attention_options *options)
{
    return options->width / options->heads;
}

// A parameter tensor of a layer, by its place in the list.
static inline const rfa_real *
rfa_attention_values(const rfa_attention *attention, const rfa_attention_saved *saved, int tensor)
{
    return saved->parameters + attention->tensor[tensor].at;
}

#endif
