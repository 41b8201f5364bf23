// The classifier's head on one pooled vector, or two side by side, and the cross-entropy loss.
#ifndef RFA_LAYERS_HEAD_H
#define RFA_LAYERS_HEAD_H

#include "base/kinds.h"
#include "tensor/shapes.h"

enum { RFA_HEAD_LAYERS = 3 }; // at most

// y_l = W_l y_{l-1} + b_l, relu between them; y_0 is the pooled vector, y_layers the logits.
typedef struct {
    int layers;                          // 2 or 3
    ptrdiff_t size[RFA_HEAD_LAYERS + 1]; // of y_0, ..., y_layers
    const rfa_real *w[RFA_HEAD_LAYERS],
        *b[RFA_HEAD_LAYERS]; // [size[l + 1]][size[l]], [size[l + 1]]
} rfa_head_weights;

// Of one example, overwritten.
typedef struct {
    rfa_real *w[RFA_HEAD_LAYERS], *b[RFA_HEAD_LAYERS];
} rfa_head_gradients;

// hidden: y_1, then y_2 where there are three layers. One example a call: no shape depends on the
// batch. Local.
void rfa_head_forward(rfa_real *logits,
                      rfa_real *hidden,
                      const rfa_real *pooled,
                      const rfa_head_weights *weights);

// dpooled [size[0]] overwritten.
void rfa_head_backward(rfa_real *dpooled,
                       const rfa_head_gradients *to,
                       const rfa_real *dlogits,
                       const rfa_real *hidden,
                       const rfa_real *pooled,
                       const rfa_head_weights *weights);

// What the head reads of two documents' pooled vectors a, b [E]: concat [a, b], 2 E numbers; nli
// [a, b, a * b, a - b], 4 E.
static inline ptrdiff_t rfa_match_size(rfa_match_kind kind, ptrdiff_t width)
{
    return (kind == RFA_MATCH_NLI ? 4 : 2) * width;
}
void rfa_match_forward(
    rfa_real *joined, const rfa_real *a, const rfa_real *b, ptrdiff_t width, rfa_match_kind kind);
// da, db [E] overwritten.
void rfa_match_backward(rfa_real *da,
                        rfa_real *db,
                        const rfa_real *djoined,
                        const rfa_real *a,
                        const rfa_real *b,
                        ptrdiff_t width,
                        rfa_match_kind kind);

// -log softmax(logits)[label] in nats; dlogits [classes] = scale times its gradient (NULL: not
// needed).
double rfa_cross_entropy(
    rfa_real *dlogits, const rfa_real *logits, ptrdiff_t classes, int label, double scale);

// The index of the largest logit, the first of equals.
int rfa_argmax(const rfa_real *logits, ptrdiff_t classes);

#endif
