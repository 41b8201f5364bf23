#include "base/log.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "storage/benchfile.h"
#include "storage/predictions.h"
#include "tasks/listops.h"
#include "train/listops_report.h"
#include "train/report.h"
#include "train/state.h"

#include "commit.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const help[] = {
    "usage: rfa eval RUN.h5 [--data FILE] [--split test] [--best] [--predictions FILE.h5]",
    "                [--set key=value]...",
    "",
    "Evaluates the parameters of a run's last checkpoint on one split, every example once. The "
    "result is",
    "the same for any number of ranks, threads and any batch size. Without --data: the run's own "
    "file.",
    "Prints loss, accuracy with its 95 % interval, macro F1, the majority class, the confusion "
    "matrix;",
    "for ListOps also accuracy by root operator, depth and length, and that of simple rules.",
    "",
    "  --best              the parameters of the best validation, RUN.best.ckpt",
    "  --predictions FILE  also writes label, prediction and logits of each example",
    "",
    "  rfa eval runs/rfa.h5 --data data/listops.h5 --split val --set train.batch=64",
    NULL,
};

typedef struct {
    const char *run;        // RUN.h5, as given
    const char *checkpoint; // under which its state is found
    const char *which;      // "" or what is said of it
    const char *split, *predictions;
} evaluation;

// The run's configuration, as its checkpoint holds it; ranks and files are those of this process.
static rfa_status run_config(rfa_config *config, const evaluation *of, const char *data)
{
    rfa_checkpoint_header header;
    const size_t length = strlen(of->run);
    if (length < 3 || strcmp(of->run + length - 3, ".h5") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "%s: name the run, RUN.h5", of->run);
    }
    const rfa_status found = rfa_checkpoint_read_header(of->checkpoint, &header);
    if (found == RFA_ERR_IO && access(of->run, F_OK) != 0) {
        return rfa_fail(found, "%s: %s", of->run, strerror(errno));
    }
    RFA_TRY(found);
    rfa_config_defaults(config);
    const rfa_status status = rfa_config_parse(config, header.config_text, "checkpoint");
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

static rfa_status set(rfa_attributes *list, const char *name, const char *text)
{
    return rfa_attributes_set(list, &(rfa_run_attribute){.name = name, .text = text});
}

// Rank 0: the file of predictions.
static rfa_status write_predictions(const evaluation *of,
                                    const rfa_session *session,
                                    const rfa_predictions *predictions,
                                    int64_t step)
{
    const rfa_dataset *data = session->data;
    const rfa_run_attribute at = {
        .name = "step", .integer = step, .number = (double)step, .whole = true};
    rfa_attributes list = {0};
    char *text = NULL, digest[17];
    int32_t *labels = NULL;
    snprintf(digest, sizeof digest, "%016" PRIx64, rfa_session_digest(session));
    rfa_status status =
        rfa_alloc(&labels, (ptrdiff_t)predictions->examples, sizeof *labels, "labels");
    for (int64_t i = 0; i < predictions->examples && status == RFA_OK; i++) {
        labels[i] = rfa_dataset_label(data, i);
    }
    const char *const facts[][2] = {
        {"program", "rfa " RFA_VERSION},
        {"commit", RFA_COMMIT},
        {"run", of->run},
        {"split", of->split},
        {"digest", digest},
        {"task", rfa_dataset_task(data)},
        {"data_file", rfa_dataset_path(data)},
        {"data_digest", rfa_dataset_digest(data)},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts && status == RFA_OK; i++) {
        status = set(&list, facts[i][0], facts[i][1]);
    }
    status = status == RFA_OK ? rfa_attributes_set(&list, &at) : status;
    status = status == RFA_OK ? rfa_config_text(&text, &session->config) : status;
    if (status == RFA_OK) {
        status = rfa_predictions_write(of->predictions, &list, text, predictions->examples,
                                       predictions->classes, labels, predictions->guess,
                                       predictions->logits);
    }
    rfa_free(text);
    rfa_free(labels);
    rfa_attributes_free(&list);
    return status;
}

static rfa_status measure(const evaluation *of,
                          rfa_session *session,
                          int64_t *confusion,
                          rfa_predictions *predictions)
{
    const rfa_comm *all = &session->grid.all;
    rfa_checkpoint_header header;
    rfa_score score;
    RFA_TRY(rfa_state_load(of->checkpoint, session, NULL, &header));
    RFA_TRY(rfa_evaluate(session, session->data, 0, confusion, predictions, &score));
    if (of->predictions) {
        RFA_TRY(rfa_agree(all, all->rank == 0
                                   ? write_predictions(of, session, predictions, header.step)
                                   : RFA_OK));
    }
    rfa_note("%s%s after step %" PRId64 ", %s of %s, digest %s", of->run, of->which, header.step,
             of->split, rfa_dataset_path(session->data), rfa_dataset_digest(session->data));
    rfa_print("%s loss %.17g", of->split, score.loss);
    rfa_report_score(of->split, &score, predictions->classes, true);
    const bool listops = strcmp(rfa_dataset_task(session->data), "listops") == 0 &&
                         rfa_dataset_vocabulary(session->data) == RFA_LISTOPS_VOCABULARY;
    return listops ? rfa_listops_report(session, session->data, predictions) : RFA_OK;
}

static rfa_status evaluate(const evaluation *of, rfa_session *session)
{
    const ptrdiff_t classes = rfa_dataset_classes(session->data);
    rfa_predictions predictions = {0};
    int64_t *confusion = NULL;
    rfa_status status =
        rfa_alloc(&confusion, classes * classes, sizeof *confusion, "confusion matrix");
    if (status == RFA_OK) {
        status = rfa_predictions_create(&predictions, session->data);
    }
    status = rfa_agree(&session->grid.all, status);
    if (status == RFA_OK) {
        status = measure(of, session, confusion, &predictions);
    }
    rfa_predictions_destroy(&predictions);
    rfa_free(confusion);
    return status;
}

rfa_status rfa_cmd_eval(const rfa_comm *world, int argc, char **argv)
{
    enum { DATA = 256, SPLIT, BEST, PREDICTIONS, SET, HELP = 'h' };
    static const struct option options[] = {
        {"data", required_argument, NULL, DATA},
        {"split", required_argument, NULL, SPLIT},
        {"best", no_argument, NULL, BEST},
        {"predictions", required_argument, NULL, PREDICTIONS},
        {"set", required_argument, NULL, SET},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    rfa_settings settings = {0};
    evaluation of = {.which = "", .split = "test"};
    const char *data = NULL;
    bool best = false;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case DATA: data = optarg; break;
        case SPLIT: of.split = optarg; break;
        case PREDICTIONS: of.predictions = optarg; break;
        case BEST: best = true; break;
        case SET: RFA_TRY(rfa_settings_add(&settings, optarg)); break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc) {
        return rfa_fail(RFA_ERR_USAGE, "eval needs one run file: rfa eval --help");
    }
    if (strcmp(of.split, "train") != 0 && strcmp(of.split, "val") != 0 &&
        strcmp(of.split, "test") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "--split %s: must be train, val or test", of.split);
    }
    if (of.predictions) {
        RFA_TRY(rfa_agree(world, world->rank == 0 ? rfa_benchfile_check(of.predictions) : RFA_OK));
    }
    of.run = of.checkpoint = argv[optind];
    char best_path[RFA_STATE_PATH];
    if (best) {
        RFA_TRY(rfa_state_best_path(best_path, of.run));
        of.checkpoint = best_path;
        of.which = ", best,";
    }
    rfa_config config = {0};
    RFA_TRY(rfa_agree(world, world->rank == 0 ? run_config(&config, &of, data) : RFA_OK));
    const rfa_config trained = config;
    RFA_TRY(rfa_settings_load(&config, &settings, world));
    RFA_TRY(rfa_agree(world, world->rank == 0 ? check_same_model(&config, &trained) : RFA_OK));
    rfa_session session;
    RFA_TRY(rfa_session_create(&session, &config, world, of.split));
    const rfa_status status = evaluate(&of, &session);
    rfa_session_destroy(&session);
    return status;
}
