// Causal linear attention, with weights and decay. "Entry" is the side of a chunk from which the
// scan comes: the first row, in reverse the last one; "exit" is the other side.
#include "attention/linear_impl.h"

#include "tensor/fetch.h"
#include "tensor/gemm.h"
#include "tensor/vmath.h"

#include <string.h>

// The logarithms of one chunk of a weighted head.
typedef struct {
    double *leave;     // [n] of keys, seen from the exit
    double *enter;     // [n] of keys, seen from the entry: of rows up to the key's own alone
    double *decay;     // [n] from the entry up to and with a row
    double *most;      // [n] the largest weight that a query sees, as seen from the entry
    double passed;     // the chunk's whole decay
    rfa_real *weights; // [n][n] of query, key
    rfa_real *entry;   // [n] of what entered, for each query
} logarithms;

static logarithms take_logarithms(rfa_real **work, ptrdiff_t chunk)
{
    return (logarithms){
        .leave = take_doubles(work, chunk),
        .enter = take_doubles(work, chunk),
        .decay = take_doubles(work, chunk),
        .most = take_doubles(work, chunk),
        .weights = take(work, chunk * chunk),
        .entry = take(work, chunk),
    };
}

// The keys that query t of n sees: [first, end).
typedef struct {
    ptrdiff_t first, end;
} range;

static range seen(const rfa_head *head, ptrdiff_t t, ptrdiff_t n)
{
    return head->reverse ? (range){t, n} : (range){0, t + 1};
}

// Row number k from the entry of a chunk of n.
static ptrdiff_t from_entry(const rfa_head *head, ptrdiff_t k, ptrdiff_t n)
{
    return head->reverse ? n - 1 - k : k;
}

// Fills l for rows [t, t + n), which a state of scale m enters.
static void weigh(
    logarithms *l, const rfa_head *head, const rfa_real *lambda, double m, ptrdiff_t t, ptrdiff_t n)
{
    l->passed = rfa_chunk_leave(l->leave, lambda, head, t, n);
    double decay = 0, most = m;
    for (ptrdiff_t k = 0; k < n; k++) {
        const ptrdiff_t i = from_entry(head, k, n);
        decay += head->decay ? (double)head->decay[t + i] : 0;
        l->enter[i] = own_weight(lambda, head, t, i) - decay;
        most = l->enter[i] > most ? l->enter[i] : most;
        l->decay[i] = decay;
        l->most[i] = most;
        l->entry[i] = (rfa_real)ratio(m, most);
        rfa_real *row = l->weights + i * n;
        const range keys = seen(head, i, n);
        for (ptrdiff_t j = keys.first; j < keys.end; j++) {
            row[j] = isinf(most) ? (rfa_real)-INFINITY : (rfa_real)(l->enter[j] - most);
        }
        rfa_vexp(row + keys.first, row + keys.first, keys.end - keys.first);
    }
}

// Products of a chunk's queries and keys are made in two halves of rows, which leave out most of
// what queries don't see.
typedef struct {
    ptrdiff_t row, rows, first, count; // of the other side: [first, first + count)
} half;

// Half 0 or 1 of n queries (or keys) and the keys that they see (or queries that see them).
static half half_of(int which, bool of_queries, const rfa_head *head, ptrdiff_t n)
{
    const ptrdiff_t middle = rfa_padded(n / 2);
    const bool early = of_queries != head->reverse; // the first half meets itself alone
    return which == 0 ? (half){0, middle, 0, early ? middle : n}
                      : (half){middle, n - middle, early ? 0 : middle, early ? n : n - middle};
}

// scores [n][n] = x y^T where queries see keys, and elsewhere what it was. scratch [n][width].
static void score_seen(rfa_real *scores,
                       const rfa_real *x,
                       const rfa_real *y,
                       ptrdiff_t ld_y,
                       ptrdiff_t width,
                       const rfa_head *head,
                       ptrdiff_t n,
                       rfa_real *scratch)
{
    for (int which = 0; which < 2; which++) {
        const half h = half_of(which, false, head, n);
        if (h.rows > 0) {
            const rfa_real *keys = y + h.row * ld_y;
            rfa_gemm_nt(h.count, h.rows, width, 1, x + h.first * width, width, keys, ld_y,
                        rfa_gemm_transpose(scratch, keys, ld_y, h.rows, width, h.count),
                        scores + h.first * n + h.row, n);
        }
    }
}

// to [n][width] += scores x (of queries) or scores^T x (of keys).
static void add_seen(rfa_real *to,
                     ptrdiff_t ld_to,
                     rfa_transpose op,
                     const rfa_real *scores,
                     const rfa_real *x,
                     ptrdiff_t ld_x,
                     ptrdiff_t width,
                     const rfa_head *head,
                     ptrdiff_t n)
{
    for (int which = 0; which < 2; which++) {
        const half h = half_of(which, op == RFA_N, head, n);
        const ptrdiff_t at = op == RFA_N ? h.row * n + h.first : h.first * n + h.row;
        if (h.rows > 0) {
            rfa_gemm(op, RFA_N, h.rows, width, h.count, 1, scores + at, n, x + h.first * ld_x, ld_x,
                     1, to + h.row * ld_to, ld_to);
        }
    }
}

// Leaves of scores [n][n] what queries see, plus b [n] of the query (NULL: 0), with their weights.
static void keep_seen(
    rfa_real *scores, const rfa_real *b, const rfa_head *head, const logarithms *l, ptrdiff_t n)
{
    for (ptrdiff_t t = 0; t < n; t++) {
        const range keys = seen(head, t, n);
        rfa_real *restrict row = scores + t * n;
        const rfa_real add = b ? b[t] : 0;
        memset(row, 0, (size_t)keys.first * sizeof *row);
        memset(row + keys.end, 0, (size_t)(n - keys.end) * sizeof *row);
        if (l) {
            const rfa_real *restrict weights = l->weights + t * n;
#pragma omp simd
            for (ptrdiff_t j = keys.first; j < keys.end; j++) {
                row[j] = (row[j] + add) * weights[j];
            }
        } else if (b) {
#pragma omp simd
            for (ptrdiff_t j = keys.first; j < keys.end; j++) {
                row[j] += add;
            }
        }
    }
}

int64_t rfa_causal_read(const rfa_reading *reading,
                        const rfa_head *head,
                        const double *before,
                        rfa_real *work)
{
    const rfa_feature_map prepared = prepare(head, &work), *map = &prepared;
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, size = rfa_linear_state_size(map);
    const ptrdiff_t chunk = chunk_rows(head->rows, CAUSAL_CHUNK), ld = head->ld;
    const ptrdiff_t chunks = (head->rows + chunk - 1) / chunk;
    const bool weighted = rfa_head_is_weighted(head);
    rfa_real *phi_q = take(&work, chunk * F), *phi_k = take(&work, chunk * F);
    rfa_real *scratch = take(&work, chunk * F), *scores = take(&work, chunk * chunk);
    rfa_real *S = take(&work, size), *z = S + F * d, *delta = take(&work, size);
    rfa_real *lambda = rfa_feature_is_weighted(map) ? take(&work, chunk) : NULL;
    const rfa_running running = {.state = take_doubles(&work, size), .narrow = S};
    logarithms l = {0};
    if (weighted) {
        l = take_logarithms(&work, chunk);
    }
    int64_t guards = 0;
    memcpy(running.state, before, (size_t)size * sizeof *before);
    narrow(S, before + RFA_STATE_HEADER, F * (d + 1));
    for (ptrdiff_t c = 0; c < chunks; c++) {
        const ptrdiff_t t = from_entry(head, c, chunks) * chunk;
        const ptrdiff_t n = least(chunk, head->rows - t), at = t * ld;
        rfa_real *o = reading->out + t * reading->ld;
        const ptrdiff_t step = step_to_next(head, head->reverse, t, n);
        query_features(phi_q, head, map, t, n, step, work);
        key_features(phi_k, lambda, head, map, t, n, step, work);
        score_seen(scores, phi_q, phi_k, F, F, head, n, scratch);
        if (weighted) {
            weigh(&l, head, lambda, running.state[0], t, n);
        }
        keep_seen(scores, NULL, head, weighted ? &l : NULL, n);
        rfa_gemm(RFA_N, RFA_N, n, d, F, 1, phi_q, F, S, d, 0, o, reading->ld);
        for (ptrdiff_t i = 0; i < n; i++) {
            const range keys = seen(head, i, n);
            rfa_real sum = 0, entered = dot(phi_q + i * F, z, F);
#pragma omp simd reduction(+ : sum)
            for (ptrdiff_t j = keys.first; j < keys.end; j++) {
                sum += scores[i * n + j];
            }
            if (weighted) {
                scale_row(o + i * reading->ld, l.entry[i], d);
                entered *= l.entry[i];
                reading->scale[t + i] = isinf(l.most[i]) ? 0 : l.most[i] + l.decay[i];
            }
            reading->den[t + i] = sum + entered;
        }
        add_seen(o, reading->ld, RFA_N, scores, head->v + at, ld, d, head, n);
        guards += rfa_quotient(reading, head, t, n);
        if (c + 1 < chunks) {
            rfa_state_add(&running, l.passed, phi_k, weighted ? l.leave : NULL, head->v + at, ld,
                          step * ld, NULL, n, F, d, delta);
        }
    }
    return guards;
}

// log_weight [n] of queries in the adjoint of what entered the chunk; returns the chunk's decay.
static double adjoint_weights(
    double *log_weight, const rfa_reading *reading, const rfa_head *head, ptrdiff_t t, ptrdiff_t n)
{
    double decay = 0;
    for (ptrdiff_t k = 0; k < n; k++) {
        const ptrdiff_t i = from_entry(head, k, n);
        decay += head->decay ? (double)head->decay[t + i] : 0;
        log_weight[i] = head->mask[t + i] != 0 ? decay - reading->scale[t + i] : -INFINITY;
    }
    return decay;
}

void rfa_causal_adjoint(double *dstate,
                        const rfa_real *dout,
                        const rfa_reading *reading,
                        const rfa_head *head,
                        rfa_real *work)
{
    const rfa_feature_map prepared = prepare(head, &work), *map = &prepared;
    const ptrdiff_t F = rfa_feature_count(map), d = map->width;
    const ptrdiff_t chunk = chunk_rows(head->rows, CHUNK);
    const ptrdiff_t chunks = (head->rows + chunk - 1) / chunk;
    const bool weighted = rfa_head_is_weighted(head);
    rfa_real *phi = take(&work, chunk * F), *delta = take(&work, F * (d + 1));
    rfa_real *a = take(&work, chunk * d), *b = take(&work, chunk);
    double *log_weight = weighted ? take_doubles(&work, chunk) : NULL;
    const rfa_running running = {.state = dstate};
    rfa_state_clear(dstate, head);
    for (ptrdiff_t c = 0; c < chunks; c++) {
        const ptrdiff_t t = from_entry(head, chunks - 1 - c, chunks) * chunk;
        const ptrdiff_t n = least(chunk, head->rows - t);
        const ptrdiff_t step = step_to_next(head, !head->reverse, t, n);
        rfa_quotient_backward(a, b, dout, reading, head, t, n, step);
        query_features(phi, head, map, t, n, step, work);
        const double decay = weighted ? adjoint_weights(log_weight, reading, head, t, n) : 0;
        rfa_state_add(&running, decay, phi, log_weight, a, d, 0, b, n, F, d, delta);
    }
}

// to = from with S in transpose, also in narrow (without m and L). The backward multiplies by S^T,
// and BLAS is slower with transposed right-hand sides.
static void enter_transposed(rfa_running *to, const double *from, ptrdiff_t F, ptrdiff_t d)
{
    enum { STRIP = 8 };
    const double *restrict S = from + RFA_STATE_HEADER;
    double *restrict T = to->state + RFA_STATE_HEADER;
    to->state[0] = from[0];
    to->state[1] = from[1];
    for (ptrdiff_t f = 0; f < F; f += STRIP) {
        const ptrdiff_t n = least(STRIP, F - f);
        for (ptrdiff_t j = 0; j < d; j++) {
            for (ptrdiff_t i = 0; i < n; i++) {
                T[j * F + f + i] = S[(f + i) * d + j];
            }
        }
    }
    memcpy(T + F * d, S + F * d, (size_t)F * sizeof *T);
    to->is_transposed = true;
    narrow(to->narrow, T, F * (d + 1));
}

// The state before each chunk, numbered from the entry, and the one after the last: states [chunks
// + 1][F (d + 1)] of S^T and z, m [chunks + 1] their scales.
static void states_forward(rfa_real *states,
                           double *m,
                           rfa_running *running,
                           const double *before,
                           const rfa_head *head,
                           const rfa_feature_map *map,
                           rfa_real *phi,
                           rfa_real *lambda,
                           double *leave,
                           rfa_real *delta,
                           rfa_real *work)
{
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, size = F * (d + 1);
    const ptrdiff_t chunk = chunk_rows(head->rows, CAUSAL_CHUNK), ld = head->ld;
    const ptrdiff_t chunks = (head->rows + chunk - 1) / chunk;
    running->narrow = states;
    enter_transposed(running, before, F, d);
    m[0] = running->state[0];
    for (ptrdiff_t c = 0; c < chunks; c++) {
        if (c + 1 == chunks && !head->decay) {
            break; // the last one is for decays only
        }
        const ptrdiff_t t = from_entry(head, c, chunks) * chunk;
        const ptrdiff_t n = least(chunk, head->rows - t), at = t * ld;
        const ptrdiff_t step = step_to_next(head, head->reverse, t, n);
        key_features(phi, lambda, head, map, t, n, step, work);
        const double passed = leave ? rfa_chunk_leave(leave, lambda, head, t, n) : 0;
        running->narrow = states + (c + 1) * size;
        rfa_state_add(running, passed, phi, leave, head->v + at, ld, step * ld, NULL, n, F, d,
                      delta);
        m[c + 1] = running->state[0];
    }
}

// y = (y + a x) factor
static void add_scaled(
    rfa_real *restrict y, rfa_real a, const rfa_real *restrict x, rfa_real factor, ptrdiff_t n)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] = (y[i] + a * x[i]) * factor;
    }
}

// Gradients of log-decays and inputs of rows [t, t + n). A log-decay at row j scales what passes
// from keys before j to queries at or after it. crossing: that sum at the exit.
static void decay_backward(const rfa_head_gradient *gradient,
                           const rfa_head *head,
                           const rfa_real *phi_q,
                           const rfa_real *dphi_q,
                           const rfa_real *phi_k,
                           const rfa_real *dphi_k,
                           double crossing,
                           ptrdiff_t t,
                           ptrdiff_t n)
{
    const ptrdiff_t F = rfa_feature_count(head->map);
    for (ptrdiff_t k = n - 1; k >= 0; k--) {
        const ptrdiff_t i = from_entry(head, k, n);
        const rfa_real query = dot(phi_q + i * F, dphi_q + i * F, F);
        const rfa_real key = dot(phi_k + i * F, dphi_k + i * F, F);
        crossing += (double)query - (double)key;
        gradient->decay[t + i] = head->mask[t + i] != 0 ? (rfa_real)crossing : 0;
        gradient->input[t + i] = key;
    }
}

void rfa_causal_backward(const rfa_head_gradient *gradient,
                         const rfa_real *dout,
                         const rfa_reading *reading,
                         const rfa_head *head,
                         const double *before,
                         const double *after,
                         rfa_real *work)
{
    const rfa_feature_map prepared = prepare(head, &work), *map = &prepared;
    const ptrdiff_t F = rfa_feature_count(map), d = map->width, size = F * (d + 1);
    const ptrdiff_t chunk = chunk_rows(head->rows, CAUSAL_CHUNK), ld = head->ld;
    const ptrdiff_t chunks = (head->rows + chunk - 1) / chunk, ld_g = gradient->ld;
    const bool weighted = rfa_head_is_weighted(head);
    rfa_real *phi_q = take(&work, chunk * F), *phi_k = take(&work, chunk * F);
    rfa_real *dphi_q = take(&work, chunk * F), *dphi_k = take(&work, chunk * F);
    rfa_real *scratch = take(&work, (chunk > F ? chunk : F) * (F > d ? F : d));
    rfa_real *scores = take(&work, chunk * chunk), *dscores = take(&work, chunk * chunk);
    rfa_real *a = take(&work, chunk * d), *b = take(&work, chunk);
    rfa_real *delta = take(&work, size), *A = take(&work, size), *A_z = A + F * d;
    rfa_real *states = take(&work, (chunks + 1) * size);
    rfa_real *lambda = rfa_feature_is_weighted(map) ? take(&work, chunk) : NULL;
    double *m = take_doubles(&work, chunks + 1);
    double *query_weight = weighted ? take_doubles(&work, chunk) : NULL;
    rfa_running running = {.state = take_doubles(&work, RFA_STATE_HEADER + size)};
    logarithms l = {0};
    if (weighted) {
        l = take_logarithms(&work, chunk);
    }
    states_forward(states, m, &running, before, head, map, phi_k, lambda, l.leave, delta, work);
    // From the exit to the entry, with the adjoint A^T of the state after each chunk.
    running.narrow = A;
    enter_transposed(&running, after, F, d);
    for (ptrdiff_t c = chunks - 1; c >= 0; c--) {
        const ptrdiff_t t = from_entry(head, c, chunks) * chunk;
        const ptrdiff_t n = least(chunk, head->rows - t), at = t * ld;
        const rfa_real *S = states + c * size, *z = S + F * d;
        const rfa_real *v = head->v + at;
        rfa_real *dv = gradient->v + t * ld_g;
        const double scale = running.state[0];
        const ptrdiff_t step = step_to_next(head, !head->reverse, t, n);
        rfa_quotient_backward(a, b, dout, reading, head, t, n, step);
        query_features(phi_q, head, map, t, n, step, work);
        key_features(phi_k, lambda, head, map, t, n, step, work);
        if (weighted) {
            weigh(&l, head, lambda, m[c], t, n);
        }
        const logarithms *weights = weighted ? &l : NULL;
        score_seen(scores, phi_q, phi_k, F, F, head, n, scratch);
        keep_seen(scores, NULL, head, weights, n);
        score_seen(dscores, a, v, ld, d, head, n, scratch);
        keep_seen(dscores, b, head, weights, n); // a v^T + b 1^T

        // What entered and what leaves the chunk, then what stays inside.
        rfa_gemm(RFA_N, RFA_N, n, F, d, 1, a, d, S, F, 0, dphi_q, F);
        rfa_gemm(RFA_N, RFA_N, n, F, d, 1, v, ld, A, F, 0, dphi_k, F);
        rfa_gemm_nt(n, d, F, 1, phi_k, F, A, F, rfa_gemm_transpose(scratch, A, F, d, F, n), dv,
                    ld_g);
        for (ptrdiff_t i = 0; i < n; i++) {
            const rfa_real leave = weighted ? (rfa_real)ratio(l.leave[i], -scale) : 1;
            if (step != 0) {
                rfa_fetch(v + (step + i) * ld, d);
            }
            add_scaled(dphi_q + i * F, b[i], z, weighted ? l.entry[i] : 1, F);
            add_scaled(dphi_k + i * F, 1, A_z, leave, F);
            if (weighted) {
                scale_row(dv + i * ld_g, leave, d);
            }
        }
        add_seen(dphi_q, F, RFA_N, dscores, phi_k, F, F, head, n);
        add_seen(dphi_k, F, RFA_T, dscores, phi_q, F, F, head, n);
        add_seen(dv, ld_g, RFA_T, scores, a, d, d, head, n);
        if (gradient->decay) {
            const double through = isinf(m[c + 1]) || isinf(scale)
                                       ? 0
                                       : exp(m[c + 1] + scale) * (double)dot(S + size, A, size);
            decay_backward(gradient, head, phi_q, dphi_q, phi_k, dphi_k, through, t, n);
        }
        rfa_features_backward(gradient->q + t * ld_g, ld_g, &gradient->map, dphi_q, phi_q, false,
                              head->q + at, ld, map, n, work);
        rfa_features_backward(gradient->k + t * ld_g, ld_g, &gradient->map, dphi_k, phi_k, true,
                              head->k + at, ld, map, n, work);
        if (c > 0) {
            const double decay = weighted ? adjoint_weights(query_weight, reading, head, t, n) : 0;
            rfa_state_add(&running, decay, phi_q, query_weight, a, d, 0, b, n, F, d, delta);
        }
    }
}
