// The head of a classifier, of one document and of two, and its loss, against their definitions and
// differences of these.
#include "layers/head.h"
#include "layers/pair.h"
#include "reference/differences.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { HEAD_TENSORS = 1 + 2 * RFA_HEAD_LAYERS, HEAD_WIDEST = 24 };

typedef struct {
    int layers;
    const ptrdiff_t *size;
    const double *in[HEAD_TENSORS]; // pooled, w, b, w, b, ...
    int label;
} ref_head;

// Cross entropy of the head's logits.
static double head_loss(const void *context)
{
    const ref_head *at = context;
    double x[HEAD_WIDEST], y[HEAD_WIDEST], sum = 0;
    memcpy(x, at->in[0], (size_t)at->size[0] * sizeof *x);
    for (int l = 0; l < at->layers; l++) {
        const ptrdiff_t in = at->size[l], out = at->size[l + 1];
        for (ptrdiff_t i = 0; i < out; i++) {
            y[i] = at->in[2 + 2 * l][i] + weighted(at->in[1 + 2 * l] + i * in, x, in);
        }
        for (ptrdiff_t i = 0; i < out; i++) {
            x[i] = l + 1 < at->layers ? fmax(y[i], 0) : y[i];
        }
    }
    ptrdiff_t c = 0;
    do {
        sum += exp(x[c]);
    } while (++c < at->size[at->layers]);
    return log(sum) - x[at->label];
}

static void check_head(int layers, const ptrdiff_t *size)
{
    const int tensors = 1 + 2 * layers;
    const ptrdiff_t classes = size[layers];
    pair in[HEAD_TENSORS];
    rfa_real *gradient[HEAD_TENSORS];
    double *want[HEAD_TENSORS];
    ptrdiff_t count[HEAD_TENSORS];
    rfa_head_weights weights = {.layers = layers};
    rfa_head_gradients to = {{NULL}, {NULL}};
    ref_head at = {.layers = layers, .size = size};
    memcpy(weights.size, size, (size_t)(layers + 1) * sizeof *size);
    for (int i = 0; i < tensors; i++) {
        const int l = (i - 1) / 2;
        count[i] = i == 0 ? size[0] : size[l + 1] * (i % 2 ? size[l] : 1);
        in[i] = pair_create(count[i], 30 + (uint32_t)i, 0.5);
        gradient[i] = test_reals(count[i]);
        want[i] = test_doubles(count[i]);
        test_fill(gradient[i], count[i], 40, 1); // overwritten
        at.in[i] = in[i].wide;
        if (i > 0) {
            *(i % 2 ? &weights.w[l] : &weights.b[l]) = in[i].x;
            *(i % 2 ? &to.w[l] : &to.b[l]) = gradient[i];
        }
    }
    for (int label = 0; label < classes; label += 3) {
        rfa_real logits[HEAD_WIDEST], hidden[2 * HEAD_WIDEST], dlogits[HEAD_WIDEST];
        at.label = label;
        rfa_head_forward(logits, hidden, in[0].x, &weights);
        const rfa_real *of_layer = hidden;
        for (int l = 1; l < layers; l++) {
            int off = 0;
            for (ptrdiff_t i = 0; i < size[l]; i++) {
                off += of_layer[i] == 0;
            }
            check(off > 0 && off < size[l]);
            of_layer += size[l];
        }
        const double loss = rfa_cross_entropy(dlogits, logits, classes, label, 1);
        check(fabs(loss - head_loss(&at)) <= 32 * test_eps());
        check(rfa_cross_entropy(NULL, logits, classes, label, 1) == loss);
        rfa_head_backward(gradient[0], &to, dlogits, hidden, in[0].x, &weights);
        for (int i = 0; i < tensors; i++) {
            static const char *const names[] = {"dpooled", "dw1", "db1", "dw2",
                                                "db2",     "dw3", "db3"};
            ref_differences(want[i], in[i].wide, count[i], step, head_loss, &at);
            check_close(names[i], gradient[i], want[i], count[i], 32 * test_eps() + differences);
        }
        rfa_real scaled[HEAD_WIDEST];
        rfa_cross_entropy(scaled, logits, classes, label, 0.25);
        for (ptrdiff_t c = 0; c < classes; c++) {
            check(scaled[c] == (rfa_real)0.25 * dlogits[c]);
        }
    }
    for (int i = 0; i < tensors; i++) {
        pair_destroy(&in[i]);
        rfa_free(gradient[i]);
        rfa_free(want[i]);
    }
}

static void head_and_cross_entropy(void **state)
{
    (void)state;
    static const ptrdiff_t two[] = {16, 12, 10}, three[] = {16, 24, 12, 10};
    check_head(2, two);
    check_head(3, three);
}

enum { MATCH_WIDTH = 6 };

typedef struct {
    rfa_match_kind kind;
    const double *a, *b, *weights; // of the joined vector
} ref_match;

static double match_loss(const void *context)
{
    const ref_match *at = context;
    const int E = MATCH_WIDTH;
    double sum = 0;
    for (int i = 0; i < E; i++) {
        sum += at->weights[i] * at->a[i] + at->weights[E + i] * at->b[i];
        if (at->kind == RFA_MATCH_NLI) {
            sum += at->weights[2 * E + i] * at->a[i] * at->b[i] +
                   at->weights[3 * E + i] * (at->a[i] - at->b[i]);
        }
    }
    return sum;
}

static void documents_are_joined(void **state)
{
    (void)state;
    enum { E = MATCH_WIDTH };
    pair a = pair_create(E, 50, 1), b = pair_create(E, 51, 1), weights = pair_create(4 * E, 52, 1);
    for (int kind = RFA_MATCH_CONCAT; kind <= RFA_MATCH_NLI; kind++) {
        const ref_match at = {(rfa_match_kind)kind, a.wide, b.wide, weights.wide};
        const ptrdiff_t size = rfa_match_size(at.kind, E);
        rfa_real joined[4 * E + 1], da[E], db[E];
        double sum = 0, want[E];
        check(size == (kind == RFA_MATCH_NLI ? 4 * E : 2 * E));
        joined[size] = 7; // not written
        rfa_match_forward(joined, a.x, b.x, E, at.kind);
        check(joined[size] == 7);
        for (ptrdiff_t i = 0; i < size; i++) {
            sum += (double)joined[i] * weights.wide[i];
        }
        check(fabs(sum - match_loss(&at)) <= 2 * 4 * E * test_eps());
        test_fill(da, E, 53, 1); // overwritten
        test_fill(db, E, 54, 1);
        rfa_match_backward(da, db, weights.x, a.x, b.x, E, at.kind);
        ref_differences(want, a.wide, E, step, match_loss, &at);
        check_close("da", da, want, E, 8 * test_eps() + differences);
        ref_differences(want, b.wide, E, step, match_loss, &at);
        check_close("db", db, want, E, 8 * test_eps() + differences);
    }
    pair_destroy(&a);
    pair_destroy(&b);
    pair_destroy(&weights);
}

static void cross_entropy_at_the_limits(void **state)
{
    (void)state;
    const rfa_real far[3] = {1000, -1000, 0}, equal[4] = {5, 5, 5, 5};
    rfa_real d[4];
    check(rfa_cross_entropy(d, far, 3, 0, 1) == 0 && d[0] == 0 && d[1] == 0 && d[2] == 0);
    check(rfa_cross_entropy(d, far, 3, 1, 1) == 2000 && d[0] == 1 && d[1] == -1);
    check(fabs(rfa_cross_entropy(d, equal, 4, 2, 1) - log(4.0)) < 1e-14);
    const rfa_real nan_inside[3] = {0, (rfa_real)NAN, 1};
    check(isnan(rfa_cross_entropy(d, nan_inside, 3, 0, 1))); // the loop must see a divergence
    check(rfa_argmax(equal, 4) == 0 && rfa_argmax(far, 3) == 0 && rfa_argmax(far + 1, 2) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_and_cross_entropy),
        cmocka_unit_test(documents_are_joined),
        cmocka_unit_test(cross_entropy_at_the_limits),
    };
    return test_main(tests);
}
