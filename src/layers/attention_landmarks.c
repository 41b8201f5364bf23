#include "layers/attention_landmarks.h"

#include "attention/landmarks.h"
#include "layers/attention_impl.h"

#include <string.h>

// Tensors of queries, then of keys.
enum { MAP_W, MAP_B, MAP_SCALE, MAP_SHIFT, MAP_TENSORS };

int rfa_landmarks_tensors(rfa_attention_tensor *tensor, const rfa_attention_options *options)
{
    const ptrdiff_t d = rfa_head_width(options);
    if (!options->landmark_map) {
        return 0;
    }
    const rfa_attention_tensor all[2 * MAP_TENSORS] = {
        {"landmark_q_w", d, d, RFA_INIT_NORMAL, 0.02, 0},
        {"landmark_q_b", d, 0, RFA_INIT_CONSTANT, 0, 0},
        {"landmark_q_scale", d, 0, RFA_INIT_CONSTANT, 1, 0},
        {"landmark_q_shift", d, 0, RFA_INIT_CONSTANT, 0, 0},
        {"landmark_k_w", d, d, RFA_INIT_NORMAL, 0.02, 0},
        {"landmark_k_b", d, 0, RFA_INIT_CONSTANT, 0, 0},
        {"landmark_k_scale", d, 0, RFA_INIT_CONSTANT, 1, 0},
        {"landmark_k_shift", d, 0, RFA_INIT_CONSTANT, 0, 0},
    };
    memcpy(tensor, all, sizeof all);
    return 2 * MAP_TENSORS;
}

rfa_landmark_map
rfa_landmarks_map(const rfa_attention *attention, const rfa_attention_saved *saved, int side)
{
    const int first = side * MAP_TENSORS;
    return (rfa_landmark_map){.w = rfa_attention_values(attention, saved, first + MAP_W),
                              .b = rfa_attention_values(attention, saved, first + MAP_B),
                              .scale = rfa_attention_values(attention, saved, first + MAP_SCALE),
                              .shift = rfa_attention_values(attention, saved, first + MAP_SHIFT)};
}

rfa_landmark_map_gradient
rfa_landmarks_map_gradient(rfa_real *dparameters, const rfa_attention *attention, int side)
{
    const rfa_attention_tensor *tensor = attention->tensor + side * MAP_TENSORS;
    return (rfa_landmark_map_gradient){.w = dparameters + tensor[MAP_W].at,
                                       .b = dparameters + tensor[MAP_B].at,
                                       .scale = dparameters + tensor[MAP_SCALE].at,
                                       .shift = dparameters + tensor[MAP_SHIFT].at};
}

ptrdiff_t rfa_landmarks_count(const rfa_attention *attention, const rfa_plan *plan, int example)
{
    return rfa_landmark_count(plan->lengths[example], attention->options.landmarks);
}

static rfa_landmark_span
span_of(const rfa_attention *attention, const rfa_plan *plan, const rfa_leaf *leaf)
{
    return (rfa_landmark_span){.begin = leaf->begin,
                               .tokens = leaf->tokens,
                               .n = plan->lengths[leaf->example],
                               .pieces = rfa_landmarks_count(attention, plan, leaf->example)};
}

ptrdiff_t rfa_landmarks_work(const rfa_attention_options *options, ptrdiff_t rows)
{
    return options->landmark_map
               ? rfa_padded(rows * options->width) +
                     rfa_landmark_map_work(rows, options->heads, rfa_head_width(options))
               : 0;
}

void rfa_landmarks_local(double *sums,
                         const rfa_attention *attention,
                         const rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         const rfa_leaf *leaf,
                         rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, at = leaf->row0 * 3 * E;
    const rfa_landmark_span span = span_of(attention, plan, leaf);
    memset(sums, 0, (size_t)rfa_landmarks_size(o) * sizeof *sums);
    if (!o->landmark_map) {
        rfa_landmark_sums(sums, 2 * E, saved->qkv + at, 3 * E, 2 * E, span);
        return;
    }
    rfa_real *y = work, *rest = work + rfa_padded(leaf->rows * E);
    for (int side = 0; leaf->rows > 0 && side < 2; side++) {
        const rfa_landmark_map map = rfa_landmarks_map(attention, saved, side);
        rfa_landmark_map_forward(y, saved->qkv + at + side * E, 3 * E, &map, leaf->rows, o->heads,
                                 rfa_head_width(o), rest);
        rfa_landmark_sums(sums + side * E, 2 * E, y, E, E, span);
    }
}

void rfa_landmarks_means(double *totals, const rfa_attention *attention, const rfa_plan *plan)
{
    const ptrdiff_t E = attention->options.width, size = rfa_landmarks_size(&attention->options);
    for (int e = 0; e < plan->examples; e++) {
        rfa_landmark_means(totals + e * size, 2 * E, 2 * E, plan->lengths[e],
                           rfa_landmarks_count(attention, plan, e));
    }
}

void rfa_landmarks_backward(const rfa_attention_gradient *gradient,
                            rfa_real *dparameters,
                            const rfa_real *dmeans,
                            const rfa_attention *attention,
                            const rfa_attention_saved *saved,
                            const rfa_plan *plan,
                            const rfa_leaf *leaf,
                            rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, at = leaf->row0 * 3 * E;
    const rfa_landmark_span span = span_of(attention, plan, leaf);
    const rfa_real *means = dmeans + leaf->example * rfa_landmarks_size(o);
    if (!o->landmark_map) {
        rfa_landmark_backward(gradient->dqkv + at, 3 * E, means, 2 * E, 2 * E, span);
        return;
    }
    rfa_real *dy = work, *rest = work + rfa_padded(leaf->rows * E);
    for (int side = 0; leaf->rows > 0 && side < 2; side++) {
        const rfa_landmark_map map = rfa_landmarks_map(attention, saved, side);
        const rfa_landmark_map_gradient dmap =
            rfa_landmarks_map_gradient(dparameters, attention, side);
        memset(dy, 0, (size_t)(leaf->rows * E) * sizeof *dy);
        rfa_landmark_backward(dy, E, means + side * E, 2 * E, E, span);
        rfa_landmark_map_backward(gradient->dqkv + at + side * E, 3 * E, &dmap, dy,
                                  saved->qkv + at + side * E, 3 * E, &map, leaf->rows, o->heads,
                                  rfa_head_width(o), rest);
    }
}
