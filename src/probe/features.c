#include "probe/features.h"

#include "models/classifier_view.h"

#include <string.h>

void rfa_features_create(rfa_features *features, const rfa_session *session)
{
    const rfa_config *config = &session->config;
    *features = (rfa_features){
        .layers = (ptrdiff_t)config->model.layers + 1,
        .width = (ptrdiff_t)config->model.width,
        .last = (rfa_pooling)config->model.pooling == RFA_POOLING_LAST,
    };
    features->size = features->layers * RFA_PROBE_POOLINGS * features->width;
}

void rfa_features_destroy(rfa_features *features)
{
    rfa_free(features->parts);
    features->parts = NULL;
    features->room = 0;
}

static rfa_status make_room(rfa_features *features, ptrdiff_t size)
{
    if (size > features->room) {
        rfa_features_destroy(features);
        RFA_TRY(rfa_alloc(&features->parts, size, sizeof *features->parts, "pooled features"));
        features->room = size;
    }
    if (size > 0) {
        memset(features->parts, 0, (size_t)size * sizeof *features->parts);
    }
    return RFA_OK;
}

// to [layers][poolings][E]: sums of one leaf of an example of so many tokens.
static void pool_leaf(double *to,
                      const rfa_features *features,
                      const rfa_session *session,
                      const rfa_leaf *leaf,
                      ptrdiff_t length)
{
    const ptrdiff_t E = features->width;
    const ptrdiff_t one = (features->last ? length - 1 : 0) - leaf->begin;
    for (ptrdiff_t layer = 0; layer < features->layers; layer++) {
        const rfa_real *x = rfa_classifier_output(session->model, layer) + leaf->row0 * E;
        double *mean = to + layer * RFA_PROBE_POOLINGS * E, *token = mean + E;
        for (ptrdiff_t t = 0; t < leaf->tokens; t++) {
            for (ptrdiff_t j = 0; j < E; j++) {
                mean[j] += (double)x[t * E + j];
            }
        }
        for (ptrdiff_t j = 0; j < E && one >= 0 && one < leaf->tokens; j++) {
            token[j] = (double)x[one * E + j];
        }
    }
}

rfa_status rfa_features_pool(const double **out, rfa_features *features, rfa_session *session)
{
    const rfa_batch *batch = &session->batch;
    const ptrdiff_t E = features->width, size = features->size;
    RFA_TRY(rfa_agree(&session->grid.sequence,
                      make_room(features, (ptrdiff_t)batch->own * batch->examples * size)));
#pragma omp parallel for schedule(dynamic)
    for (int l = 0; l < batch->leaf_count; l++) {
        const rfa_leaf *leaf = &batch->leaves[l];
        const ptrdiff_t own = l % batch->own;
        pool_leaf(features->parts + (own * batch->examples + leaf->example) * size, features,
                  session, leaf, batch->length[leaf->example]);
    }
    RFA_TRY(
        rfa_exchange_run(session->exchange, RFA_TOTAL, features->parts, batch->examples * size));
    for (int e = 0; e < batch->examples; e++) {
        for (ptrdiff_t layer = 0; layer < features->layers; layer++) {
            double *mean = features->parts + e * size + layer * RFA_PROBE_POOLINGS * E;
            for (ptrdiff_t j = 0; j < E; j++) {
                mean[j] /= (double)batch->length[e];
            }
        }
    }
    *out = features->parts;
    return RFA_OK;
}
