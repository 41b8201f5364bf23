#include "cli/commands.h"
#include "cli/diff.h"
#include "cli/settings.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const help[] = {
    "usage: rfa diff A.h5 B.h5 [--tensors]",
    "",
    "Compares two runs step by step: digest of the parameters, loss, learning rate. Says what",
    "differs in configuration, data and program, and names the first step at which they part.",
    "",
    "  --tensors  also compares the newest checkpoints, when both are of one step",
    "",
    "Exit code 0: same, also with other keys that change no result; 1: they differ, and the last",
    "line on stdout says where; 3: a file can't be read.",
    "",
    "  rfa diff runs/p1.h5 runs/p4.h5",
    NULL,
};

// The first rows of two runs that differ in something; the rows in common when none does.
typedef struct {
    int64_t common; // rows that both have
    int64_t digest, loss, rate;
    bool missing; // the row of digest has different steps: one run left one out
} parting;

static parting find_parting(const rfa_run_view *a, const rfa_run_view *b)
{
    const int64_t n = a->steps < b->steps ? a->steps : b->steps;
    parting p = {.common = n, .digest = n, .loss = n, .rate = n};
    for (int64_t i = n - 1; i >= 0; i--) {
        const rfa_step_record *x = &a->step[i], *y = &b->step[i];
        const bool missing = x->step != y->step;
        if (missing || x->digest != y->digest) {
            p.digest = i;
            p.missing = missing;
        }
        p.loss = rfa_same_bits(x->loss, y->loss) ? p.loss : i;
        p.rate = rfa_same_bits(x->learning_rate, y->learning_rate) ? p.rate : i;
    }
    return p;
}

static void print_number(
    const char *what, const rfa_run_view *a, int64_t row, int64_t common, double x, double y)
{
    if (row < common) {
        printf("; %s parts at step %" PRId64 " (A %.9g, B %.9g)", what, a->step[row].step, x, y);
    } else {
        printf("; %s the same in all", what);
    }
}

// The answer, on one line. Returns whether they differ.
static bool print_answer(const rfa_run_view *a, const rfa_run_view *b, bool tensors)
{
    const parting p = find_parting(a, b);
    const int64_t n = p.common;
    if (p.missing) {
        printf("differ: row %" PRId64 " is step %" PRId64 " in A, step %" PRId64 " in B\n",
               p.digest + 1, a->step[p.digest].step, b->step[p.digest].step);
        return true;
    }
    if (p.digest < n || p.loss < n || p.rate < n) {
        if (p.digest < n) {
            const rfa_step_record *x = &a->step[p.digest], *y = &b->step[p.digest];
            printf("differ: from step %" PRId64 " on: digest A %016" PRIx64 ", B %016" PRIx64,
                   x->step, x->digest, y->digest);
        } else {
            printf("differ: the digests of %" PRId64 " steps are the same", n);
        }
        print_number("loss", a, p.loss, n, p.loss < n ? a->step[p.loss].loss : 0,
                     p.loss < n ? b->step[p.loss].loss : 0);
        print_number("learning rate", a, p.rate, n, p.rate < n ? a->step[p.rate].learning_rate : 0,
                     p.rate < n ? b->step[p.rate].learning_rate : 0);
        printf("\n");
        return true;
    }
    if (a->steps != b->steps) {
        printf("differ: the same for %" PRId64 " steps; then %s ends, and %s has %" PRId64
               " steps\n",
               n, a->steps < b->steps ? "A" : "B", a->steps < b->steps ? "B" : "A",
               a->steps < b->steps ? b->steps : a->steps);
        return true;
    }
    if (tensors) {
        printf("differ: the digests of %" PRId64 " steps are the same, the checkpoints are not\n",
               n);
        return true;
    }
    if (n == 0) {
        printf("same: no steps in either\n");
    } else {
        printf("same: %" PRId64 " steps, digest %016" PRIx64 "\n", n, a->step[n - 1].digest);
    }
    return false;
}

static void introduce(const char *letter, const rfa_diff_side *side)
{
    const rfa_run_view *view = &side->view;
    printf("%-13s  %s, %s after %" PRId64 " steps\n", letter, side->path, view->state,
           view->steps > 0 ? view->step[view->steps - 1].step : 0);
}

static rfa_status
compare(bool *differ, const rfa_diff_side *a, const rfa_diff_side *b, bool tensors)
{
    introduce("A", a);
    introduce("B", b);
    RFA_TRY(rfa_diff_origins(a, b));
    if (tensors) {
        RFA_TRY(rfa_diff_tensors(differ, a, b));
    }
    *differ = print_answer(&a->view, &b->view, *differ);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        return rfa_fail(RFA_ERR_IO, "standard output can't be written: %s", strerror(errno));
    }
    return RFA_OK;
}

static rfa_status diff(bool *differ, const char *left, const char *right, bool tensors)
{
    rfa_diff_side a = {.path = left}, b = {.path = right};
    RFA_TRY(rfa_run_read(&a.view, left));
    rfa_status status = rfa_run_read(&b.view, right);
    if (status == RFA_OK) {
        status = compare(differ, &a, &b, tensors);
    }
    rfa_run_view_free(&b.view);
    rfa_run_view_free(&a.view);
    return status;
}

rfa_status rfa_cmd_diff(const rfa_comm *world, int argc, char **argv)
{
    enum { TENSORS = 256, HELP = 'h' };
    static const struct option options[] = {
        {"tensors", no_argument, NULL, TENSORS},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    bool tensors = false, differ = false;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case TENSORS: tensors = true; break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 2 != argc) {
        return rfa_fail(RFA_ERR_USAGE, "diff needs two run files: rfa diff --help");
    }
    RFA_TRY(rfa_agree(
        world, world->rank == 0 ? diff(&differ, argv[optind], argv[optind + 1], tensors) : RFA_OK));
    int answer = differ;
    MPI_Bcast(&answer, 1, MPI_INT, 0, world->comm);
    // A difference is an answer, not an error: no text.
    return answer ? rfa_fail(RFA_ERR_INTERNAL, "%s", "") : RFA_OK;
}
