// What linear.c (bidirectional, cross) and causal.c share: chunks, work spaces (these also with
// lara.c), states.
#ifndef RFA_ATTENTION_LINEAR_IMPL_H
#define RFA_ATTENTION_LINEAR_IMPL_H

#include "attention/linear.h"

#include <math.h>

// Rows that are worked on at once: their features stay in the second-level cache. In a causal
// chunk every query meets every key, so it is shorter.
enum { CHUNK = 256, CAUSAL_CHUNK = 64 };

static inline ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

// Cuts rows (a multiple of RFA_ROWS) into the fewest even pieces of at most most rows.
static inline ptrdiff_t chunk_rows(ptrdiff_t rows, ptrdiff_t most)
{
    const ptrdiff_t pieces = (rows + most - 1) / most;
    return pieces ? rfa_padded((rows + pieces - 1) / pieces) : RFA_ROWS;
}

// Hands out aligned pieces of a workspace.
static inline rfa_real *take(rfa_real **work, ptrdiff_t n)
{
    rfa_real *piece = *work;
    *work += (n + RFA_ALIGN_ELEMENTS - 1) / RFA_ALIGN_ELEMENTS * RFA_ALIGN_ELEMENTS;
    return piece;
}

enum { DOUBLE = RFA_ALIGN_ELEMENTS / 8 }; // rfa_reals in a double

static inline double *take_doubles(rfa_real **work, ptrdiff_t n)
{
    return (double *)(void *)take(work, n * DOUBLE);
}

// The head's map, made fast for many chunks.
static inline rfa_feature_map prepare(const rfa_head *head, rfa_real **work)
{
    const rfa_feature_map *map = head->map;
    return rfa_feature_prepare(map, take(work, map->projections * map->width),
                               least(head->rows, CHUNK));
}

// Rows from a chunk [t, t + n) to the one that is worked on after it, whose rows are fetched into
// the cache meanwhile; 0 when there is none as long.
static inline ptrdiff_t step_to_next(const rfa_head *head, bool down, ptrdiff_t t, ptrdiff_t n)
{
    const ptrdiff_t step = down ? -n : n;
    return t + step >= 0 && t + step + n <= head->rows ? step : 0;
}

static inline void query_features(rfa_real *phi,
                                  const rfa_head *head,
                                  const rfa_feature_map *map,
                                  ptrdiff_t t,
                                  ptrdiff_t n,
                                  ptrdiff_t step,
                                  rfa_real *work)
{
    rfa_features_forward(phi, NULL, head->q + t * head->ld, head->ld, NULL, map, n, step * head->ld,
                         work);
}

static inline void key_features(rfa_real *phi,
                                rfa_real *lambda,
                                const rfa_head *head,
                                const rfa_feature_map *map,
                                ptrdiff_t t,
                                ptrdiff_t n,
                                ptrdiff_t step,
                                rfa_real *work)
{
    rfa_features_forward(phi, lambda, head->k + t * head->ld, head->ld, head->mask + t, map, n,
                         step * head->ld, work);
}

static inline void narrow(rfa_real *restrict to, const double *restrict from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        to[i] = (rfa_real)from[i];
    }
}

static inline rfa_real dot(const rfa_real *restrict x, const rfa_real *restrict y, ptrdiff_t n)
{
    rfa_real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < n; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

// y += a x
static inline void axpy(rfa_real *restrict y, rfa_real a, const rfa_real *restrict x, ptrdiff_t n)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] += a * x[i];
    }
}

static inline void scale_row(rfa_real *x, rfa_real a, ptrdiff_t n)
{
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        x[i] *= a;
    }
}

// exp(a - b) of logarithms; 0 where a is -infinity, whatever b is.
static inline double ratio(double a, double b)
{
    return isinf(a) ? 0 : exp(a - b);
}

// The logarithmic weight of key i of rows [t, ...) with itself, from the map's lambda (NULL: 0);
// -infinity for padding.
static inline double
own_weight(const rfa_real *lambda, const rfa_head *head, ptrdiff_t t, ptrdiff_t i)
{
    const double input = head->input ? (double)head->input[t + i] : 0;
    return head->mask[t + i] != 0 ? (lambda ? (double)lambda[i] : 0) + input : -INFINITY;
}

// log_weight [n] of the keys of rows [t, t + n) as they are seen where a scan leaves these rows,
// from the map's lambda [n] (NULL: 0); -infinity for padding. Returns the rows' whole log-decay.
double rfa_chunk_leave(
    double *log_weight, const rfa_real *lambda, const rfa_head *head, ptrdiff_t t, ptrdiff_t n);

// Empties a state: zeros, and with weights m = -infinity.
void rfa_state_clear(double *state, const rfa_head *head);

// A state that a scan carries along.
typedef struct {
    double *state;
    bool is_transposed; // its S is [d][F]
    rfa_real *narrow;   // S and z as an addition leaves them; NULL: not wanted
} rfa_running;

// The running state passes a decay and then takes phi^T [x, b], whose rows carry the logarithmic
// weights log_weight (NULL: 0, and no decay). x [rows][ld], b [rows] or NULL for ones; next: the
// distance from x to rows that are wanted next, 0: none. phi is scaled in place; delta [F][d + 1]
// is scratch.
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
                   rfa_real *delta);

// reading's rows hold sums over keys; divides, clamping small denominators, which den then shows as
// exactly the floor. Returns how many were clamped.
int64_t rfa_quotient(const rfa_reading *reading, const rfa_head *head, ptrdiff_t t, ptrdiff_t rows);

// Adjoints of numerator and denominator: a = dout / den, b = -(a . out), 0 where the floor acts.
// step: to the rows that are wanted next, 0: none.
void rfa_quotient_backward(rfa_real *restrict a,
                           rfa_real *restrict b,
                           const rfa_real *dout,
                           const rfa_reading *reading,
                           const rfa_head *head,
                           ptrdiff_t t,
                           ptrdiff_t rows,
                           ptrdiff_t step);

#endif
