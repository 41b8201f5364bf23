#include "fidelity/run.h"

#include "base/log.h"
#include "fidelity/plan.h"
#include "linalg/solve.h"

#include <math.h>
#include <string.h>

// One head while its estimates are held against it.
typedef struct {
    rfa_fidelity *f;
    const rfa_config *config;
    const rfa_comm *world;
    rfa_ensemble ensembles[RFA_ENSEMBLES];
    rfa_linalg_grid grid;
    rfa_vectors x;
    rfa_matrix a, b;               // exact, and an estimate
    double *y, *out, *rows, *work; // [n][d], [n][d], [n], [n]
    double power, norm;            // of y, of a
    bool matrices;                 // b is there
    int group, c, trial;
} scene;

static void drop_head(scene *s)
{
    rfa_matrix_destroy(&s->a);
    rfa_matrix_destroy(&s->b);
    rfa_vectors_destroy(&s->x);
    rfa_linalg_grid_destroy(&s->grid);
    rfa_free(s->y);
    rfa_free(s->out);
    rfa_free(s->rows);
    rfa_free(s->work);
    s->y = s->out = s->rows = s->work = NULL;
}

static rfa_status allocate(scene *s, ptrdiff_t n, ptrdiff_t d)
{
    RFA_TRY(rfa_vectors_create(&s->x, n, d));
    RFA_TRY(rfa_alloc(&s->y, n * d, sizeof *s->y, "outputs"));
    RFA_TRY(rfa_alloc(&s->out, n * d, sizeof *s->out, "outputs"));
    RFA_TRY(rfa_alloc(&s->rows, n, sizeof *s->rows, "rows"));
    return rfa_alloc(&s->work, n, sizeof *s->work, "rows");
}

// A head of the file, converted; n tokens of the file's N.
static rfa_status read_head(scene *s)
{
    const rfa_heads *heads = &s->f->heads;
    const ptrdiff_t stored = (ptrdiff_t)(heads->n * heads->d), used = s->x.n * s->x.d;
    float *all = NULL;
    rfa_real *const to[] = {s->x.q, s->x.k, s->x.v};
    rfa_status status = rfa_alloc(&all, 3 * stored, sizeof *all, "a head");
    if (status == RFA_OK && s->world->rank == 0) {
        status = rfa_heads_read(all, all + stored, all + 2 * stored, heads, s->c);
    }
    status = rfa_agree(s->world, status);
    if (status == RFA_OK) {
        bool finite = true;
        for (int i = 0; i < 3; i++) {
            MPI_Bcast(all + i * stored, rfa_int(stored), MPI_FLOAT, 0, s->world->comm);
            for (ptrdiff_t j = 0; j < used; j++) {
                to[i][j] = (rfa_real)all[i * stored + j];
                finite &= isfinite(all[i * stored + j]) != 0;
            }
        }
        if (!finite) {
            status =
                rfa_fail(RFA_ERR_NUMERIC, "%s: head %d holds NaN or infinity", heads->path, s->c);
        }
    }
    rfa_free(all);
    return status;
}

static rfa_status open_head(scene *s)
{
    const ptrdiff_t n = s->f->captured ? (ptrdiff_t)s->f->heads.length[s->c] : s->f->n;
    RFA_TRY(rfa_agree(s->world, allocate(s, n, s->f->d)));
    RFA_TRY(rfa_linalg_grid_create(&s->grid, s->world, n, 0));
    RFA_TRY(rfa_matrix_create(&s->a, &s->grid, n, n));
    s->matrices = s->config->fidelity.matrix || s->config->fidelity.spectrum != RFA_SPECTRUM_NONE;
    return s->matrices ? rfa_matrix_create(&s->b, &s->grid, n, n) : RFA_OK;
}

// Small integers, whose products are exact in any order.
static double integer(int matrix, ptrdiff_t i, ptrdiff_t j)
{
    return (double)((3 * i + 5 * j + matrix) % 17 - 8);
}

// c = a b^T of such matrices, looked at here and there.
static rfa_status check_product(const rfa_matrix *c)
{
    enum { LOOKS = 64 };
    const ptrdiff_t elements = c->local_rows * c->local_columns;
    for (ptrdiff_t look = 0; look < LOOKS && elements > 0; look++) {
        const ptrdiff_t at = elements / LOOKS * look + look % (elements / LOOKS + 1);
        const ptrdiff_t i = at % c->local_rows, j = at / c->local_rows;
        double want = 0;
        for (ptrdiff_t l = 0; l < c->rows; l++) {
            want += integer(0, rfa_matrix_row(c, i), l) * integer(1, rfa_matrix_column(c, j), l);
        }
        if (c->data[i + j * c->ld] != want) {
            return rfa_fail(RFA_ERR_INTERNAL, "PDGEMM computes wrong products here");
        }
    }
    return RFA_OK;
}

// The rate of PDGEMM on the grid of this run's matrices, best of a few at each head.
static rfa_status measure_ceiling(scene *s)
{
    enum { REPEATS = 3, MATRICES = 3 };
    const ptrdiff_t n = (ptrdiff_t)s->config->fidelity.ceiling;
    rfa_matrix m[MATRICES] = {{.data = NULL}};
    rfa_status status = RFA_OK;
    for (int i = 0; i < MATRICES && status == RFA_OK; i++) {
        status = rfa_matrix_create(&m[i], &s->grid, n, n);
        for (ptrdiff_t j = 0; j < m[i].local_columns; j++) {
            for (ptrdiff_t t = 0; t < m[i].local_rows; t++) {
                m[i].data[t + j * m[i].ld] =
                    integer(i, rfa_matrix_row(&m[i], t), rfa_matrix_column(&m[i], j));
            }
        }
    }
    for (int i = 0; i < REPEATS && status == RFA_OK; i++) {
        MPI_Barrier(s->world->comm);
        const double start = rfa_now();
        rfa_matrix_gemm(false, true, 1, &m[0], &m[1], 0, &m[2]);
        double seconds = rfa_now() - start;
        MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, s->world->comm);
        const double rate = 2 * (double)n * (double)n * (double)n / seconds;
        s->f->ceiling = rate > s->f->ceiling ? rate : s->f->ceiling;
    }
    if (status == RFA_OK) {
        status = rfa_agree(s->world, check_product(&m[2]));
    }
    for (int i = 0; i < MATRICES; i++) {
        rfa_matrix_destroy(&m[i]);
    }
    s->f->rows = s->grid.rows;
    s->f->columns = s->grid.columns;
    return status;
}

// Leading singular values of m, which may be used up, in values [f->values]; *rank; tail: of the
// best approximations of rank F, where it is wanted.
static rfa_status
spectrum(double *values, double *rank, double *tail, scene *s, rfa_matrix *m, double norm)
{
    const rfa_fidelity *f = s->f;
    const ptrdiff_t n = m->rows, kept = f->values < n ? f->values : n;
    const bool whole = n <= (ptrdiff_t)s->config->fidelity.full;
    const ptrdiff_t known = whole ? n : kept;
    const double start = rfa_now();
    double *all = s->work; // [n]
    RFA_TRY(whole ? rfa_linalg_singular_values(all, m)
                  : rfa_linalg_leading_values(all, kept, m, (uint64_t)s->config->train.seed));
    s->f->clock.seconds[RFA_FIDELITY_VALUES] += rfa_now() - start;
    memcpy(values, all, (size_t)kept * sizeof *values);
    *rank = rfa_effective_rank(all, known);
    for (int i = 0; tail && i < f->features; i++) {
        const ptrdiff_t r = (ptrdiff_t)f->feature[i];
        double beyond = 0, within = 0;
        for (ptrdiff_t j = 0; j < known; j++) {
            *(j < r ? &within : &beyond) += all[j] * all[j];
        }
        beyond = whole ? beyond : norm * norm - within;
        const double share = beyond > 0 ? sqrt(beyond) / norm : 0;
        tail[i * f->cases] = !whole && r > kept ? (double)NAN : share;
    }
    return RFA_OK;
}

static rfa_status exact_spectrum(scene *s)
{
    const rfa_fidelity *f = s->f;
    const ptrdiff_t head = (ptrdiff_t)s->group * f->cases + s->c;
    for (ptrdiff_t j = 0; j < s->a.local_columns; j++) {
        memcpy(s->b.data + j * s->b.ld, s->a.data + j * s->a.ld,
               (size_t)s->a.local_rows * sizeof *s->a.data);
    }
    return spectrum(f->exact + head * f->values, &f->exact_rank[head],
                    f->best + (ptrdiff_t)s->group * f->features * f->cases + s->c, s, &s->b,
                    s->norm);
}

// Vectors, exact matrix and output of this trial.
static rfa_status exact_side(scene *s)
{
    rfa_fidelity *f = s->f;
    const ptrdiff_t count = s->x.n * s->x.d, head = (ptrdiff_t)s->group * f->cases + s->c;
    if (f->captured) {
        RFA_TRY(read_head(s));
    } else {
        rfa_vectors_fill(&s->x, s->ensembles[s->group], f->scale[s->c],
                         (uint64_t)s->config->train.seed, s->trial);
    }
    f->norm[head] = rfa_vectors_norm(&s->x);
    RFA_TRY(rfa_exact_weights(&s->a, &s->x, &f->clock));
    RFA_TRY(rfa_exact_output(s->y, &s->a, &s->x, &f->clock));
    s->power = 0;
    for (ptrdiff_t i = 0; i < count; i++) {
        s->power += s->y[i] * s->y[i] / (double)count;
    }
    RFA_TRY(rfa_matrix_compare(NULL, NULL, NULL, &s->norm, &s->a, NULL));
    return s->trial == 0 && s->config->fidelity.spectrum != RFA_SPECTRUM_NONE ? exact_spectrum(s)
                                                                              : RFA_OK;
}

static rfa_status compare_outputs(double *error, scene *s, rfa_estimate *e)
{
    const ptrdiff_t count = s->x.n * s->x.d;
    int64_t clamped = 0;
    double sum = 0, most = 0, *work = NULL;
    RFA_TRY(rfa_estimate_output(s->out, &clamped, e, s->world, &s->f->clock));
    for (ptrdiff_t i = 0; i < count; i++) {
        const double gap = s->out[i] - s->y[i];
        sum += gap * gap / (double)count;
        most = fabs(gap) > most ? fabs(gap) : most;
    }
    error[RFA_FIDELITY_OUTPUT_ERROR] = sum / s->power;
    error[RFA_FIDELITY_OUTPUT_MOST] = most / sqrt(s->power);
    error[RFA_FIDELITY_FLOORED] = (double)clamped / (double)s->x.n;
    RFA_TRY(rfa_agree(
        s->world, rfa_alloc(&work, rfa_estimate_negative_work(e), sizeof *work, "denominators")));
    error[RFA_FIDELITY_NEGATIVE] = rfa_estimate_negative(e, work);
    rfa_free(work);
    return RFA_OK;
}

static rfa_status compare_matrices(double *error, scene *s, rfa_estimate *e, int kind, int feature)
{
    rfa_fidelity *f = s->f;
    double norm = 0;
    RFA_TRY(rfa_estimate_matrix(&s->b, e, &f->clock));
    const double start = rfa_now();
    RFA_TRY(rfa_matrix_compare(s->rows, &error[RFA_FIDELITY_FROBENIUS],
                               &error[RFA_FIDELITY_MATRIX_MOST], &norm, &s->a, &s->b));
    error[RFA_FIDELITY_ROW_MEDIAN] = rfa_fidelity_quantile(s->rows, s->x.n, 0.5);
    error[RFA_FIDELITY_ROW_TENTH] = rfa_fidelity_quantile(s->rows, s->x.n, 0.9);
    error[RFA_FIDELITY_ROW_WORST] = rfa_fidelity_quantile(s->rows, s->x.n, 1);
    f->clock.seconds[RFA_FIDELITY_COMPARE] += rfa_now() - start;
    if (s->trial > 0 || s->config->fidelity.spectrum != RFA_SPECTRUM_ALL) {
        return RFA_OK;
    }
    const ptrdiff_t at =
        (((ptrdiff_t)s->group * f->kinds + kind) * f->features + feature) * f->cases + s->c;
    return spectrum(f->estimated + at * f->values, &f->rank[at], NULL, s, &s->b, norm);
}

static rfa_status estimate(scene *s, int kind, int feature)
{
    rfa_fidelity *f = s->f;
    const bool sized = rfa_fidelity_kind_size(&f->kind[kind], 2) > 0;
    const bool random = !f->captured || rfa_fidelity_kind_is_random(&f->kind[kind]);
    double *error = rfa_fidelity_error(f, s->group, kind, feature, s->trial, s->c);
    const ptrdiff_t values = (ptrdiff_t)f->cases * f->values;
    const ptrdiff_t at =
        (((ptrdiff_t)s->group * f->kinds + kind) * f->features + feature) * f->cases + s->c;
    if (!random && s->trial > 0) { // the same again
        memcpy(error, rfa_fidelity_error(f, s->group, kind, feature, 0, s->c),
               RFA_FIDELITY_STATISTICS * sizeof *error);
        return RFA_OK;
    }
    if (!sized && feature > 0) {
        memcpy(error, rfa_fidelity_error(f, s->group, kind, 0, s->trial, s->c),
               RFA_FIDELITY_STATISTICS * sizeof *error);
        const ptrdiff_t first = at - (ptrdiff_t)feature * f->cases;
        memcpy(f->estimated + at * f->values, f->estimated + at * f->values - feature * values,
               (size_t)f->values * sizeof *f->estimated);
        f->rank[at] = f->rank[first];
        return RFA_OK;
    }
    rfa_estimate e;
    RFA_TRY(rfa_agree(s->world,
                      rfa_estimate_create(&e, &f->kind[kind], &s->x, (ptrdiff_t)f->feature[feature],
                                          (uint64_t)s->config->train.seed, s->trial)));
    rfa_status status = compare_outputs(error, s, &e);
    if (status == RFA_OK && s->matrices) {
        status = compare_matrices(error, s, &e, kind, feature);
    }
    rfa_estimate_destroy(&e);
    return status;
}

static rfa_status run_trial(scene *s)
{
    rfa_fidelity *f = s->f;
    if (s->trial == 0 || !f->captured) {
        RFA_TRY(exact_side(s));
    }
    f->power[((ptrdiff_t)s->group * f->trials + s->trial) * f->cases + s->c] = s->power;
    for (int k = 0; k < f->kinds; k++) {
        for (int i = 0; i < f->features; i++) {
            RFA_TRY(estimate(s, k, i));
            rfa_progress(false, "%s, case %d of %d, trial %d of %d: %s, F = %.0f",
                         f->group[s->group], s->c + 1, f->cases, s->trial + 1, f->trials,
                         f->kind[k].name, f->feature[i]);
        }
    }
    return RFA_OK;
}

static rfa_status run_head(scene *s)
{
    rfa_status status = open_head(s);
    if (status == RFA_OK) {
        status = measure_ceiling(s);
    }
    for (s->trial = 0; s->trial < s->f->trials && status == RFA_OK; s->trial++) {
        status = run_trial(s);
    }
    drop_head(s);
    return status;
}

rfa_status rfa_fidelity_run(rfa_fidelity *f, const rfa_config *config, const rfa_comm *world)
{
    scene s = {.f = f, .config = config, .world = world};
    *f = (rfa_fidelity){.groups = 0};
    rfa_status status = rfa_agree(world, rfa_fidelity_plan(f, s.ensembles, config));
    for (s.group = 0; s.group < f->groups && status == RFA_OK; s.group++) {
        for (s.c = 0; s.c < f->cases && status == RFA_OK; s.c++) {
            status = run_head(&s);
        }
    }
    if (status != RFA_OK) {
        rfa_fidelity_destroy(f);
        return status;
    }
    MPI_Allreduce(MPI_IN_PLACE, f->clock.seconds, RFA_FIDELITY_PHASES, MPI_DOUBLE, MPI_MAX,
                  world->comm);
    return RFA_OK;
}
