// Linear randomised attention: Zheng, Wang, Kong, "Linear complexity randomized self-attention
// mechanism", ICML 2022. Softmax attention as self-normalised multiple importance sampling from C
// Gaussians N(mu_c, I) around landmarks, mu_c = q~_c + k~_c, with draws samples w_j of each. In
// tempered coordinates (q, k, q~, k~ times d^(-1/4)), xi(x, w) = exp(w . x - |x|^2 / 2):
//
//   f_j   = sum_m xi(k_m, w_j) v_m / sum_m xi(k_m, w_j),   lse_j = log sum_m xi(k_m, w_j)
//   out_n = sum_j p_nj f_j,   p_nj = softmax_j(log alpha_nj + q_n . w_j + lse_j - own_j)
//   own_j = log xi(mu_c(j), w_j),   pool_j = log sum_c xi(mu_c, w_j)
//
//   weights   alpha_nj
//   balance   b_j = exp(own_j - pool_j), the balance heuristic
//   specific  max(b_j + a (r_nc - 1 / C), 1e-8), r_nc = softmax_c(q_n . q~_c), a: specificity; no
//             gradient where the maximum acts
//   biased    b_j exp(q_n . mu_c)
//
// w_j = mu_c + eps_j is reparameterised: gradients reach mu. These are the parts of one head of one
// segment (keys, read and their backwards) and of one head of one example (the others), in the
// order of a pass. Local kernels: no MPI, no allocation. Rows with mask 0 hold finite numbers, add
// nothing and get out = 0.
#ifndef RFA_ATTENTION_LARA_H
#define RFA_ATTENTION_LARA_H

#include "attention/linear.h"
#include "base/kinds.h"
#include "rng/rng.h"

#include <stdbool.h>

typedef struct {
    rfa_weights_kind weights;
    double specificity;
    ptrdiff_t d, landmarks, draws; // C of this example, samples a landmark
    bool antithetic;               // draws 2 i and 2 i + 1 have opposite noise
} rfa_lara;

// J: sample j is draw j / C of landmark j % C.
static inline ptrdiff_t rfa_lara_count(const rfa_lara *lara)
{
    return lara->landmarks * lara->draws;
}

// The samples of one head of one example, views of one array of rfa_lara_samples_size elements.
// [C] and [J] are padded by rfa_padded; padding is 0.
typedef struct {
    rfa_real *q_mean, *mu; // [C][d] q~, mu
    rfa_real *w, *f;       // [J][d]
    rfa_real *own, *pool;  // [J]
    rfa_real *lse;         // [J]
} rfa_lara_samples;

ptrdiff_t rfa_lara_samples_size(const rfa_lara *lara);
rfa_lara_samples rfa_lara_samples_at(rfa_real *values, const rfa_lara *lara);

// Their adjoints, likewise.
typedef struct {
    rfa_real *q_mean, *mu; // [C][d] not through w
    rfa_real *w, *f;       // [J][d] w: not through the keys
    rfa_real *score; // [J] what each w_j . k_m - |k_m|^2 / 2 gets beside f_j's part v_m . df_j
} rfa_lara_adjoint;

ptrdiff_t rfa_lara_adjoint_size(const rfa_lara *lara);
rfa_lara_adjoint rfa_lara_adjoint_at(rfa_real *values, const rfa_lara *lara);

// Elements of work for any call below on segments of up to rows rows.
ptrdiff_t rfa_lara_work(const rfa_lara *lara, ptrdiff_t rows);

// Standard normal numbers of a stream from number first on (even), as eps in the order [draw or
// pair of draws][C][d].
typedef struct {
    rfa_rng stream;
    uint64_t first;
} rfa_lara_noise;

// q_mean, mu, w, own, pool from means of q and k [C][ld], not tempered. noise NULL: eps = 0.
// 2 J C d flops.
void rfa_lara_propose(const rfa_lara_samples *samples,
                      const rfa_lara *lara,
                      const double *q_means,
                      const double *k_means,
                      ptrdiff_t ld,
                      const rfa_lara_noise *noise,
                      rfa_real *work);

// Numbers of a scaled element (exchange/element.h): m, 0, S [d], z, which stand for exp(m) times
// (sum_m xi(k_m, w_j) v_m, sum_m xi(k_m, w_j)).
static inline ptrdiff_t rfa_lara_unit(ptrdiff_t d)
{
    return d + 3;
}

// elements [J][unit] of this segment's keys. 4 rows J d flops.
void rfa_lara_keys(double *elements,
                   const rfa_lara_samples *samples,
                   const rfa_lara *lara,
                   const rfa_head *head,
                   rfa_real *work);

// f and lse from the elements' total.
void rfa_lara_collect(const rfa_lara_samples *samples,
                      const rfa_lara *lara,
                      const double *elements);

// out [rows][ld_out]. 4 rows J d flops, specific weights 2 rows C d more.
void rfa_lara_read(rfa_real *out,
                   ptrdiff_t ld_out,
                   const rfa_lara_samples *samples,
                   const rfa_lara *lara,
                   const rfa_head *head,
                   rfa_real *work);

// Numbers of what a segment's queries give the samples.
ptrdiff_t rfa_lara_sums_size(const rfa_lara *lara);

// dq [rows][ld_dq] overwritten, and sums [rfa_lara_sums_size] of this segment, which add up.
// dout [rows][ld_out].
void rfa_lara_read_backward(rfa_real *dq,
                            ptrdiff_t ld_dq,
                            double *sums,
                            const rfa_real *dout,
                            const rfa_real *out,
                            ptrdiff_t ld_out,
                            const rfa_lara_samples *samples,
                            const rfa_lara *lara,
                            const rfa_head *head,
                            rfa_real *work);

// adjoint from the total of sums.
void rfa_lara_samples_backward(const rfa_lara_adjoint *adjoint,
                               const double *sums,
                               const rfa_lara_samples *samples,
                               const rfa_lara *lara,
                               rfa_real *work);

// dk, dv [rows][ld_dk] overwritten; dw [J][d] = what this segment's keys give w, which adds up.
void rfa_lara_keys_backward(rfa_real *dk,
                            rfa_real *dv,
                            ptrdiff_t ld_dk,
                            double *dw,
                            const rfa_lara_adjoint *adjoint,
                            const rfa_lara_samples *samples,
                            const rfa_lara *lara,
                            const rfa_head *head,
                            rfa_real *work);

// dq_means, dk_means [C][ld] overwritten, from the total of dw.
void rfa_lara_propose_backward(rfa_real *dq_means,
                               rfa_real *dk_means,
                               ptrdiff_t ld,
                               const double *dw,
                               const rfa_lara_adjoint *adjoint,
                               const rfa_lara *lara);

#endif
