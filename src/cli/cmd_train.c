#include "base/log.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "train/loop.h"
#include "train/plan.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char *const help[] = {
    "usage: rfa train CONFIG [--set key=value]... [--out RUN.h5] [--resume | --overwrite |",
    "                        --dry-run] [--profile]",
    "",
    "Trains the model of a YAML file on all ranks, evaluates it on the validation split as it",
    "goes and on the test split at the end, and records everything in RUN.h5 (default:",
    "runs/<name of CONFIG>.h5).",
    "",
    "  --set key=value  changes one key; may be repeated",
    "  --out RUN.h5     the run file; RUN.jsonl and RUN.ckpt stand beside it; folders are made",
    "  --resume         continues from the last checkpoint, with the digests of a run without a",
    "                   stop",
    "  --overwrite      replaces an existing run",
    "  --dry-run        prints the schedule and the memory that each rank will need, and refuses",
    "                   what can't fit; trains nothing, writes nothing",
    "  --profile        prints at the end where the time of the steps went, and records it",
    "  --help-config    prints every key with type, range, default and meaning",
    "",
    "  mpirun -n 2 rfa train configs/lra/listops/rfa.yaml",
    "  mpirun -n 4 rfa train configs/lra/listops/softmax.yaml --set train.seed=2 --out runs/s2.h5",
    NULL,
};

static void print_line(const char *line)
{
    rfa_print("%s", line);
}

// runs/<name of the configuration without folder and ending>.h5
static void default_run_path(char path[RFA_CONFIG_TEXT], const char *config)
{
    const char *name = strrchr(config, '/') ? strrchr(config, '/') + 1 : config;
    const char *dot = strrchr(name, '.');
    snprintf(path, RFA_CONFIG_TEXT, "runs/%.*s.h5",
             (int)(dot ? dot - name : (ptrdiff_t)strlen(name)), name);
}

rfa_status rfa_cmd_train(const rfa_comm *world, int argc, char **argv)
{
    enum { SET = 256, OUT, RESUME, OVERWRITE, DRY_RUN, PROFILE, HELP_CONFIG, HELP = 'h' };
    static const struct option options[] = {
        {"set", required_argument, NULL, SET},
        {"out", required_argument, NULL, OUT},
        {"resume", no_argument, NULL, RESUME},
        {"overwrite", no_argument, NULL, OVERWRITE},
        {"dry-run", no_argument, NULL, DRY_RUN},
        {"profile", no_argument, NULL, PROFILE},
        {"help-config", no_argument, NULL, HELP_CONFIG},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    bool dry_run = false;
    rfa_settings settings = {0};
    rfa_train_options train = {0};
    char path[RFA_CONFIG_TEXT];
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case SET: RFA_TRY(rfa_settings_add(&settings, optarg)); break;
        case OUT: train.run_path = optarg; break;
        case RESUME: train.resume = true; break;
        case OVERWRITE: train.overwrite = true; break;
        case DRY_RUN: dry_run = true; break;
        case PROFILE: train.profile = true; break;
        case HELP_CONFIG: rfa_config_help(print_line); return RFA_OK;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc) {
        return rfa_fail(RFA_ERR_USAGE,
                        optind == argc ? "train needs a configuration: rfa train --help"
                                       : "train takes one configuration, not '%s' too",
                        argv[argc - 1]);
    }
    if (train.resume && train.overwrite) {
        return rfa_fail(RFA_ERR_USAGE, "--resume and --overwrite exclude each other");
    }
    if (!train.run_path) {
        default_run_path(path, argv[optind]);
        train.run_path = path;
    }
    const size_t length = strlen(train.run_path);
    if (length < 4 || strcmp(train.run_path + length - 3, ".h5") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "--out %s: the name of a run file ends in .h5",
                        train.run_path);
    }
    settings.file = argv[optind];
    rfa_config config;
    RFA_TRY(rfa_settings_load(&config, &settings, world));
    rfa_config_warn(&config);
    if (dry_run) {
        return rfa_plan_memory(&config, world);
    }
    rfa_session session;
    RFA_TRY(rfa_session_create(&session, &config, world, "train"));
    const rfa_status status = rfa_train(&session, &train);
    rfa_session_destroy(&session);
    return status;
}
