#include "probe/capture.h"

#include "base/log.h"
#include "cli/commands.h"
#include "cli/trained.h"
#include "storage/benchfile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const help[] = {
    "usage: rfa capture RUN.h5 --out FILE.h5 [--best] [--split test] [--layer l]",
    "                   [--examples n | --example i] [--tokens N] [--data FILE] [--set key=value]",
    "",
    "Writes queries, keys and values that the attention of a trained run sees, of all heads of a",
    "layer, by all ranks in parallel: /q, /k, /v [heads][N][d], with /example, /layer, /head of",
    "each, and /out, what the run's own attention made of them. Queries and keys are as projected,",
    "before the kind scales, norms or maps them; softmax takes exp(q . k / sqrt(d)). Every",
    "value is the same to the bit for any number of ranks.",
    "",
    "  --layer l      from 0 on; without it, all layers",
    "  --examples n   the first n examples of the split that are long enough (1)",
    "  --example i    this one alone",
    "  --tokens N     only examples of N tokens or more, cut to N before the model sees them;",
    "                 without it they are cut to the shortest of them",
    "  --best         the parameters of the best validation, not the last ones",
    "  --set          how to compute: train.batch, parallel.*",
    "",
    "  mpirun -n 2 rfa capture runs/softmax.h5 --split test --examples 4 --tokens 1024 --out h.h5",
    "  mpirun -n 2 rfa fidelity configs/fidelity/captured.yaml --heads h.h5 --out fidelity.h5",
    NULL,
};

static rfa_status number(int64_t *out, const char *option, const char *text, int64_t least)
{
    char *end = NULL;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < least) {
        return rfa_fail(RFA_ERR_USAGE, "%s %s: must be a number from %" PRId64 " on", option, text,
                        least);
    }
    *out = value;
    return RFA_OK;
}

static rfa_status capture_run(rfa_trained *trained, const rfa_capture *asked, const rfa_comm *world)
{
    rfa_capture capture = *asked;
    rfa_attributes attributes = {0};
    char *config = NULL;
    int64_t heads = 0, tokens = 0;
    RFA_TRY(rfa_trained_load(trained));
    rfa_status status = rfa_trained_describe(&attributes, trained);
    if (status == RFA_OK) {
        status = rfa_agree(world, rfa_config_text(&config, &trained->session.config));
    }
    if (status == RFA_OK) {
        capture.attributes = &attributes;
        capture.config_text = config;
        status = rfa_capture_run(&heads, &tokens, &trained->session, world, &capture);
    }
    if (status == RFA_OK) {
        rfa_print("%s: %" PRId64 " heads of %" PRId64 " tokens, %s after step %" PRId64,
                  capture.path, heads, tokens, trained->run, trained->session.step);
    }
    rfa_free(config);
    rfa_attributes_free(&attributes);
    return status;
}

rfa_status rfa_cmd_capture(const rfa_comm *world, int argc, char **argv)
{
    enum { DATA = 256, SPLIT, BEST, SET, OUT, LAYER, EXAMPLES, EXAMPLE, TOKENS, HELP = 'h' };
    static const struct option options[] = {
        {"data", required_argument, NULL, DATA},
        {"split", required_argument, NULL, SPLIT},
        {"best", no_argument, NULL, BEST},
        {"set", required_argument, NULL, SET},
        {"out", required_argument, NULL, OUT},
        {"layer", required_argument, NULL, LAYER},
        {"examples", required_argument, NULL, EXAMPLES},
        {"example", required_argument, NULL, EXAMPLE},
        {"tokens", required_argument, NULL, TOKENS},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    rfa_trained trained = {.split = "test", .whole = true};
    rfa_capture capture = {.examples = 1, .example = -1};
    int64_t layer = -1;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case DATA: trained.data = optarg; break;
        case SPLIT: trained.split = optarg; break;
        case BEST: trained.best = true; break;
        case SET: RFA_TRY(rfa_settings_add(&trained.settings, optarg)); break;
        case OUT: capture.path = optarg; break;
        case LAYER: RFA_TRY(number(&layer, "--layer", optarg, 0)); break;
        case EXAMPLES: RFA_TRY(number(&capture.examples, "--examples", optarg, 1)); break;
        case EXAMPLE: RFA_TRY(number(&capture.example, "--example", optarg, 0)); break;
        case TOKENS: RFA_TRY(number(&capture.tokens, "--tokens", optarg, 2)); break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc || !capture.path) {
        return rfa_fail(RFA_ERR_USAGE, "capture needs one run and --out: rfa capture --help");
    }
    capture.layer = layer < INT32_MAX ? (int)layer : INT32_MAX;
    trained.run = argv[optind];
    RFA_TRY(rfa_agree(world, world->rank == 0 ? rfa_benchfile_check(capture.path) : RFA_OK));
    RFA_TRY(rfa_trained_open(&trained, world));
    const rfa_status status = capture_run(&trained, &capture, world);
    rfa_trained_close(&trained);
    return status;
}
