// Ranks: 1 2
//
// What implementations of the Long Range Arena get wrong, or do in ways of their own: what padding
// does to the pooled vector (P2) and to attention (P3), and how many parameters a model has (P16).
#include "models/world.h"

#include <math.h>
#include <string.h>

enum { DOCUMENTS = 2, LONGEST = 400, MORE = 2 };

// The batch's two sequences, one pair, in a model of max_length times the world's. Eva's chunks are
// max_length / landmarks tokens: as many more keep their length.
static void create(world *w, rfa_classifier_options options, const ptrdiff_t *lengths, int times)
{
    options.documents = DOCUMENTS;
    options.positions = RFA_POSITIONS_SINUSOIDAL; // learned ones are a table of max_length rows
    options.max_length = times * LONGEST;
    if (options.attention.kind == RFA_ATTENTION_EVA) {
        options.attention.landmarks *= times;
    }
    world_create(w, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, 1);
}

static bool equal(const rfa_real *a, const rfa_real *b, ptrdiff_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void p2_padding_and_the_pooled_mean(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[DOCUMENTS] = {150, 37};
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options = world_variant_options(variant);
        const ptrdiff_t E = options.width;
        world mean[2], padded[2];
        for (int i = 0; i < 2; i++) {
            const int times = i ? MORE : 1;
            options.pooling = RFA_POOLING_MEAN;
            create(&mean[i], options, lengths, times);
            options.pooling = RFA_POOLING_PADDED_MEAN;
            create(&padded[i], options, lengths, times);
            world_loss(&mean[i], 0, false);
            world_loss(&padded[i], 0, false);
        }
        const rfa_real *one = mean[0].model->pooled, *wide = padded[0].model->pooled;
        check(equal(one, mean[1].model->pooled, DOCUMENTS * E));
        check(equal(rfa_classifier_logits(mean[0].model), rfa_classifier_logits(mean[1].model),
                    WORLD_CLASSES));
        for (int d = 0; d < DOCUMENTS; d++) {
            const double factor = (double)lengths[d] / LONGEST;
            for (ptrdiff_t i = d * E; i < (d + 1) * E; i++) {
                // A power of two rounds nothing; the quotient of both means has six roundings.
                check(wide[i] == MORE * padded[1].model->pooled[i]);
                const double want = factor * (double)one[i];
                check(fabs((double)wide[i] - want) <= 3 * test_eps() * fabs(want));
            }
        }
        check(!equal(rfa_classifier_logits(padded[0].model), rfa_classifier_logits(padded[1].model),
                     WORLD_CLASSES));
        for (int i = 0; i < 2; i++) {
            world_destroy(&mean[i]);
            world_destroy(&padded[i]);
        }
    }
}

// More padding: a longer max_length, a longer document beside, ids of tokens in padded rows. In
// evaluation and, where a document keeps its number, in training.
static void p3_padded_keys_never_weigh(void **state)
{
    (void)state;
    static const ptrdiff_t brief[DOCUMENTS] = {37, 20}, beside[DOCUMENTS] = {37, 300};
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options = world_variant_options(variant);
        options.pooling = RFA_POOLING_MEAN;
        const ptrdiff_t E = options.width;
        world alone, more;
        create(&alone, options, brief, 1);
        create(&more, options, beside, MORE);
        for (int l = 0; l < more.batch.leaf_count; l++) {
            const rfa_leaf *leaf = &more.batch.leaves[l];
            for (ptrdiff_t t = leaf->tokens; t < leaf->rows; t++) {
                more.batch.ids[leaf->row0 + t] = 3;
            }
        }
        for (int64_t step = 0; step < 2; step++) {
            world_loss(&alone, step, false);
            world_loss(&more, step, false);
            const bool same = equal(alone.model->pooled, more.model->pooled, E);
            if (!same) {
                print_error("%s, step %d: padding is seen\n", variant->name, (int)step);
            }
            check(same);
            check(!equal(alone.model->pooled + E, more.model->pooled + E, E));
        }
        world_destroy(&more);
        world_destroy(&alone);
    }
}

// Keys and values of equal tokens are equal, and so is every normalised mean of these: 37 tokens,
// which fill 48 rows of storage, give what 48 tokens give that leave no padding.
static void p3_equal_tokens_give_one_vector(void **state)
{
    (void)state;
    static const ptrdiff_t lengths[DOCUMENTS] = {37, 48};
    for (const world_variant *variant = world_variants(); variant->name; variant++) {
        rfa_classifier_options options = world_variant_options(variant);
        const ptrdiff_t E = options.width;
        options.documents = DOCUMENTS;
        options.positions = RFA_POSITIONS_NONE;
        options.pooling = RFA_POOLING_MEAN;
        world w;
        world_create(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, 1);
        for (ptrdiff_t t = 0; t < w.batch.rows; t++) {
            w.batch.ids[t] = 5;
        }
        world_loss(&w, 0, false);
        double most = 0;
        for (ptrdiff_t j = 0; j < E; j++) {
            const rfa_real *pooled = w.model->pooled;
            most = fmax(most, fabs((double)pooled[j] - (double)pooled[E + j]));
        }
        // Normed vectors, of order one: sums of 48 terms in the attention of either layer, of E in
        // its products.
        const double bound = 2 * (48 + (double)E) * test_eps();
        if (!(most <= bound)) {
            print_error("%s: off by %.2g, bound %.2g\n", variant->name, most, bound);
        }
        check(most <= bound);
        world_destroy(&w);
    }
}

// The small models of Xiong et al. 2021 with softmax: 2 layers, width 64, 2 heads.
static void p16_parameters_are_as_many_as_published(void **state)
{
    (void)state;
    static const struct {
        const char *task;
        ptrdiff_t vocabulary, max_length, classes, learned;
        int documents;
    } published[] = {
        {"listops", 32, 2048, 10, 209802, 1},    {"text", 512, 4096, 2, 370562, 1},
        {"retrieval", 512, 4096, 2, 395138, 2},  {"image", 512, 1024, 10, 174986, 1},
        {"pathfinder", 512, 1024, 2, 173954, 1},
    };
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        rfa_classifier_options options =
            world_options(RFA_ATTENTION_SOFTMAX, false, RFA_POOLING_PADDED_MEAN);
        options.width = 64;
        options.feed_forward = 128;
        options.head = 128;
        options.vocabulary = published[i].vocabulary;
        options.max_length = published[i].max_length;
        options.classes = published[i].classes;
        options.documents = published[i].documents;
        options.match = RFA_MATCH_NLI;
        world w;
        const ptrdiff_t lengths[DOCUMENTS] = {1, 1};
        world_create(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, 1);
        const ptrdiff_t learned = rfa_classifier_table(w.model)->learned;
        if (learned != published[i].learned) {
            print_error("%s: %td parameters, published %td\n", published[i].task, learned,
                        published[i].learned);
        }
        check(learned == published[i].learned);
        world_destroy(&w);
        // Tay et al. 2021: [a, b], then a second hidden layer of half the width.
        options.match = RFA_MATCH_CONCAT;
        options.head2 = options.head / 2;
        world_create(&w, test_world.comm, &options, RFA_EXCHANGE_AUTO, lengths, 1);
        const ptrdiff_t read = options.documents * 64, other = options.documents > 1 ? 256 : 64;
        const ptrdiff_t two = other * 128 + 128 * options.classes;
        const ptrdiff_t three = read * 128 + 128 * 64 + 64 + 64 * options.classes;
        check(rfa_classifier_table(w.model)->learned == published[i].learned + three - two);
        world_destroy(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p2_padding_and_the_pooled_mean),
        cmocka_unit_test(p3_padded_keys_never_weigh),
        cmocka_unit_test(p3_equal_tokens_give_one_vector),
        cmocka_unit_test(p16_parameters_are_as_many_as_published),
    };
    return test_main(tests);
}
