#include "probe/capture.h"

#include "models/classifier_view.h"

#include <inttypes.h>
#include <string.h>

typedef struct {
    rfa_session *session;
    const rfa_capture *capture;
    rfa_heads_writer *writer;
    int64_t *id;                     // [examples]
    int64_t *example, *layer, *head; // [heads]
    int64_t examples, tokens, heads;
    int first, layers, per_layer; // captured layers [first, first + layers); heads of each
    ptrdiff_t d;
    float *values; // [heads of a pass][tokens of this rank][d]
    ptrdiff_t room;
} job;

static int64_t length_of(const job *j, int64_t example)
{
    const int64_t length = rfa_dataset_length(j->session->data, example);
    const int64_t most = j->session->config.data.max_length;
    return length < most ? length : most;
}

static rfa_status choose_layers(job *j)
{
    const rfa_config *config = &j->session->config;
    const int layers = (int)config->model.layers, layer = j->capture->layer;
    if (layer >= layers) {
        return rfa_fail(RFA_ERR_USAGE, "--layer %d: the run has layers 0 to %d", layer, layers - 1);
    }
    j->first = layer < 0 ? 0 : layer;
    j->layers = layer < 0 ? layers : 1;
    j->per_layer = (int)config->model.heads;
    j->d = (ptrdiff_t)(config->model.width / config->model.heads);
    return RFA_OK;
}

// Every rank finds the same.
static rfa_status choose_examples(job *j)
{
    const rfa_capture *c = j->capture;
    const int64_t all = rfa_dataset_examples(j->session->data);
    const int64_t want = c->example >= 0 ? 1 : c->examples, least = c->tokens > 0 ? c->tokens : 2;
    if (want > all || c->example >= all) {
        return rfa_fail(RFA_ERR_USAGE, "the split has only %" PRId64 " examples", all);
    }
    if (c->tokens > j->session->config.data.max_length) {
        return rfa_fail(RFA_ERR_USAGE, "--tokens %" PRId64 ": the run takes at most %" PRId64,
                        c->tokens, j->session->config.data.max_length);
    }
    RFA_TRY(rfa_alloc(&j->id, (ptrdiff_t)want, sizeof *j->id, "examples"));
    j->tokens = INT64_MAX;
    for (int64_t i = c->example >= 0 ? c->example : 0; i < all && j->examples < want; i++) {
        const int64_t length = length_of(j, i);
        if (length >= least) {
            j->id[j->examples++] = i;
            j->tokens = length < j->tokens ? length : j->tokens;
        } else if (c->example >= 0) {
            break;
        }
    }
    if (j->examples < want) {
        return rfa_fail(RFA_ERR_USAGE,
                        "only %" PRId64 " of the %" PRId64 " examples asked for have %" PRId64
                        " tokens or more",
                        j->examples, want, least);
    }
    j->tokens = c->tokens > 0 ? c->tokens : j->tokens;
    return RFA_OK;
}

// Heads stand example by example, then layer by layer.
static rfa_status name_heads(job *j)
{
    const int64_t each = (int64_t)j->layers * j->per_layer;
    j->heads = j->examples * each;
    RFA_TRY(rfa_alloc(&j->example, (ptrdiff_t)j->heads, sizeof *j->example, "heads"));
    RFA_TRY(rfa_alloc(&j->layer, (ptrdiff_t)j->heads, sizeof *j->layer, "heads"));
    RFA_TRY(rfa_alloc(&j->head, (ptrdiff_t)j->heads, sizeof *j->head, "heads"));
    for (int64_t i = 0; i < j->heads; i++) {
        j->example[i] = j->id[i / each];
        j->layer[i] = j->first + i % each / j->per_layer;
        j->head[i] = i % j->per_layer;
    }
    return RFA_OK;
}

static rfa_status make_room(job *j, ptrdiff_t size)
{
    if (size > j->room) {
        rfa_free(j->values);
        j->values = NULL;
        j->room = 0;
        RFA_TRY(rfa_alloc(&j->values, size, sizeof *j->values, "captured vectors"));
        j->room = size;
    }
    return RFA_OK;
}

// One array of all examples of a pass and all layers, from rows [][ld] of the leaves.
static void pack(const job *j, rfa_heads_array array, ptrdiff_t tokens)
{
    const rfa_batch *batch = &j->session->batch;
    const ptrdiff_t d = j->d, E = d * j->per_layer;
    const bool out = array == RFA_HEADS_OUT;
    float *to = j->values;
    for (int e = 0; e < batch->examples; e++) {
        for (int layer = j->first; layer < j->first + j->layers; layer++) {
            const rfa_real *x = out ? rfa_classifier_attended(j->session->model, layer)
                                    : rfa_classifier_qkv(j->session->model, layer) + array * E;
            for (int h = 0; h < j->per_layer; h++, to += tokens * d) {
                float *row = to;
                for (int own = 0; own < batch->own; own++) {
                    const rfa_leaf *leaf = &batch->leaves[e * batch->own + own];
                    for (ptrdiff_t t = 0; t < leaf->tokens; t++, row += d) {
                        memcpy(row, x + (leaf->row0 + t) * (out ? E : 3 * E) + h * d,
                               (size_t)d * sizeof *row);
                    }
                }
            }
        }
    }
}

// Tokens of this rank are one range, the same of all examples, as they all have as many.
static rfa_status write_pass(job *j, int64_t at)
{
    const rfa_batch *batch = &j->session->batch;
    const int64_t each = (int64_t)j->layers * j->per_layer;
    ptrdiff_t tokens = 0;
    for (int own = 0; own < (batch->examples > 0 ? batch->own : 0); own++) {
        tokens += batch->leaves[own].tokens;
    }
    const ptrdiff_t heads = (ptrdiff_t)(batch->examples * each);
    const ptrdiff_t begin = batch->examples > 0 && batch->own > 0 ? batch->leaves[0].begin : 0;
    RFA_TRY(rfa_agree(&j->session->grid.all, make_room(j, heads * tokens * j->d)));
    for (int i = 0; i < RFA_HEADS_ARRAYS; i++) {
        pack(j, (rfa_heads_array)i, tokens);
        RFA_TRY(rfa_heads_put(j->writer, (rfa_heads_array)i, (at + batch->first) * each, heads,
                              begin, tokens, j->values));
    }
    return RFA_OK;
}

static rfa_status run(job *j)
{
    rfa_session *session = j->session;
    const int64_t batch = session->config.train.batch;
    for (int64_t at = 0; at < j->examples; at += batch) {
        const int64_t left = j->examples - at;
        const rfa_portion portion = {.data = session->data,
                                     .id = j->id + at,
                                     .n = left < batch ? left : batch,
                                     .window = -1};
        for (int pass = 0; pass < rfa_session_passes(session, portion.n); pass++) {
            RFA_TRY(rfa_session_forward(session, &portion, pass, false));
            RFA_TRY(write_pass(j, at));
        }
    }
    return RFA_OK;
}

static rfa_status prepare(job *j)
{
    if (rfa_dataset_documents(j->session->data) > 1) {
        return rfa_fail(RFA_ERR_USAGE, "heads of pairs of documents can't be captured");
    }
    RFA_TRY(choose_layers(j));
    RFA_TRY(choose_examples(j));
    return name_heads(j);
}

rfa_status rfa_capture_run(int64_t *heads,
                           int64_t *tokens,
                           rfa_session *session,
                           const rfa_comm *world,
                           const rfa_capture *capture)
{
    job j = {.session = session, .capture = capture};
    rfa_status status = rfa_agree(world, prepare(&j));
    if (status == RFA_OK) {
        const rfa_heads_contents contents = {
            .count = j.heads,
            .n = j.tokens,
            .d = j.d,
            .example = j.example,
            .layer = j.layer,
            .head = j.head,
            .attributes = capture->attributes,
            .config_text = capture->config_text,
        };
        session->batch.max_length = (ptrdiff_t)j.tokens;
        rfa_classifier_read_all(session->model);
        status = rfa_heads_create(&j.writer, world, capture->path, &contents);
    }
    if (status == RFA_OK) {
        status = rfa_heads_end(&j.writer, run(&j));
    }
    *heads = j.heads;
    *tokens = j.tokens;
    rfa_free(j.id);
    rfa_free(j.example);
    rfa_free(j.layer);
    rfa_free(j.head);
    rfa_free(j.values);
    return status;
}
