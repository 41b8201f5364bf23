// EVA as a layer runs it (attention/eva.h). Round 0 sums queries and keys by chunk and fetches the
// keys that windows reach in other segments; round 1 sums the chunks' values. The backward of the
// read-out needs those keys again, so it runs within the exchange.
#include "layers/attention_eva.h"

#include "base/profile.h"

#include <math.h>
#include <omp.h>
#include <string.h>

static int eva_rounds(const rfa_attention_options *options)
{
    (void)options;
    return 2;
}

// A leaf's numbers that cross, `size` an example.
static double *
leaf_part(const rfa_attention *attention, const rfa_plan *plan, int leaf, ptrdiff_t size)
{
    const rfa_eva_scratch *scratch = attention->scratch;
    const ptrdiff_t example = leaf / plan->own, own = leaf % plan->own;
    return scratch->parts + (own * plan->examples + example) * size;
}

// Where head h of an example's chunks begins in an array [examples][Cp][E].
static ptrdiff_t
chunks_at(const rfa_attention_options *o, const rfa_eva *eva, ptrdiff_t example, ptrdiff_t h)
{
    return example * rfa_padded(eva->chunks) * o->width + h * eva->d;
}

static ptrdiff_t
lse_at(const rfa_attention_options *o, const rfa_eva *eva, ptrdiff_t example, ptrdiff_t h)
{
    return (example * o->heads + h) * rfa_padded(eva->chunks);
}

static rfa_eva_summary summary_of(const rfa_attention *attention,
                                  const rfa_attention_saved *saved,
                                  const rfa_eva *eva,
                                  int example,
                                  ptrdiff_t h)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva_saved *own = saved->own;
    const ptrdiff_t at = chunks_at(o, eva, example, h);
    const rfa_real *bias = own->bias + example * rfa_padded(eva->chunks);
    return (rfa_eva_summary){.k = own->k_bar + at,
                             .v = own->beta + at,
                             .ld = o->width,
                             .bias = o->landmark_map ? NULL : bias};
}

// ---- forward ----

static void eva_local(const rfa_attention *attention,
                      rfa_attention_saved *saved,
                      const rfa_plan *plan,
                      int round,
                      int leaf,
                      const rfa_real *x,
                      rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_leaf *part = &plan->leaves[leaf];
    const ptrdiff_t E = o->width;
    (void)x;
    if (round == 0) {
        RFA_ASSERT(plan->lengths[part->example] <= o->longest);
        double *sums = leaf_part(attention, plan, leaf, rfa_eva_sums_size(o, &eva));
        rfa_eva_sums(sums, 2 * E, saved->qkv + part->row0 * 3 * E, 3 * E, 2 * E, part->begin,
                     part->tokens, &eva);
        return;
    }
    const rfa_eva_saved *own = saved->own;
    double *values = leaf_part(attention, plan, leaf, rfa_eva_values_size(o, &eva));
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_eva_head head = rfa_eva_layer_head(attention, saved, plan, leaf, h);
        rfa_eva_values(values + h * eva.chunks * rfa_eva_unit(eva.d), &head,
                       own->w + chunks_at(o, &eva, part->example, h), E, &eva, work);
    }
}

// Means of an example, and what follows from them: k~, w and the bias.
static void open_example(const rfa_attention *attention,
                         const rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         int e,
                         rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_eva_scratch *scratch = attention->scratch;
    const rfa_eva_saved *own = saved->own;
    const ptrdiff_t E = o->width, Cp = rfa_padded(eva.chunks), at = chunks_at(o, &eva, e, 0);
    const double *sums = scratch->parts + e * rfa_eva_sums_size(o, &eva);
    rfa_real *means = own->means + 2 * at, *q_bar = scratch->q_bar + at, *k_bar = own->k_bar + at;
    for (ptrdiff_t c = 0; c < Cp; c++) {
        const ptrdiff_t n = rfa_eva_tokens(&eva, plan->lengths[e], c);
        for (ptrdiff_t j = 0; j < 2 * E; j++) {
            means[c * 2 * E + j] = n > 0 ? (rfa_real)(sums[c * 2 * E + j] / (double)n) : 0;
        }
        own->bias[e * Cp + c] = (rfa_real)log((double)(n > 0 ? n : 1));
    }
    if (o->landmark_map) {
        const rfa_landmark_map map_q = rfa_landmarks_map(attention, saved, 0);
        const rfa_landmark_map map_k = rfa_landmarks_map(attention, saved, 1);
        rfa_landmark_map_forward(q_bar, means, 2 * E, &map_q, Cp, o->heads, eva.d, work);
        rfa_landmark_map_forward(k_bar, means + E, 2 * E, &map_k, Cp, o->heads, eva.d, work);
    } else {
        for (ptrdiff_t c = 0; c < Cp; c++) {
            memcpy(q_bar + c * E, means + c * 2 * E, (size_t)E * sizeof *q_bar);
            memcpy(k_bar + c * E, means + c * 2 * E + E, (size_t)E * sizeof *k_bar);
        }
    }
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const int64_t place =
            ((plan->first + e) * RFA_MOST_LAYERS + saved->layer) * RFA_MOST_HEADS + h;
        const rfa_rng noise =
            rfa_rng_stream(o->seed, RFA_RNG_EVA, (uint32_t)attention->step, (uint32_t)place);
        const ptrdiff_t head = h * eva.d;
        rfa_eva_directions(own->w + at + head, q_bar + head, k_bar + head, E,
                           attention->training ? &noise : NULL, &eva);
    }
}

static rfa_status eva_exchange(rfa_attention *attention,
                               rfa_attention_saved *saved,
                               const rfa_plan *plan,
                               int round,
                               rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_eva_scratch *scratch = attention->scratch;
    const rfa_eva_saved *own = saved->own;
    const ptrdiff_t E = o->width, unit = rfa_eva_unit(eva.d);
    if (round == 0) {
        const rfa_halo halo = rfa_eva_layer_halo(attention, plan);
        RFA_TRY(rfa_halo_fetch(scratch->halo, saved->qkv + E, 3 * E, 2 * E, &halo,
                               attention->sequence, &attention->gather_cost));
        RFA_TRY(rfa_exchange_run(attention->exchange, RFA_TOTAL, scratch->parts,
                                 plan->examples * rfa_eva_sums_size(o, &eva)));
#pragma omp parallel for schedule(dynamic)
        for (int e = 0; e < plan->examples; e++) {
            RFA_PROFILE(RFA_PHASE_ATTENTION);
            open_example(attention, saved, plan, e, works[omp_get_thread_num()]);
        }
        return RFA_OK;
    }
    const ptrdiff_t size = plan->examples * rfa_eva_values_size(o, &eva);
    const rfa_exchange_rows rows = {.size = size, .stride = size, .unit = unit};
    RFA_TRY(rfa_exchange_rows_run(attention->exchange, RFA_TOTAL, scratch->parts, rows));
    const int tasks = plan->examples * (int)o->heads;
#pragma omp parallel for schedule(static)
    for (int task = 0; task < tasks; task++) {
        RFA_PROFILE(RFA_PHASE_ATTENTION);
        const ptrdiff_t e = task / o->heads, h = task % o->heads;
        rfa_eva_close(own->beta + chunks_at(o, &eva, e, h), E,
                      own->beta_lse + lse_at(o, &eva, e, h),
                      scratch->parts + task * eva.chunks * unit, &eva);
    }
    return RFA_OK;
}

// Rows of a head's padding, behind the tokens that are read.
static void clear_padding(rfa_real *x, ptrdiff_t ld, ptrdiff_t from, ptrdiff_t to, ptrdiff_t d)
{
    for (ptrdiff_t t = from; t < to; t++) {
        memset(x + t * ld, 0, (size_t)d * sizeof *x);
    }
}

static int64_t eva_read(const rfa_attention *attention,
                        rfa_attention_saved *saved,
                        const rfa_plan *plan,
                        int leaf,
                        rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_leaf *part = &plan->leaves[leaf];
    const ptrdiff_t E = o->width, rows = rfa_attention_read_rows(saved, part);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_eva_head head = rfa_eva_layer_head(attention, saved, plan, leaf, h);
        const rfa_eva_summary summary = summary_of(attention, saved, &eva, part->example, h);
        rfa_real *out = saved->out + part->row0 * E + h * eva.d;
        clear_padding(out, E, head.read, rows, eva.d);
        rfa_eva_read(out, E, saved->den + h * plan->rows + part->row0, &head, &summary, &eva, work);
    }
    return 0;
}

// ---- backward ----

// Gradients of queries, of the keys and values that they read, and of the summaries.
static void read_leaf_backward(const rfa_attention_gradient *gradient,
                               const rfa_attention *attention,
                               const rfa_attention_saved *saved,
                               const rfa_plan *plan,
                               int leaf,
                               rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_eva_scratch *scratch = attention->scratch;
    const rfa_leaf *part = &plan->leaves[leaf];
    const ptrdiff_t E = o->width, rows = rfa_attention_read_rows(saved, part);
    double *chunks = leaf_part(attention, plan, leaf, rfa_eva_sums_size(o, &eva));
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const ptrdiff_t at = h * eva.d;
        const rfa_eva_head head = rfa_eva_layer_head(attention, saved, plan, leaf, h);
        const rfa_eva_summary summary = summary_of(attention, saved, &eva, part->example, h);
        double *dk = scratch->dkv + part->row0 * 2 * E + at;
        double *halo = scratch->dhalo + scratch->halo_row0[leaf] * 2 * E + at;
        const rfa_eva_gradient to = {.k = dk,
                                     .v = dk + E,
                                     .ld = 2 * E,
                                     .halo_k = halo,
                                     .halo_v = halo + E,
                                     .ld_halo = 2 * E,
                                     .chunk_k = chunks + at,
                                     .chunk_v = chunks + at + E,
                                     .ld_chunk = 2 * E};
        rfa_real *dq = gradient->dqkv + part->row0 * 3 * E + at;
        clear_padding(dq, 3 * E, head.read, rows, eva.d);
        rfa_eva_read_backward(
            dq, 3 * E, &to, gradient->dout + part->row0 * E + at, saved->out + part->row0 * E + at,
            E, saved->den + h * plan->rows + part->row0, &head, &summary, &eva, work);
    }
}

static rfa_status read_all_backward(const rfa_attention_gradient *gradient,
                                    rfa_attention *attention,
                                    const rfa_attention_saved *saved,
                                    const rfa_plan *plan,
                                    rfa_real *const *works)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_eva_scratch *scratch = attention->scratch;
    const rfa_halo halo = rfa_eva_layer_halo(attention, plan);
    const ptrdiff_t E = o->width, C = eva.chunks, Cp = rfa_padded(C);
    const int leaves = plan->examples * plan->own;
    RFA_TRY(rfa_halo_fetch(scratch->halo, saved->qkv + E, 3 * E, 2 * E, &halo, attention->sequence,
                           &attention->gather_cost));
#pragma omp parallel for schedule(dynamic)
    for (int leaf = 0; leaf < leaves; leaf++) {
        RFA_PROFILE(RFA_PHASE_ATTENTION);
        read_leaf_backward(gradient, attention, saved, plan, leaf, works[omp_get_thread_num()]);
    }
    RFA_TRY(rfa_halo_return(scratch->dkv, scratch->dhalo, 2 * E, &halo, attention->sequence,
                            &attention->gather_cost));
    RFA_TRY(rfa_exchange_run(attention->exchange, RFA_TOTAL, scratch->parts,
                             plan->examples * rfa_eva_sums_size(o, &eva)));
    for (ptrdiff_t e = 0; e < plan->examples; e++) {
        for (ptrdiff_t i = 0; i < C * E; i++) {
            const double *sum = scratch->parts + (e * C + i / E) * 2 * E + i % E;
            scratch->dk_bar[e * Cp * E + i] = (rfa_real)sum[0];
            scratch->dbeta[e * Cp * E + i] = (rfa_real)sum[E];
        }
    }
    return RFA_OK;
}

// From the totals of dw to what each token's query and key get of their chunk, dmeans, and to the
// gradient of the landmark map.
static void close_example(const rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          int e,
                          rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_eva_scratch *scratch = attention->scratch;
    const rfa_eva_saved *own = saved->own;
    const ptrdiff_t E = o->width, d = eva.d, C = eva.chunks, Cp = rfa_padded(C);
    const ptrdiff_t at = chunks_at(o, &eva, e, 0);
    const double *dw = scratch->parts + e * C * E, factor = rfa_eva_direction_factor(&eva);
    rfa_real *dq_bar = scratch->dq_bar + at, *dk_bar = scratch->dk_bar + at;
    rfa_real *dmeans = scratch->dmeans + 2 * at;
    memset(dq_bar, 0, (size_t)(Cp * E) * sizeof *dq_bar);
    memset(dk_bar + C * E, 0, (size_t)((Cp - C) * E) * sizeof *dk_bar);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        for (ptrdiff_t i = 0; i < C * d; i++) {
            const ptrdiff_t to = i / d * E + h * d + i % d;
            const double share = factor * dw[h * C * d + i];
            dq_bar[to] = (rfa_real)share;
            dk_bar[to] = (rfa_real)((double)dk_bar[to] + share);
        }
    }
    memset(dmeans, 0, (size_t)(Cp * 2 * E) * sizeof *dmeans);
    if (o->landmark_map) {
        const rfa_real *means = own->means + 2 * at;
        rfa_real *dmap = scratch->dmap + e * attention->parameters;
        memset(dmap, 0, (size_t)attention->parameters * sizeof *dmap);
        for (int side = 0; side < 2; side++) {
            const rfa_landmark_map map = rfa_landmarks_map(attention, saved, side);
            const rfa_landmark_map_gradient to = rfa_landmarks_map_gradient(dmap, attention, side);
            rfa_landmark_map_backward(dmeans + side * E, 2 * E, &to, side ? dk_bar : dq_bar,
                                      means + side * E, 2 * E, &map, Cp, o->heads, d, work);
        }
    } else {
        for (ptrdiff_t c = 0; c < C; c++) {
            memcpy(dmeans + c * 2 * E, dq_bar + c * E, (size_t)E * sizeof *dmeans);
            memcpy(dmeans + c * 2 * E + E, dk_bar + c * E, (size_t)E * sizeof *dmeans);
        }
    }
    for (ptrdiff_t c = 0; c < C; c++) {
        const ptrdiff_t n = rfa_eva_tokens(&eva, plan->lengths[e], c);
        for (ptrdiff_t j = 0; n > 0 && j < 2 * E; j++) {
            dmeans[c * 2 * E + j] /= (rfa_real)n;
        }
    }
}

static rfa_status eva_exchange_backward(const rfa_attention_gradient *gradient,
                                        rfa_attention *attention,
                                        const rfa_attention_saved *saved,
                                        const rfa_plan *plan,
                                        int round,
                                        rfa_real *const *works)
{
    const rfa_eva eva = rfa_eva_layer_shape(&attention->options);
    const rfa_eva_scratch *scratch = attention->scratch;
    if (round == 1) {
        return read_all_backward(gradient, attention, saved, plan, works);
    }
    RFA_TRY(rfa_exchange_run(attention->exchange, RFA_TOTAL, scratch->parts,
                             plan->examples * eva.chunks * attention->options.width));
#pragma omp parallel for schedule(dynamic)
    for (int e = 0; e < plan->examples; e++) {
        RFA_PROFILE(RFA_PHASE_ATTENTION);
        close_example(attention, saved, plan, e, works[omp_get_thread_num()]);
    }
    return RFA_OK;
}

// Round 1: what the chunks' values give their own keys and values, which makes these complete but
// for round 0: what chunks' means give their queries and keys. The map's gradient is added once an
// example, by the segment of its first token.
static void eva_local_backward(const rfa_attention_gradient *gradient,
                               rfa_real *dparameters,
                               const rfa_attention *attention,
                               const rfa_attention_saved *saved,
                               const rfa_plan *plan,
                               int round,
                               int leaf,
                               rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_eva eva = rfa_eva_layer_shape(o);
    const rfa_eva_scratch *scratch = attention->scratch;
    const rfa_eva_saved *own = saved->own;
    const rfa_leaf *part = &plan->leaves[leaf];
    const ptrdiff_t E = o->width, C = eva.chunks, row0 = part->row0;
    if (round == 0) {
        const rfa_real *dmeans = scratch->dmeans + 2 * chunks_at(o, &eva, part->example, 0);
        for (ptrdiff_t t = 0; t < part->tokens; t++) {
            const rfa_real *from = dmeans + (part->begin + t) / eva.chunk * 2 * E;
            rfa_real *to = gradient->dqkv + (row0 + t) * 3 * E;
            for (ptrdiff_t j = 0; j < 2 * E; j++) {
                to[j] += from[j];
            }
        }
        if (part->begin == 0 && part->tokens > 0) {
            for (ptrdiff_t i = 0; i < attention->parameters; i++) {
                dparameters[i] += scratch->dmap[part->example * attention->parameters + i];
            }
        }
        return;
    }
    double *dw = leaf_part(attention, plan, leaf, C * E);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_eva_head head = rfa_eva_layer_head(attention, saved, plan, leaf, h);
        const ptrdiff_t at = chunks_at(o, &eva, part->example, h);
        double *dk = scratch->dkv + row0 * 2 * E + h * eva.d;
        const rfa_eva_gradient to = {.k = dk, .v = dk + E, .ld = 2 * E};
        rfa_eva_values_backward(&to, dw + h * C * eva.d, scratch->dbeta + at, own->beta + at,
                                own->w + at, E, own->beta_lse + lse_at(o, &eva, part->example, h),
                                &head, &eva, work);
    }
    for (ptrdiff_t t = 0; t < part->rows; t++) {
        const double *from = scratch->dkv + (row0 + t) * 2 * E;
        rfa_real *to = gradient->dqkv + (row0 + t) * 3 * E + E;
        for (ptrdiff_t j = 0; j < 2 * E; j++) {
            to[j] = t < part->tokens ? (rfa_real)from[j] : 0;
        }
    }
}

// A pair of a query and a key or chunk: 4 E, backward 10 E; a token's part of its chunk's value: 4
// E, backward 8 E.
static double
eva_flops(const rfa_attention_options *options, ptrdiff_t n, ptrdiff_t read, bool backward)
{
    const rfa_eva eva = rfa_eva_layer_shape(options);
    const double E = (double)options->width, N = (double)n;
    const double near = fmin((double)eva.window, N);
    const double far = fmax(N - near, 0) / (double)eva.chunk;
    const double seen = options->causal ? (near + far) / 2 : near + far;
    return (backward ? 10 : 4) * E * (double)read * seen + (backward ? 8 : 4) * E * N;
}

const rfa_mechanism rfa_mechanism_eva = {
    .rounds = eva_rounds,
    .tensors = rfa_landmarks_tensors,
    .carve = rfa_eva_layer_carve,
    .carve_saved = rfa_eva_layer_carve_saved,
    .work = rfa_eva_layer_work,
    .local = eva_local,
    .exchange = eva_exchange,
    .read = eva_read,
    .exchange_backward = eva_exchange_backward,
    .local_backward = eva_local_backward,
    .flops = eva_flops,
};
