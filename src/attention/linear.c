#include "attention/linear.h"

#include "tensor/gemm.h"

#include <stdbool.h>
#include <string.h>

// Rows that are worked on at once: their features stay in the second-level cache. In a causal
// chunk every query meets every key, so it is shorter.
enum { CHUNK = 256, CAUSAL_CHUNK = 64 };

enum { DOUBLE = RFA_ALIGN_ELEMENTS / 8 }; // rfa_reals in a double

// Cuts rows (a multiple of RFA_ROWS) into the fewest even pieces of at most most rows.
static ptrdiff_t chunk_rows(ptrdiff_t rows, ptrdiff_t most)
{
    const ptrdiff_t pieces = (rows + most - 1) / most;
    return pieces ? rfa_padded((rows + pieces - 1) / pieces) : RFA_ROWS;
}

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

// Grows with rows, as the chunks themselves don't: 256 rows are one chunk, 272 are two of 144.
ptrdiff_t rfa_linear_work(const rfa_feature_map *map, ptrdiff_t rows)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, state = F * (d + 1);
    const ptrdiff_t padded = rfa_padded(rows > 0 ? rows : 1);
    const ptrdiff_t chunk = least(padded, CHUNK), causal = least(padded, CAUSAL_CHUNK);
    const ptrdiff_t chunks = (padded + CAUSAL_CHUNK - 1) / CAUSAL_CHUNK;
    const ptrdiff_t map_work = rfa_feature_work(map, chunk);
    const ptrdiff_t linear = 2 * chunk * F + chunk * (d + 1) + state;
    // Causal: features and adjoints of q and k, quotient, scores and their adjoints, two states and
    // a double one, and the state before each chunk for the backward.
    const ptrdiff_t backward =
        4 * causal * F + causal * (d + 1) + 2 * causal * causal + state * (2 + DOUBLE + chunks);
    return map_work + (linear > backward ? linear : backward) + 16 * RFA_ALIGN_ELEMENTS;
}

// Hands out aligned pieces of a workspace.
static rfa_real *take(rfa_real **work, ptrdiff_t n)
{
    rfa_real *piece = *work;
    *work += (n + RFA_ALIGN_ELEMENTS - 1) / RFA_ALIGN_ELEMENTS * RFA_ALIGN_ELEMENTS;
    return piece;
}

static double *take_doubles(rfa_real **work, ptrdiff_t n)
{
    return (double *)(void *)take(work, n * DOUBLE);
}

static void narrow(rfa_real *restrict to, const double *restrict from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = (rfa_real)from[i];
    }
}

static void widen_add(double *restrict to, const rfa_real *restrict from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] += from[i];
    }
}

static rfa_real dot(const rfa_real *restrict x, const rfa_real *restrict y, ptrdiff_t n)
{
    rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

// y += a x
static void axpy(rfa_real *restrict y, rfa_real a, const rfa_real *restrict x, ptrdiff_t n)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

// state += phi^T [x, b]: x [rows][ld], b [rows] or NULL for ones. delta [F][d + 1] is scratch.
static void state_add(double *state,
                      const rfa_real *phi,
                      const rfa_real *x,
                      ptrdiff_t ld,
                      const rfa_real *b,
                      ptrdiff_t rows,
                      ptrdiff_t F,
                      ptrdiff_t d,
                      rfa_real *delta)
{
    rfa_gemm(RFA_T, RFA_N, F, d, rows, 1, phi, F, x, ld, 0, delta, d);
    rfa_real *z = delta + F * d;
    memset(z, 0, (size_t)F * sizeof *z);
    for (ptrdiff_t t = 0; t < rows; t++) {
        axpy(z, b ? b[t] : 1, phi + t * F, F);
    }
    widen_add(state, delta, F * (d + 1));
}

// out and den hold sums over keys; divides, clamping small denominators, which den then shows as
// exactly the floor. Returns how many were clamped.
static int64_t divide(
    rfa_real *out, ptrdiff_t ld, rfa_real *den, const rfa_real *mask, ptrdiff_t rows, ptrdiff_t d)
{
    const rfa_real floor = (rfa_real)RFA_LINEAR_FLOOR;
    int64_t guards = 0;
    for (ptrdiff_t t = 0; t < rows; t++) {
        if (!(den[t] > floor)) {
            den[t] = floor;
            guards += mask[t] != 0;
        }
        const rfa_real inverse = mask[t] != 0 ? 1 / den[t] : 0;
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            out[t * ld + j] *= inverse;
        }
    }
    return guards;
}

// Adjoints of numerator and denominator: a = dout / den, b = -(a . out), 0 where the floor acts.
static void quotient_backward(rfa_real *restrict a,
                              rfa_real *restrict b,
                              const rfa_real *dout,
                              const rfa_real *out,
                              ptrdiff_t ld,
                              const rfa_real *den,
                              const rfa_real *mask,
                              ptrdiff_t rows,
                              ptrdiff_t d)
{
    for (ptrdiff_t t = 0; t < rows; t++) {
        const rfa_real inverse = mask[t] != 0 ? 1 / den[t] : 0;
#pragma omp simd
        for (ptrdiff_t j = 0; j < d; j++) {
            a[t * d + j] = dout[t * ld + j] * inverse;
        }
        const bool clamped = den[t] <= (rfa_real)RFA_LINEAR_FLOOR;
        b[t] = clamped ? 0 : -dot(a + t * d, out + t * ld, d);
    }
}

void rfa_linear_state(double *state,
                      const rfa_head *head,
                      const rfa_feature_map *map,
                      rfa_real *work)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    rfa_real *phi = take(&work, chunk * F), *delta = take(&work, F * (d + 1));
    memset(state, 0, (size_t)(F * (d + 1)) * sizeof *state);
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t), at = t * head->ld;
        rfa_features_forward(phi, head->k + at, head->ld, head->mask + t, map, n, work);
        state_add(state, phi, head->v + at, head->ld, NULL, n, F, d, delta);
    }
}

int64_t rfa_linear_read(rfa_real *out,
                        ptrdiff_t ld_out,
                        rfa_real *den,
                        const rfa_head *head,
                        const rfa_feature_map *map,
                        const rfa_real *state,
                        rfa_real *work)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    rfa_real *phi = take(&work, chunk * F);
    int64_t guards = 0;
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t);
        rfa_real *o = out + t * ld_out;
        rfa_features_forward(phi, head->q + t * head->ld, head->ld, NULL, map, n, work);
        rfa_gemm(RFA_N, RFA_N, n, d, F, 1, phi, F, state, d, 0, o, ld_out);
        for (ptrdiff_t i = 0; i < n; i++) {
            den[t + i] = dot(phi + i * F, state + F * d, F);
        }
        guards += divide(o, ld_out, den + t, head->mask + t, n, d);
    }
    return guards;
}

void rfa_linear_read_backward(rfa_real *dq,
                              ptrdiff_t ld_dq,
                              double *dstate,
                              rfa_real *dsigma,
                              const rfa_real *dout,
                              const rfa_real *out,
                              ptrdiff_t ld_out,
                              const rfa_real *den,
                              const rfa_head *head,
                              const rfa_feature_map *map,
                              const rfa_real *state,
                              rfa_real *work)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    rfa_real *phi = take(&work, chunk * F), *dphi = take(&work, chunk * F);
    rfa_real *a = take(&work, chunk * d), *b = take(&work, chunk);
    rfa_real *delta = take(&work, F * (d + 1));
    memset(dstate, 0, (size_t)(F * (d + 1)) * sizeof *dstate);
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t), at = t * head->ld;
        quotient_backward(a, b, dout + t * ld_out, out + t * ld_out, ld_out, den + t,
                          head->mask + t, n, d);
        rfa_features_forward(phi, head->q + at, head->ld, NULL, map, n, work);
        state_add(dstate, phi, a, d, b, n, F, d, delta);
        if (dq) {
            rfa_gemm(RFA_N, RFA_T, n, F, d, 1, a, d, state, d, 0, dphi, F);
            for (ptrdiff_t i = 0; i < n; i++) {
                axpy(dphi + i * F, b[i], state + F * d, F);
            }
            rfa_features_backward(dq + t * ld_dq, ld_dq, dsigma, dphi, phi, head->q + at, head->ld,
                                  map, n, work);
        }
    }
}

void rfa_linear_state_backward(rfa_real *dk,
                               rfa_real *dv,
                               ptrdiff_t ld_dk,
                               rfa_real *dsigma,
                               const rfa_head *head,
                               const rfa_feature_map *map,
                               const rfa_real *dstate,
                               rfa_real *work)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    rfa_real *phi = take(&work, chunk * F), *dphi = take(&work, chunk * F);
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t), at = t * head->ld;
        rfa_features_forward(phi, head->k + at, head->ld, head->mask + t, map, n, work);
        rfa_gemm(RFA_N, RFA_N, n, d, F, 1, phi, F, dstate, d, 0, dv + t * ld_dk, ld_dk);
        rfa_gemm(RFA_N, RFA_T, n, F, d, 1, head->v + at, head->ld, dstate, d, 0, dphi, F);
        for (ptrdiff_t i = 0; i < n; i++) {
            axpy(dphi + i * F, 1, dstate + F * d, F);
        }
        rfa_features_backward(dk + t * ld_dk, ld_dk, dsigma, dphi, phi, head->k + at, head->ld, map,
                              n, work);
    }
}

// Zeroes what lies above the diagonal of scores [rows][rows].
static void keep_lower(rfa_real *scores, ptrdiff_t rows)
{
    for (ptrdiff_t t = 0; t < rows; t++) {
        memset(scores + t * rows + t + 1, 0, (size_t)(rows - t - 1) * sizeof *scores);
    }
}

int64_t rfa_causal_read(rfa_real *out,
                        ptrdiff_t ld_out,
                        rfa_real *den,
                        const rfa_head *head,
                        const rfa_feature_map *map,
                        const double *before,
                        rfa_real *work)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, size = F * (d + 1);
    const ptrdiff_t chunk = chunk_rows(head->rows, CAUSAL_CHUNK), ld = head->ld;
    rfa_real *phi_q = take(&work, chunk * F), *phi_k = take(&work, chunk * F);
    rfa_real *scores = take(&work, chunk * chunk), *state = take(&work, size);
    rfa_real *delta = take(&work, size);
    double *running = take_doubles(&work, size);
    int64_t guards = 0;
    memcpy(running, before, (size_t)size * sizeof *running);
    for (ptrdiff_t t = 0; t < head->rows; t += chunk) {
        const ptrdiff_t n = least(chunk, head->rows - t), at = t * ld;
        rfa_real *o = out + t * ld_out;
        narrow(state, running, size);
        rfa_features_forward(phi_q, head->q + at, ld, NULL, map, n, work);
        rfa_features_forward(phi_k, head->k + at, ld, head->mask + t, map, n, work);
        rfa_gemm(RFA_N, RFA_T, n, n, F, 1, phi_q, F, phi_k, F, 0, scores, n);
        keep_lower(scores, n);
        rfa_gemm(RFA_N, RFA_N, n, d, F, 1, phi_q, F, state, d, 0, o, ld_out);
        rfa_gemm(RFA_N, RFA_N, n, d, n, 1, scores, n, head->v + at, ld, 1, o, ld_out);
        for (ptrdiff_t i = 0; i < n; i++) {
            rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
            for (ptrdiff_t j = 0; j < n; j++) {
                sum += scores[i * n + j];
            }
            den[t + i] = sum + dot(phi_q + i * F, state + F * d, F);
        }
        guards += divide(o, ld_out, den + t, head->mask + t, n, d);
        if (t + n < head->rows) {
            state_add(running, phi_k, head->v + at, ld, NULL, n, F, d, delta);
        }
    }
    return guards;
}

void rfa_causal_backward(rfa_real *dq,
                         rfa_real *dk,
                         rfa_real *dv,
                         ptrdiff_t ld_dq,
                         rfa_real *dsigma,
                         const rfa_real *dout,
                         const rfa_real *out,
                         ptrdiff_t ld_out,
                         const rfa_real *den,
                         const rfa_head *head,
                         const rfa_feature_map *map,
                         const double *before,
                         const double *after,
                         rfa_real *work)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, size = F * (d + 1), ld = head->ld;
    const ptrdiff_t chunk = chunk_rows(head->rows, CAUSAL_CHUNK);
    const ptrdiff_t chunks = (head->rows + chunk - 1) / chunk;
    rfa_real *phi_q = take(&work, chunk * F), *phi_k = take(&work, chunk * F);
    rfa_real *dphi_q = take(&work, chunk * F), *dphi_k = take(&work, chunk * F);
    rfa_real *scores = take(&work, chunk * chunk), *dscores = take(&work, chunk * chunk);
    rfa_real *a = take(&work, chunk * d), *b = take(&work, chunk);
    rfa_real *delta = take(&work, size), *dstate = take(&work, size);
    rfa_real *states = take(&work, chunks * size);
    double *running = take_doubles(&work, size);

    // The state before each chunk.
    memcpy(running, before, (size_t)size * sizeof *running);
    for (ptrdiff_t c = 0; c < chunks; c++) {
        const ptrdiff_t t = c * chunk, n = least(chunk, head->rows - t), at = t * ld;
        narrow(states + c * size, running, size);
        if (c + 1 < chunks) {
            rfa_features_forward(phi_k, head->k + at, ld, head->mask + t, map, n, work);
            state_add(running, phi_k, head->v + at, ld, NULL, n, F, d, delta);
        }
    }
    // Backwards, with the adjoint of the state after each chunk.
    memcpy(running, after, (size_t)size * sizeof *running);
    for (ptrdiff_t c = chunks - 1; c >= 0; c--) {
        const ptrdiff_t t = c * chunk, n = least(chunk, head->rows - t), at = t * ld;
        const rfa_real *state = states + c * size, *v = head->v + at;
        rfa_real *dv_c = dv + t * ld_dq;
        narrow(dstate, running, size);
        quotient_backward(a, b, dout + t * ld_out, out + t * ld_out, ld_out, den + t,
                          head->mask + t, n, d);
        rfa_features_forward(phi_q, head->q + at, ld, NULL, map, n, work);
        rfa_features_forward(phi_k, head->k + at, ld, head->mask + t, map, n, work);
        rfa_gemm(RFA_N, RFA_T, n, n, F, 1, phi_q, F, phi_k, F, 0, scores, n);
        keep_lower(scores, n);
        for (ptrdiff_t i = 0; i < n; i++) { // dscores = a v^T + b 1^T
            for (ptrdiff_t j = 0; j < n; j++) {
                dscores[i * n + j] = b[i];
            }
        }
        rfa_gemm(RFA_N, RFA_T, n, n, d, 1, a, d, v, ld, 1, dscores, n);
        keep_lower(dscores, n);

        rfa_gemm(RFA_N, RFA_T, n, F, d, 1, a, d, state, d, 0, dphi_q, F);
        rfa_gemm(RFA_N, RFA_N, n, F, n, 1, dscores, n, phi_k, F, 1, dphi_q, F);
        rfa_gemm(RFA_N, RFA_T, n, F, d, 1, v, ld, dstate, d, 0, dphi_k, F);
        rfa_gemm(RFA_T, RFA_N, n, F, n, 1, dscores, n, phi_q, F, 1, dphi_k, F);
        for (ptrdiff_t i = 0; i < n; i++) {
            axpy(dphi_q + i * F, b[i], state + F * d, F);
            axpy(dphi_k + i * F, 1, dstate + F * d, F);
        }
        rfa_gemm(RFA_N, RFA_N, n, d, F, 1, phi_k, F, dstate, d, 0, dv_c, ld_dq);
        rfa_gemm(RFA_T, RFA_N, n, d, n, 1, scores, n, a, d, 1, dv_c, ld_dq);
        if (c > 0) {
            state_add(running, phi_q, a, d, b, n, F, d, delta);
        }
        rfa_features_backward(dq + t * ld_dq, ld_dq, dsigma, dphi_q, phi_q, head->q + at, ld, map,
                              n, work);
        rfa_features_backward(dk + t * ld_dq, ld_dq, dsigma, dphi_k, phi_k, head->k + at, ld, map,
                              n, work);
    }
}
