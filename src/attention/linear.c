#include "attention/linear_impl.h"

#include "tensor/fetch.h"
#include "tensor/gemm.h"

#include <string.h>

ptrdiff_t rfa_linear_state_size(const rfa_feature_map *map)
{
    return RFA_STATE_HEADER + rfa_feature_count(map) * (map->width + 1);
}

// Grows with rows, as the chunks themselves don't: 256 rows are one chunk, 272 are two of 144.
ptrdiff_t rfa_linear_work(const rfa_feature_map *map, ptrdiff_t rows)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, state = rfa_linear_state_size(map);
    const ptrdiff_t padded = rfa_padded(rows > 0 ? rows : 1);
    const ptrdiff_t chunk = least(padded, CHUNK), causal = least(padded, CAUSAL_CHUNK);
    const ptrdiff_t chunks = (padded + CAUSAL_CHUNK - 1) / CAUSAL_CHUNK;
    const ptrdiff_t map_work = rfa_feature_work(map, chunk);
    const ptrdiff_t linear = 2 * chunk * F + chunk * (d + 2 + DOUBLE) + 2 * state;
    // Causal: features and adjoints of q and k, quotient, scores, their adjoints and weights,
    // logarithms, two states and a double one, and the states around the chunks for the backward;
    // scratch.
    const ptrdiff_t backward = 4 * causal * F + causal * (d + 3 + 6 * DOUBLE) +
                               3 * causal * causal + state * (2 + DOUBLE + chunks + 1) +
                               (chunks + 1) * DOUBLE + (causal + F) * (F + d);
    return map_work + d * map->projections + (linear > backward ? linear : backward) +
           32 * RFA_ALIGN_ELEMENTS;
}

double rfa_chunk_leave(
    double *log_weight, const rfa_real *lambda, const rfa_head *head, ptrdiff_t t, ptrdiff_t n)
{
    double passed = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        const ptrdiff_t i = head->reverse ? k : n - 1 - k;
        log_weight[i] = own_weight(lambda, head, t, i) + passed;
        passed += head->decay ? (double)head->decay[t + i] : 0;
    }
    return passed;
}

void rfa_state_clear(double *state, const rfa_head *head)
{
    memset(state, 0, (size_t)rfa_linear_state_size(head->map) * sizeof *state);
    if (rfa_head_is_weighted(head)) {
        state[0] = -INFINITY;
    }
}

// Brings the state's scale to what the new rows need, and the rows to that scale. Returns what the
// state shrinks by.
static double
rescale(double *state, rfa_real *phi, const double *log_weight, ptrdiff_t rows, ptrdiff_t F)
{
    double m = state[0];
    for (ptrdiff_t t = 0; t < rows; t++) {
        m = log_weight[t] > m ? log_weight[t] : m;
    }
    const double shrink = ratio(state[0], m);
    for (ptrdiff_t t = 0; t < rows; t++) {
        scale_row(phi + t * F, (rfa_real)ratio(log_weight[t], m), F);
    }
    state[0] = m;
    return shrink;
}

void rfa_state_add(const rfa_running *running,
                   double decay,
                   rfa_real *phi,
                   const double *log_weight,
                   const rfa_real *x,
                   ptrdiff_t ld,
                   ptrdiff_t next,
                   const rfa_real *b,
                   ptrdiff_t rows,
                   ptrdiff_t F,
                   ptrdiff_t d,
                   rfa_real *delta)
{
    double *restrict state = running->state;
    double shrink = 1;
    if (log_weight) {
        state[0] += decay;
        state[1] += decay;
        shrink = rescale(state, phi, log_weight, rows, F);
    }
    if (running->is_transposed) {
        rfa_gemm(RFA_T, RFA_N, d, F, rows, 1, x, ld, phi, F, 0, delta, F);
    } else {
        rfa_gemm(RFA_T, RFA_N, F, d, rows, 1, phi, F, x, ld, 0, delta, d);
    }
    rfa_real *z = delta + F * d;
    memset(z, 0, (size_t)F * sizeof *z);
    for (ptrdiff_t t = 0; t < rows; t++) {
        if (next != 0) {
            rfa_fetch(x + next + t * ld, d);
        }
        axpy(z, b ? b[t] : 1, phi + t * F, F);
    }
    double *restrict sum = state + RFA_STATE_HEADER;
    rfa_real *restrict narrowed = running->narrow;
    if (narrowed) {
        for (ptrdiff_t i = 0; i < F * (d + 1); i++) {
            sum[i] = sum[i] * shrink + (double)delta[i];
            narrowed[i] = (rfa_real)sum[i];
        }
        return;
    }
    for (ptrdiff_t i = 0; i < F * (d + 1); i++) {
        sum[i] = sum[i] * shrink + (double)delta[i];
    }
}

int64_t rfa_quotient(const rfa_reading *reading, const rfa_head *head, ptrdiff_t t, ptrdiff_t rows)
{
    const rfa_real floor = (rfa_real)rfa_feature_floor(head->map);
    const ptrdiff_t d = head->map->width, ld = reading->ld;
    const rfa_real *mask = head->mask + t;
    rfa_real *out = reading->out + t * ld, *den = reading->den + t;
    int64_t guards = 0;
    for (ptrdiff_t i = 0; i < rows; i++) {
        if (!(den[i] > floor)) {
            den[i] = floor;
            guards += mask[i] != 0;
        }
        scale_row(out + i * ld, mask[i] != 0 ? 1 / den[i] : 0, d);
    }
    return guards;
}

void rfa_quotient_backward(rfa_real *restrict a,
                           rfa_real *restrict b,
                           const rfa_real *dout,
                           const rfa_reading *reading,
                           const rfa_head *head,
                           ptrdiff_t t,
                           ptrdiff_t rows,
                           ptrdiff_t step)
{
    const rfa_real floor = (rfa_real)rfa_feature_floor(head->map);
    const ptrdiff_t d = head->map->width, ld = reading->ld;
    const rfa_real *out = reading->out + t * ld, *den = reading->den + t;
    for (ptrdiff_t i = 0; i < rows; i++) {
        const rfa_real inverse = head->mask[t + i] != 0 ? 1 / den[i] : 0;
        if (step != 0) {
            rfa_fetch(dout + (t + step + i) * ld, d);
            rfa_fetch(out + (step + i) * ld, d);
        }
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            a[i * d + j] = dout[(t + i) * ld + j] * inverse;
        }
        b[i] = den[i] <= floor ? 0 : -dot(a + i * d, out + i * ld, d);
    }
}

void rfa_linear_state(double *state, const rfa_head *head, rfa_real *work)
{
    const rfa_feature_map prepared = prepare(head, &work), *map = &prepared;
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, ld = head->ld;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    const ptrdiff_t chunks = (head->rows + chunk - 1) / chunk;
    rfa_real *phi = take(&work, chunk * F), *delta = take(&work, F * (d + 1));
    rfa_real *lambda = rfa_feature_is_weighted(map) ? take(&work, chunk) : NULL;
    double *log_weight = rfa_head_is_weighted(head) ? take_doubles(&work, chunk) : NULL;
    const rfa_running running = {.state = state};
    rfa_state_clear(state, head);
    for (ptrdiff_t c = 0; c < chunks; c++) {
        const ptrdiff_t t = (head->reverse ? chunks - 1 - c : c) * chunk;
        const ptrdiff_t n = least(chunk, head->rows - t);
        const ptrdiff_t step = step_to_next(head, head->reverse, t, n);
        key_features(phi, lambda, head, map, t, n, step, work);
        const double decay = log_weight ? rfa_chunk_leave(log_weight, lambda, head, t, n) : 0;
        rfa_state_add(&running, decay, phi, log_weight, head->v + t * ld, ld, step * ld, NULL, n, F,
                      d, delta);
    }
}

int64_t rfa_linear_read(const rfa_reading *reading,
                        const rfa_head *head,
                        const rfa_real *state,
                        rfa_real *work)
{
    const rfa_feature_map prepared = prepare(head, &work), *map = &prepared;
    const ptrdiff_t F = rfa_feature_count(map), d = map->width;
    const rfa_real *S = state + RFA_STATE_HEADER, *z = S + F * d;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    rfa_real *phi = take(&work, chunk * F);
    int64_t guards = 0;
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t);
        query_features(phi, head, map, t, n, step_to_next(head, false, t, n), work);
        rfa_gemm(RFA_N, RFA_N, n, d, F, 1, phi, F, S, d, 0, reading->out + t * reading->ld,
                 reading->ld);
        for (ptrdiff_t i = 0; i < n; i++) {
            reading->den[t + i] = dot(phi + i * F, z, F);
        }
        guards += rfa_quotient(reading, head, t, n);
    }
    return guards;
}

void rfa_linear_read_backward(const rfa_head_gradient *gradient,
                              double *dstate,
                              const rfa_real *dout,
                              const rfa_reading *reading,
                              const rfa_head *head,
                              const rfa_real *state,
                              rfa_real *work)
{
    const rfa_feature_map prepared = prepare(head, &work), *map = &prepared;
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, ld = head->ld;
    const rfa_real *S = state + RFA_STATE_HEADER, *z = S + F * d;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    rfa_real *phi = take(&work, chunk * F), *dphi = take(&work, chunk * F);
    rfa_real *a = take(&work, chunk * d), *b = take(&work, chunk);
    rfa_real *delta = take(&work, F * (d + 1));
    const rfa_real *S_t = rfa_gemm_transpose(take(&work, F * d), S, d, F, d, chunk);
    const rfa_running running = {.state = dstate};
    memset(dstate, 0, (size_t)rfa_linear_state_size(map) * sizeof *dstate);
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t);
        const ptrdiff_t step = step_to_next(head, false, t, n);
        rfa_quotient_backward(a, b, dout, reading, head, t, n, step);
        query_features(phi, head, map, t, n, step, work);
        rfa_state_add(&running, 0, phi, NULL, a, d, 0, b, n, F, d, delta);
        rfa_gemm_nt(n, F, d, 1, a, d, S, d, S_t, dphi, F);
        for (ptrdiff_t i = 0; i < n; i++) {
            axpy(dphi + i * F, b[i], z, F);
        }
        rfa_features_backward(gradient->q + t * gradient->ld, gradient->ld, &gradient->map, dphi,
                              phi, false, head->q + t * ld, ld, map, n, work);
    }
}

void rfa_linear_state_backward(const rfa_head_gradient *gradient,
                               const rfa_head *head,
                               rfa_real m,
                               const rfa_real *dstate,
                               rfa_real *work)
{
    const rfa_feature_map prepared = prepare(head, &work), *map = &prepared;
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, ld = head->ld, ld_g = gradient->ld;
    const rfa_real *A = dstate + RFA_STATE_HEADER, *c = A + F * d;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    rfa_real *phi = take(&work, chunk * F), *dphi = take(&work, chunk * F);
    const rfa_real *A_t = rfa_gemm_transpose(take(&work, F * d), A, d, F, d, chunk);
    rfa_real *lambda = rfa_feature_is_weighted(map) ? take(&work, chunk) : NULL;
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t);
        const rfa_real *v = head->v + t * ld;
        rfa_real *dv = gradient->v + t * ld_g;
        const ptrdiff_t step = step_to_next(head, false, t, n);
        key_features(phi, lambda, head, map, t, n, step, work);
        rfa_gemm(RFA_N, RFA_N, n, d, F, 1, phi, F, A, d, 0, dv, ld_g);
        rfa_gemm_nt(n, F, d, 1, v, ld, A, d, A_t, dphi, F);
        for (ptrdiff_t i = 0; i < n; i++) {
            if (step != 0) {
                rfa_fetch(v + (step + i) * ld, d);
            }
            axpy(dphi + i * F, 1, c, F);
            if (lambda) {
                const rfa_real weight = (rfa_real)ratio((double)lambda[i], (double)m);
                scale_row(dv + i * ld_g, weight, d);
                scale_row(dphi + i * F, weight, F);
            }
        }
        rfa_features_backward(gradient->k + t * ld_g, ld_g, &gradient->map, dphi, phi, true,
                              head->k + t * ld, ld, map, n, work);
    }
}
