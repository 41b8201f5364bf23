// Linear attention over a feature map, bidirectional and causal (Peng et al. 2021, eqs. 5 and 6):
//   out_t = phi(q_t)^T S / (phi(q_t) . z),  S = sum_i phi(k_i) v_i^T,  z = sum_i phi(k_i),
// over all tokens, or over i <= t when causal. These are the parts of one head of one segment: what
// other segments add arrives as a state. Local kernels: no MPI, no allocation.
//
// A state is F (d + 1) numbers: S [F][d], then z [F]; its adjoint has the same layout. Denominators
// below RFA_LINEAR_FLOOR are clamped to it and pass no gradient; the kernels return how many they
// clamped. Rows with mask 0 add nothing to states, and get out = 0.
#ifndef RFA_ATTENTION_LINEAR_H
#define RFA_ATTENTION_LINEAR_H

#include "features/map.h"

// One head of one segment: q, k, v [rows][ld].
typedef struct {
    const rfa_real *q, *k, *v;
    ptrdiff_t ld, rows;
    const rfa_real *mask; // [rows] 1 for a token, 0 for padding
} rfa_head;

static inline ptrdiff_t rfa_linear_state_size(const rfa_feature_map *map)
{
    return rfa_feature_count(map) * (map->width + 1);
}

// The floor, in units where |phi| = 1: that of the authors' code (0.1 over a feature scale of
// 0.1^2, at 64 projections). Sums over many keys of unit norm stay far above it; it acts where the
// estimate is noise, and keeps a small or negative denominator from amplifying it.
#define RFA_LINEAR_FLOOR 0.16

// Elements of work for any call below on segments of up to rows rows.
ptrdiff_t rfa_linear_work(const rfa_feature_map *map, ptrdiff_t rows);

// state (double) = this segment's sum. 2 rows F d flops and the features of k.
void rfa_linear_state(double *state,
                      const rfa_head *head,
                      const rfa_feature_map *map,
                      rfa_real *work);

// Bidirectional read-out of the total state. out [rows][ld_out]; den [rows] saved.
int64_t rfa_linear_read(rfa_real *out,
                        ptrdiff_t ld_out,
                        rfa_real *den,
                        const rfa_head *head,
                        const rfa_feature_map *map,
                        const rfa_real *state,
                        rfa_real *work);

// dq [rows][ld_dq] overwritten, dstate (double) = this segment's part of the total's adjoint,
// dsigma accumulates. dq NULL: the adjoint alone (causal, before the exchange; state is not used).
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
                              rfa_real *work);

// dk, dv [rows][ld_dk] overwritten, from the adjoint of the total; dsigma accumulates.
void rfa_linear_state_backward(rfa_real *dk,
                               rfa_real *dv,
                               ptrdiff_t ld_dk,
                               rfa_real *dsigma,
                               const rfa_head *head,
                               const rfa_feature_map *map,
                               const rfa_real *dstate,
                               rfa_real *work);

// Causal: before (double) is the sum over all earlier segments.
int64_t rfa_causal_read(rfa_real *out,
                        ptrdiff_t ld_out,
                        rfa_real *den,
                        const rfa_head *head,
                        const rfa_feature_map *map,
                        const double *before,
                        rfa_real *work);

// dq, dk, dv [rows][ld_dq] overwritten; after (double) is the sum of the adjoints of all later
// segments.
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
                         rfa_real *work);

#endif
