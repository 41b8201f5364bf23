// What attention_eva.c (a pass) and attention_eva_setup.c (parameters, memory, views) share.
#ifndef RFA_LAYERS_ATTENTION_EVA_H
#define RFA_LAYERS_ATTENTION_EVA_H

#include "attention/eva.h"
#include "exchange/halo.h"
#include "layers/attention_impl.h"
#include "layers/attention_landmarks.h"

// Arrays of chunks have Cp = rfa_padded(C) rows an example; those beyond its own chunks hold zeros.
typedef struct {
    double *parts;                             // [own][examples][...]: what crosses in a round
    double *dkv;                               // [rows][2 E]
    ptrdiff_t *halo_row0;                      // [examples own + 1]
    rfa_real *halo;                            // [halo rows][2 E] keys and values
    double *dhalo;                             // the same
    rfa_real *q_bar, *dq_bar, *dk_bar, *dbeta; // [examples][Cp][E]
    rfa_real *dmeans;                          // [examples][Cp][2 E]
    rfa_real *dmap;                            // [examples][parameters]
} rfa_eva_scratch;

typedef struct {
    rfa_real *means;            // [examples][Cp][2 E] of q and k
    rfa_real *k_bar, *w, *beta; // [examples][Cp][E]
    rfa_real *beta_lse;         // [examples][H][Cp]
    rfa_real *bias;             // [examples][Cp]
} rfa_eva_saved;

rfa_eva rfa_eva_layer_shape(const rfa_attention_options *o);
rfa_halo rfa_eva_layer_halo(const rfa_attention *attention, const rfa_plan *plan);

// Numbers of an example that cross: of queries and keys, or of values.
static inline ptrdiff_t rfa_eva_sums_size(const rfa_attention_options *o, const rfa_eva *eva)
{
    return eva->chunks * 2 * o->width;
}

static inline ptrdiff_t rfa_eva_values_size(const rfa_attention_options *o, const rfa_eva *eva)
{
    return o->heads * eva->chunks * rfa_eva_unit(eva->d);
}

// Head h of a leaf, with the halo that is in scratch.
rfa_eva_head rfa_eva_layer_head(const rfa_attention *attention,
                                const rfa_attention_saved *saved,
                                const rfa_plan *plan,
                                int leaf,
                                ptrdiff_t h);

// The setup's part of rfa_mechanism_eva.
void rfa_eva_layer_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan);
void rfa_eva_layer_carve_saved(rfa_attention_saved *saved,
                               rfa_arena *arena,
                               const rfa_attention *attention,
                               const rfa_plan *plan);
ptrdiff_t rfa_eva_layer_work(const rfa_attention *attention, const rfa_plan *plan);

#endif
