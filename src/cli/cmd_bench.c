#include "bench/bench.h"
#include "bench/record.h"

#include "base/log.h"
#include "cli/bench_lines.h"
#include "cli/blas.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "storage/benchfile.h"
#include "tensor/gemm.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const help[] = {
    "usage: rfa bench CASE... [--config FILE] [--set key=value]... [--repeats N] [--json]",
    "                         [--out FILE.h5]",
    "       rfa bench FILE.yaml ...",
    "",
    "Measures parts of the program on all ranks beside what the same cores reach at the same time.",
    "Each case first checks its own result against a slow reference in double; a wrong one is",
    "named, nothing is timed, and the exit code is 1.",
    "",
    "  gemm       products of n x n matrices (bench.sizes)",
    "  attention  every kind (bench.attention) at bench.lengths, bench.examples examples of",
    "             model.heads heads of model.width / model.heads channels, attention.features",
    "             projections, parallel.segments segments; with its exchange between ranks",
    "  step       a whole training step of the configuration: train.batch examples of",
    "             data.max_length synthetic tokens",
    "  length     the same at each of bench.lengths",
    "  drift      the state of one causal head that goes from window to window (train.window)",
    "             against sums in double, after bench.lengths tokens: largest difference over the",
    "             largest number",
    "",
    "  --config FILE    a configuration; section bench says what to measure where no CASE is given",
    "  --set key=value  changes one key; rfa train --help-config lists them",
    "  --repeats N      timed repeats after one that warms up (bench.repeats)",
    "  --json           one JSON object a line",
    "  --out FILE.h5    also a file of all results, which must not be there yet",
    "",
    "Seconds are those of the slowest rank: minimum, median, maximum of the repeats, which call",
    "short cases often enough for 30 ms. model%: model flops over median seconds, over the rate of",
    "products of bench.ceiling^3 on all threads of all ranks at once, whose samples alternate with",
    "the repeats. Model flops are those of the products that the mathematics needs, 2 m n k each,",
    "nothing twice that is computed twice. With E = H d, and F features of D projections, a layer",
    "of attention costs",
    "  linear kinds  a token 4 D E (features) + 4 F E (state, read-out); backward 4 D E + 8 F E",
    "  softmax       a pair of tokens 4 E; backward 10 E; half of the pairs when causal",
    "and the rest of a model 2 a weight and token, backward 4. done%: the same for the products",
    "that were executed: those within chunks of causal sums count, and all that is done again.",
    "copy%: bytes that must be moved at least (inputs, outputs and their gradients once) over",
    "seconds, over the rate of copying large blocks, sampled likewise. peak: memory that the case",
    "held at once, of the rank that held most. error: of the check.",
    "",
    "  rfa bench gemm",
    "  rfa bench attention --set bench.lengths=65536 --set bench.attention=rfa+causal \\",
    "      --set model.heads=1",
    "  mpirun -n 2 rfa bench step --config configs/lra/listops/rfa.yaml",
    NULL,
};

typedef struct {
    bool json, keep;
    rfa_bench_record record;
    rfa_status broken; // what could not be kept
} output;

static void take(void *context, const rfa_bench_result *result)
{
    output *to = context;
    if (to->json) {
        rfa_bench_print_json(result);
    } else {
        rfa_bench_print_row(result);
    }
    if (to->keep && to->broken == RFA_OK) {
        to->broken = rfa_bench_record_add(&to->record, result);
    }
}

static void describe_machine(const rfa_comm *world, const rfa_config *config)
{
    rfa_note("%d rank%s of %d thread%s, %s, processor with %s", world->size,
             world->size > 1 ? "s" : "", (int)config->parallel.threads,
             config->parallel.threads > 1 ? "s" : "", rfa_gemm_library(), rfa_blas_processor());
    int below = rfa_blas_is_below();
    MPI_Allreduce(MPI_IN_PLACE, &below, 1, MPI_INT, MPI_MAX, world->comm);
    if (below) {
        rfa_note("rfa: warning: the BLAS kernel is not the processor's best%s",
                 getenv("OPENBLAS_CORETYPE") ? ": unset OPENBLAS_CORETYPE" : "");
    }
}

static bool is_file(const char *name)
{
    return strpbrk(name, "./") != NULL;
}

// Cases, or one file, from the arguments.
static rfa_status
read_arguments(char cases[RFA_CONFIG_TEXT], rfa_settings *settings, int argc, char **argv)
{
    cases[0] = '\0';
    for (int i = optind; i < argc; i++) {
        if (is_file(argv[i])) {
            if (settings->file) {
                return rfa_fail(RFA_ERR_USAGE, "bench takes one configuration, not '%s' too",
                                argv[i]);
            }
            settings->file = argv[i];
        } else if (strlen(cases) + strlen(argv[i]) + 2 < RFA_CONFIG_TEXT) {
            const size_t used = strlen(cases);
            snprintf(cases + used, RFA_CONFIG_TEXT - used, "%s%s", used ? "," : "", argv[i]);
        } else {
            return rfa_fail(RFA_ERR_USAGE, "bench: too many cases");
        }
    }
    if (!cases[0] && !settings->file) {
        return rfa_fail(RFA_ERR_USAGE, "bench needs a case or a configuration: rfa bench --help");
    }
    return RFA_OK;
}

static rfa_status
bench(const rfa_comm *world, const rfa_config *config, const char *path, output *to)
{
    if (path) {
        RFA_TRY(rfa_agree(world, world->rank == 0 ? rfa_benchfile_check(path) : RFA_OK));
        to->keep = world->rank == 0;
    }
    describe_machine(world, config);
    if (!to->json) {
        rfa_bench_print_header();
    }
    rfa_status status = rfa_bench_run(config, world, &(rfa_bench_sink){take, to});
    if (status == RFA_OK) {
        status = rfa_agree(world, to->broken);
    }
    if (status == RFA_OK && path) {
        status = rfa_bench_record_write(&to->record, path, config, world);
    }
    rfa_bench_record_destroy(&to->record);
    return status;
}

rfa_status rfa_cmd_bench(const rfa_comm *world, int argc, char **argv)
{
    enum { SET = 256, CONFIG, REPEATS, JSON, OUT, HELP = 'h' };
    static const struct option options[] = {
        {"set", required_argument, NULL, SET},
        {"config", required_argument, NULL, CONFIG},
        {"repeats", required_argument, NULL, REPEATS},
        {"json", no_argument, NULL, JSON},
        {"out", required_argument, NULL, OUT},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    rfa_settings settings = {0};
    char cases[RFA_CONFIG_TEXT], repeats[64] = "";
    const char *path = NULL;
    output to = {0};
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case SET: RFA_TRY(rfa_settings_add(&settings, optarg)); break;
        case CONFIG: settings.file = optarg; break;
        case REPEATS: snprintf(repeats, sizeof repeats, "bench.repeats=%.32s", optarg); break;
        case JSON: to.json = true; break;
        case OUT: path = optarg; break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    RFA_TRY(read_arguments(cases, &settings, argc, argv));
    if (repeats[0]) {
        RFA_TRY(rfa_settings_add(&settings, repeats));
    }
    rfa_config config;
    rfa_config_defaults(&config);
    RFA_TRY(rfa_settings_load(&config, &settings, world));
    if (cases[0]) {
        memset(config.bench.cases, 0, sizeof config.bench.cases);
        snprintf(config.bench.cases, sizeof config.bench.cases, "%s", cases);
    }
    return bench(world, &config, path, &to);
}
