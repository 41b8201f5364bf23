#include "layers/attention_eva.h"

rfa_eva rfa_eva_layer_shape(const rfa_attention_options *o)
{
    return rfa_eva_cut(o->longest, o->landmarks, o->window, rfa_head_width(o), o->causal);
}

rfa_halo rfa_eva_layer_halo(const rfa_attention *attention, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    return (rfa_halo){.lengths = plan->lengths,
                      .examples = plan->examples,
                      .segments = o->segments,
                      .window = rfa_eva_layer_shape(o).window,
                      .after = !o->causal};
}

void rfa_eva_layer_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_halo halo = rfa_eva_layer_halo(attention, plan);
    const ptrdiff_t B = plan->examples, E = o->width, Cp = rfa_padded(eva.chunks);
    const ptrdiff_t sums = rfa_eva_sums_size(o, &eva), values = rfa_eva_values_size(o, &eva);
    ptrdiff_t halo_rows = 0;
    for (int l = 0; l < B * plan->own; l++) {
        const rfa_leaf *leaf = &plan->leaves[l];
        const rfa_halo_reach reach = rfa_halo_reach_of(&halo, leaf->example, leaf->segment);
        halo_rows += reach.end - reach.begin - leaf->tokens;
    }
    rfa_eva_scratch *own = rfa_carve(arena, 1, sizeof *own);
    const size_t real = sizeof(rfa_real);
    const rfa_eva_scratch arrays = {
        .parts = rfa_carve(arena, plan->own * B * (sums > values ? sums : values), sizeof(double)),
        .dkv = rfa_carve(arena, plan->rows * 2 * E, sizeof(double)),
        .halo_row0 = rfa_carve(arena, B * plan->own + 1, sizeof(ptrdiff_t)),
        .halo = rfa_carve(arena, halo_rows * 2 * E, real),
        .dhalo = rfa_carve(arena, halo_rows * 2 * E, sizeof(double)),
        .q_bar = rfa_carve(arena, B * Cp * E, real),
        .dq_bar = rfa_carve(arena, B * Cp * E, real),
        .dk_bar = rfa_carve(arena, B * Cp * E, real),
        .dbeta = rfa_carve(arena, B * Cp * E, real),
        .dmeans = rfa_carve(arena, B * Cp * 2 * E, real),
        .dmap = rfa_carve(arena, B * attention->parameters, real),
    };
    if (own) {
        *own = arrays;
        rfa_halo_fill(own->halo_row0, &halo, attention->sequence->size, attention->sequence->rank);
    }
    attention->scratch = own;
}

void rfa_eva_layer_carve_saved(rfa_attention_saved *saved,
                               rfa_arena *arena,
                               const rfa_attention *attention,
                               const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const ptrdiff_t rows = plan->examples * rfa_padded(eva.chunks);
    const size_t real = sizeof(rfa_real);
    rfa_eva_saved *own = rfa_carve(arena, 1, sizeof *own);
    const rfa_eva_saved arrays = {
        .means = rfa_carve(arena, rows * 2 * o->width, real),
        .k_bar = rfa_carve(arena, rows * o->width, real),
        .w = rfa_carve(arena, rows * o->width, real),
        .beta = rfa_carve(arena, rows * o->width, real),
        .beta_lse = rfa_carve(arena, rows * o->heads, real),
        .bias = rfa_carve(arena, rows, real),
    };
    if (own) {
        *own = arrays;
    }
    saved->own = own;
}

ptrdiff_t rfa_eva_layer_work(const rfa_attention *attention, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const ptrdiff_t read = rfa_eva_work(plan->longest_leaf, plan->longest_example, &eva);
    const ptrdiff_t map = rfa_landmark_map_work(rfa_padded(eva.chunks), o->heads, eva.d);
    return read > map ? read : map;
}

rfa_eva_head rfa_eva_layer_head(const rfa_attention *attention,
                                const rfa_attention_saved *saved,
                                const rfa_plan *plan,
                                int leaf,
                                ptrdiff_t h)
{
    const rfa_eva_scratch *scratch = attention->scratch;
    const ptrdiff_t E = attention->options.width, at = h * rfa_head_width(&attention->options);
    const rfa_leaf *part = &plan->leaves[leaf];
    const rfa_halo halo = rfa_eva_layer_halo(attention, plan);
    const rfa_halo_reach reach = rfa_halo_reach_of(&halo, part->example, part->segment);
    const ptrdiff_t read = rfa_attention_read_rows(saved, part);
    const rfa_real *q = saved->qkv + part->row0 * 3 * E + at;
    const rfa_real *k = scratch->halo + scratch->halo_row0[leaf] * 2 * E + at;
    return (rfa_eva_head){.q = q,
                          .k = q + E,
                          .v = q + 2 * E,
                          .ld = 3 * E,
                          .halo_k = k,
                          .halo_v = k + E,
                          .ld_halo = 2 * E,
                          .begin = part->begin,
                          .tokens = part->tokens,
                          .length = plan->lengths[part->example],
                          .reach_begin = reach.begin,
                          .reach_end = reach.end,
                          .read = part->tokens < read ? part->tokens : read};
}
