// What a session computes: passes over batches, scores, evaluations.
#include "base/log.h"
#include "layers/head.h"
#include "train/session.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int rfa_session_passes(const rfa_session *session, int64_t n)
{
    const int groups = session->grid.data.size, capacity = session->batch.capacity;
    const int64_t share = (n + groups - 1) / groups;
    return (int)((share + capacity - 1) / capacity);
}

int rfa_session_windows(const rfa_session *session,
                        const rfa_dataset *data,
                        const int64_t *id,
                        int64_t n)
{
    int windows = 1;
    const int documents = session->batch.documents;
    for (int64_t i = 0; i < n * documents; i++) {
        const int64_t sequence = id[i / documents] * documents + i % documents;
        const int own = rfa_batch_windows(&session->batch, rfa_dataset_length(data, sequence));
        windows = own > windows ? own : windows;
    }
    return windows;
}

// Tokens that a portion has of sequence i, counted over its examples.
static ptrdiff_t portion_tokens(const rfa_session *session, const rfa_portion *portion, int64_t i)
{
    const ptrdiff_t longest = (ptrdiff_t)session->config.data.max_length;
    const int documents = session->batch.documents;
    const int64_t sequence = portion->id[i / documents] * documents + i % documents;
    const ptrdiff_t length = rfa_dataset_length(portion->data, sequence);
    const ptrdiff_t tokens = length < longest ? length : longest;
    const ptrdiff_t span = session->batch.span, begin = portion->window * span;
    if (portion->window < 0) {
        return tokens;
    }
    const ptrdiff_t left = tokens > begin ? tokens - begin : 0;
    return left < span ? left : span;
}

int64_t rfa_session_examples(const rfa_session *session, const rfa_portion *portion)
{
    int64_t examples = 0;
    for (int64_t i = 0; i < portion->n; i++) {
        examples += portion_tokens(session, portion, i * session->batch.documents) > 0;
    }
    return examples;
}

double rfa_session_flops(const rfa_session *session, const rfa_portion *portion)
{
    double flops = 0;
    for (int64_t i = 0; i < portion->n * session->batch.documents; i++) {
        const ptrdiff_t tokens = portion_tokens(session, portion, i);
        if (tokens > 0) {
            flops += rfa_classifier_flops(session->model, tokens, false) +
                     rfa_classifier_flops(session->model, tokens, true);
        }
    }
    return flops;
}

// This rank's part of a pass over id[0..n): its first example, and how many.
static int64_t pass_begin(const rfa_session *session, int64_t n, int pass, int *count)
{
    const int group = session->grid.data.rank, groups = session->grid.data.size;
    const int64_t begin = rfa_share(n, group, groups), end = rfa_share(n, group + 1, groups);
    const int64_t first = begin + (int64_t)pass * session->batch.capacity;
    const int64_t left = end > first ? end - first : 0;
    *count = (int)(left < session->batch.capacity ? left : session->batch.capacity);
    return *count > 0 ? first : 0;
}

rfa_status
rfa_session_reserve(rfa_session *session, const rfa_portion *portion, int pass, bool training)
{
    int count = 0;
    const int64_t first = pass_begin(session, portion->n, pass, &count);
    const int windows = rfa_session_windows(session, portion->data, portion->id, portion->n);
    rfa_batch_describe(&session->batch, portion->data, portion->id + first, count);
    RFA_TRY(rfa_batch_lay_out(&session->batch, count, (int)first, 0, windows));
    return rfa_classifier_reserve(session->model, &session->batch, training);
}

static rfa_status
load(rfa_session *session, const rfa_portion *portion, int pass, int window, int windows)
{
    int count = 0;
    const int64_t first = pass_begin(session, portion->n, pass, &count);
    return rfa_batch_load(&session->batch, portion->data, &session->grid.all, portion->id + first,
                          count, (int)first, window, windows);
}

rfa_status
rfa_session_forward(rfa_session *session, const rfa_portion *portion, int pass, bool training)
{
    const int windows = rfa_session_windows(session, portion->data, portion->id, portion->n);
    const int first = portion->window < 0 ? 0 : portion->window;
    const int end = portion->window < 0 ? windows : portion->window + 1;
    const int64_t step = session->step + training;
    session->tokens = 0;
    for (int window = first; window < end; window++) {
        RFA_TRY(load(session, portion, pass, window, windows));
        session->tokens += session->batch.tokens;
        RFA_TRY(rfa_agree(&session->grid.all,
                          rfa_classifier_forward(session->model, &session->batch, step, training)));
    }
    return RFA_OK;
}

rfa_status rfa_session_backward(rfa_session *session,
                                const rfa_portion *portion,
                                int pass,
                                const rfa_real *dlogits)
{
    const int last = session->batch.window; // the one that is loaded
    for (int window = last; window >= (portion->window < 0 ? 0 : last); window--) {
        if (window < last) {
            RFA_TRY(load(session, portion, pass, window, session->batch.windows));
        }
        RFA_TRY(rfa_agree(&session->grid.all,
                          rfa_classifier_backward(session->model, &session->batch, dlogits)));
    }
    return RFA_OK;
}

void rfa_tally_add(rfa_tally *tally, const rfa_session *session, rfa_real *dlogits, double scale)
{
    const int classes = rfa_dataset_classes(session->data);
    const rfa_batch *batch = &session->batch;
    const bool counts = session->grid.sequence.rank == 0; // the others hold the same logits
    for (int e = 0; e < batch->examples; e++) {
        const rfa_real *logits = rfa_classifier_logits(session->model) + e * classes;
        if (dlogits && rfa_classifier_is_stateful(session->model) && batch->present[e] == 0) {
            memset(dlogits + e * classes, 0, (size_t)classes * sizeof *dlogits);
            continue; // the example has ended
        }
        const int label = batch->label[e], guess = rfa_argmax(logits, classes);
        const double loss = rfa_cross_entropy(dlogits ? dlogits + e * classes : NULL, logits,
                                              classes, label, scale);
        if (counts) {
            rfa_exact_sum_add_double(&tally->loss, 0, &loss, 1);
            tally->counts[RFA_TALLY_CORRECT] += guess == label;
            tally->counts[RFA_TALLY_EXAMPLES]++;
            if (tally->confusion) {
                tally->confusion[label * classes + guess]++;
            }
        }
    }
    tally->counts[RFA_TALLY_TOKENS] += session->tokens;
    tally->counts[RFA_TALLY_GUARDS] += rfa_classifier_guards(session->model);
}

void rfa_tally_reduce(rfa_tally *tally, const rfa_session *session, rfa_score *score)
{
    const rfa_comm *all = &session->grid.all;
    const int classes = rfa_dataset_classes(session->data);
    rfa_exact_sum_reduce(&tally->loss, all);
    MPI_Allreduce(MPI_IN_PLACE, tally->counts, RFA_TALLY_COUNTS, MPI_INT64_T, MPI_SUM, all->comm);
    if (tally->confusion) {
        MPI_Allreduce(MPI_IN_PLACE, tally->confusion, classes * classes, MPI_INT64_T, MPI_SUM,
                      all->comm);
    }
    *score = (rfa_score){
        .loss = rfa_exact_sum_is_good(&tally->loss) ? rfa_exact_sum_value(&tally->loss, 0) /
                                                          (double)tally->counts[RFA_TALLY_EXAMPLES]
                                                    : NAN,
        .correct = tally->counts[RFA_TALLY_CORRECT],
        .examples = tally->counts[RFA_TALLY_EXAMPLES],
        .tokens = tally->counts[RFA_TALLY_TOKENS],
        .guards = tally->counts[RFA_TALLY_GUARDS],
        .confusion = tally->confusion,
    };
    rfa_exact_sum_clear(&tally->loss);
    memset(tally->counts, 0, sizeof tally->counts);
}

rfa_status rfa_predictions_create(rfa_predictions *predictions, const rfa_dataset *data)
{
    const ptrdiff_t n = (ptrdiff_t)rfa_dataset_examples(data);
    *predictions = (rfa_predictions){.examples = n, .classes = rfa_dataset_classes(data)};
    RFA_TRY(rfa_alloc(&predictions->guess, n, sizeof *predictions->guess, "predictions"));
    return rfa_alloc(&predictions->logits, n * predictions->classes, sizeof(rfa_real),
                     "predictions");
}

void rfa_predictions_destroy(rfa_predictions *predictions)
{
    rfa_free(predictions->guess);
    rfa_free(predictions->logits);
    *predictions = (rfa_predictions){0};
}

// Of the examples of a pass; nothing where another rank of the sequence says the same.
static void keep_predictions(rfa_predictions *predictions, const rfa_session *session)
{
    const rfa_batch *batch = &session->batch;
    const ptrdiff_t classes = predictions->classes;
    for (int e = 0; e < batch->examples && session->grid.sequence.rank == 0; e++) {
        const ptrdiff_t example = (ptrdiff_t)(batch->id[e * batch->documents] / batch->documents);
        const rfa_real *logits = rfa_classifier_logits(session->model) + e * classes;
        predictions->guess[example] = rfa_argmax(logits, classes);
        memcpy(predictions->logits + example * classes, logits, (size_t)classes * sizeof *logits);
    }
}

// Bits, not a sum: a logit of -0 stays what it is.
static void share_bits(void *values, int64_t bytes, const rfa_comm *all)
{
    const int64_t chunk = 1 << 24;
    for (int64_t at = 0; at < bytes; at += chunk) {
        const int n = (int)(bytes - at < chunk ? bytes - at : chunk);
        MPI_Allreduce(MPI_IN_PLACE, (unsigned char *)values + at, n, MPI_BYTE, MPI_BOR, all->comm);
    }
}

// Each example is one rank's; the others have zeros.
static void share_predictions(rfa_predictions *predictions, const rfa_comm *all)
{
    share_bits(predictions->logits,
               predictions->examples * predictions->classes * (int64_t)sizeof(rfa_real), all);
    share_bits(predictions->guess, predictions->examples * (int64_t)sizeof(int32_t), all);
}

static rfa_status evaluate(rfa_session *session,
                           rfa_dataset *data,
                           int64_t examples,
                           rfa_tally *tally,
                           rfa_predictions *predictions,
                           int64_t *id)
{
    const int64_t batch = session->config.train.batch;
    const double start = rfa_now();
    for (int64_t at = 0; at < examples; at += batch) {
        const int64_t n = examples - at < batch ? examples - at : batch;
        for (int64_t i = 0; i < n; i++) {
            id[i] = at + i;
        }
        const rfa_portion portion = {.data = data, .id = id, .n = n, .window = -1};
        for (int pass = 0; pass < rfa_session_passes(session, n); pass++) {
            RFA_TRY(rfa_session_forward(session, &portion, pass, false));
            rfa_tally_add(tally, session, NULL, 0);
            if (predictions) {
                keep_predictions(predictions, session);
            }
        }
        if (rfa_now() - start > 2) {
            rfa_progress(false, "  evaluating %" PRId64 "/%" PRId64, at + n, examples);
        }
    }
    return RFA_OK;
}

rfa_status rfa_evaluate(rfa_session *session,
                        rfa_dataset *data,
                        int64_t examples,
                        int64_t *confusion,
                        rfa_predictions *predictions,
                        rfa_score *score)
{
    const int64_t all = rfa_dataset_examples(data);
    const int classes = rfa_dataset_classes(data);
    const int64_t n = examples > 0 && examples < all ? examples : all;
    rfa_tally tally = {.confusion = confusion};
    int64_t *id = NULL;
    memset(confusion, 0, (size_t)(classes * classes) * sizeof *confusion);
    rfa_status status = rfa_exact_sum_create(&tally.loss, 1, "loss");
    if (status == RFA_OK) {
        status = rfa_alloc(&id, session->config.train.batch, sizeof *id, "batch");
    }
    status = rfa_agree(&session->grid.all, status);
    if (status == RFA_OK) {
        RFA_ASSERT(id);
        status = evaluate(session, data, n, &tally, predictions, id);
    }
    if (status == RFA_OK && predictions) {
        share_predictions(predictions, &session->grid.all);
    }
    if (status == RFA_OK) {
        rfa_tally_reduce(&tally, session, score);
        if (!isfinite(score->loss)) { // the same on all ranks
            status = rfa_fail(RFA_ERR_NUMERIC,
                              "the loss of an evaluation is not finite, or that of an example "
                              "beyond 16384: diverged");
        }
    }
    rfa_free(id);
    rfa_exact_sum_destroy(&tally.loss);
    return status;
}
