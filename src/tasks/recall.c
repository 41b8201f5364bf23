#include "tasks/recall.h"

#include "rng/rng.h"

#include <stdio.h>

enum { MARK = 1, FIRST_FILLER = 2, PATIENCE = 1000, MOST = 1 << 26, CLASSES = 4096 };

void rfa_recall_vocabulary(const char **symbols, char *text, const rfa_recall_options *options)
{
    const rfa_recall_options *o = options;
    static const char letters[] = "fkv";
    const int counts[3] = {o->fillers, o->keys, o->values};
    symbols[0] = "<pad>";
    symbols[MARK] = "?";
    int id = FIRST_FILLER;
    for (int kind = 0; kind < 3; kind++) {
        for (int n = 0; n < counts[kind]; n++, id++) {
            char *symbol = text + (ptrdiff_t)id * RFA_RECALL_SYMBOL;
            snprintf(symbol, RFA_RECALL_SYMBOL, "%c%d", letters[kind], n);
            symbols[id] = symbol;
        }
    }
}

// Tokens of the query.
static int64_t query_size(const rfa_recall_options *o)
{
    return o->query == RFA_RECALL_BOTH ? 4 : 2;
}

rfa_status rfa_recall_check(const rfa_recall_options *options)
{
    const rfa_recall_options *o = options;
    if (o->pairs < 1 || o->pairs > o->keys) {
        return rfa_fail(RFA_ERR_USAGE, "--pairs %d: not in 1 to --keys, %d, as no key comes twice",
                        o->pairs, o->keys);
    }
    if (o->values < 2 || o->values > CLASSES || o->fillers < 0 || o->keys > 65536 ||
        o->fillers > 65536 || rfa_recall_symbols(o) > 65536) {
        return rfa_fail(
            RFA_ERR_USAGE,
            "--keys %d, --values %d, --fillers %d: 2 to %d values, and with padding and "
            "mark at most 65536 symbols",
            o->keys, o->values, o->fillers, CLASSES);
    }
    if (o->min_length > o->length) {
        return rfa_fail(RFA_ERR_USAGE, "--min-length %lld exceeds --length %lld",
                        (long long)o->min_length, (long long)o->length);
    }
    const int64_t least = 2 * (int64_t)o->pairs + query_size(o);
    if (o->min_length < least || o->length > MOST) {
        return rfa_fail(RFA_ERR_USAGE,
                        "lengths %lld to %lld: %d pairs and the query are %lld tokens, and no "
                        "sequence is longer than %d",
                        (long long)o->min_length, (long long)o->length, o->pairs, (long long)least,
                        MOST);
    }
    if (o->fillers == 0 && (o->min_length != least || o->length != least)) {
        return rfa_fail(RFA_ERR_USAGE, "--fillers 0: then --length is that of the pairs, %lld",
                        (long long)least);
    }
    return RFA_OK;
}

// Different keys into work [0, pairs): the first steps of a shuffle of all (Fisher and Yates).
static void draw_keys(int *work, const rfa_recall_options *o, rfa_rng_reader *r)
{
    for (int k = 0; k < o->keys; k++) {
        work[k] = k;
    }
    for (int p = 0; p < o->pairs; p++) {
        const int other = p + (int)rfa_rng_below(r, (uint32_t)(o->keys - p));
        const int key = work[other];
        work[other] = work[p];
        work[p] = key;
    }
}

static void draw(rfa_example *e, int *work, const rfa_recall_options *o, rfa_rng_reader *r)
{
    const int first_key = FIRST_FILLER + o->fillers, first_value = first_key + o->keys;
    uint16_t *at = e->ids[0];
    const int64_t length =
        o->min_length + rfa_rng_below(r, (uint32_t)(o->length - o->min_length + 1));
    draw_keys(work, o, r);
    const int asked = (int)rfa_rng_below(r, (uint32_t)o->pairs);
    const uint16_t query = (uint16_t)(first_key + work[asked]);
    if (o->query != RFA_RECALL_LAST) {
        *at++ = query;
        *at++ = MARK;
    }
    // Of all places for pairs among the fillers, each is as likely (Knuth's algorithm S).
    int64_t left = length - query_size(o) - o->pairs;
    for (int p = 0; left > 0; left--) {
        if (rfa_rng_below(r, (uint32_t)left) < (uint32_t)(o->pairs - p)) {
            const int value = (int)rfa_rng_below(r, (uint32_t)o->values);
            *at++ = (uint16_t)(first_key + work[p]);
            *at++ = (uint16_t)(first_value + value);
            e->label = p == asked ? value : e->label;
            p++;
        } else {
            *at++ = (uint16_t)(FIRST_FILLER + (int)rfa_rng_below(r, (uint32_t)o->fillers));
        }
    }
    if (o->query != RFA_RECALL_FIRST) {
        *at++ = MARK;
        *at++ = query;
    }
    e->length[0] = at - e->ids[0];
    RFA_ASSERT(e->length[0] == length);
}

rfa_status rfa_recall_draw(
    rfa_example *example, int *work, const rfa_recall_options *options, int split, int64_t index)
{
    static const int owner[4] = {0, 0, 1, 2};
    for (uint32_t attempt = 0; attempt < PATIENCE; attempt++) {
        rfa_rng_reader reader = rfa_rng_reader_at(rfa_rng_stream(
            options->seed, RFA_RNG_RECALL, (uint32_t)index, (uint32_t)split * PATIENCE + attempt));
        draw(example, work, options, &reader);
        const uint64_t hash = rfa_hash(0, example->ids[0], 2 * (size_t)example->length[0]);
        if (owner[hash >> 62] == split) {
            example->origin = (int64_t)((uint64_t)split << 40 | (uint64_t)index);
            return RFA_OK;
        }
    }
    return rfa_fail(RFA_ERR_USAGE,
                    "there are too few different sequences for three splits: take more --pairs, "
                    "--keys, --values or --fillers");
}
