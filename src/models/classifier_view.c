#include "models/classifier_view.h"

#include "models/classifier_impl.h"

void rfa_classifier_read_all(rfa_classifier *model)
{
    for (ptrdiff_t layer = 0; layer < model->options.layers; layer++) {
        model->block[layer].attention.first_only = false;
    }
}

const rfa_real *rfa_classifier_output(const rfa_classifier *model, ptrdiff_t layer)
{
    RFA_ASSERT(layer >= 0 && layer <= model->options.layers);
    return layer < model->options.layers ? model->block[layer].x : model->x;
}

const rfa_real *rfa_classifier_qkv(const rfa_classifier *model, ptrdiff_t layer)
{
    RFA_ASSERT(layer >= 0 && layer < model->options.layers && !model->options.recompute);
    return model->block[layer].attention.qkv;
}

const rfa_real *rfa_classifier_attended(const rfa_classifier *model, ptrdiff_t layer)
{
    RFA_ASSERT(layer >= 0 && layer < model->options.layers && !model->options.recompute);
    return model->block[layer].attention.out;
}
