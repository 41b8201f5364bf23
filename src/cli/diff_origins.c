#include "base/mem.h"
#include "cli/diff.h"
#include "config/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static rfa_status parse(rfa_config *config, const rfa_diff_side *side)
{
    rfa_config_defaults(config);
    if (rfa_config_parse(config, side->view.config_text, "configuration") != RFA_OK) {
        return rfa_fail_within(RFA_ERR_IO, "%s", side->path);
    }
    return RFA_OK;
}

// Keys that change no result: those whose value in B changes nothing that counts in A.
static rfa_status neutral_differences(char *text,
                                      size_t size,
                                      int *count,
                                      const rfa_config *a,
                                      const rfa_diff_side *left,
                                      const rfa_diff_side *right)
{
    rfa_attributes keys_a = {0}, keys_b = {0};
    char *x = NULL, *y = NULL;
    rfa_status status = rfa_attributes_parse(&keys_a, left->view.config_text);
    if (status == RFA_OK) {
        status = rfa_attributes_parse(&keys_b, right->view.config_text);
    }
    text[0] = '\0';
    for (int64_t i = 0; i < keys_a.count && status == RFA_OK; i++) {
        const rfa_run_attribute *key = &keys_a.items[i],
                                *other = rfa_attributes_find(&keys_b, key->name);
        char assignment[RFA_CONFIG_TEXT + 128], ignored[8];
        if (!other) {
            continue;
        }
        status = rfa_attribute_word(&x, key, false);
        if (status == RFA_OK) {
            status = rfa_attribute_word(&y, other, false);
        }
        if (status == RFA_OK && strcmp(x, y) != 0) {
            rfa_config changed = *a;
            snprintf(assignment, sizeof assignment, "%s=%s", key->name, y);
            status = rfa_config_set(&changed, assignment);
            if (status == RFA_OK &&
                rfa_config_differences(ignored, sizeof ignored, &changed, a) == 0) {
                const size_t used = strlen(text);
                snprintf(text + used, size - used, "%s%s (A %s, B %s)", *count > 0 ? ", " : "",
                         key->name, x, y);
                *count += 1;
            }
        }
        rfa_free(x);
        rfa_free(y);
        x = y = NULL;
    }
    rfa_attributes_free(&keys_a);
    rfa_attributes_free(&keys_b);
    return status;
}

static rfa_status configurations(const rfa_diff_side *a, const rfa_diff_side *b)
{
    enum { TEXT = 4096 };
    rfa_config left, right;
    char text[TEXT];
    int neutral = 0;
    if (!a->view.config_text[0] || !b->view.config_text[0]) {
        printf("configuration  unknown: %s has steps alone\n",
               a->view.config_text[0] ? b->path : a->path);
        return RFA_OK;
    }
    RFA_TRY(parse(&left, a));
    RFA_TRY(parse(&right, b));
    if (rfa_config_differences(text, sizeof text, &right, &left) > 0) {
        printf("configuration  %s\n", text);
    }
    RFA_TRY(neutral_differences(text, sizeof text, &neutral, &left, a, b));
    if (neutral > 0) {
        printf("neutral keys   %s\n", text);
    }
    return RFA_OK;
}

// A root attribute as text; rfa_free(*out).
static rfa_status word(char **out, const rfa_diff_side *side, const char *name)
{
    const rfa_run_attribute *attribute = rfa_attributes_find(&side->view.attributes, name);
    const rfa_run_attribute unknown = {.name = name, .text = "unknown"};
    return rfa_attribute_word(out, attribute ? attribute : &unknown, false);
}

rfa_status rfa_diff_origins(const rfa_diff_side *a, const rfa_diff_side *b)
{
    static const struct {
        const char *name, *title;
    } facts[] = {
        {"data_digest", "data"},
        {"commit", "commit"},
        {"modified", "modified"},
        {"compiler", "compiler"},
        {"cpu_level", "CPU level"},
        {"blas", "BLAS"},
        {"mpi", "MPI"},
        {"hdf5", "HDF5"},
        {"ranks", "ranks"},
        {"ranks_sequence", "per sequence"},
        {"rank_independent", "rank-free"},
    };
    RFA_TRY(configurations(a, b));
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        char *x = NULL, *y = NULL;
        rfa_status status = word(&x, a, facts[i].name);
        if (status == RFA_OK) {
            status = word(&y, b, facts[i].name);
        }
        if (status == RFA_OK && strcmp(x, y) != 0) {
            printf("%-13s  A %s, B %s\n", facts[i].title, x, y);
        }
        rfa_free(x);
        rfa_free(y);
        RFA_TRY(status);
    }
    return RFA_OK;
}
