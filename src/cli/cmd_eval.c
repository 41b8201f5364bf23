#include "base/log.h"
#include "base/metrics.h"
#include "cli/commands.h"
#include "cli/trained.h"
#include "storage/benchfile.h"
#include "storage/predictions.h"
#include "train/listops_report.h"
#include "train/report.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

static const char *const help[] = {
    "usage: rfa eval RUN.h5 [--data FILE] [--split test] [--best] [--predictions FILE.h5]",
    "                [--set key=value]...",
    "",
    "Evaluates the parameters of a run's last checkpoint on one split, every example once. The",
    "result is the same for any number of ranks, threads and any batch size. Without --data: the",
    "run's own file. Prints loss, accuracy with its 95 % interval, macro F1, the majority class,",
    "the confusion matrix; for ListOps also accuracy by root operator, depth and length, and that",
    "of simple rules.",
    "",
    "  --best              the parameters of the best validation, RUN.best.ckpt",
    "  --predictions FILE  also writes label, prediction and logits of each example",
    "",
    "  rfa eval runs/rfa.h5 --data data/listops.h5 --split val --set train.batch=64",
    NULL,
};

static rfa_status add_results(rfa_attributes *list, const rfa_score *score, int classes)
{
    const double n = (double)score->examples;
    const rfa_interval interval = rfa_wilson(score->correct, score->examples);
    const struct {
        const char *name;
        double number;
    } results[] = {
        {"loss", score->loss},
        {"accuracy", (double)score->correct / n},
        {"accuracy_low", interval.low},
        {"accuracy_high", interval.high},
        {"macro_f1", rfa_macro_f1(score->confusion, classes)},
        {"majority", (double)rfa_majority(score->confusion, classes) / n},
    };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        RFA_TRY(rfa_attributes_set(
            list, &(rfa_run_attribute){.name = results[i].name, .number = results[i].number}));
    }
    return RFA_OK;
}

// Rank 0 writes the file of predictions. Collective.
static rfa_status write_predictions(const char *path,
                                    const rfa_trained *trained,
                                    const rfa_predictions *predictions,
                                    const rfa_score *score)
{
    const rfa_session *session = &trained->session;
    const bool first = session->grid.all.rank == 0;
    rfa_attributes list = {0};
    int32_t *labels = NULL;
    char *text = NULL;
    rfa_status status = rfa_trained_describe(&list, trained);
    if (status == RFA_OK && first) {
        status = rfa_alloc(&labels, (ptrdiff_t)predictions->examples, sizeof *labels, "labels");
        for (int64_t i = 0; i < predictions->examples && status == RFA_OK; i++) {
            labels[i] = rfa_dataset_label(session->data, i);
        }
        if (status == RFA_OK) {
            status = add_results(&list, score, predictions->classes);
        }
        status = status == RFA_OK ? rfa_config_text(&text, &session->config) : status;
        if (status == RFA_OK) {
            status = rfa_predictions_write(path, &list, text, predictions->examples,
                                           predictions->classes, labels, predictions->guess,
                                           predictions->logits);
        }
    }
    rfa_free(text);
    rfa_free(labels);
    rfa_attributes_free(&list);
    return rfa_agree(&session->grid.all, status);
}

static rfa_status measure(rfa_trained *trained,
                          const char *predictions_path,
                          int64_t *confusion,
                          rfa_predictions *predictions)
{
    rfa_session *session = &trained->session;
    const char *split = trained->split;
    rfa_score score;
    RFA_TRY(rfa_trained_load(trained));
    RFA_TRY(rfa_evaluate(session, session->data, 0, confusion, predictions, &score));
    if (predictions_path) {
        RFA_TRY(write_predictions(predictions_path, trained, predictions, &score));
    }
    rfa_note("%s%s after step %" PRId64 ", %s of %s, digest %s", trained->run,
             trained->best ? ", best," : "", session->step, split, rfa_dataset_path(session->data),
             rfa_dataset_digest(session->data));
    rfa_print("%s loss %.17g", split, score.loss);
    rfa_report_score(split, &score, predictions->classes, true);
    return rfa_listops_is(session->data)
               ? rfa_listops_report(session, session->data, split, score.examples, predictions)
               : RFA_OK;
}

static rfa_status evaluate(rfa_trained *trained, const char *predictions_path)
{
    const rfa_session *session = &trained->session;
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
        status = measure(trained, predictions_path, confusion, &predictions);
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
    rfa_trained trained = {.split = "test"};
    const char *predictions = NULL;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case DATA: trained.data = optarg; break;
        case SPLIT: trained.split = optarg; break;
        case PREDICTIONS: predictions = optarg; break;
        case BEST: trained.best = true; break;
        case SET: RFA_TRY(rfa_settings_add(&trained.settings, optarg)); break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc) {
        return rfa_fail(RFA_ERR_USAGE, "eval needs one run file: rfa eval --help");
    }
    if (predictions) {
        RFA_TRY(rfa_agree(world, world->rank == 0 ? rfa_benchfile_check(predictions) : RFA_OK));
    }
    trained.run = argv[optind];
    RFA_TRY(rfa_trained_open(&trained, world));
    const rfa_status status = evaluate(&trained, predictions);
    rfa_trained_close(&trained);
    return status;
}
