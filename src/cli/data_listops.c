#include "cli/data_listops.h"
#include "base/log.h"
#include "cli/data_make.h"
#include "tasks/listops_trees.h"

#include <stdio.h>
#include <string.h>

#define COUNT(n) offsetof(rfa_data_listops, examples[n])
#define TREE(name) offsetof(rfa_data_listops, tree.name)

enum { MOST = 50000000 };

static const rfa_data_option options[] = {
    RFA_OPTION_OUT(rfa_data_listops, "data/listops.h5"),
    RFA_OPTION_FROM(rfa_data_listops,
                    "Import the released basic_train.tsv, basic_val.tsv and basic_test.tsv from "
                    "DIR, or from listops-1000 below it, instead of generating; or lines of label, "
                    "tab and tree from train_NAME.tsv and test_NAME.tsv (spinn: d20s)"),
    {"validation", 0, RFA_OPTION_WORD, offsetof(rfa_data_listops, validation), 0, 0, "WHAT",
     "Of such trees: last10%, the last tenth of train, or another part up to last50% (last10%); "
     "test: the test again",
     1, false},
    {NULL, 0, RFA_OPTION_TITLE, 0, 0, 0, NULL, "Generator:", 2, false},
    {"train", 0, RFA_OPTION_INT64, COUNT(0), 1, MOST, "N", "Training examples (96000)", 2, true},
    {"val", 0, RFA_OPTION_INT64, COUNT(1), 1, MOST, "N", "Validation examples (2000)", 2, true},
    {"test", 0, RFA_OPTION_INT64, COUNT(2), 1, MOST, "N", "Test examples (2000)", 2, true},
    {"seed", 0, RFA_OPTION_INT64, TREE(seed), 0, INT64_MAX, "S", "Seed (1)", 2, true},
    {"min-length", 0, RFA_OPTION_INT64, TREE(min_length), 0, INT32_MAX, "N",
     "Only trees of more than N tokens (500)", 2, true},
    {"max-length", 0, RFA_OPTION_INT64, TREE(max_length), 0, INT32_MAX, "N",
     "Only trees of fewer than N tokens (2000)", 2, true},
    {"max-depth", 0, RFA_OPTION_INT, TREE(max_depth), 0, INT32_MAX, "N",
     "Depth of the deepest digits, the root has 1 (10)", 2, true},
    {"max-args", 0, RFA_OPTION_INT, TREE(max_args), 0, INT32_MAX, "N",
     "Most arguments of an operator, least is 2 (10)", 2, true},
    {"p-op", 0, RFA_OPTION_DOUBLE, TREE(p_op), 0, 0, "P",
     "Probability that a node is an operator (0.25)", 2, true},
    RFA_OPTION_HELP(rfa_data_listops),
};

static const rfa_data_parser parser = {
    .task = "listops",
    .options = options,
    .count = sizeof options / sizeof *options,
    .text = "Writes the ListOps task of the Long Range Arena as one HDF5 data set.\v"
            "Examples:\n"
            "  rfa data listops                          the task as published\n"
            "  mpirun -n 8 rfa data listops              the same file, sooner\n"
            "  rfa data listops --out small.h5 --train 2000 --val 200 --test 200 \\\n"
            "      --min-length 50 --max-length 200 --max-depth 5\n"
            "  for depth in 2 3 4 6; do                  a ladder of shallower trees\n"
            "      rfa data listops --out depth$depth.h5 --max-depth $depth --max-args 5 \\\n"
            "          --min-length 4 --max-length 200; done\n"
            "  rfa data listops --from lra_release --out data/listops-released.h5\n"
            "\n"
            "The file depends on the options only, not on the number of ranks. It has the\n"
            "groups train, val and test with tokens, offsets, lengths and labels, and reads\n"
            "with h5py as it is.",
};

static void print_summary(const rfa_data_listops *o, const rfa_data_summary *summary)
{
    rfa_print("file %s", o->common.out);
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
    if (o->common.from[0]) {
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

rfa_status rfa_data_listops_command(const rfa_comm *world, int argc, char **argv)
{
    rfa_data_listops o = {.common.out = "data/listops.h5",
                          .validation = "last10%",
                          .examples = {96000, 2000, 2000},
                          .tree = rfa_listops_defaults()};
    rfa_data_summary summary;
    rfa_status status = RFA_OK;
    if (world->rank == 0) {
        status = rfa_data_parse(&parser, &o.common, argc, argv);
        if (status == RFA_OK && !o.common.from[0] && !o.common.help) {
            status = rfa_listops_check(&o.tree);
        }
    }
    RFA_TRY(rfa_agree(world, status));
    MPI_Bcast(&o, (int)sizeof o, MPI_BYTE, 0, world->comm);
    if (o.common.help) {
        return RFA_OK;
    }
    int trees = world->rank == 0 && o.common.from[0] && rfa_listops_trees_found(o.common.from);
    MPI_Bcast(&trees, 1, MPI_INT, 0, world->comm);
    if (trees) {
        return rfa_data_listops_trees(world, &o);
    }
    if (o.common.from[0]) {
        RFA_TRY(rfa_data_listops_import(world, &o, &summary));
    } else {
        RFA_TRY(rfa_data_listops_generate(world, &o, &summary));
    }
    print_summary(&o, &summary);
    return RFA_OK;
}
