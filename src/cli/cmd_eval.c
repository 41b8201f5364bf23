#include "base/log.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "train/report.h"
#include "train/state.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const help[] = {
    "usage: rfa eval RUN.h5 [--data FILE] [--split test] [--best] [--set key=value]...",
    "",
    "Evaluates the parameters of a run's last checkpoint on one split, every example once. The "
    "result is",
    "the same for any number of ranks, threads and any batch size. Without --data: the run's own "
    "file.",
    "",
    "  rfa eval runs/rfa.h5 --data data/listops.h5 --split val --set train.batch=64",
    NULL,
};

// The run's configuration, as its checkpoint holds it; ranks and files are those of this process.
static rfa_status run_config(rfa_config *config, const char *run_path, const char *data)
{
    rfa_checkpoint_header header;
    const size_t length = strlen(run_path);
    if (length < 3 || strcmp(run_path + length - 3, ".h5") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "%s: name the run, RUN.h5", run_path);
    }
    RFA_TRY(rfa_checkpoint_read_header(run_path, &header));
    rfa_config_defaults(config);
    const rfa_status status = rfa_config_parse(config, header.config_text, run_path);
    rfa_checkpoint_header_free(&header);
    RFA_TRY(status);
    config->parallel.sequence = 0;
    if (data) {
        if (snprintf(config->data.file, sizeof config->data.file, "%s", data) >=
            (int)sizeof config->data.file) {
            return rfa_fail(RFA_ERR_USAGE, "--data: the path is too long");
        }
    }
    return RFA_OK;
}

// --set may say how to evaluate, not what.
static rfa_status check_same_model(const rfa_config *config, const rfa_config *trained)
{
    rfa_config same = *trained;
    char text[256];
    same.train.batch = config->train.batch;
    if (rfa_config_differences(text, sizeof text, config, &same) > 0) {
        return rfa_fail(RFA_ERR_USAGE, "eval can't change the trained model: %s", text);
    }
    return RFA_OK;
}

// run_path: of the checkpoint; which: "" or what is said of it.
static rfa_status evaluate(rfa_session *session,
                           const char *run_path,
                           const char *shown,
                           const char *which,
                           const char *split)
{
    const int classes = rfa_dataset_classes(session->data);
    rfa_checkpoint_header header;
    rfa_score score;
    int64_t *confusion = NULL;
    RFA_TRY(rfa_state_load(run_path, session, NULL, &header));
    rfa_status status =
        rfa_agree(&session->grid.all, rfa_alloc(&confusion, (ptrdiff_t)classes * classes,
                                                sizeof *confusion, "confusion matrix"));
    if (status == RFA_OK) {
        status = rfa_evaluate(session, session->data, 0, confusion, &score);
    }
    if (status == RFA_OK) {
        rfa_note("%s%s after step %" PRId64 ", %s of %s, digest %s", shown, which, header.step,
                 split, rfa_dataset_path(session->data), rfa_dataset_digest(session->data));
        rfa_print("%s loss %.17g", split, score.loss);
        rfa_report_score(split, &score, classes, true);
    }
    rfa_free(confusion);
    return status;
}

rfa_status rfa_cmd_eval(const rfa_comm *world, int argc, char **argv)
{
    enum { DATA = 256, SPLIT, BEST, SET, HELP = 'h' };
    static const struct option options[] = {
        {"data", required_argument, NULL, DATA}, {"split", required_argument, NULL, SPLIT},
        {"best", no_argument, NULL, BEST},       {"set", required_argument, NULL, SET},
        {"help", no_argument, NULL, HELP},       {NULL, 0, NULL, 0},
    };
    rfa_settings settings = {0};
    const char *data = NULL, *split = "test";
    bool best = false;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case DATA: data = optarg; break;
        case SPLIT: split = optarg; break;
        case BEST: best = true; break;
        case SET: RFA_TRY(rfa_settings_add(&settings, optarg)); break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc) {
        return rfa_fail(RFA_ERR_USAGE, "eval needs one run file: rfa eval --help");
    }
    if (strcmp(split, "train") != 0 && strcmp(split, "val") != 0 && strcmp(split, "test") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "--split %s: must be train, val or test", split);
    }
    const char *run_path = argv[optind];
    char best_path[RFA_STATE_PATH];
    if (best) {
        RFA_TRY(rfa_state_best_path(best_path, run_path));
        run_path = best_path;
    }
    rfa_config config = {0};
    RFA_TRY(rfa_agree(world, world->rank == 0 ? run_config(&config, run_path, data) : RFA_OK));
    const rfa_config trained = config;
    RFA_TRY(rfa_settings_load(&config, &settings, world));
    RFA_TRY(rfa_agree(world, world->rank == 0 ? check_same_model(&config, &trained) : RFA_OK));
    rfa_session session;
    RFA_TRY(rfa_session_create(&session, &config, world, split));
    const rfa_status status =
        evaluate(&session, run_path, argv[optind], best ? ", best," : "", split);
    rfa_session_destroy(&session);
    return status;
}
