// Feature maps: phi with phi(q) . phi(k) an estimate of a kernel, as used by linear attention. All
// maps have this one shape, F features of R rows and a logarithmic weight a key, so
// attention/linear.c is written once over them.
//
// With y = sigma o u, u = x / (|x| + 1e-3) (unit norm) or u = x d^(-1/4) (free norm: tempered, so
// that y_q . y_k is the score), and w_f the rows of W:
//
//   map       features f                                         F     log-weight of a key
//   gaussian  D^(-1/2) [sin(w_f . y), cos(w_f . y)]              2 D   unit 0, free |y|^2 / 2
//   arccos    D^(-1/2) relu(w_f . y)                             D     0
//   positive  D^(-1/2) exp(w_f . y - max_f)                      D     max_f - |y|^2 / 2
//   oprf      D^(-1/2) exp(a |w_f|^2 + (1 - 4 a)^(1/2) w_f . y - max_f)   as positive
//   elu       x + 1 for x > 0, else exp(x); of x itself          d     0
//
// gaussian: Peng et al., "Random feature attention", ICLR 2021, eqs. 4, 8 and App. A.4: rows N(0,
// I) estimate exp(-|y_q - y_k|^2 / 2), with the weight exp(y_q . y_k) up to a factor of the query.
// arccos: the same, section 3.1 (Cho and Saul 2009). positive: FAVOR+, Choromanski et al., ICLR
// 2021. oprf: Likhosherstov et al., "Chefs' random tables", NeurIPS 2022. elu: Katharopoulos et
// al., ICML 2020.
//
// Weights stay logarithmic: exp(log-weight) phi is the feature vector of the definition, up to
// constants that cancel in attention. A query's own factor cancels as well, and is left out.
#ifndef RFA_FEATURES_MAP_H
#define RFA_FEATURES_MAP_H

#include "base/kinds.h"
#include "tensor/shapes.h"

#include <stdbool.h>

typedef struct {
    rfa_map_kind kind;
    bool unit_norm;               // of positive and oprf: free norm is FAVOR+; elu: no meaning
    ptrdiff_t width, projections; // d and D
    const rfa_real *w;            // [D][d] borrowed; NULL for elu
    const rfa_real *w_t;          // [d][D] of rfa_feature_prepare, or NULL
    const rfa_real *sigma;        // [d] borrowed; NULL: 1
    const rfa_real *w_squares;    // [D] |w_f|^2, for oprf
    double a;                     // of oprf, <= 0; rfa_oprf_a
} rfa_feature_map;

// What a map gives to learned parameters; each accumulates, NULL: not wanted.
typedef struct {
    rfa_real *sigma; // [d]
    rfa_real *w;     // [D][d]
} rfa_map_gradient;

// "gaussian" and so on.
const char *rfa_map_name(rfa_map_kind kind);

// F.
ptrdiff_t rfa_feature_count(const rfa_feature_map *map);

// Whether keys carry log-weights other than 0.
bool rfa_feature_is_weighted(const rfa_feature_map *map);

// The floor of denominators, relative to the largest weight of a key. gaussian, whose estimates may
// be near 0 or negative: 0.16, that of Peng et al.'s code (0.1 over a feature scale of 0.1^2, at 64
// projections). Sums of terms that are not negative need it against 0 / 0 alone: arccos, whose
// features may all be 0: 1e-6; the others: 1e-20.
double rfa_feature_floor(const rfa_feature_map *map);

// map with a w_t in transpose [d][D] where that helps calls of rfa_features_forward for up to rows
// rows. Local.
rfa_feature_map
rfa_feature_prepare(const rfa_feature_map *map, rfa_real *transpose, ptrdiff_t rows);

// Elements of work that the calls below need for up to rows rows.
ptrdiff_t rfa_feature_work(const rfa_feature_map *map, ptrdiff_t rows);

// phi [rows][F] of x [rows][ld]. log_weight [rows]: of keys, -infinity where mask is 0; NULL for
// queries, and for maps that are not weighted. A row with mask[t] == 0 gets phi = 0 (zeroing x
// would not do: phi(0) is not 0); mask may be NULL. next: the distance from x to rows of which the
// features are wanted next, which are fetched into the cache meanwhile; 0: none. Costs 2 rows d D
// flops and rows F elementary functions. Local.
void rfa_features_forward(rfa_real *phi,
                          rfa_real *log_weight,
                          const rfa_real *x,
                          ptrdiff_t ld,
                          const rfa_real *mask,
                          const rfa_feature_map *map,
                          ptrdiff_t rows,
                          ptrdiff_t next,
                          rfa_real *work);

// dx [rows][ld_dx] overwritten, gradient accumulates; dphi [rows][F], with respect to phi as the
// forward gave it, is used up. is_key: the log-weights depend on x too; their derivative is phi .
// dphi, as each weight multiplies its phi. A query's row of positive features has a derivative that
// leaves out its factor's (0 in exact quotients). Local.
void rfa_features_backward(rfa_real *dx,
                           ptrdiff_t ld_dx,
                           const rfa_map_gradient *gradient,
                           rfa_real *dphi,
                           const rfa_real *phi,
                           bool is_key,
                           const rfa_real *x,
                           ptrdiff_t ld,
                           const rfa_feature_map *map,
                           ptrdiff_t rows,
                           rfa_real *work);

// Numbers of the statistics that a of oprf depends on: sum |y_q|^2, sum |y_k|^2, sum y_q [d], sum
// y_k [d].
static inline ptrdiff_t rfa_oprf_statistics_size(ptrdiff_t d)
{
    return 2 + 2 * d;
}

// sums (double) = those of the rows with mask 1 of q and k [rows][ld]. Local.
void rfa_oprf_statistics(double *sums,
                         const rfa_real *q,
                         const rfa_real *k,
                         ptrdiff_t ld,
                         const rfa_real *mask,
                         const rfa_feature_map *map,
                         ptrdiff_t rows,
                         rfa_real *work);

// The a of least variance (Likhosherstov et al. 2022): a = (1 - 1 / rho) / 8,
// rho = (((2 m + d)^2 + 8 d m)^(1/2) - 2 m - d) / (4 m), m = mean |y_q + y_k|^2 over all pairs of n
// tokens. 0 when m is 0. It is a constant to the backward: the estimate is unbiased for each a.
double rfa_oprf_a(const double *sums, int64_t n, ptrdiff_t d);

#endif
