#include "base/log.h"
#include "cli/commands.h"
#include "cli/data_make.h"

#include <stdio.h>
#include <string.h>

const rfa_verb rfa_data_tasks[] = {
    {"listops", rfa_data_listops_command, "nested prefix expressions (Long Range Arena)"},
    {"text", rfa_data_text, "classes of texts as bytes: IMDb's folders, or tables"},
    {"retrieval", rfa_data_retrieval, "pairs of texts: does the one cite the other?"},
    {"image", rfa_data_image, "classes of pictures as pixels: CIFAR-10, PNG folders, idx files"},
    {"pathfinder", rfa_data_pathfinder, "are two dots on one dashed path? 32 x 32 pixels"},
    {"pathx", rfa_data_pathx, "the same on 128 x 128 pixels"},
    {"recall", rfa_data_recall, "pairs of key and value, and a key: which value has it?"},
    {"import", rfa_data_own, "own data: tables of labels and texts, or token ids, or pairs"},
    {NULL, NULL, NULL},
};

static void usage(void)
{
    rfa_print("Usage: rfa data TASK [OPTION...]\nMakes a data set. TASK is one of:\n");
    for (const rfa_verb *t = rfa_data_tasks; t->name; t++) {
        rfa_print("  %-11s %s", t->name, t->help);
    }
    rfa_print("\nExamples:\n"
              "  rfa data listops                   writes data/listops.h5\n"
              "  rfa data text --from aclImdb       imports, writes data/text.h5\n"
              "  rfa data listops --help            all its options");
}

rfa_status rfa_cmd_data(const rfa_comm *world, int argc, char **argv)
{
    const char *task = argc > 1 ? argv[1] : "";
    char names[256] = "";
    for (const rfa_verb *t = rfa_data_tasks; t->name; t++) {
        const size_t used = strlen(names);
        if (strcmp(task, t->name) == 0) {
            return t->run(world, argc - 1, argv + 1);
        }
        snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", t->name);
    }
    if (strcmp(task, "--help") == 0 || strcmp(task, "-h") == 0) {
        usage();
        return RFA_OK;
    }
    if (argc > 1) {
        return rfa_fail(RFA_ERR_USAGE, "rfa data: unknown task '%s'; there are %s", task, names);
    }
    return rfa_fail(RFA_ERR_USAGE, "rfa data: which task? There are %s", names);
}
