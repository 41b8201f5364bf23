// What lara.c (forward) and lara_backward.c share.
#ifndef RFA_ATTENTION_LARA_IMPL_H
#define RFA_ATTENTION_LARA_IMPL_H

#include "attention/lara.h"
#include "attention/linear_impl.h"

// Rows of a segment that are worked on at once against all samples, and samples against all
// landmarks.
enum { LARA_CHUNK = 128 };

// Specific weights below this are clamped.
#define LARA_CLAMP ((rfa_real)1e-8)

// Padded C and J.
static inline ptrdiff_t lara_padded_landmarks(const rfa_lara *lara)
{
    return rfa_padded(lara->landmarks);
}

static inline ptrdiff_t lara_padded_count(const rfa_lara *lara)
{
    return rfa_padded(rfa_lara_count(lara));
}

// d^(-1/4)
static inline rfa_real lara_temper(const rfa_lara *lara)
{
    return (rfa_real)pow((double)lara->d, -0.25);
}

// density [n][C] = log xi(mu_c, w_j) of n samples from j on, -infinity in padding of C. half [C] is
// scratch.
void rfa_lara_density(rfa_real *density,
                      rfa_real *half,
                      const rfa_lara_samples *samples,
                      const rfa_lara *lara,
                      ptrdiff_t j,
                      ptrdiff_t n);

// scores [J][n] = log xi(k_m, w_j) of n rows of keys from row t on, -infinity where masked. half
// [n] is scratch.
void rfa_lara_scores(rfa_real *scores,
                     rfa_real *half,
                     const rfa_lara_samples *samples,
                     const rfa_lara *lara,
                     const rfa_head *head,
                     ptrdiff_t t,
                     ptrdiff_t n);

// What all rows of queries share.
typedef struct {
    const rfa_real *u; // [J][d] p's logarithm has q . u_j: w_j, of biased weights w_j + mu_c
    rfa_real *base;    // [J] and base_j; -infinity in padding
    rfa_real *balance; // [J] b_j of specific weights
} rfa_lara_readout;

rfa_lara_readout
rfa_lara_readout_of(const rfa_lara_samples *samples, const rfa_lara *lara, rfa_real **work);

// p [n][J] and, of specific weights, r [n][C] of the n rows of queries from row t on; 0 where
// masked, and in padding.
void rfa_lara_weigh(rfa_real *p,
                    rfa_real *r,
                    const rfa_lara_readout *readout,
                    const rfa_lara_samples *samples,
                    const rfa_lara *lara,
                    const rfa_head *head,
                    ptrdiff_t t,
                    ptrdiff_t n);

#endif
