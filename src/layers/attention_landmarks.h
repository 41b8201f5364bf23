// The landmarks of a layer: per example, means of q and of k (or of a learned map of them,
// layers/landmark_map.h) over pieces of its tokens (attention/landmarks.h), all heads at once.
#ifndef RFA_LAYERS_ATTENTION_LANDMARKS_H
#define RFA_LAYERS_ATTENTION_LANDMARKS_H

#include "layers/attention_layer.h"
#include "layers/landmark_map.h"

// The landmark map's tensors, first in the layer's list; returns how many: 8, or 0 without a map.
int rfa_landmarks_tensors(rfa_attention_tensor *tensor, const rfa_attention_options *options);

// The map of queries (side 0) or keys (1), and its gradient within dparameters.
rfa_landmark_map
rfa_landmarks_map(const rfa_attention *attention, const rfa_attention_saved *saved, int side);
rfa_landmark_map_gradient
rfa_landmarks_map_gradient(rfa_real *dparameters, const rfa_attention *attention, int side);

// Numbers of an example: [C][q | k], 2 E columns.
static inline ptrdiff_t rfa_landmarks_size(const rfa_attention_options *options)
{
    return options->landmarks * 2 * options->width;
}

// C of an example: short ones have fewer.
ptrdiff_t rfa_landmarks_count(const rfa_attention *attention, const rfa_plan *plan, int example);

// Elements of work for leaves of up to rows rows.
ptrdiff_t rfa_landmarks_work(const rfa_attention_options *options, ptrdiff_t rows);

// sums [size] of one leaf. Local.
void rfa_landmarks_local(double *sums,
                         const rfa_attention *attention,
                         const rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         const rfa_leaf *leaf,
                         rfa_real *work);

// totals [examples][size] of sums become means. Local.
void rfa_landmarks_means(double *totals, const rfa_attention *attention, const rfa_plan *plan);

// q and k of gradient->dqkv accumulate, at the rows of one leaf, and dparameters; dmeans
// [examples][size]. Local.
void rfa_landmarks_backward(const rfa_attention_gradient *gradient,
                            rfa_real *dparameters,
                            const rfa_real *dmeans,
                            const rfa_attention *attention,
                            const rfa_attention_saved *saved,
                            const rfa_plan *plan,
                            const rfa_leaf *leaf,
                            rfa_real *work);

#endif
