// Linear attention over a feature map with weighted keys (features/map.h), bidirectional, cross and
// causal, with or without decay:
//
//   out_t = phi(q_t)^T S_t / (phi(q_t) . z_t),  S_t = sum_i w_ti phi(k_i) v_i^T,
//   z_t = sum_i w_ti phi(k_i),  log w_ti = log-weight of key i + log-decays between i and t,
//
// the sums over all keys, or over i <= t when causal (i >= t in reverse). Peng et al. 2021, eqs. 5
// and 6; gated, eq. 7: decay log g_t and input log (1 - g_t). These are the parts of one head of
// one segment: what other segments add arrives as a state. Local kernels: no MPI, no allocation.
//
// A state is a scaled element (exchange/element.h) of 2 + F (d + 1) numbers: m, L, then S [F][d],
// then z [F], standing for exp(m) (S, z); its adjoint has the same layout. Without weights and
// decay m = L = 0, so that a plain sum combines them. All logarithms are relative to the largest
// weight that a query sees, which takes no part in derivatives, as it cancels.
//
// Denominators below rfa_feature_floor are clamped to it and pass no gradient; the kernels return
// how many they clamped. Rows with mask 0 add nothing to states, and get out = 0.
#ifndef RFA_ATTENTION_LINEAR_H
#define RFA_ATTENTION_LINEAR_H

#include "features/map.h"

enum { RFA_STATE_HEADER = 2 }; // m and L

// One head of one segment: q, k, v [rows][ld]. A part that a call does not need may be NULL.
typedef struct {
    const rfa_real *q, *k, *v;
    ptrdiff_t ld, rows;
    const rfa_real *mask; // [rows] 1 for a token, 0 for padding
    const rfa_feature_map *map;
    const rfa_real *decay; // [rows] log-decays <= 0, 0 in padding; NULL: none. Causal only
    const rfa_real *input; // [rows] what decay adds to log-weights of keys; NULL: nothing
    bool reverse;          // causal: a token sees itself and later ones
} rfa_head;

// What a read-out leaves for the backward.
typedef struct {
    rfa_real *out; // [rows][ld]
    ptrdiff_t ld;
    rfa_real *den; // [rows] denominators, clamped
    double *scale; // [rows] causal with weights: the logarithm of what out and den are relative to
} rfa_reading;

// Gradients of a head; q, k, v [rows][ld] are overwritten, map accumulates.
typedef struct {
    rfa_real *q, *k, *v;
    ptrdiff_t ld;
    rfa_real *decay, *input; // [rows] overwritten; NULL: not wanted
    rfa_map_gradient map;
} rfa_head_gradient;

// Numbers of a state.
ptrdiff_t rfa_linear_state_size(const rfa_feature_map *map);

// Whether states have to be combined as scaled elements: keys have weights, or states decay.
static inline bool rfa_head_is_weighted(const rfa_head *head)
{
    return head->decay || rfa_feature_is_weighted(head->map);
}

// Elements of work for any call below on segments of up to rows rows.
ptrdiff_t rfa_linear_work(const rfa_feature_map *map, ptrdiff_t rows);

// state (double) = this segment's sum, seen from its end (in reverse: its beginning). 2 rows F d
// flops and the features of k.
void rfa_linear_state(double *state, const rfa_head *head, rfa_real *work);

// Bidirectional and cross: read-out of the total state.
int64_t rfa_linear_read(const rfa_reading *reading,
                        const rfa_head *head,
                        const rfa_real *state,
                        rfa_real *work);

// gradient->q, and dstate (double) = this segment's part of the total's adjoint, a plain sum.
void rfa_linear_read_backward(const rfa_head_gradient *gradient,
                              double *dstate,
                              const rfa_real *dout, // [rows][reading->ld]
                              const rfa_reading *reading,
                              const rfa_head *head,
                              const rfa_real *state,
                              rfa_real *work);

// gradient->k and v, from the total state's m (its first number) and the total's adjoint.
void rfa_linear_state_backward(const rfa_head_gradient *gradient,
                               const rfa_head *head,
                               rfa_real m,
                               const rfa_real *dstate,
                               rfa_real *work);

// Causal: before (double) is the state of all segments before (in reverse: after) this one.
int64_t rfa_causal_read(const rfa_reading *reading,
                        const rfa_head *head,
                        const double *before,
                        rfa_real *work);

// dstate (double) = the adjoint of the state that enters this segment, as far as it is read here.
void rfa_causal_adjoint(double *dstate,
                        const rfa_real *dout,
                        const rfa_reading *reading,
                        const rfa_head *head,
                        rfa_real *work);

// All of gradient; after (double) combines the adjoints of all segments after (in reverse: before)
// this one.
void rfa_causal_backward(const rfa_head_gradient *gradient,
                         const rfa_real *dout,
                         const rfa_reading *reading,
                         const rfa_head *head,
                         const double *before,
                         const double *after,
                         rfa_real *work);

#endif
