#include "probe/probe.h"

#include "base/log.h"
#include "cli/commands.h"
#include "cli/trained.h"
#include "storage/arrayfile.h"
#include "storage/benchfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const help[] = {
    "usage: rfa probe RUN.h5 [--best] [--untrained] [--examples n] [--ridge r,r,...]",
    "                 [--data FILE] [--set key=value]... [--out FILE.h5]",
    "",
    "Reads the labels off each layer's output by ridge regression with one-hot targets: features",
    "are the mean over tokens, and the first token (the last, where the run reads that), columns",
    "standardised, with an intercept. Solved by PDPOSV on all ranks; of several ridges the one",
    "with the best validation is taken. Layer 0 is the embedding, l the output of block l.",
    "",
    "  --untrained    also from the same model as it was initialised: the floor that training must",
    "                 beat",
    "  --examples n   training examples (all)",
    "  --ridge        factors of |W|^2 beside the mean square error, ascending",
    "                 (1e-6,1e-5,1e-4,1e-3,1e-2,1e-1,1,10)",
    "  --out FILE.h5  also a file of the accuracies at all ridges",
    "  --best, --set  as of rfa capture",
    "",
    "  mpirun -n 2 rfa probe runs/softmax.h5 --untrained --examples 4000 --out probe.h5",
    NULL,
};

enum { MODELS = 2 };
static const char *const model_names[MODELS] = {"trained", "untrained"};

typedef struct {
    rfa_trained trained;
    const char *out;
    bool untrained;
    int64_t examples;
    double ridge[RFA_PROBE_RIDGES];
    int ridges;
    rfa_probe_result result[MODELS];
} probe;

static rfa_status parse_ridges(probe *p, const char *text)
{
    p->ridges = 0;
    for (const char *at = text; *at;) {
        char *end = NULL;
        const double value = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(value > 0 && value < 1e300) ||
            (p->ridges > 0 && value <= p->ridge[p->ridges - 1]) || p->ridges == RFA_PROBE_RIDGES) {
            return rfa_fail(RFA_ERR_USAGE, "--ridge %s: must be up to %d ascending numbers above 0",
                            text, RFA_PROBE_RIDGES);
        }
        p->ridge[p->ridges++] = value;
        at = *end ? end + 1 : end;
    }
    return p->ridges > 0 ? RFA_OK : rfa_fail(RFA_ERR_USAGE, "--ridge: no number");
}

static void print_row(const probe *p, ptrdiff_t set)
{
    const rfa_probe_result *one = &p->result[0];
    char line[160];
    const ptrdiff_t layer = set / RFA_PROBE_POOLINGS;
    int used = snprintf(line, sizeof line, "%5td  %-5s", layer,
                        set % RFA_PROBE_POOLINGS == 0 ? "mean"
                        : one->last                   ? "last"
                                                      : "first");
    const int models = p->untrained ? MODELS : 1;
    for (int m = 0; m < models; m++) {
        const rfa_probe_result *r = &p->result[m];
        const double *a = r->accuracy + (set * r->ridges + r->chosen[set]) * RFA_PROBE_SPLITS;
        used += snprintf(line + used, sizeof line - (size_t)used, "  %7.0e  %.4f  %.4f",
                         p->ridge[r->chosen[set]], a[RFA_PROBE_VAL], a[RFA_PROBE_TEST]);
    }
    rfa_print("%s", line);
}

static void print_table(const probe *p)
{
    const rfa_probe_result *r = &p->result[0];
    rfa_print("%" PRId64 " training examples, %" PRId64 " validation, %" PRId64
              " test; majority class %d: val %.4f, test %.4f",
              r->examples, r->seen[RFA_PROBE_VAL], r->seen[RFA_PROBE_TEST], r->majority,
              r->baseline[RFA_PROBE_VAL], r->baseline[RFA_PROBE_TEST]);
    rfa_print("layer  pool     ridge     val    test%s",
              p->untrained ? "  untrained:     val    test" : "");
    for (ptrdiff_t set = 0; set < r->sets; set++) {
        print_row(p, set);
    }
}

// Numbers of the file.
typedef struct {
    double *layer;    // [layers]
    double *accuracy; // [models][sets][ridges][splits]
    double *best;     // [models][sets][splits]
    double *ridge;    // [models][sets] chosen
} numbers;

static rfa_status fill_numbers(numbers *to, const probe *p, int models)
{
    const rfa_probe_result *one = &p->result[0];
    const ptrdiff_t sets = one->sets, all = sets * p->ridges * RFA_PROBE_SPLITS;
    RFA_TRY(rfa_alloc(&to->layer, one->layers, sizeof(double), "results"));
    RFA_TRY(rfa_alloc(&to->accuracy, models * all, sizeof(double), "results"));
    RFA_TRY(rfa_alloc(&to->best, models * sets * RFA_PROBE_SPLITS, sizeof(double), "results"));
    RFA_TRY(rfa_alloc(&to->ridge, models * sets, sizeof(double), "results"));
    for (ptrdiff_t i = 0; i < one->layers; i++) {
        to->layer[i] = (double)i;
    }
    for (int m = 0; m < models; m++) {
        const rfa_probe_result *r = &p->result[m];
        memcpy(to->accuracy + m * all, r->accuracy, (size_t)all * sizeof(double));
        for (ptrdiff_t set = 0; set < sets; set++) {
            const double *a = r->accuracy + (set * p->ridges + r->chosen[set]) * RFA_PROBE_SPLITS;
            memcpy(to->best + (m * sets + set) * RFA_PROBE_SPLITS, a,
                   RFA_PROBE_SPLITS * sizeof(double));
            to->ridge[m * sets + set] = p->ridge[r->chosen[set]];
        }
    }
    return RFA_OK;
}

static rfa_status write_file(const probe *p, const rfa_attributes *attributes)
{
    enum { MODEL, LAYER, POOLING, RIDGE, SPLIT, SCALES };
    const rfa_probe_result *one = &p->result[0];
    const int models = p->untrained ? MODELS : 1;
    const char *const poolings[] = {"mean", one->last ? "last" : "first"};
    static const char *const splits[] = {"val", "test"};
    numbers n = {0};
    char *config = NULL;
    rfa_status status = rfa_config_text(&config, &p->trained.session.config);
    if (status == RFA_OK) {
        status = fill_numbers(&n, p, models);
    }
    if (status == RFA_OK) {
        const rfa_array_scale scales[SCALES] = {
            [MODEL] = {"model", "1", "parameters", NULL, model_names, models},
            [LAYER] = {"layer", "1", "0: the embedding, l: output of block l", n.layer, NULL,
                       one->layers},
            [POOLING] = {"pooling", "1", "of tokens", NULL, poolings, RFA_PROBE_POOLINGS},
            [RIDGE] = {"ridge", "1", "factor of |W|^2", p->ridge, NULL, p->ridges},
            [SPLIT] = {"split", "1", "part of the data", NULL, splits, RFA_PROBE_SPLITS},
        };
        const rfa_array arrays[] = {
            {NULL,
             "accuracy",
             "1",
             "share of right labels",
             {MODEL, LAYER, POOLING, RIDGE, SPLIT},
             5,
             n.accuracy},
            {NULL,
             "best",
             "1",
             "the same at the ridge of best validation",
             {MODEL, LAYER, POOLING, SPLIT},
             4,
             n.best},
            {NULL, "best_ridge", "1", "that ridge", {MODEL, LAYER, POOLING}, 3, n.ridge},
            {NULL,
             "majority",
             "1",
             "accuracy of the most frequent class of training",
             {SPLIT},
             1,
             one->baseline},
        };
        status = rfa_arrayfile_write(p->out, "rfa probe 1", attributes, config, scales, SCALES,
                                     arrays, (int)(sizeof arrays / sizeof *arrays));
    }
    rfa_free(n.layer);
    rfa_free(n.accuracy);
    rfa_free(n.best);
    rfa_free(n.ridge);
    rfa_free(config);
    return status;
}

static rfa_status run(probe *p, rfa_dataset *const *data, const rfa_comm *world)
{
    rfa_session *session = &p->trained.session;
    rfa_attributes attributes = {0};
    if (p->untrained) { // before the checkpoint takes the place of the initial values
        RFA_TRY(rfa_probe_run(&p->result[1], session, data, p->examples, p->ridge, p->ridges));
    }
    RFA_TRY(rfa_trained_load(&p->trained));
    RFA_TRY(rfa_probe_run(&p->result[0], session, data, p->examples, p->ridge, p->ridges));
    rfa_note("%s after step %" PRId64 ", %s", p->trained.run, session->step,
             rfa_dataset_path(session->data));
    print_table(p);
    rfa_status status = RFA_OK;
    if (p->out) {
        const rfa_run_attribute examples = {.name = "examples",
                                            .number = (double)p->result[0].examples,
                                            .integer = p->result[0].examples,
                                            .whole = true};
        status = rfa_trained_describe(&attributes, &p->trained);
        if (status == RFA_OK && world->rank == 0) {
            status = rfa_attributes_set(&attributes, &examples);
            status = status == RFA_OK ? write_file(p, &attributes) : status;
        }
        status = rfa_agree(world, status);
    }
    rfa_attributes_free(&attributes);
    return status;
}

static rfa_status run_on_splits(probe *p, const rfa_comm *world)
{
    const rfa_session *session = &p->trained.session;
    const char *path = session->config.data.file;
    rfa_dataset *data[RFA_PROBE_SPLITS] = {NULL};
    rfa_status status = rfa_dataset_open(&data[RFA_PROBE_VAL], &session->grid.all, path, "val");
    if (status == RFA_OK) {
        status = rfa_dataset_open(&data[RFA_PROBE_TEST], &session->grid.all, path, "test");
    }
    if (status == RFA_OK) {
        status = run(p, data, world);
    }
    for (int i = 0; i < RFA_PROBE_SPLITS; i++) {
        rfa_dataset_close(&data[i]);
    }
    for (int m = 0; m < MODELS; m++) {
        rfa_probe_destroy(&p->result[m]);
    }
    return status;
}

rfa_status rfa_cmd_probe(const rfa_comm *world, int argc, char **argv)
{
    enum { DATA = 256, BEST, SET, OUT, UNTRAINED, EXAMPLES, RIDGE, HELP = 'h' };
    static const struct option options[] = {
        {"data", required_argument, NULL, DATA},
        {"best", no_argument, NULL, BEST},
        {"set", required_argument, NULL, SET},
        {"out", required_argument, NULL, OUT},
        {"untrained", no_argument, NULL, UNTRAINED},
        {"examples", required_argument, NULL, EXAMPLES},
        {"ridge", required_argument, NULL, RIDGE},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    probe p = {.trained = {.split = "train", .whole = true}};
    RFA_TRY(parse_ridges(&p, "1e-6,1e-5,1e-4,1e-3,1e-2,1e-1,1,10"));
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case DATA: p.trained.data = optarg; break;
        case BEST: p.trained.best = true; break;
        case SET: RFA_TRY(rfa_settings_add(&p.trained.settings, optarg)); break;
        case OUT: p.out = optarg; break;
        case UNTRAINED: p.untrained = true; break;
        case EXAMPLES: {
            char *end = NULL;
            p.examples = strtoll(optarg, &end, 10);
            if (end == optarg || *end || p.examples < 1) {
                return rfa_fail(RFA_ERR_USAGE, "--examples %s: must be a number from 1 on", optarg);
            }
            break;
        }
        case RIDGE: RFA_TRY(parse_ridges(&p, optarg)); break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc) {
        return rfa_fail(RFA_ERR_USAGE, "probe needs one run file: rfa probe --help");
    }
    p.trained.run = argv[optind];
    if (p.out) {
        RFA_TRY(rfa_agree(world, world->rank == 0 ? rfa_benchfile_check(p.out) : RFA_OK));
    }
    RFA_TRY(rfa_trained_open(&p.trained, world));
    const rfa_status status = run_on_splits(&p, world);
    rfa_trained_close(&p.trained);
    return status;
}
