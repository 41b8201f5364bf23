#include "probe/ridge.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>

static ptrdiff_t set_size(const rfa_ridge *ridge)
{
    const ptrdiff_t E = ridge->width;
    return E + E * (E + 1) / 2 + E * ridge->classes;
}

rfa_status rfa_ridge_create(rfa_ridge *ridge, ptrdiff_t sets, ptrdiff_t width, ptrdiff_t classes)
{
    *ridge = (rfa_ridge){.sets = sets, .width = width, .classes = classes};
    RFA_TRY(rfa_alloc(&ridge->shift, sets * width, sizeof *ridge->shift, "ridge regression"));
    RFA_TRY(rfa_alloc(&ridge->scale, sets, sizeof *ridge->scale, "ridge regression"));
    RFA_TRY(rfa_alloc(&ridge->count, classes, sizeof *ridge->count, "ridge regression"));
    RFA_TRY(rfa_alloc(&ridge->term, set_size(ridge), sizeof *ridge->term, "ridge regression"));
    return rfa_exact_sum_create(&ridge->sum, sets * set_size(ridge), "ridge regression");
}

void rfa_ridge_destroy(rfa_ridge *ridge)
{
    rfa_free(ridge->shift);
    rfa_free(ridge->scale);
    rfa_free(ridge->count);
    rfa_free(ridge->term);
    rfa_exact_sum_destroy(&ridge->sum);
    *ridge = (rfa_ridge){0};
}

void rfa_ridge_start(rfa_ridge *ridge, const double *x, ptrdiff_t n)
{
    const ptrdiff_t E = ridge->width, size = ridge->sets * E;
    for (ptrdiff_t set = 0; set < ridge->sets; set++) {
        double most = 0;
        for (ptrdiff_t j = 0; j < E; j++) {
            const double shift = x[set * E + j];
            ridge->shift[set * E + j] = shift;
            for (ptrdiff_t i = 0; i < n; i++) {
                most = fmax(most, fabs(x[i * size + set * E + j] - shift));
            }
        }
        ridge->scale[set] = most > 0 && isfinite(most) ? ldexp(1, -ilogb(most)) : 1;
    }
}

void rfa_ridge_add(rfa_ridge *ridge, const double *x, int label)
{
    const ptrdiff_t E = ridge->width, K = ridge->classes, size = set_size(ridge);
    for (ptrdiff_t set = 0; set < ridge->sets; set++) {
        double *z = ridge->term, *product = z + E, *target = product + E * (E + 1) / 2;
        for (ptrdiff_t j = 0; j < E; j++) {
            z[j] = (x[set * E + j] - ridge->shift[set * E + j]) * ridge->scale[set];
        }
        for (ptrdiff_t j = 0; j < E; j++) {
            for (ptrdiff_t i = 0; i <= j; i++) {
                *product++ = z[i] * z[j];
            }
            for (ptrdiff_t k = 0; k < K; k++) {
                target[j * K + k] = k == label ? z[j] : 0;
            }
        }
        rfa_exact_sum_add_double(&ridge->sum, set * size, ridge->term, size);
    }
    ridge->count[label]++;
}

rfa_status rfa_ridge_reduce(rfa_ridge *ridge, const rfa_comm *comm)
{
    rfa_exact_sum_reduce(&ridge->sum, comm);
    MPI_Allreduce(MPI_IN_PLACE, ridge->count, rfa_int(ridge->classes), MPI_INT64_T, MPI_SUM,
                  comm->comm);
    return rfa_exact_sum_is_good(&ridge->sum)
               ? RFA_OK
               : rfa_fail(RFA_ERR_NUMERIC, "a feature is not finite, or far beyond those of the "
                                           "first examples");
}

// Moments of one set.
typedef struct {
    const rfa_ridge *ridge;
    ptrdiff_t at;
    double n;
} moments;

static double mean_of(const moments *m, ptrdiff_t j)
{
    return rfa_exact_sum_value(&m->ridge->sum, m->at + j) / m->n;
}

static double covariance(const moments *m, const double *mean, ptrdiff_t i, ptrdiff_t j)
{
    const ptrdiff_t high = i > j ? i : j, low = i > j ? j : i;
    const ptrdiff_t at = m->at + m->ridge->width + high * (high + 1) / 2 + low;
    return rfa_exact_sum_value(&m->ridge->sum, at) / m->n - mean[i] * mean[j];
}

// One over the deviation of each column; 0 where it has none beside the rounding of its square.
static void deviations(double *inverse, const double *mean, const moments *m)
{
    for (ptrdiff_t j = 0; j < m->ridge->width; j++) {
        const double variance = covariance(m, mean, j, j);
        const double floor = 1e-12 * (variance + mean[j] * mean[j]) + 0x1p-50;
        inverse[j] = variance > floor ? 1 / sqrt(variance) : 0;
    }
}

static void fill(double *a,
                 double *b,
                 const double *mean,
                 const double *inverse,
                 const moments *m,
                 double penalty)
{
    const ptrdiff_t E = m->ridge->width, K = m->ridge->classes;
    const ptrdiff_t targets = m->at + E + E * (E + 1) / 2;
    for (ptrdiff_t i = 0; i < E; i++) {
        for (ptrdiff_t j = 0; j < E; j++) {
            a[i * E + j] = covariance(m, mean, i, j) * inverse[i] * inverse[j];
        }
        a[i * E + i] += penalty;
        for (ptrdiff_t k = 0; k < K; k++) {
            const double share = (double)m->ridge->count[k] / m->n;
            const double sum = rfa_exact_sum_value(&m->ridge->sum, targets + i * K + k);
            b[i * K + k] = (sum / m->n - mean[i] * share) * inverse[i];
        }
    }
}

// x [E][K], the solution of the system a, b.
static rfa_status
solve(double *b, const double *a, ptrdiff_t E, ptrdiff_t K, const rfa_linalg_grid *grid)
{
    rfa_matrix matrix = {0}, right = {0};
    rfa_status status = rfa_matrix_create(&matrix, grid, E, E);
    if (status == RFA_OK) {
        status = rfa_matrix_create(&right, grid, E, K);
    }
    if (status == RFA_OK) {
        rfa_matrix_put(&matrix, a);
        rfa_matrix_put(&right, b);
        status = rfa_linalg_posv(&matrix, &right);
    }
    if (status == RFA_OK) {
        status = rfa_matrix_get(&right, b);
    }
    rfa_matrix_destroy(&right);
    rfa_matrix_destroy(&matrix);
    return status;
}

// Back to features as they are: scale and shift go into weight and bias.
static void unfold(rfa_readout *readout,
                   const double *w,
                   const double *mean,
                   const double *inverse,
                   const moments *m,
                   ptrdiff_t set)
{
    const ptrdiff_t E = m->ridge->width, K = m->ridge->classes;
    const double scale = m->ridge->scale[set];
    for (ptrdiff_t k = 0; k < K; k++) {
        double bias = (double)m->ridge->count[k] / m->n;
        for (ptrdiff_t j = 0; j < E; j++) {
            const double weight = w[j * K + k] * inverse[j];
            readout->weight[k * E + j] = weight * scale;
            bias -= weight * (mean[j] + m->ridge->shift[set * E + j] * scale);
        }
        readout->bias[k] = bias;
    }
}

rfa_status rfa_ridge_solve(rfa_readout *readout,
                           const rfa_ridge *ridge,
                           ptrdiff_t set,
                           double penalty,
                           const rfa_linalg_grid *grid)
{
    const ptrdiff_t E = ridge->width, K = ridge->classes;
    moments m = {.ridge = ridge, .at = set * set_size(ridge)};
    double *work = NULL;
    RFA_ASSERT(penalty > 0);
    for (ptrdiff_t k = 0; k < K; k++) {
        m.n += (double)ridge->count[k];
    }
    rfa_status status =
        rfa_agree(&grid->comm, rfa_alloc(&work, E * (E + K + 2), sizeof *work, "ridge regression"));
    if (status == RFA_OK) {
        double *a = work, *b = a + E * E, *mean = b + E * K, *inverse = mean + E;
        for (ptrdiff_t j = 0; j < E; j++) {
            mean[j] = mean_of(&m, j);
        }
        deviations(inverse, mean, &m);
        fill(a, b, mean, inverse, &m, penalty);
        status = solve(b, a, E, K, grid);
        if (status == RFA_OK) {
            unfold(readout, b, mean, inverse, &m, set);
        }
    }
    rfa_free(work);
    return status;
}

int rfa_readout_class(const rfa_readout *readout,
                      const double *x,
                      ptrdiff_t width,
                      ptrdiff_t classes)
{
    int best = 0;
    double most = -INFINITY;
    for (ptrdiff_t k = 0; k < classes; k++) {
        double score = readout->bias[k];
        for (ptrdiff_t j = 0; j < width; j++) {
            score += readout->weight[k * width + j] * x[j];
        }
        if (score > most) {
            most = score;
            best = (int)k;
        }
    }
    return best;
}
