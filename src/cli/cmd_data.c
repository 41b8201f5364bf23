#include "base/log.h"
#include "cli/commands.h"
#include "cli/data_listops.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_HELP = 'h',
    KEY_OUT = 'o',
    KEY_FORCE = 'f',
    KEY_FROM = 0x100,
    KEY_TRAIN,
    KEY_VAL,
    KEY_TEST,
    KEY_SEED,
    KEY_MIN_LENGTH,
    KEY_MAX_LENGTH,
    KEY_MAX_DEPTH,
    KEY_MAX_ARGS,
    KEY_P_OP,
};

static const struct argp_option options[] = {
    {"out", KEY_OUT, "FILE", 0, "HDF5 file to write (data/listops.h5); its folder is made", 1},
    {"force", KEY_FORCE, NULL, 0, "Overwrite an existing file", 1},
    {"from", KEY_FROM, "DIR", 0,
     "Import the released basic_train.tsv, basic_val.tsv and basic_test.tsv from DIR, or from "
     "listops-1000 below it, instead of generating",
     1},
    {NULL, 0, NULL, 0, "Generator:", 2},
    {"train", KEY_TRAIN, "N", 0, "Training examples (96000)", 2},
    {"val", KEY_VAL, "N", 0, "Validation examples (2000)", 2},
    {"test", KEY_TEST, "N", 0, "Test examples (2000)", 2},
    {"seed", KEY_SEED, "S", 0, "Seed (1)", 2},
    {"min-length", KEY_MIN_LENGTH, "N", 0, "Only trees of more than N tokens (500)", 2},
    {"max-length", KEY_MAX_LENGTH, "N", 0, "Only trees of fewer than N tokens (2000)", 2},
    {"max-depth", KEY_MAX_DEPTH, "N", 0, "Depth of the deepest digits, the root has 1 (10)", 2},
    {"max-args", KEY_MAX_ARGS, "N", 0, "Most arguments of an operator, least is 2 (10)", 2},
    {"p-op", KEY_P_OP, "P", 0, "Probability that a node is an operator (0.25)", 2},
    {NULL, 0, NULL, 0, "", 3},
    {"help", KEY_HELP, NULL, 0, "Print this help", 3},
    {0},
};

static const char text[] =
    "Writes the ListOps task of the Long Range Arena as one HDF5 data set.\v"
    "Examples:\n"
    "  rfa data listops                          the task as published\n"
    "  mpirun -n 8 rfa data listops              the same file, sooner\n"
    "  rfa data listops --out small.h5 --train 2000 --val 200 --test 200 \\\n"
    "      --min-length 50 --max-length 200 --max-depth 5\n"
    "  rfa data listops --from lra_release --out data/listops-released.h5\n"
    "\n"
    "The file depends on the options only, not on the number of ranks. It has the\n"
    "groups train, val and test with tokens, offsets, lengths and labels, and reads\n"
    "with h5py as it is.";

// What the parser collects besides the options themselves.
typedef struct {
    rfa_data_listops *options;
    const char *generator_option; // the first one given, NULL when none
    int next;                     // argument after the one that argp refused
    rfa_status status;
} parse_state;

static rfa_status
parse_int(int64_t *out, const char *option, const char *value, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end != 0 || strchr(" \t\n", value[0])) {
        return rfa_fail(RFA_ERR_USAGE, "%s '%s': not an integer", option, value);
    }
    if (errno != 0 || number < least || number > most) {
        return rfa_fail(RFA_ERR_USAGE, "%s %s: not in %lld to %lld", option, value,
                        (long long)least, (long long)most);
    }
    *out = number;
    return RFA_OK;
}

static rfa_status parse_double(double *out, const char *option, const char *value)
{
    char *end;
    errno = 0;
    const double number = strtod(value, &end);
    if (end == value || *end != 0 || errno != 0 || !isfinite(number) || strchr(" \t\n", value[0])) {
        return rfa_fail(RFA_ERR_USAGE, "%s '%s': not a number", option, value);
    }
    *out = number;
    return RFA_OK;
}

static rfa_status parse_path(char out[RFA_DATA_PATH], const char *option, const char *value)
{
    const size_t size = strlen(value) + 1;
    if (size == 1 || size > RFA_DATA_PATH - 16) {
        return rfa_fail(RFA_ERR_USAGE, "%s: a path of %zu bytes", option, size - 1);
    }
    memcpy(out, value, size);
    return RFA_OK;
}

static const char *option_name(int key)
{
    static char name[32];
    for (const struct argp_option *o = options; o->name || o->doc; o++) {
        if (o->key == key) {
            snprintf(name, sizeof name, "--%s", o->name);
        }
    }
    return name;
}

static rfa_status take(parse_state *p, int key, const char *value)
{
    enum { MOST = 50000000 };
    rfa_data_listops *o = p->options;
    const char *name = option_name(key);
    int64_t number = 0;
    rfa_status status = RFA_OK;
    switch (key) {
    case KEY_HELP: o->help = true; return RFA_OK;
    case KEY_FORCE: o->force = true; return RFA_OK;
    case KEY_OUT: return parse_path(o->out, name, value);
    case KEY_FROM: return parse_path(o->from, name, value);
    default: break;
    }
    if (!p->generator_option) {
        for (const struct argp_option *g = options; g->name || g->doc; g++) {
            p->generator_option = g->key == key ? g->name : p->generator_option;
        }
    }
    switch (key) {
    case KEY_TRAIN: return parse_int(&o->examples[0], name, value, 1, MOST);
    case KEY_VAL: return parse_int(&o->examples[1], name, value, 1, MOST);
    case KEY_TEST: return parse_int(&o->examples[2], name, value, 1, MOST);
    case KEY_MIN_LENGTH: return parse_int(&o->tree.min_length, name, value, 0, INT32_MAX);
    case KEY_MAX_LENGTH: return parse_int(&o->tree.max_length, name, value, 0, INT32_MAX);
    case KEY_P_OP: return parse_double(&o->tree.p_op, name, value);
    case KEY_SEED:
        status = parse_int(&number, name, value, 0, INT64_MAX);
        o->tree.seed = (uint64_t)number;
        return status;
    case KEY_MAX_DEPTH:
        status = parse_int(&number, name, value, 0, INT32_MAX);
        o->tree.max_depth = (int)number;
        return status;
    case KEY_MAX_ARGS:
        status = parse_int(&number, name, value, 0, INT32_MAX);
        o->tree.max_args = (int)number;
        return status;
    default: return rfa_fail(RFA_ERR_INTERNAL, "option %d is not handled", key);
    }
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    parse_state *p = state->input;
    switch (key) {
    case ARGP_KEY_ERROR: p->next = state->next; return 0;
    case ARGP_KEY_INIT:
    case ARGP_KEY_FINI:
    case ARGP_KEY_SUCCESS:
    case ARGP_KEY_END:
    case ARGP_KEY_NO_ARGS: return 0;
    case ARGP_KEY_ARGS: return ARGP_ERR_UNKNOWN; // one by one, please
    case ARGP_KEY_ARG:
        p->status = rfa_fail(RFA_ERR_USAGE, "rfa data listops: unexpected '%s'; see --help", value);
        return EINVAL;
    default: break;
    }
    p->status = take(p, key, value);
    return p->status == RFA_OK ? 0 : EINVAL;
}

static const struct argp parser = {.options = options, .parser = parse_option, .doc = text};

// argp only says that something was wrong with the argument before `next`. Local.
static rfa_status explain(int argc, char **argv, int next)
{
    const char *bad = next - 1 >= 1 && next - 1 < argc ? argv[next - 1] : "";
    const size_t length = strcspn(bad, "=");
    for (const struct argp_option *o = options; o->name || o->doc; o++) {
        if (o->name && length > 2 && strncmp(bad, "--", 2) == 0 && strlen(o->name) == length - 2 &&
            strncmp(bad + 2, o->name, length - 2) == 0) {
            return rfa_fail(RFA_ERR_USAGE, "rfa data listops: %.*s takes %s value", (int)length,
                            bad, o->arg ? "a" : "no");
        }
    }
    return rfa_fail(RFA_ERR_USAGE, "rfa data listops: unknown option '%s'; see --help", bad);
}

// On rank 0. argv[0] is "listops".
static rfa_status parse(rfa_data_listops *o, int argc, char **argv)
{
    parse_state state = {.options = o};
    const error_t error =
        argp_parse(&parser, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_NO_ERRS, NULL, &state);
    if (o->help) {
        char name[] = "rfa data listops";
        argp_help(&parser, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
        fflush(stdout);
        return RFA_OK;
    }
    if (state.status != RFA_OK) {
        return state.status;
    }
    if (error) {
        return explain(argc, argv, state.next);
    }
    if (o->from[0] && state.generator_option) {
        return rfa_fail(RFA_ERR_USAGE,
                        "--from imports files, so --%s, which is for the generator, has no meaning",
                        state.generator_option);
    }
    return o->from[0] ? RFA_OK : rfa_listops_check(&o->tree);
}

static void print_summary(const rfa_data_listops *o, const rfa_data_summary *summary)
{
    rfa_print("file %s", o->out);
    rfa_print("digest %s", summary->digest);
    for (int s = 0; s < RFA_LISTOPS_SPLITS; s++) {
        char shares[128] = "";
        const double n = (double)summary->examples[s];
        for (int c = 0; c < RFA_LISTOPS_CLASSES; c++) {
            const size_t used = strlen(shares);
            snprintf(shares + used, sizeof shares - used, " %.1f",
                     100.0 * (double)summary->counts[s][c] / n);
        }
        rfa_print(
            "%s %lld examples, %lld tokens, lengths %lld to %lld, mean %.0f; labels 0 to 9 in "
            "%%:%s",
            rfa_listops_splits[s], (long long)summary->examples[s], (long long)summary->tokens[s],
            (long long)summary->shortest[s], (long long)summary->longest[s],
            (double)summary->tokens[s] / n, shares);
    }
    if (o->from[0]) {
        rfa_print("duplicates %lld within splits, %lld across splits", (long long)summary->repeats,
                  (long long)summary->leaks);
    } else {
        rfa_print("candidates %lld, of which %lld (%.1f %%) were of the right length, and %lld of "
                  "these were duplicates and dropped",
                  (long long)summary->candidates, (long long)summary->in_window,
                  100.0 * (double)summary->in_window / (double)summary->candidates,
                  (long long)summary->repeats);
    }
}

static rfa_status listops(const rfa_comm *world, int argc, char **argv)
{
    rfa_data_listops o = {
        .out = "data/listops.h5", .examples = {96000, 2000, 2000}, .tree = rfa_listops_defaults()};
    rfa_data_summary summary;
    RFA_TRY(rfa_agree(world, world->rank == 0 ? parse(&o, argc, argv) : RFA_OK));
    MPI_Bcast(&o, (int)sizeof o, MPI_BYTE, 0, world->comm);
    if (o.help) {
        return RFA_OK;
    }
    if (o.from[0]) {
        RFA_TRY(rfa_data_listops_import(world, &o, &summary));
    } else {
        RFA_TRY(rfa_data_listops_generate(world, &o, &summary));
    }
    print_summary(&o, &summary);
    return RFA_OK;
}

static const char usage[] = "Usage: rfa data TASK [OPTION...]\n"
                            "Makes a data set. TASK is one of:\n"
                            "\n"
                            "  listops    nested prefix expressions (Long Range Arena)\n"
                            "\n"
                            "Examples:\n"
                            "  rfa data listops            writes data/listops.h5\n"
                            "  rfa data listops --help     all its options";

rfa_status rfa_cmd_data(const rfa_comm *world, int argc, char **argv)
{
    const char *task = argc > 1 ? argv[1] : "";
    if (strcmp(task, "listops") == 0) {
        return listops(world, argc - 1, argv + 1);
    }
    if (strcmp(task, "--help") == 0 || strcmp(task, "-h") == 0) {
        rfa_print("%s", usage);
        return RFA_OK;
    }
    if (argc > 1) {
        return rfa_fail(RFA_ERR_USAGE, "rfa data: unknown task '%s'; the only one is listops",
                        task);
    }
    return rfa_fail(RFA_ERR_USAGE, "rfa data: which task? The only one is listops");
}
