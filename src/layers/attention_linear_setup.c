#include "features/fastfood.h"
#include "layers/attention_linear.h"

#include <math.h>
#include <string.h>

static bool is_oprf(const rfa_attention_options *o)
{
    return o->map == RFA_MAP_OPRF;
}

static bool is_fastfood(const rfa_attention_options *o)
{
    return o->map != RFA_MAP_ELU && o->rows == RFA_ROWS_FASTFOOD;
}

static bool has_bandwidth(const rfa_attention_options *o)
{
    return o->kind == RFA_ATTENTION_RFA && o->bandwidth_kind != RFA_BANDWIDTH_FIXED;
}

int rfa_linear_rounds(const rfa_attention_options *options)
{
    return is_oprf(options) ? 2 : 1;
}

bool rfa_linear_pool_rows(const rfa_attention_options *options)
{
    return options->map != RFA_MAP_ELU && options->rows != RFA_ROWS_FASTFOOD;
}

rfa_linear_tensors rfa_linear_tensor_places(const rfa_attention_options *options)
{
    int next = 0;
    rfa_linear_tensors at = {-1, -1, -1, -1};
    if (has_bandwidth(options)) {
        at.bandwidth = next++;
    }
    if (is_fastfood(options)) {
        at.fastfood = next++;
    }
    if (options->gate == RFA_GATE_LEARNED) {
        at.gate_weight = next++;
        at.gate_bias = next++;
    }
    return at;
}

int rfa_linear_tensors_fill(rfa_attention_tensor *tensor, const rfa_attention_options *options)
{
    const ptrdiff_t H = options->heads, E = options->width;
    const rfa_linear_tensors at = rfa_linear_tensor_places(options);
    int count = 0;
    if (at.bandwidth >= 0 && options->bandwidth_kind == RFA_BANDWIDTH_LEARNED) {
        tensor[count++] =
            (rfa_attention_tensor){"sigma", E, 0, RFA_INIT_CONSTANT, options->bandwidth, 0};
    } else if (at.bandwidth >= 0) {
        tensor[count++] = (rfa_attention_tensor){"temperature",          H, 0, RFA_INIT_CONSTANT,
                                                 1 / options->bandwidth, 0};
    }
    if (at.fastfood >= 0) {
        const ptrdiff_t size = rfa_fastfood_size(options->projections, rfa_head_width(options));
        tensor[count++] = (rfa_attention_tensor){"fastfood", H * size, 0, RFA_INIT_CONSTANT, 0, 0};
    }
    if (at.gate_weight >= 0) {
        const double bound = sqrt(6 / (double)(E + H)); // Glorot and Bengio 2010
        tensor[count++] = (rfa_attention_tensor){"gate.weight", H, E, RFA_INIT_UNIFORM, bound, 0};
        tensor[count++] =
            (rfa_attention_tensor){"gate.bias", H, 0, RFA_INIT_CONSTANT, options->gate_bias, 0};
    }
    return count;
}

// The fixed part of a head's fastfood projections: permutations, and the draw of the diagonals.
static rfa_rng fastfood_stream(const rfa_attention *attention, ptrdiff_t layer, ptrdiff_t h)
{
    const rfa_attention_options *o = &attention->options;
    return rfa_rng_stream(o->seed, RFA_RNG_FASTFOOD, (uint32_t)layer, (uint32_t)h);
}

ptrdiff_t rfa_linear_init_work(const rfa_attention_options *options)
{
    return is_fastfood(options) ? rfa_fastfood_work(options->projections, rfa_head_width(options))
                                : 1;
}

void rfa_linear_init(rfa_real *values,
                     const rfa_attention *attention,
                     ptrdiff_t layer,
                     rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const int place = rfa_linear_tensor_places(o).fastfood;
    if (place < 0) {
        return;
    }
    const ptrdiff_t D = o->projections, d = rfa_head_width(o), size = rfa_fastfood_size(D, d);
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        const rfa_rng stream = fastfood_stream(attention, layer, h);
        rfa_fastfood_init(values + attention->tensor[place].at + h * size, &stream, D, d, work);
    }
}

bool rfa_linear_is_reverse(const rfa_attention_options *options, ptrdiff_t h)
{
    return options->causal && (options->direction == RFA_REVERSE ||
                               (options->direction == RFA_BOTH && h >= (options->heads + 1) / 2));
}

rfa_feature_map rfa_linear_map(const rfa_attention *attention,
                               const rfa_attention_saved *saved,
                               const rfa_plan *plan,
                               int leaf,
                               ptrdiff_t h)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t d = rfa_head_width(o), D = o->projections;
    rfa_feature_map map = {
        .kind = o->map,
        .unit_norm = o->unit_norm,
        .width = d,
        .projections = o->map == RFA_MAP_ELU ? 0 : D,
    };
    if (!saved) {
        return map;
    }
    const rfa_linear_saved *own = rfa_linear_own(saved);
    map.w = own->w[h];
    map.sigma = own->sigma ? own->sigma + h * d : NULL;
    if (has_bandwidth(o) && o->bandwidth_kind == RFA_BANDWIDTH_LEARNED) {
        map.sigma = rfa_attention_values(attention, saved, 0) + h * d;
    }
    if (is_oprf(o)) {
        const int example = leaf / plan->own;
        const ptrdiff_t size = rfa_oprf_statistics_size(d);
        map.w_squares = own->w_squares + h * D;
        map.a = rfa_oprf_a(own->statistics + (h * plan->examples + example) * size,
                           plan->lengths[example], d);
    }
    return map;
}

ptrdiff_t rfa_linear_state_numbers(const rfa_attention_options *options)
{
    const rfa_attention attention = {.options = *options};
    const rfa_feature_map map = rfa_linear_map(&attention, NULL, NULL, 0, 0);
    return rfa_linear_state_size(&map);
}

void rfa_linear_carve(rfa_attention *attention, rfa_arena *arena, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t size = rfa_linear_row_size(attention, plan);
    rfa_linear_scratch *scratch = rfa_carve(arena, 1, sizeof *scratch);
    rfa_linear_scratch arrays = {.states = rfa_carve(arena, plan->own * size, sizeof(double))};
    if (!o->causal) {
        arrays.dtotal = rfa_carve(arena, size, sizeof(rfa_real));
    }
    if (o->causal && o->direction == RFA_FORWARD) {
        arrays.aside = rfa_carve(arena, size, sizeof(double));
    }
    if (o->gate == RFA_GATE_LEARNED) {
        arrays.dgate = rfa_carve(arena, o->heads * plan->rows, sizeof(rfa_real));
    }
    if (scratch) {
        *scratch = arrays;
    }
    attention->scratch = scratch;
}

ptrdiff_t rfa_linear_row_size(const rfa_attention *attention, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    return o->heads * plan->examples * rfa_linear_state_numbers(o);
}

double *
rfa_linear_carve_carry(rfa_arena *arena, const rfa_attention *attention, const rfa_plan *plan)
{
    return rfa_carve(arena, rfa_linear_row_size(attention, plan), sizeof(double));
}

void rfa_linear_carve_kept(rfa_attention_saved *saved,
                           rfa_arena *arena,
                           const rfa_attention *attention,
                           const rfa_plan *plan,
                           double *carry)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t size = rfa_linear_row_size(attention, plan);
    rfa_linear_saved *own = rfa_carve(arena, 1, sizeof *own);
    rfa_linear_saved arrays = {.carry = carry};
    if (o->causal) {
        arrays.before = rfa_carve(arena, plan->own * size, sizeof(double));
    } else {
        arrays.total = rfa_carve(arena, size, sizeof(rfa_real));
    }
    if (is_oprf(o)) {
        const ptrdiff_t statistics = rfa_oprf_statistics_size(rfa_head_width(o));
        arrays.statistics =
            rfa_carve(arena, plan->own * o->heads * plan->examples * statistics, sizeof(double));
    }
    if (own) {
        *own = arrays;
    }
    saved->own = own;
}

void rfa_linear_carve_saved(rfa_attention_saved *saved,
                            rfa_arena *arena,
                            const rfa_attention *attention,
                            const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t H = o->heads, D = o->projections, d = rfa_head_width(o);
    const size_t real = sizeof(rfa_real);
    rfa_linear_saved *own = saved->own, arrays = own ? *own : (rfa_linear_saved){0};
    if (o->causal) {
        arrays.scale = rfa_carve(arena, H * plan->rows, sizeof(double));
    }
    if (o->gate != RFA_GATE_NONE) {
        arrays.decay = rfa_carve(arena, H * plan->rows, real);
        arrays.input = rfa_carve(arena, H * plan->rows, real);
    }
    if (is_fastfood(o)) {
        arrays.own_w = rfa_carve(arena, H * D * d, real);
    }
    if (is_oprf(o)) {
        arrays.w_squares = rfa_carve(arena, H * D, real);
    }
    if (o->kind == RFA_ATTENTION_RFA && o->bandwidth_kind != RFA_BANDWIDTH_LEARNED) {
        arrays.sigma = rfa_carve(arena, H * d, real);
    }
    if (own) {
        *own = arrays;
    }
}

ptrdiff_t rfa_linear_layer_work(const rfa_attention *attention, const rfa_plan *plan)
{
    const rfa_attention_options *o = &attention->options;
    const rfa_feature_map map = rfa_linear_map(attention, NULL, NULL, 0, 0);
    const ptrdiff_t rows = plan->longest_leaf, D = map.projections, d = map.width;
    ptrdiff_t work = rfa_linear_work(&map, rows) + rfa_padded(d) + rfa_padded(D * d) + 2 * rows +
                     4 * RFA_ALIGN_ELEMENTS;
    if (is_oprf(o)) {
        const ptrdiff_t statistics = rfa_feature_work(&map, rows);
        work = statistics > work ? statistics : work;
    }
    if (is_fastfood(o)) {
        work += rfa_fastfood_work(D, d);
    }
    return work;
}

// The matrices of this pass. Training takes others for each draw; an evaluation takes those of the
// first heads, as Peng et al. do, or when a draw lasts for several steps those that are in use.
static void choose(const rfa_attention *attention)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t count = o->layers * o->heads;
    const bool fixed =
        o->redraw == 0 || attention->step == 0 || (!attention->training && o->redraw == 1);
    for (ptrdiff_t i = 0; fixed && i < count; i++) {
        attention->matrix[i] = (int)(i % o->heads);
    }
    if (!fixed) {
        const int64_t draw = (attention->step - 1) / o->redraw + 1;
        rfa_pool_pick(attention->matrix, count, &attention->pool, draw);
    }
}

void rfa_linear_begin(const rfa_attention *attention, rfa_attention_saved *saved, rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t D = o->projections, d = rfa_head_width(o);
    const rfa_linear_tensors at = rfa_linear_tensor_places(o);
    rfa_linear_saved *own = rfa_linear_own(saved);
    if (rfa_linear_pool_rows(o) && saved->layer == 0) {
        choose(attention);
    }
    for (ptrdiff_t h = 0; h < o->heads; h++) {
        if (rfa_linear_pool_rows(o)) {
            own->w[h] =
                rfa_pool_matrix(&attention->pool, attention->matrix[saved->layer * o->heads + h]);
        } else if (is_fastfood(o)) {
            const rfa_rng stream = fastfood_stream(attention, saved->layer, h);
            const rfa_real *diagonals = rfa_attention_values(attention, saved, at.fastfood);
            rfa_fastfood_forward(own->own_w + h * D * d, diagonals + h * rfa_fastfood_size(D, d),
                                 &stream, D, d, work);
            own->w[h] = own->own_w + h * D * d;
        }
        for (ptrdiff_t f = 0; own->w_squares && f < D; f++) {
            double sum = 0;
            for (ptrdiff_t j = 0; j < d; j++) {
                sum += (double)own->w[h][f * d + j] * (double)own->w[h][f * d + j];
            }
            own->w_squares[h * D + f] = (rfa_real)sum;
        }
        for (ptrdiff_t j = 0; own->sigma && j < d; j++) {
            own->sigma[h * d + j] =
                at.bandwidth >= 0 ? 1 / rfa_attention_values(attention, saved, at.bandwidth)[h]
                                  : (rfa_real)o->bandwidth;
        }
    }
}

rfa_linear_gradient rfa_linear_gradient_begin(const rfa_attention *attention, rfa_real *work)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t d = rfa_head_width(o), D = o->projections;
    rfa_linear_gradient gradient = {.work = work};
    if (has_bandwidth(o)) {
        gradient.map.sigma = gradient.work;
        gradient.work += rfa_padded(d);
        memset(gradient.map.sigma, 0, (size_t)d * sizeof(rfa_real));
    }
    if (is_fastfood(o)) {
        gradient.map.w = gradient.work;
        gradient.work += rfa_padded(D * d);
        memset(gradient.map.w, 0, (size_t)(D * d) * sizeof(rfa_real));
    }
    return gradient;
}

void rfa_linear_gradient_end(rfa_real *dparameters,
                             const rfa_linear_gradient *gradient,
                             const rfa_attention *attention,
                             const rfa_attention_saved *saved,
                             ptrdiff_t h)
{
    const rfa_attention_options *o = &attention->options;
    const ptrdiff_t d = rfa_head_width(o), D = o->projections;
    const rfa_linear_tensors at = rfa_linear_tensor_places(o);
    if (at.bandwidth >= 0 && o->bandwidth_kind == RFA_BANDWIDTH_LEARNED) {
        rfa_real *dsigma = dparameters + attention->tensor[at.bandwidth].at + h * d;
        for (ptrdiff_t j = 0; j < d; j++) {
            dsigma[j] += gradient->map.sigma[j];
        }
    } else if (at.bandwidth >= 0) { // sigma = 1 / temperature
        const rfa_real sigma = rfa_linear_own(saved)->sigma[h * d];
        rfa_real sum = 0;
        for (ptrdiff_t j = 0; j < d; j++) {
            sum += gradient->map.sigma[j];
        }
        dparameters[attention->tensor[at.bandwidth].at + h] -= sum * sigma * sigma;
    }
    if (at.fastfood >= 0) {
        const ptrdiff_t size = rfa_fastfood_size(D, d);
        const rfa_rng stream = fastfood_stream(attention, saved->layer, h);
        rfa_fastfood_backward(dparameters + attention->tensor[at.fastfood].at + h * size,
                              gradient->map.w,
                              rfa_attention_values(attention, saved, at.fastfood) + h * size,
                              &stream, D, d, gradient->work);
    }
}

double
rfa_linear_flops(const rfa_attention_options *options, ptrdiff_t n, ptrdiff_t read, bool backward)
{
    const rfa_attention attention = {.options = *options};
    const rfa_feature_map map = rfa_linear_map(&attention, NULL, NULL, 0, 0);
    const double rows = (double)(n + read), E = (double)options->width;
    return rows * E *
           (2 * (double)map.projections + (backward ? 4 : 2) * (double)rfa_feature_count(&map));
}
