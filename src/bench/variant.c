#include "bench/variant.h"

#include <stdio.h>
#include <string.h>

// A word is a key with a value.
static const struct {
    const char *word, *assignment;
} words[] = {
    {"rfa", "attention.kind=rfa"},
    {"elu", "attention.kind=elu"},
    {"performer", "attention.kind=performer"},
    {"softmax", "attention.kind=softmax"},
    {"ra", "attention.kind=ra"},
    {"lara", "attention.kind=lara"},
    {"eva", "attention.kind=eva"},
    {"causal", "attention.causal=true"},
    {"both", "attention.direction=both"},
    {"reverse", "attention.direction=reverse"},
    {"gated", "attention.gate=learned"},
    {"decay", "attention.gate=decay"},
    {"arccos", "attention.map=arccos"},
    {"oprf", "attention.map=oprf"},
    {"free", "attention.norm=free"},
    {"orthogonal", "attention.rows=orthogonal"},
    {"simplex", "attention.rows=simplex"},
    {"fastfood", "attention.rows=fastfood"},
    {"temperature", "attention.sigma=temperature"},
    {"mean", "attention.landmark_map=mean"},
    {"balance", "attention.weights=balance"},
    {"biased", "attention.weights=biased"},
};

const char *rfa_bench_variants(void)
{
    return "rfa, rfa+causal, rfa+causal+gated, rfa+causal+decay, rfa+arccos, rfa+free, "
           "rfa+fastfood, elu, elu+causal, performer, performer+causal, performer+oprf, softmax, "
           "softmax+causal, ra, ra+causal, lara, eva, eva+causal";
}

static const char *find(const char *word, size_t length)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0) {
            return words[i].assignment;
        }
    }
    return NULL;
}

static rfa_status unknown(const char *word, const char *name)
{
    char known[512] = "own";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        rfa_bench_append(known, sizeof known, ", %s", words[i].word);
    }
    return rfa_fail(RFA_ERR_USAGE, "bench.attention: no word '%s' in '%s': %s", word, name, known);
}

// Keeps what is a size.
static void restart(rfa_config *config)
{
    rfa_config defaults;
    rfa_config_defaults(&defaults);
    defaults.attention.features = config->attention.features;
    defaults.attention.pool = config->attention.pool;
    defaults.attention.landmarks = config->attention.landmarks;
    defaults.attention.draws = config->attention.draws;
    defaults.attention.window = config->attention.window;
    config->attention = defaults.attention;
    config->model.pooling = RFA_POOLING_MEAN; // no business of attention
}

rfa_status rfa_bench_variant(rfa_config *out, const rfa_config *config, const char *name)
{
    *out = *config;
    out->model.pooling = RFA_POOLING_MEAN;
    for (const char *at = name; *at;) {
        char word[RFA_BENCH_NAME];
        const size_t length = strcspn(at, "+");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        const char *assignment = find(word, strlen(word));
        at += length + (at[length] == '+');
        if (strcmp(word, "own") == 0) {
            continue;
        }
        if (!assignment) {
            return unknown(word, name);
        }
        if (strncmp(assignment, "attention.kind", 14) == 0) {
            restart(out);
        }
        RFA_TRY(rfa_config_set(out, assignment));
    }
    if (rfa_config_check(out) != RFA_OK) {
        return rfa_fail_within(RFA_ERR_USAGE, "bench.attention '%s'", name);
    }
    return RFA_OK;
}

void rfa_bench_variant_name(char name[RFA_BENCH_NAME], const rfa_config *config)
{
    size_t used = 0;
    name[0] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        rfa_config same = *config;
        if (rfa_config_set(&same, words[i].assignment) == RFA_OK &&
            rfa_config_differences(NULL, 0, &same, config) == 0 &&
            used + strlen(words[i].word) + 1 < RFA_BENCH_NAME) {
            used += (size_t)snprintf(name + used, RFA_BENCH_NAME - used, "%s%s", used ? "+" : "",
                                     words[i].word);
        }
    }
}
