// The classifier's head on one pooled vector, and the cross-entropy loss.
#ifndef RFA_LAYERS_HEAD_H
#define RFA_LAYERS_HEAD_H

#include "tensor/shapes.h"

typedef struct {
    ptrdiff_t width, hidden, classes; // E, hidden width, classes
    const rfa_real *w1, *b1;          // [hidden][E], [hidden]
    const rfa_real *w2, *b2;          // [classes][hidden], [classes]
} rfa_head_weights;

// hidden = relu(W1 pooled + b1), logits = W2 hidden + b2. One example a call: no shape depends on
// the batch. Local.
void rfa_head_forward(rfa_real *logits,
                      rfa_real *hidden,
                      const rfa_real *pooled,
                      const rfa_head_weights *weights);

// -log softmax(logits)[label] in nats; dlogits [classes] = scale times its gradient (NULL: not
// needed).
double rfa_cross_entropy(
    rfa_real *dlogits, const rfa_real *logits, ptrdiff_t classes, int label, double scale);

// dpooled [E] overwritten; dw1, db1, dw2, db2 overwritten with this example's.
void rfa_head_backward(rfa_real *dpooled,
                       rfa_real *dw1,
                       rfa_real *db1,
                       rfa_real *dw2,
                       rfa_real *db2,
                       const rfa_real *dlogits,
                       const rfa_real *hidden,
                       const rfa_real *pooled,
                       const rfa_head_weights *weights);

// The index of the largest logit, the first of equals.
int rfa_argmax(const rfa_real *logits, ptrdiff_t classes);

#endif
