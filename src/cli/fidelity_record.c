#include "cli/fidelity_record.h"

#include "storage/arrayfile.h"
#include "train/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Scales, in the order of the file.
enum { KIND, FEATURES, SEED, CASE, STATISTIC, INDEX, PHASE, SCALES };
enum { SUMMARIES = 4, MOST_ARRAYS = RFA_FIDELITY_MOST_GROUPS * (SUMMARIES + 8) + 8 };

// What the file of heads says of itself, as source.NAME.
static rfa_status describe_source(rfa_attributes *list, const char *path)
{
    rfa_attributes source = {0};
    rfa_status status = rfa_attributes_read(&source, path);
    for (int64_t i = 0; i < source.count && status == RFA_OK; i++) {
        char name[128];
        rfa_run_attribute copy = source.items[i];
        snprintf(name, sizeof name, "source.%.100s", copy.name);
        copy.name = name;
        status = rfa_attributes_set(list, &copy);
    }
    rfa_attributes_free(&source);
    return status;
}

static rfa_status describe(rfa_attributes *list,
                           const rfa_fidelity *f,
                           const rfa_config *config,
                           const rfa_comm *world,
                           const char *hosts)
{
    const rfa_run_attribute ceiling = {.name = "pdgemm_flops_per_second", .number = f->ceiling};
    RFA_TRY(rfa_provenance_set(list, world, hosts));
    RFA_TRY(rfa_attributes_set_int(list, "grid_rows", f->rows));
    RFA_TRY(rfa_attributes_set_int(list, "grid_columns", f->columns));
    RFA_TRY(rfa_attributes_set_int(list, "seed", config->train.seed));
    RFA_TRY(rfa_attributes_set_int(list, "length", f->n));
    RFA_TRY(rfa_attributes_set_int(list, "width", f->d));
    RFA_TRY(rfa_attributes_set(list, &ceiling));
    RFA_TRY(rfa_attributes_set_text(list, "fidelity.kinds", config->fidelity.kinds));
    RFA_TRY(rfa_attributes_set_text(list, "fidelity.features", config->fidelity.features));
    RFA_TRY(rfa_attributes_set_int(list, "fidelity.full", config->fidelity.full));
    RFA_TRY(rfa_attributes_set_int(list, "fidelity.ceiling", config->fidelity.ceiling));
    if (f->captured) {
        RFA_TRY(rfa_attributes_set_text(list, "fidelity.file", config->fidelity.file));
        return describe_source(list, config->fidelity.file);
    }
    RFA_TRY(rfa_attributes_set_text(list, "fidelity.ensembles", config->fidelity.ensembles));
    return rfa_attributes_set_text(list, "fidelity.norms", config->fidelity.norms);
}

// What the arrays are made of, beside the results themselves.
typedef struct {
    const char *kinds[RFA_FIDELITY_LIST], *phases[RFA_FIDELITY_PHASES];
    double *numbers; // trials, then indices
    double *summary; // [SUMMARIES][groups][kinds][features][cases][statistics]
    double ratio[RFA_FIDELITY_PHASES];
    rfa_array_scale scales[SCALES];
    rfa_array arrays[MOST_ARRAYS];
    int count;
} contents;

static void fill_scales(contents *to, const rfa_fidelity *f)
{
    for (int k = 0; k < f->kinds; k++) {
        to->kinds[k] = f->kind[k].name;
    }
    for (int p = 0; p < RFA_FIDELITY_PHASES; p++) {
        to->phases[p] = rfa_fidelity_phase_name((rfa_fidelity_phase)p);
        const double seconds = f->clock.seconds[p];
        to->ratio[p] = seconds > 0 ? f->clock.flops[p] / seconds / f->ceiling : 0;
    }
    for (ptrdiff_t i = 0; i < f->trials; i++) {
        to->numbers[i] = (double)i;
    }
    for (ptrdiff_t i = 0; i < f->values; i++) {
        to->numbers[f->trials + i] = (double)(i + 1);
    }
    const rfa_array_scale scales[SCALES] = {
        [KIND] = {"kind", "1", "estimator", NULL, to->kinds, f->kinds},
        [FEATURES] = {"features", "1", "F, rows of a state: features, samples or chunks",
                      f->feature, NULL, f->features},
        [SEED] = {"seed", "1", "trial, from the seed on", to->numbers, NULL, f->trials},
        [CASE] = {f->captured ? "head" : "norm", "1",
                  f->captured ? "place in the file of heads"
                              : "norm of queries and keys times d^(-1/4)",
                  f->scale, NULL, f->cases},
        [STATISTIC] = {"statistic", "1", "what was measured", NULL, rfa_fidelity_statistics,
                       RFA_FIDELITY_STATISTICS},
        [INDEX] = {"index", "1", "of singular values in falling order, from 1",
                   to->numbers + f->trials, NULL, f->values},
        [PHASE] = {"phase", "1", "part of the work", NULL, to->phases, RFA_FIDELITY_PHASES},
    };
    memcpy(to->scales, scales, sizeof scales);
}

static void add(contents *to, rfa_array array)
{
    RFA_ASSERT(to->count < MOST_ARRAYS);
    to->arrays[to->count++] = array;
}

static void add_summaries(contents *to, const rfa_fidelity *f, int g)
{
    static const char *const names[SUMMARIES][2] = {
        {"mean", "mean over seeds"},
        {"low", "lower end of the 95 % band of the mean, Student's t"},
        {"high", "upper end of the 95 % band of the mean"},
        {"median", "median over seeds"},
    };
    const ptrdiff_t size = (ptrdiff_t)f->kinds * f->features * f->cases * RFA_FIDELITY_STATISTICS;
    double *parts[SUMMARIES];
    for (int i = 0; i < SUMMARIES; i++) {
        parts[i] = to->summary + (i * (ptrdiff_t)f->groups + g) * size;
        add(to, (rfa_array){f->group[g],
                            names[i][0],
                            "1",
                            names[i][1],
                            {KIND, FEATURES, CASE, STATISTIC},
                            4,
                            parts[i]});
    }
    ptrdiff_t at = 0;
    for (int k = 0; k < f->kinds; k++) {
        for (int i = 0; i < f->features; i++) {
            for (int c = 0; c < f->cases; c++) {
                for (int s = 0; s < RFA_FIDELITY_STATISTICS; s++, at++) {
                    const rfa_fidelity_summary x =
                        rfa_fidelity_summarise(f, g, k, i, c, (rfa_fidelity_statistic)s);
                    parts[0][at] = x.mean;
                    parts[1][at] = x.low;
                    parts[2][at] = x.high;
                    parts[3][at] = x.median;
                }
            }
        }
    }
}

static void add_group(contents *to, const rfa_fidelity *f, int g, bool exact, bool all)
{
    const ptrdiff_t heads = (ptrdiff_t)g * f->cases;
    const ptrdiff_t estimates = (ptrdiff_t)g * f->kinds * f->features * f->cases;
    const char *name = f->group[g];
    add(to, (rfa_array){name,
                        "error",
                        "1",
                        "statistics of each estimate",
                        {KIND, FEATURES, SEED, CASE, STATISTIC},
                        5,
                        rfa_fidelity_error(f, g, 0, 0, 0, 0)});
    add(to, (rfa_array){name,
                        "power",
                        "1",
                        "mean square of the exact output",
                        {SEED, CASE},
                        2,
                        f->power + heads * f->trials});
    add(to, (rfa_array){name,
                        "norm",
                        "1",
                        "root of the mean norms of queries and keys, d^(-1/4)",
                        {CASE},
                        1,
                        f->norm + heads});
    add_summaries(to, f, g);
    if (exact) {
        add(to, (rfa_array){name,
                            "exact_values",
                            "1",
                            "singular values of the exact matrix",
                            {CASE, INDEX},
                            2,
                            f->exact + heads * f->values});
        add(to, (rfa_array){name,
                            "exact_rank",
                            "1",
                            "exponential of the entropy of the singular values that are known",
                            {CASE},
                            1,
                            f->exact_rank + heads});
        add(to, (rfa_array){name,
                            "best",
                            "1",
                            "least relative Frobenius error of any matrix of "
                            "rank F",
                            {FEATURES, CASE},
                            2,
                            f->best + heads * f->features});
    }
    if (all) {
        add(to, (rfa_array){name,
                            "values",
                            "1",
                            "singular values of the estimates of seed 0",
                            {KIND, FEATURES, CASE, INDEX},
                            4,
                            f->estimated + estimates * f->values});
        add(to, (rfa_array){name,
                            "rank",
                            "1",
                            "effective rank of the estimates of seed 0",
                            {KIND, FEATURES, CASE},
                            3,
                            f->rank + estimates});
    }
}

static rfa_status write(const rfa_fidelity *f,
                        const char *path,
                        const rfa_config *config,
                        const rfa_comm *world,
                        const char *hosts)
{
    contents *to = NULL;
    rfa_attributes attributes = {0};
    char *config_text = NULL;
    const ptrdiff_t summaries = (ptrdiff_t)SUMMARIES * f->groups * f->kinds * f->features *
                                f->cases * RFA_FIDELITY_STATISTICS;
    RFA_TRY(rfa_alloc(&to, 1, sizeof *to, "results"));
    rfa_status status = rfa_alloc(&to->numbers, f->trials + f->values, sizeof(double), "results");
    if (status == RFA_OK) {
        status = rfa_alloc(&to->summary, summaries, sizeof(double), "results");
    }
    if (status == RFA_OK) {
        status = rfa_config_text(&config_text, config);
    }
    if (status == RFA_OK) {
        status = describe(&attributes, f, config, world, hosts);
    }
    if (status == RFA_OK) {
        fill_scales(to, f);
        for (int g = 0; g < f->groups; g++) {
            add_group(to, f, g, config->fidelity.spectrum != RFA_SPECTRUM_NONE,
                      config->fidelity.spectrum == RFA_SPECTRUM_ALL);
        }
        add(to, (rfa_array){
                    "time", "seconds", "s", "of the slowest rank", {PHASE}, 1, f->clock.seconds});
        add(to, (rfa_array){
                    "time", "flops", "1", "of products, all ranks", {PHASE}, 1, f->clock.flops});
        add(to, (rfa_array){"time",
                            "ratio",
                            "1",
                            "flops per second over those of PDGEMM",
                            {PHASE},
                            1,
                            to->ratio});
        status = rfa_arrayfile_write(path, "rfa fidelity 1", &attributes, config_text, to->scales,
                                     SCALES, to->arrays, to->count);
    }
    rfa_attributes_free(&attributes);
    rfa_free(config_text);
    rfa_free(to->summary);
    rfa_free(to->numbers);
    rfa_free(to);
    return status;
}

rfa_status rfa_fidelity_write(const rfa_fidelity *f,
                              const char *path,
                              const rfa_config *config,
                              const rfa_comm *world)
{
    char hosts[1024] = "";
    rfa_provenance_hosts(hosts, sizeof hosts, world);
    return rfa_agree(world, world->rank == 0 ? write(f, path, config, world, hosts) : RFA_OK);
}
