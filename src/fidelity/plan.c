#include "fidelity/plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Numbers of a list, each from least to most.
static rfa_status
numbers(double *out, int *count, const char *key, const char *list, double least, double most)
{
    char word[RFA_FIDELITY_WORD];
    *count = 0;
    while (rfa_fidelity_word(word, &list)) {
        char *end = word;
        const double value = strtod(word, &end);
        if (*end || end == word || !(value >= least) || !(value <= most)) {
            return rfa_fail(RFA_ERR_USAGE, "fidelity.%s: '%s' is not a number from %g to %g", key,
                            word, least, most);
        }
        if (*count == RFA_FIDELITY_LIST) {
            return rfa_fail(RFA_ERR_USAGE, "fidelity.%s: more than %d", key, RFA_FIDELITY_LIST);
        }
        out[(*count)++] = value;
    }
    return *count > 0 ? RFA_OK : rfa_fail(RFA_ERR_USAGE, "fidelity.%s is empty", key);
}

static rfa_status kinds(rfa_fidelity *f, const char *list)
{
    char word[RFA_FIDELITY_WORD];
    while (rfa_fidelity_word(word, &list)) {
        if (f->kinds == RFA_FIDELITY_LIST) {
            return rfa_fail(RFA_ERR_USAGE, "fidelity.kinds: more than %d", RFA_FIDELITY_LIST);
        }
        RFA_TRY(rfa_fidelity_kind_parse(&f->kind[f->kinds++], word));
    }
    return f->kinds > 0 ? RFA_OK : rfa_fail(RFA_ERR_USAGE, "fidelity.kinds is empty");
}

static rfa_status groups(rfa_fidelity *f, rfa_ensemble ensembles[RFA_ENSEMBLES], const char *list)
{
    char word[RFA_FIDELITY_WORD];
    while (rfa_fidelity_word(word, &list)) {
        int e = 0;
        while (e < RFA_ENSEMBLES && strcmp(rfa_ensemble_name((rfa_ensemble)e), word) != 0) {
            e++;
        }
        bool again = false;
        for (int g = 0; g < f->groups; g++) {
            again |= ensembles[g] == (rfa_ensemble)e;
        }
        if (e == RFA_ENSEMBLES || again) {
            return rfa_fail(RFA_ERR_USAGE, "fidelity.ensembles: '%s' %s: iid, shared, smooth", word,
                            again ? "stands there twice" : "is none");
        }
        f->group[f->groups] = rfa_ensemble_name((rfa_ensemble)e);
        ensembles[f->groups++] = (rfa_ensemble)e;
    }
    return f->groups > 0 ? RFA_OK : rfa_fail(RFA_ERR_USAGE, "fidelity.ensembles is empty");
}

static rfa_status sources(rfa_fidelity *f, rfa_ensemble *ensembles, const rfa_config *config)
{
    double norms[RFA_FIDELITY_LIST] = {0};
    f->captured = strcmp(config->fidelity.file, "none") != 0;
    if (f->captured) {
        const int64_t wanted = config->fidelity.heads;
        RFA_TRY(rfa_heads_open(&f->heads, config->fidelity.file));
        f->groups = 1;
        f->group[0] = "captured";
        f->cases = (int)(wanted > 0 && wanted < f->heads.count ? wanted : f->heads.count);
        f->n = (ptrdiff_t)f->heads.n;
        f->d = (ptrdiff_t)f->heads.d;
    } else {
        RFA_TRY(groups(f, ensembles, config->fidelity.ensembles));
        RFA_TRY(numbers(norms, &f->cases, "norms", config->fidelity.norms, 1e-6, 1e3));
        f->n = (ptrdiff_t)config->fidelity.length;
        f->d = (ptrdiff_t)config->fidelity.width;
    }
    RFA_TRY(rfa_alloc(&f->scale, f->cases, sizeof *f->scale, "cases"));
    for (int c = 0; c < f->cases; c++) {
        f->scale[c] = f->captured ? c : norms[c];
    }
    return RFA_OK;
}

// *out = count times NaN.
static rfa_status unknown(double **out, ptrdiff_t count)
{
    RFA_TRY(rfa_alloc(out, count, sizeof **out, "results"));
    for (ptrdiff_t i = 0; i < count; i++) {
        (*out)[i] = NAN;
    }
    return RFA_OK;
}

rfa_status
rfa_fidelity_plan(rfa_fidelity *f, rfa_ensemble ensembles[RFA_ENSEMBLES], const rfa_config *config)
{
    f->trials = (int)config->fidelity.trials;
    RFA_TRY(kinds(f, config->fidelity.kinds));
    RFA_TRY(numbers(f->feature, &f->features, "features", config->fidelity.features, 2, 1 << 20));
    for (int i = 0; i < f->features; i++) {
        if (f->feature[i] != floor(f->feature[i])) {
            return rfa_fail(RFA_ERR_USAGE, "fidelity.features: %g is no whole number",
                            f->feature[i]);
        }
    }
    RFA_TRY(sources(f, ensembles, config));
    const ptrdiff_t heads = (ptrdiff_t)f->groups * f->cases;
    const ptrdiff_t estimates = heads * f->kinds * f->features;
    f->values =
        (ptrdiff_t)config->fidelity.values < f->n ? (ptrdiff_t)config->fidelity.values : f->n;
    RFA_TRY(unknown(&f->norm, heads));
    RFA_TRY(unknown(&f->error, estimates * f->trials * RFA_FIDELITY_STATISTICS));
    RFA_TRY(unknown(&f->power, heads * f->trials));
    RFA_TRY(unknown(&f->exact, heads * f->values));
    RFA_TRY(unknown(&f->exact_rank, heads));
    RFA_TRY(unknown(&f->best, heads * f->features));
    RFA_TRY(unknown(&f->estimated, estimates * f->values));
    return unknown(&f->rank, estimates);
}
