#include "probe/probe.h"

#include "base/log.h"
#include "models/classifier_view.h"
#include "probe/ridge.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_TERMS = 1 << 20 }; // of an exact sum

typedef struct {
    rfa_session *session;
    rfa_features features;
    rfa_ridge ridge;
    rfa_linalg_grid grid;
    rfa_probe_result *result;
    int64_t *id;           // [batch]
    double *first;         // [batch][size] features of the first examples
    double *weights;       // [sets][ridges][K (E + 1)]
    int64_t *correct;      // [sets][ridges], then examples and those of the majority
    const double *penalty; // [ridges]
    ptrdiff_t width, classes;
} job;

typedef void visit(job *j, const double *x, int label);

static rfa_readout readout_of(const job *j, ptrdiff_t set, int ridge)
{
    double *w = j->weights + (set * j->result->ridges + ridge) * j->classes * (j->width + 1);
    return (rfa_readout){.weight = w, .bias = w + j->classes * j->width};
}

static void visit_train(job *j, const double *x, int label)
{
    rfa_ridge_add(&j->ridge, x, label);
}

static void visit_score(job *j, const double *x, int label)
{
    const rfa_probe_result *r = j->result;
    for (ptrdiff_t set = 0; set < r->sets; set++) {
        for (int i = 0; i < r->ridges; i++) {
            const rfa_readout readout = readout_of(j, set, i);
            const int guess = rfa_readout_class(&readout, x + set * j->width, j->width, j->classes);
            j->correct[set * r->ridges + i] += guess == label;
        }
    }
    j->correct[r->sets * r->ridges]++;
    j->correct[r->sets * r->ridges + 1] += label == r->majority;
}

static rfa_portion portion_of(job *j, rfa_dataset *data, int64_t at, int64_t n)
{
    const int64_t batch = j->session->config.train.batch;
    const int64_t count = n - at < batch ? n - at : batch;
    for (int64_t i = 0; i < count; i++) {
        j->id[i] = at + i;
    }
    return (rfa_portion){.data = data, .id = j->id, .n = count, .window = -1};
}

// x: features of a pass, on every rank of its sequence.
static rfa_status features_of(const double **x, job *j, const rfa_portion *portion, int pass)
{
    RFA_TRY(rfa_session_forward(j->session, portion, pass, false));
    return rfa_agree(&j->session->grid.all, rfa_features_pool(x, &j->features, j->session));
}

// The first batch, to learn the range of features.
static rfa_status look_at_first(job *j, int64_t n)
{
    const rfa_session *session = j->session;
    const rfa_portion portion = portion_of(j, session->data, 0, n);
    const ptrdiff_t size = j->features.size;
    const double *x = NULL;
    for (int pass = 0; pass < rfa_session_passes(session, portion.n); pass++) {
        RFA_TRY(features_of(&x, j, &portion, pass));
        if (session->grid.sequence.rank == 0 && session->batch.examples > 0) {
            memcpy(j->first + session->batch.first * size, x,
                   (size_t)(session->batch.examples * size) * sizeof *x);
        }
    }
    // Each number is of one rank, and 0 on the others.
    for (int64_t i = 0; i < portion.n; i++) {
        MPI_Allreduce(MPI_IN_PLACE, j->first + i * size, rfa_int(size), MPI_DOUBLE, MPI_SUM,
                      session->grid.all.comm);
    }
    rfa_ridge_start(&j->ridge, j->first, (ptrdiff_t)portion.n);
    return RFA_OK;
}

static rfa_status walk(job *j, rfa_dataset *data, int64_t n, visit *visitor, const char *what)
{
    const rfa_session *session = j->session;
    const int64_t batch = session->config.train.batch;
    const double start = rfa_now();
    for (int64_t at = 0; at < n; at += batch) {
        const rfa_portion portion = portion_of(j, data, at, n);
        for (int pass = 0; pass < rfa_session_passes(session, portion.n); pass++) {
            const double *x = NULL;
            RFA_TRY(features_of(&x, j, &portion, pass));
            for (int e = 0; e < session->batch.examples && session->grid.sequence.rank == 0; e++) {
                visitor(j, x + e * j->features.size, session->batch.label[e]);
            }
        }
        if (rfa_now() - start > 2) {
            rfa_progress(false, "  %s %" PRId64 "/%" PRId64, what, at + portion.n, n);
        }
    }
    return RFA_OK;
}

static rfa_status solve(job *j)
{
    for (ptrdiff_t set = 0; set < j->result->sets; set++) {
        for (int i = 0; i < j->result->ridges; i++) {
            rfa_readout readout = readout_of(j, set, i);
            RFA_TRY(rfa_ridge_solve(&readout, &j->ridge, set, j->penalty[i], &j->grid));
        }
    }
    return RFA_OK;
}

static rfa_status score(job *j, rfa_dataset *data, rfa_probe_split split)
{
    rfa_probe_result *r = j->result;
    const ptrdiff_t cells = r->sets * r->ridges;
    memset(j->correct, 0, (size_t)(cells + 2) * sizeof *j->correct);
    RFA_TRY(walk(j, data, rfa_dataset_examples(data), visit_score,
                 split == RFA_PROBE_VAL ? "validation" : "test"));
    MPI_Allreduce(MPI_IN_PLACE, j->correct, rfa_int(cells + 2), MPI_INT64_T, MPI_SUM,
                  j->session->grid.all.comm);
    const double seen = (double)j->correct[cells];
    for (ptrdiff_t i = 0; i < cells; i++) {
        r->accuracy[i * RFA_PROBE_SPLITS + split] = (double)j->correct[i] / seen;
    }
    r->seen[split] = j->correct[cells];
    r->baseline[split] = (double)j->correct[cells + 1] / seen;
    return RFA_OK;
}

static void choose(rfa_probe_result *r)
{
    for (ptrdiff_t set = 0; set < r->sets; set++) {
        const double *a = r->accuracy + set * r->ridges * RFA_PROBE_SPLITS + RFA_PROBE_VAL;
        r->chosen[set] = 0;
        for (int i = 1; i < r->ridges; i++) { // they ascend
            if (a[i * RFA_PROBE_SPLITS] >= a[r->chosen[set] * RFA_PROBE_SPLITS]) {
                r->chosen[set] = i;
            }
        }
    }
}

static rfa_status allocate(job *j)
{
    rfa_probe_result *r = j->result;
    const ptrdiff_t cells = r->sets * r->ridges, batch = (ptrdiff_t)j->session->config.train.batch;
    RFA_TRY(rfa_alloc(&r->accuracy, cells * RFA_PROBE_SPLITS, sizeof *r->accuracy, "results"));
    RFA_TRY(rfa_alloc(&r->chosen, r->sets, sizeof *r->chosen, "results"));
    RFA_TRY(rfa_alloc(&j->id, batch, sizeof *j->id, "batch"));
    RFA_TRY(rfa_alloc(&j->first, batch * j->features.size, sizeof *j->first, "features"));
    RFA_TRY(rfa_alloc(&j->correct, cells + 2, sizeof *j->correct, "results"));
    RFA_TRY(rfa_alloc(&j->weights, cells * j->classes * (j->width + 1), sizeof *j->weights,
                      "read-outs"));
    return rfa_ridge_create(&j->ridge, r->sets, j->width, j->classes);
}

static rfa_status run(job *j, rfa_dataset *const *data)
{
    rfa_probe_result *r = j->result;
    RFA_TRY(look_at_first(j, r->examples));
    RFA_TRY(walk(j, j->session->data, r->examples, visit_train, "training examples"));
    RFA_TRY(rfa_ridge_reduce(&j->ridge, &j->session->grid.all));
    for (int k = 1; k < (int)j->classes; k++) {
        r->majority = j->ridge.count[k] > j->ridge.count[r->majority] ? k : r->majority;
    }
    RFA_TRY(solve(j));
    for (int split = 0; split < RFA_PROBE_SPLITS; split++) {
        RFA_TRY(score(j, data[split], (rfa_probe_split)split));
    }
    choose(r);
    return RFA_OK;
}

static rfa_status check(const rfa_session *session, int64_t examples)
{
    const int64_t all = rfa_dataset_examples(session->data);
    if (rfa_dataset_documents(session->data) > 1) {
        return rfa_fail(RFA_ERR_USAGE, "models of pairs of documents can't be probed");
    }
    if (examples > all) {
        return rfa_fail(RFA_ERR_USAGE, "the split has only %" PRId64 " examples", all);
    }
    if ((examples > 0 ? examples : all) > MOST_TERMS) {
        return rfa_fail(RFA_ERR_USAGE, "--examples: at most %d", MOST_TERMS);
    }
    return RFA_OK;
}

rfa_status rfa_probe_run(rfa_probe_result *result,
                         rfa_session *session,
                         rfa_dataset *const *data,
                         int64_t examples,
                         const double *ridge,
                         int ridges)
{
    const rfa_comm *all = &session->grid.all;
    job j = {.session = session,
             .result = result,
             .penalty = ridge,
             .classes = rfa_dataset_classes(session->data)};
    RFA_ASSERT(ridges > 0 && ridges <= RFA_PROBE_RIDGES);
    *result = (rfa_probe_result){.ridges = ridges};
    RFA_TRY(rfa_agree(all, check(session, examples)));
    rfa_features_create(&j.features, session);
    j.width = j.features.width;
    result->layers = j.features.layers;
    result->sets = result->layers * RFA_PROBE_POOLINGS;
    result->last = j.features.last;
    result->examples = examples > 0 ? examples : rfa_dataset_examples(session->data);
    rfa_classifier_read_all(session->model);
    RFA_TRY(rfa_linalg_grid_create(&j.grid, all, j.width, 0));
    rfa_status status = rfa_agree(all, allocate(&j));
    if (status == RFA_OK) {
        status = run(&j, data);
    }
    rfa_linalg_grid_destroy(&j.grid);
    rfa_ridge_destroy(&j.ridge);
    rfa_features_destroy(&j.features);
    rfa_free(j.id);
    rfa_free(j.first);
    rfa_free(j.correct);
    rfa_free(j.weights);
    return status;
}

void rfa_probe_destroy(rfa_probe_result *result)
{
    rfa_free(result->accuracy);
    rfa_free(result->chosen);
    result->accuracy = NULL;
    result->chosen = NULL;
}
