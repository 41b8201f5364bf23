// Ranks: 1 2 3 4 5 8
//
// P ranks against one rank, to the bit, token by token: activations, gradients of activations,
// logits, gradients of parameters; both algorithms, both kinds; empty segments and ranks. And what
// a token may see: nothing later when causal, nothing of padding or of other examples.
#include "layers/norm.h"
#include "models/world.h"

#include <math.h>
#include <string.h>

static const ptrdiff_t lengths[] = {300, 17, 1, 128, 129, 96};
enum { EXAMPLES = 6, STEP = 2 };

static bool equal(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    bool same = true;
    for (ptrdiff_t i = 0; i < n; i++) {
        same = same && a[i] == b[i];
    }
    return same;
}

// Rows of `many` must be the rows of `one` that stand at the same example and position.
static bool rows_equal(
    const world *many, const rfa_real *a, const world *one, const rfa_real *b, ptrdiff_t width)
{
    for (int l = 0; l < many->batch.leaf_count; l++) {
        const rfa_leaf *leaf = &many->batch.leaves[l];
        const rfa_leaf *whole = &one->batch.leaves[leaf->example * one->batch.own + leaf->segment];
        if (leaf->begin != whole->begin || leaf->rows != whole->rows ||
            !equal(a + leaf->row0 * width, b + whole->row0 * width, leaf->tokens * width)) {
            return false;
        }
    }
    return true;
}

static void
compare(const char *name, const rfa_classifier_options *options, rfa_exchange_algorithm algorithm)
{
    const ptrdiff_t E = options->width;
    world many, one;
    const int examples = EXAMPLES / options->documents;
    world_create(&many, test_world.comm, options, algorithm, lengths, examples);
    world_create(&one, MPI_COMM_SELF, options, algorithm, lengths, examples);
    for (int64_t step = 0; step <= STEP; step += STEP) { // evaluation, training
        const double a = world_loss(&many, step, true), b = world_loss(&one, step, true);
        if (a != b) {
            print_error("%s: loss %.17g, on one rank %.17g\n", name, a, b);
        }
        check(a == b);
        check(rows_equal(&many, many.model->block[1].x, &one, one.model->block[1].x, E));
        if (options->pooling == RFA_POOLING_MEAN) { // else only the first token has an output
            check(rows_equal(&many, many.model->x, &one, one.model->x, E));
        }
        check(rows_equal(&many, many.model->dx, &one, one.model->dx, E));
        check(rows_equal(&many, many.model->dqkv, &one, one.model->dqkv, 3 * E));
        check(equal(many.gradient, one.gradient, many.model->table.size));
    }
    check(many.gradient[0] != 0 || many.gradient[E] != 0); // it does compare something
    world_destroy(&one);
    world_destroy(&many);
}

static void test_same_bits(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        const rfa_classifier_options options = world_variant_options(variant);
        compare(variant->name, &options, RFA_EXCHANGE_AUTO);
        if (variant->attention.kind == RFA_ATTENTION_RFA) {
            compare(variant->name, &options, RFA_EXCHANGE_TRANSPOSED);
        }
    }
}

static void test_pairs(void **state)
{
    (void)state;
    static const rfa_attention_kind kinds[] = {RFA_ATTENTION_RFA, RFA_ATTENTION_SOFTMAX,
                                               RFA_ATTENTION_LARA, RFA_ATTENTION_EVA};
    for (int i = 0; i < 8; i++) {
        rfa_classifier_options options =
            world_options(kinds[i % 4], false, i < 4 ? RFA_POOLING_MEAN : RFA_POOLING_FIRST);
        options.documents = 2;
        options.match = i % 2 ? RFA_MATCH_NLI : RFA_MATCH_CONCAT;
        options.head2 = i % 3 ? 0 : 20;
        compare("pairs", &options, RFA_EXCHANGE_AUTO);
    }
}

// The forced exscan sums in another order: right within rounding.
static void test_fast_is_close(void **state)
{
    (void)state;
    const rfa_classifier_options options =
        world_options(RFA_ATTENTION_RFA, false, RFA_POOLING_MEAN);
    world many, one;
    world_create(&many, test_world.comm, &options, RFA_EXCHANGE_EXSCAN, lengths, EXAMPLES);
    world_create(&one, MPI_COMM_SELF, &options, RFA_EXCHANGE_AUTO, lengths, EXAMPLES);
    const double a = world_loss(&many, STEP, true), b = world_loss(&one, STEP, true);
    check(a - b < 20 * test_eps() && b - a < 20 * test_eps());
    world_destroy(&one);
    world_destroy(&many);
}

// Changing the token at one position must leave all earlier rows as they were, to the bit.
static void causal_sees_no_later_token(const world_variant *variant, int64_t step)
{
    const ptrdiff_t length[] = {150};
    rfa_classifier_options options = world_variant_options(variant);
    options.pooling = RFA_POOLING_MEAN;
    const ptrdiff_t E = options.width;
    world w;
    world_create(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, length, 1);
    world_loss(&w, step, false);
    rfa_real *before = test_reals(w.batch.rows * E);
    memcpy(before, w.model->x, (size_t)(w.batch.rows * E) * sizeof *before);
    for (ptrdiff_t t = 0; t < length[0]; t += 1 + (t > 20) * 6) {
        world_load(&w, length, 1);
        for (int l = 0; l < w.batch.leaf_count; l++) {
            const rfa_leaf *leaf = &w.batch.leaves[l];
            if (t >= leaf->begin && t < leaf->begin + leaf->tokens) {
                uint16_t *id = &w.batch.ids[leaf->row0 + t - leaf->begin];
                *id = (uint16_t)(1 + *id % (WORLD_VOCABULARY - 1));
            }
        }
        world_loss(&w, step, false);
        int same = 1, moved = 0;
        for (int l = 0; l < w.batch.leaf_count; l++) {
            const rfa_leaf *leaf = &w.batch.leaves[l];
            for (ptrdiff_t i = 0; i < leaf->tokens; i++) {
                const ptrdiff_t at = (leaf->row0 + i) * E, place = leaf->begin + i;
                const bool kept = equal(before + at, w.model->x + at, E);
                const bool later =
                    options.attention.direction == RFA_REVERSE ? place > t : place < t;
                same = same && (kept || !later);
                moved = moved || !kept;
            }
        }
        MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, test_world.comm);
        MPI_Allreduce(MPI_IN_PLACE, &moved, 1, MPI_INT, MPI_MAX, test_world.comm);
        if (!same) {
            print_error("%s, step %d: token %td is seen by another side\n", variant->name,
                        (int)step, t);
        }
        check(same);
        check(moved); // the change was felt somewhere
    }
    rfa_free(before);
    world_destroy(&w);
}

static void test_causal_sees_no_later_token(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        if (variant->attention.causal && variant->attention.direction != RFA_BOTH) {
            causal_sees_no_later_token(variant, 0); // dropout off and on
            causal_sees_no_later_token(variant, 1);
        }
    }
}

// An example gives the same logits alone, beside others, and in another place of the batch.
static void test_examples_do_not_mix(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options = world_variant_options(variant);
        options.pooling = RFA_POOLING_MEAN;
        world all, alone;
        world_create(&all, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, EXAMPLES);
        world_loss(&all, 0, false);
        world_create(&alone, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, 1);
        world_loss(&alone, 0, false);
        check(equal(rfa_classifier_logits(all.model), rfa_classifier_logits(alone.model),
                    WORLD_CLASSES));
        // Padded rows hold garbage ids: nothing may change.
        for (int l = 0; l < all.batch.leaf_count; l++) {
            const rfa_leaf *leaf = &all.batch.leaves[l];
            for (ptrdiff_t t = leaf->tokens; t < leaf->rows; t++) {
                all.batch.ids[leaf->row0 + t] = 3;
            }
        }
        world_loss(&all, 0, false);
        check(equal(rfa_classifier_logits(all.model), rfa_classifier_logits(alone.model),
                    WORLD_CLASSES));
        world_destroy(&alone);
        world_destroy(&all);
    }
}

// A token whose vector is no number makes the loss no number, whoever reads it: nobody drops it.
static void test_nan_is_never_dropped(void **state)
{
    (void)state;
    enum { UNUSED_ID = 3 };
    const ptrdiff_t length[] = {300};
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        const rfa_classifier_options options = world_variant_options(variant);
        world w;
        world_create(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, length, 1);
        w.model->values[w.model->at.tokens + UNUSED_ID * options.width] = (rfa_real)NAN;
        check(isfinite(world_loss(&w, 0, false)));
        for (int l = 0; l < w.batch.leaf_count; l++) {
            const rfa_leaf *leaf = &w.batch.leaves[l];
            if (leaf->tokens > 0 && leaf->begin + leaf->tokens == length[0]) {
                w.batch.ids[leaf->row0 + leaf->tokens - 1] = UNUSED_ID;
            }
        }
        const bool lost = isfinite(world_loss(&w, 0, false));
        if (lost) {
            print_error("%s: a NaN is lost\n", variant->name);
        }
        check(!lost);
        world_destroy(&w);
    }
}

// Read out at the first token, the pooled vector is the norm of that token's row, and of no other.
static void test_first_token_is_read(void **state)
{
    (void)state;
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options = world_variant_options(variant);
        options.pooling = RFA_POOLING_FIRST;
        const ptrdiff_t E = options.width;
        world w;
        world_create(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, EXAMPLES);
        world_loss(&w, 0, false);
        const rfa_real *values = w.model->values;
        rfa_real *y = test_reals(RFA_ROWS * E), *stats = test_reals(RFA_ROWS * 2);
        bool same = true;
        for (int l = 0; l < w.batch.leaf_count; l++) {
            const rfa_leaf *leaf = &w.batch.leaves[l];
            if (leaf->begin == 0 && leaf->tokens > 0) {
                rfa_norm_forward(y, stats, w.model->x + leaf->row0 * E,
                                 values + w.model->at.norm_scale, values + w.model->at.norm_shift,
                                 RFA_ROWS, E);
                same = same && equal(w.model->pooled + leaf->example * E, y, E);
            }
        }
        if (!same) {
            print_error("%s: more than the first token is read\n", variant->name);
        }
        check(same);
        rfa_free(y);
        rfa_free(stats);
        world_destroy(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_fast_is_close),
        cmocka_unit_test(test_causal_sees_no_later_token),
        cmocka_unit_test(test_examples_do_not_mix),
        cmocka_unit_test(test_nan_is_never_dropped),
        cmocka_unit_test(test_first_token_is_read),
    };
    return test_main(tests);
}
