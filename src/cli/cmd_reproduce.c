#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/diff.h"
#include "cli/settings.h"
#include "storage/checkpoint.h"
#include "tensor/gemm.h"
#include "train/loop.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const help[] = {
    "usage: rfa reproduce RUN.h5 [--steps N] [--out FILE] [--data FILE] [--set key=value]...",
    "",
    "Runs the configuration of a record again, on any number of ranks, and compares the digest of",
    "the parameters after each step with the recorded one; ends at the first difference. RUN.h5",
    "is only read.",
    "",
    "  --steps N        the first N steps (default: all that are recorded)",
    "  --out FILE       keeps the record of the new run (default: it is removed at the end)",
    "  --data FILE      where the data set is now; it must have the recorded digest",
    "  --set key=value  a key that changes no result, such as parallel.threads",
    "",
    "Exit code 0: reproduced; 1: they differ, and the last line on stdout names the step; 2: other",
    "data, or a key that changes the result; 3: a file can't be read.",
    "",
    "  mpirun -n 3 rfa reproduce runs/rfa.h5 --steps 100",
    NULL,
};

enum { PATH = 1024 };

typedef struct {
    const char *path, *out, *data;
    int64_t steps; // 0: all recorded
    const rfa_settings *settings;
} request;

// What the new run is held against. The view is rank 0's.
typedef struct {
    const rfa_comm *world;
    rfa_run_view view;
    rfa_config config;
    int64_t steps;                   // to run
    int64_t matched;                 // steps that were the same
    char data_digest[64];            // recorded
    char difference[768];            // the answer, when one was found; on rank 0
    char folder[PATH], record[PATH]; // of the new run; folder: to be removed
} reproduction;

// The most ranks of a sequence that the present number of ranks allows.
static int64_t fitting_sequence(int ranks, int64_t segments)
{
    int64_t sequence = ranks < segments ? ranks : segments;
    while (ranks % sequence != 0) {
        sequence--;
    }
    return sequence;
}

static rfa_status check_steps(const reproduction *r, const char *path)
{
    if (r->view.steps == 0) {
        return rfa_fail(RFA_ERR_IO, "%s: no step is recorded", path);
    }
    for (int64_t i = 0; i < r->view.steps; i++) {
        if (r->view.step[i].step != i + 1) {
            return rfa_fail(RFA_ERR_IO, "%s: row %" PRId64 " of its steps is step %" PRId64, path,
                            i + 1, r->view.step[i].step);
        }
    }
    return RFA_OK;
}

static rfa_status recorded_config(reproduction *r, const request *wish)
{
    const rfa_run_attribute *free_of_ranks =
        rfa_attributes_find(&r->view.attributes, "rank_independent");
    const rfa_run_attribute *ranks = rfa_attributes_find(&r->view.attributes, "ranks_sequence");
    if (!r->view.config_text[0]) {
        return rfa_fail(RFA_ERR_IO, "%s: steps alone, without a configuration", wish->path);
    }
    rfa_config_defaults(&r->config);
    if (rfa_config_parse(&r->config, r->view.config_text, "configuration") != RFA_OK) {
        return rfa_fail_within(RFA_ERR_IO, "%s", wish->path);
    }
    r->config.parallel.sequence = 0;
    if (free_of_ranks && free_of_ranks->integer == 0) {
        rfa_note("rfa: warning: %s was made by a forced exscan with %" PRId64
                 " ranks a sequence: its bits hold for that number alone",
                 wish->path, ranks ? ranks->integer : 0);
    } else {
        r->config.parallel.exchange = RFA_EXCHANGE_AUTO; // a forced exscan may depend on the ranks
    }
    r->config.train.evaluate_every = 0;
    r->config.train.checkpoint_every = 0;
    r->config.train.checkpoint_minutes = 0;
    r->config.train.max_minutes = 0;
    if (wish->data && snprintf(r->config.data.file, sizeof r->config.data.file, "%s", wish->data) >=
                          (int)sizeof r->config.data.file) {
        return rfa_fail(RFA_ERR_USAGE, "--data: the path is too long");
    }
    return RFA_OK;
}

// The newest checkpoint is another witness of its step.
static void ask_checkpoint(const reproduction *r, const char *path)
{
    rfa_checkpoint_header header = {0};
    if (rfa_checkpoint_read_header(path, &header) != RFA_OK || header.step < 1 ||
        header.step > r->view.steps) {
        rfa_checkpoint_header_free(&header);
        return;
    }
    const uint64_t recorded = r->view.step[header.step - 1].digest;
    if (recorded == header.digest) {
        rfa_note("the checkpoint after step %" PRId64 " has the recorded digest %016" PRIx64,
                 header.step, recorded);
    } else {
        rfa_note("rfa: warning: after step %" PRId64 " the checkpoint has digest %016" PRIx64
                 ", the record %016" PRIx64 ": one of them was changed",
                 header.step, header.digest, recorded);
    }
    rfa_checkpoint_header_free(&header);
}

static rfa_status read_record(reproduction *r, const request *wish)
{
    RFA_TRY(rfa_run_read(&r->view, wish->path));
    RFA_TRY(recorded_config(r, wish));
    RFA_TRY(check_steps(r, wish->path));
    const char *digest = rfa_attributes_text(&r->view.attributes, "data_digest");
    if (!digest) {
        return rfa_fail(RFA_ERR_IO, "%s: attribute 'data_digest' is missing", wish->path);
    }
    snprintf(r->data_digest, sizeof r->data_digest, "%s", digest);
    r->steps = wish->steps > 0 ? wish->steps : r->view.steps;
    if (r->steps > r->view.steps) {
        return rfa_fail(RFA_ERR_USAGE, "--steps %" PRId64 ": %s has %" PRId64 " steps", r->steps,
                        wish->path, r->view.steps);
    }
    ask_checkpoint(r, wish->path);
    return RFA_OK;
}

// After --set: what is run must be what was recorded.
static rfa_status check_config(reproduction *r, const request *wish)
{
    rfa_config recorded;
    char text[512];
    rfa_config_defaults(&recorded);
    RFA_TRY(rfa_config_parse(&recorded, r->view.config_text, "configuration"));
    if (rfa_config_differences(text, sizeof text, &r->config, &recorded) > 0) {
        return rfa_fail(RFA_ERR_USAGE, "%s can't be reproduced with another configuration: %s",
                        wish->path, text);
    }
    if (r->config.parallel.sequence == 0) {
        r->config.parallel.sequence = fitting_sequence(r->world->size, r->config.parallel.segments);
    }
    return RFA_OK;
}

// RUN and RUN.h5 have the same lines and checkpoints.
static bool same_record(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    n -= n > 3 && strcmp(a + n - 3, ".h5") == 0 ? 3 : 0;
    m -= m > 3 && strcmp(b + m - 3, ".h5") == 0 ? 3 : 0;
    return n == m && strncmp(a, b, n) == 0;
}

static rfa_status choose_record(reproduction *r, const request *wish)
{
    if (wish->out) {
        if (same_record(wish->out, wish->path)) {
            return rfa_fail(RFA_ERR_USAGE, "--out %s is the record itself, which is only read",
                            wish->out);
        }
        if (snprintf(r->record, sizeof r->record, "%s", wish->out) >= PATH) {
            return rfa_fail(RFA_ERR_USAGE, "--out: the path is too long");
        }
        return RFA_OK;
    }
    const char *place = getenv("TMPDIR");
    place = place && *place ? place : "/tmp";
    if (snprintf(r->folder, sizeof r->folder, "%s/rfa-reproduce-XXXXXX", place) >= PATH - 16) {
        r->folder[0] = '\0';
        return rfa_fail(RFA_ERR_USAGE, "TMPDIR: the path is too long");
    }
    if (!mkdtemp(r->folder)) {
        const int error = errno;
        r->folder[0] = '\0';
        return rfa_fail(RFA_ERR_IO, "%s: no folder can be made in it: %s", place, strerror(error));
    }
    snprintf(r->record, sizeof r->record, "%.1000s/run.h5", r->folder);
    return RFA_OK;
}

static void remove_record(const reproduction *r)
{
    static const char *const endings[] = {"h5",        "h5.tmp",        "jsonl",
                                          "ckpt",      "ckpt.tmp",      "ckpt.prev",
                                          "best.ckpt", "best.ckpt.tmp", "best.ckpt.prev"};
    if (r->folder[0]) {
        char path[PATH + 32];
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            snprintf(path, sizeof path, "%s/run.%s", r->folder, endings[i]);
            unlink(path);
        }
        if (rmdir(r->folder) != 0) {
            rfa_warn("%s: can't be removed: %s", r->folder, strerror(errno));
        }
    }
}

// Called by the training loop on all ranks after each step; rank 0 knows the record.
static rfa_status watch(void *context, const rfa_step_record *record)
{
    reproduction *r = context;
    if (r->world->rank != 0 || record->step > r->steps) {
        return RFA_OK;
    }
    const rfa_step_record *recorded = &r->view.step[record->step - 1];
    if (record->digest == recorded->digest) {
        r->matched = record->step;
        return RFA_OK;
    }
    const bool loss = rfa_same_bits(record->loss, recorded->loss);
    const char *blas = rfa_attributes_text(&r->view.attributes, "blas");
    char cause[320] = "";
    if (blas && strcmp(blas, rfa_gemm_library()) != 0) { // other kernels have other last bits
        snprintf(cause, sizeof cause, "; recorded with %.128s, this is %s", blas,
                 rfa_gemm_library());
    }
    snprintf(r->difference, sizeof r->difference,
             "differs at step %" PRId64 ": digest %016" PRIx64 ", recorded %016" PRIx64
             "; loss %.17g, recorded %.17g (%s)%s",
             record->step, record->digest, recorded->digest, record->loss, recorded->loss,
             loss ? "the same" : "not the same", cause);
    return rfa_fail(RFA_ERR_INTERNAL, "%s", r->difference);
}

// A run to the end has a test result too.
static rfa_status check_test(reproduction *r)
{
    rfa_run_view own;
    RFA_TRY(rfa_run_read(&own, r->record));
    const rfa_evaluation_record *x = &own.test, *y = &r->view.test;
    if (x->examples > 0 && y->examples > 0 &&
        (x->correct != y->correct || x->examples != y->examples ||
         !rfa_same_bits(x->loss, y->loss))) {
        snprintf(r->difference, sizeof r->difference,
                 "differs on the test split: loss %.17g, %" PRId64 "/%" PRId64
                 " correct, recorded %.17g, %" PRId64 "/%" PRId64,
                 x->loss, x->correct, x->examples, y->loss, y->correct, y->examples);
    }
    rfa_run_view_free(&own);
    return RFA_OK;
}

static rfa_status check_data(const reproduction *r, const rfa_session *session, const char *path)
{
    const char *digest = rfa_dataset_digest(session->data);
    return strcmp(digest, r->data_digest) == 0
               ? RFA_OK
               : rfa_fail(RFA_ERR_USAGE, "%s was trained on data with digest %s, %s has %s", path,
                          r->data_digest, rfa_dataset_path(session->data), digest);
}

static rfa_status run_again(reproduction *r, const request *wish)
{
    const rfa_comm *world = r->world;
    rfa_session session;
    RFA_TRY(rfa_session_create(&session, &r->config, world, "train"));
    rfa_status status = rfa_agree(world, check_data(r, &session, wish->path));
    if (status == RFA_OK) {
        status = rfa_agree(world, world->rank == 0 ? choose_record(r, wish) : RFA_OK);
    }
    if (status == RFA_OK) {
        const rfa_train_options train = {
            .run_path = r->record,
            .watch = watch,
            .context = r,
            .last_step = r->steps,
        };
        status = rfa_train(&session, &train);
    }
    rfa_session_destroy(&session);
    if (status == RFA_OK) {
        status = rfa_agree(world, world->rank == 0 ? check_test(r) : RFA_OK);
    }
    return status;
}

// The answer on stdout; a difference found is one too, and no error.
static rfa_status answer(const reproduction *r, rfa_status status)
{
    int differs = r->difference[0] != '\0';
    MPI_Bcast(&differs, 1, MPI_INT, 0, r->world->comm);
    if (differs) {
        rfa_print("%s", r->difference);
        return rfa_fail(RFA_ERR_INTERNAL, "%s", "");
    }
    if (status == RFA_OK && r->world->rank == 0) {
        rfa_print("reproduced %" PRId64 " of %" PRId64 " steps: digest %016" PRIx64, r->matched,
                  r->steps, r->view.step[r->steps - 1].digest);
    } else if (status == RFA_STOPPED) {
        rfa_print("reproduced %" PRId64 " of %" PRId64 " steps, then it was stopped", r->matched,
                  r->steps);
        status = rfa_fail(RFA_STOPPED, "stopped before the end");
    }
    return status;
}

static void note_origin(const reproduction *r, const char *path)
{
    const char *commit = rfa_attributes_text(&r->view.attributes, "commit");
    const char *blas = rfa_attributes_text(&r->view.attributes, "blas");
    const char *level = rfa_attributes_text(&r->view.attributes, "cpu_level");
    const rfa_run_attribute *ranks = rfa_attributes_find(&r->view.attributes, "ranks");
    rfa_note("%s: %" PRId64 " steps, recorded on %" PRId64 " ranks by commit %s, %s, %s", path,
             r->view.steps, ranks ? ranks->integer : 0, commit ? commit : "unknown",
             level ? level : "unknown level", blas ? blas : "unknown BLAS");
}

static rfa_status reproduce(const rfa_comm *world, const request *wish)
{
    reproduction *r = NULL;
    rfa_status status = rfa_agree(world, rfa_alloc(&r, 1, sizeof *r, "record that is reproduced"));
    if (status != RFA_OK) {
        rfa_free(r);
        return status;
    }
    r->world = world;
    status = rfa_agree(world, world->rank == 0 ? read_record(r, wish) : RFA_OK);
    if (status == RFA_OK) {
        MPI_Bcast(&r->steps, 1, MPI_INT64_T, 0, world->comm);
        MPI_Bcast(r->data_digest, (int)sizeof r->data_digest, MPI_CHAR, 0, world->comm);
        status = rfa_settings_load(&r->config, wish->settings, world);
    }
    if (status == RFA_OK) {
        status = rfa_agree(world, world->rank == 0 ? check_config(r, wish) : RFA_OK);
    }
    if (status == RFA_OK) {
        MPI_Bcast(&r->config, (int)sizeof r->config, MPI_BYTE, 0, world->comm);
        if (world->rank == 0) {
            note_origin(r, wish->path);
        }
        status = answer(r, run_again(r, wish));
    }
    if (world->rank == 0) {
        remove_record(r);
    }
    rfa_run_view_free(&r->view);
    rfa_free(r);
    return status;
}

rfa_status rfa_cmd_reproduce(const rfa_comm *world, int argc, char **argv)
{
    enum { STEPS = 256, OUT, DATA, SET, HELP = 'h' };
    static const struct option options[] = {
        {"steps", required_argument, NULL, STEPS}, {"out", required_argument, NULL, OUT},
        {"data", required_argument, NULL, DATA},   {"set", required_argument, NULL, SET},
        {"help", no_argument, NULL, HELP},         {NULL, 0, NULL, 0},
    };
    rfa_settings settings = {0};
    request wish = {.settings = &settings};
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        char *end = NULL;
        switch (option) {
        case STEPS:
            errno = 0;
            wish.steps = strtoll(optarg, &end, 10);
            if (*end || errno || wish.steps < 1) {
                return rfa_fail(RFA_ERR_USAGE, "--steps: '%s' is not a whole number of 1 or more",
                                optarg);
            }
            break;
        case OUT: wish.out = optarg; break;
        case DATA: wish.data = optarg; break;
        case SET: RFA_TRY(rfa_settings_add(&settings, optarg)); break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc) {
        return rfa_fail(RFA_ERR_USAGE, "reproduce needs one run file: rfa reproduce --help");
    }
    wish.path = argv[optind];
    return reproduce(world, &wish);
}
