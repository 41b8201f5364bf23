// Linear randomised attention as a layer runs it (attention/lara.h). Round 0 sums landmarks, round
// 1 the statistics of keys; every rank then holds the samples of all heads of its examples. The
// backward: what queries give the samples, then what the samples' keys give them, each a total.
#include "attention/landmarks.h"
#include "attention/lara.h"
#include "base/profile.h"
#include "layers/attention_impl.h"
#include "layers/attention_landmarks.h"

#include <omp.h>
#include <string.h>

typedef struct {
    double *parts;     // [own][examples][...]: what crosses in a round
    rfa_real *adjoint; // [examples][H][adjoint]
    rfa_real *dmeans;  // [examples][C][2 E]
} lara_scratch;

static const lara_scratch *scratch_of(const rfa_attention *attention)
{
    return attention->scratch;
}

// ---- shapes: of most samples, for memory; of this pass; of an example ----

static rfa_lara lara_most(const rfa_attention_options *options)
{
    return (rfa_lara){
        .weights = options->weights,
        .specificity = options->specificity,
        .d = rfa_head_width(options),
        .landmarks = options->landmarks,
        .draws = options->draws,
        .antithetic = options->antithetic,
    };
}

// Without noise the draws of a landmark are alike, and one does.
static rfa_lara lara_pass(const rfa_attention *attention)
{
    rfa_lara lara = lara_most(&attention->options);
    lara.draws = attention->training ? lara.draws : 1;
    return lara;
}

static rfa_lara lara_example(const rfa_attention *attention, const rfa_plan *plan, int example)
{
    rfa_lara lara = lara_pass(attention);
    lara.landmarks = rfa_landmarks_count(attention, plan, example);
    return lara;
}

// Numbers of an example that cross in a round, forward and backward. Shorter examples fill a part
// of theirs.
static ptrdiff_t elements_size(const rfa_attention_options *options, const rfa_lara *lara)
{
    return options->heads * rfa_lara_count(lara) * rfa_lara_unit(lara->d);
}

static ptrdiff_t sums_size(const rfa_attention_options *options, const rfa_lara *lara)
{
    return options->heads * rfa_lara_sums_size(lara);
}

static ptrdiff_t dw_size(const rfa_attention_options *options, const rfa_lara *lara)
{
    return options->heads * rfa_lara_count(lara) * lara->d;
}

// A leaf's numbers, `size` an example, or those of one of its heads.
static double *
leaf_part(const rfa_attention *attention, const rfa_plan *plan, int leaf, ptrdiff_t size)
{
    const ptrdiff_t example = leaf / plan->own, own = leaf % plan->own;
    return scratch_of(attention)->parts + (own * plan->examples + example) * size;
}

// The total's numbers of head task % H of example task / H.
static double *total_part(const rfa_attention *attention, int task, ptrdiff_t size)
{
    return scratch_of(attention)->parts + task * (size / attention->options.heads);
}

static rfa_lara_samples samples_of(const rfa_attention *attention,
                                   const rfa_attention_saved *saved,
                                   const rfa_lara *lara,
                                   int example,
                                   ptrdiff_t head)
{
    const rfa_lara most = lara_most(&attention->options);
    rfa_real *values = saved->own;
    return rfa_lara_samples_at(
        values + (example * attention->options.heads + head) * rfa_lara_samples_size(&most), lara);
}

static rfa_lara_adjoint
adjoint_of(const rfa_attention *attention, const rfa_lara *lara, int example, ptrdiff_t head)
{
    const rfa_lara most = lara_most(&attention->options);
    return rfa_lara_adjoint_at(scratch_of(attention)->adjoint +
                                   (example * attention->options.heads + head) *
                                       rfa_lara_adjoint_size(&most),
                               lara);
}

static rfa_head leaf_head(const rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          const rfa_leaf *leaf,
                          ptrdiff_t head,
                          ptrdiff_t rows)
{
    const ptrdiff_t E = attention->options.width;
    const rfa_real *q =
        saved->qkv + leaf->row0 * 3 * E + head * rfa_head_width(&attention->options);
    return (rfa_head){.q = q,
                      .k = q + E,
                      .v = q + 2 * E,
                      .ld = 3 * E,
                      .rows = rows,
                      .mask = plan->mask + leaf->row0};
}

// ---- memory ----

static int lara_rounds(const rfa_attention_options *options)
{
    (void)options;
    return 2;
}

static ptrdiff_t greatest(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

static void lara_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_lara most = lara_most(o);
    const ptrdiff_t crossing =
        greatest(greatest(rfa_landmarks_size(o), elements_size(o, &most)), sums_size(o, &most));
    lara_scratch *scratch = rfa_carve(arena, 1, sizeof *scratch);
    const lara_scratch parts = {
        .parts = rfa_carve(arena, plan->own * plan->examples * crossing, sizeof(double)),
        .adjoint = rfa_carve(arena, plan->examples * o->heads * rfa_lara_adjoint_size(&most),
                             sizeof(rfa_real)),
        .dmeans = rfa_carve(arena, plan->examples * rfa_landmarks_size(o), sizeof(rfa_real)),
    };
    if (scratch) {
        *scratch = parts;
    }
    attention->scratch = scratch;
}

static void lara_carve_saved(rfa_attention_saved *saved,
                             rfa_arena *arena,
                             const rfa_attention *attention,
                             const rfa_plan *plan)
{
    const rfa_lara most = lara_most(&attention->options);
    saved->own =
        rfa_carve(arena, plan->examples * attention->options.heads * rfa_lara_samples_size(&most),
                  sizeof(rfa_real));
}

static ptrdiff_t lara_work(const rfa_attention *attention, const rfa_plan *plan)
{
    const rfa_lara most = lara_most(&attention->options);
    const ptrdiff_t rows = plan->longest_leaf;
    return greatest(rfa_lara_work(&most, rows), rfa_landmarks_work(&attention->options, rows));
}

// ---- forward ----

static void lara_local(const rfa_attention *attention,
                       rfa_attention_saved *saved,
                       const rfa_plan *plan,
                       int round,
                       int leaf,
                       const rfa_real *x,
                       rfa_real *work)
{
    (void)x;
    const rfa_attention_options *o = &attention->options;
    const rfa_leaf *part = &plan->leaves[leaf];
    if (round == 0) {
        double *sums = leaf_part(attention, plan, leaf, rfa_landmarks_size(o));
        rfa_landmarks_local(sums, attention, saved, plan, part, work);
        return;
    }
    const rfa_lara pass = lara_pass(attention), lara = lara_example(attention, plan, part->example);
    const ptrdiff_t size = elements_size(o, &pass);
    double *own = leaf_part(attention, plan, leaf, size);
    memset(own, 0, (size_t)size * sizeof *own);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_lara_samples samples = samples_of(attention, saved, &lara, part->example, h);
        const rfa_head head = leaf_head(attention, saved, plan, part, h, part->rows);
        rfa_lara_keys(own + h * (size / o->heads), &samples, &lara, &head, work);
    }
}

// Where the noise of an example, layer and head begins: far more numbers apart than they take.
static rfa_lara_noise noise_of(const rfa_attention *attention,
                               const rfa_attention_saved *saved,
                               const rfa_plan *plan,
                               int example,
                               ptrdiff_t head)
{
    const uint64_t place = (uint64_t)(saved->layer * RFA_MOST_HEADS + head);
    return (rfa_lara_noise){
        .stream = rfa_rng_stream(attention->options.seed, RFA_RNG_LARA, (uint32_t)attention->step,
                                 (uint32_t)(plan->first + example)),
        .first = place << 40,
    };
}

static rfa_status lara_exchange(rfa_attention *attention,
                                rfa_attention_saved *saved,
                                const rfa_plan *plan,
                                int round,
                                rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, d = rfa_head_width(o);
    const rfa_lara pass = lara_pass(attention);
    const ptrdiff_t size = round == 0 ? rfa_landmarks_size(o) : elements_size(o, &pass);
    const rfa_exchange_rows rows = {.size = plan->examples * size,
                                    .stride = plan->examples * size,
                                    .unit = round == 0 ? 1 : rfa_lara_unit(d)};
    double *parts = scratch_of(attention)->parts;
    RFA_TRY(rfa_exchange_rows_run(attention->exchange, RFA_TOTAL, parts, rows));
    if (round == 0) {
        rfa_landmarks_means(parts, attention, plan);
    }
#pragma omp parallel for schedule(static)
    for (int task = 0; task < plan->examples * (int)o->heads; task++) {
        RFA_PROFILE(RFA_PHASE_ATTENTION);
        const int example = task / (int)o->heads;
        const ptrdiff_t h = task % o->heads;
        const rfa_lara lara = lara_example(attention, plan, example);
        const rfa_lara_samples samples = samples_of(attention, saved, &lara, example, h);
        if (lara.landmarks == 0) {
            continue;
        }
        if (round == 1) {
            rfa_lara_collect(&samples, &lara, total_part(attention, task, size));
        } else {
            const rfa_lara_noise noise = noise_of(attention, saved, plan, example, h);
            const double *means = parts + example * size + h * d;
            rfa_lara_propose(&samples, &lara, means, means + E, 2 * E,
                             attention->training ? &noise : NULL, works[omp_get_thread_num()]);
        }
    }
    return RFA_OK;
}

static int64_t lara_read(const rfa_attention *attention,
                         rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         int leaf,
                         rfa_real *work)
{
    const ptrdiff_t E = attention->options.width, d = rfa_head_width(&attention->options);
    const rfa_leaf *part = &plan->leaves[leaf];
    const rfa_lara lara = lara_example(attention, plan, part->example);
    const ptrdiff_t rows = rfa_attention_read_rows(saved, part);
    for (ptrdiff_t h = 0; h < attention->options.heads; h++) {
        const rfa_lara_samples samples = samples_of(attention, saved, &lara, part->example, h);
        const rfa_head head = leaf_head(attention, saved, plan, part, h, rows);
        rfa_lara_read(saved->out + part->row0 * E + h * d, E, &samples, &lara, &head, work);
    }
    return 0;
}

// ---- backward ----

static void lara_read_backward(const rfa_attention_gradient *gradient,
                               rfa_real *dparameters,
                               const rfa_attention *attention,
                               const rfa_attention_saved *saved,
                               const rfa_plan *plan,
                               int leaf,
                               rfa_real *work)
{
    (void)dparameters;
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, d = rfa_head_width(o);
    const rfa_leaf *part = &plan->leaves[leaf];
    const rfa_lara pass = lara_pass(attention), lara = lara_example(attention, plan, part->example);
    const ptrdiff_t rows = rfa_attention_read_rows(saved, part), size = sums_size(o, &pass);
    double *own = leaf_part(attention, plan, leaf, size);
    memset(own, 0, (size_t)size * sizeof *own);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_lara_samples samples = samples_of(attention, saved, &lara, part->example, h);
        const rfa_head head = leaf_head(attention, saved, plan, part, h, rows);
        const ptrdiff_t at = part->row0 * E + h * d;
        rfa_lara_read_backward(gradient->dqkv + part->row0 * 3 * E + h * d, 3 * E,
                               own + h * (size / o->heads), gradient->dout + at, saved->out + at, E,
                               &samples, &lara, &head, work);
    }
}

static rfa_status lara_exchange_backward(const rfa_attention_gradient *gradient,
                                         rfa_attention *attention,
                                         const rfa_attention_saved *saved,
                                         const rfa_plan *plan,
                                         int round,
                                         rfa_real *const *works)
{
    (void)gradient;
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width, d = rfa_head_width(o);
    const rfa_lara pass = lara_pass(attention);
    const ptrdiff_t size = round == 1 ? sums_size(o, &pass) : dw_size(o, &pass);
    const lara_scratch *scratch = scratch_of(attention);
    RFA_TRY(
        rfa_exchange_run(attention->exchange, RFA_TOTAL, scratch->parts, plan->examples * size));
#pragma omp parallel for schedule(static)
    for (int task = 0; task < plan->examples * (int)o->heads; task++) {
        RFA_PROFILE(RFA_PHASE_ATTENTION);
        const int example = task / (int)o->heads;
        const ptrdiff_t h = task % o->heads;
        const rfa_lara lara = lara_example(attention, plan, example);
        const rfa_lara_samples samples = samples_of(attention, saved, &lara, example, h);
        const rfa_lara_adjoint adjoint = adjoint_of(attention, &lara, example, h);
        const double *total = total_part(attention, task, size);
        if (lara.landmarks == 0) {
            continue;
        }
        if (round == 1) {
            rfa_lara_samples_backward(&adjoint, total, &samples, &lara,
                                      works[omp_get_thread_num()]);
        } else {
            rfa_real *dmeans = scratch->dmeans + example * rfa_landmarks_size(o) + h * d;
            rfa_lara_propose_backward(dmeans, dmeans + E, 2 * E, total, &adjoint, &lara);
        }
    }
    return RFA_OK;
}

static void lara_local_backward(const rfa_attention_gradient *gradient,
                                rfa_real *dparameters,
                                const rfa_attention *attention,
                                const rfa_attention_saved *saved,
                                const rfa_plan *plan,
                                int round,
                                int leaf,
                                rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t E = o->width;
    const rfa_leaf *part = &plan->leaves[leaf];
    if (round == 0) {
        rfa_landmarks_backward(gradient, dparameters, scratch_of(attention)->dmeans, attention,
                               saved, plan, part, work);
        return;
    }
    const rfa_lara pass = lara_pass(attention), lara = lara_example(attention, plan, part->example);
    const ptrdiff_t size = dw_size(o, &pass);
    double *own = leaf_part(attention, plan, leaf, size);
    memset(own, 0, (size_t)size * sizeof *own);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_lara_samples samples = samples_of(attention, saved, &lara, part->example, h);
        const rfa_lara_adjoint adjoint = adjoint_of(attention, &lara, part->example, h);
        const rfa_head head = leaf_head(attention, saved, plan, part, h, part->rows);
        rfa_real *dk = gradient->dqkv + part->row0 * 3 * E + E + h * rfa_head_width(o);
        rfa_lara_keys_backward(dk, dk + E, 3 * E, own + h * (size / o->heads), &adjoint, &samples,
                               &lara, &head, work);
    }
}

// With J = C draws samples: 4 E J a key and 4 E J a query, specific weights 2 E C more; backward
// twice. Proposals 2 E J C, learned landmarks 4 E d a token; backward twice.
static double
lara_flops(const rfa_attention_options *options, ptrdiff_t n, ptrdiff_t read, bool backward)
{
    const double C = (double)rfa_landmark_count(n, options->landmarks);
    const double J = C * (double)options->draws, E = (double)options->width;
    const double specific = options->weights == RFA_WEIGHTS_SPECIFIC ? 2 * C : 0;
    const double map = options->landmark_map ? 4 * (double)rfa_head_width(options) : 0;
    const double forward =
        E * ((double)n * (4 * J + map) + (double)read * (4 * J + specific) + 2 * J * C);
    return backward ? 2 * forward : forward;
}

const rfa_mechanism rfa_mechanism_lara = {
    .rounds = lara_rounds,
    .tensors = rfa_landmarks_tensors,
    .carve = lara_carve,
    .carve_saved = lara_carve_saved,
    .work = lara_work,
    .local = lara_local,
    .exchange = lara_exchange,
    .read = lara_read,
    .read_backward = lara_read_backward,
    .exchange_backward = lara_exchange_backward,
    .local_backward = lara_local_backward,
    .flops = lara_flops,
};
