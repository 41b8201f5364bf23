#include "base/mem.h"
#include "cli/commands.h"
#include "cli/manual.h"
#include "cli/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const help[] = {
    "usage: rfa help [VERB [TASK]]",
    "       rfa help --man | --bash",
    "",
    "Prints what rfa VERB --help does, or a page with all verbs, options and keys.",
    "",
    "  --man   the manual as a page for man",
    "  --bash  completion of verbs, options, keys and files for bash",
    "",
    "  rfa help data listops",
    "  rfa help --man | man -l -",
    "  source <(rfa help --bash)",
    NULL,
};

static rfa_status
show(const rfa_comm *world, const rfa_verb *verb, const char *name, const char *task)
{
    char verb_word[32], task_word[32], option[] = "--help";
    snprintf(verb_word, sizeof verb_word, "%s", name);
    snprintf(task_word, sizeof task_word, "%s", task ? task : "");
    char *words[] = {verb_word, task ? task_word : option, task ? option : NULL, NULL};
    optind = 0; // getopt starts anew
    return verb->run(world, task ? 3 : 2, words);
}

// What a verb prints, which goes to stdout by more than one way, as text. Collective.
static rfa_status take(
    const rfa_comm *world, rfa_pages *pages, const rfa_verb *verb, const char *task, const char *of)
{
    enum { LONGEST = 1 << 16 }; // bytes
    rfa_page *page = &pages->page[pages->count];
    RFA_ASSERT(pages->count < RFA_MOST_PAGES);
    *page = (rfa_page){.verb = verb->name, .task = task, .help = of};
    pages->count++;
    rfa_status status = rfa_alloc(&page->text, LONGEST, 1, "help");
    FILE *const memory = status == RFA_OK ? fmemopen(page->text, LONGEST, "w") : NULL;
    if (status == RFA_OK && !memory) {
        status = rfa_fail(RFA_ERR_MEMORY, "no memory for help");
    }
    RFA_TRY(rfa_agree(world, status));
    FILE *const terminal = stdout;
    stdout = memory;
    status = show(world, verb, verb->name, task);
    stdout = terminal;
    fclose(memory);
    RFA_ASSERT(strlen(page->text) + 2 < LONGEST); // or the rest is cut
    return status;
}

static rfa_status take_all(const rfa_comm *world, rfa_pages *pages)
{
    for (const rfa_verb *verb = rfa_verbs; verb->name; verb++) {
        RFA_TRY(take(world, pages, verb, NULL, verb->help));
        for (const rfa_verb *task = rfa_data_tasks; task->name && verb->run == rfa_cmd_data;
             task++) {
            RFA_TRY(take(world, pages, verb, task->name, task->help));
        }
    }
    return RFA_OK;
}

static rfa_status print_all(const rfa_comm *world, void (*print)(const rfa_pages *pages))
{
    rfa_pages pages = {0};
    rfa_status status = take_all(world, &pages);
    if (status == RFA_OK && world->rank == 0) {
        print(&pages);
        if (fflush(stdout) != 0 || ferror(stdout)) {
            status = rfa_fail(RFA_ERR_IO, "standard output can't be written: %s", strerror(errno));
        }
    }
    for (int i = 0; i < pages.count; i++) {
        rfa_free(pages.page[i].text);
    }
    return rfa_agree(world, status);
}

rfa_status rfa_cmd_help(const rfa_comm *world, int argc, char **argv)
{
    enum { MAN = 256, BASH, HELP = 'h' };
    static const struct option options[] = {
        {"man", no_argument, NULL, MAN},
        {"bash", no_argument, NULL, BASH},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    void (*print)(const rfa_pages *pages) = NULL;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case MAN: print = rfa_print_manual; break;
        case BASH: print = rfa_print_completion; break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (print && argc == 2) {
        return print_all(world, print);
    }
    if (print || argc > 3) {
        return rfa_fail(RFA_ERR_USAGE, "help takes a verb, --man or --bash: rfa help --help");
    }
    if (argc == 1) {
        rfa_usage();
        return RFA_OK;
    }
    for (const rfa_verb *verb = rfa_verbs; verb->name; verb++) {
        if (strcmp(verb->name, argv[1]) == 0 && (argc == 2 || verb->run == rfa_cmd_data)) {
            return show(world, verb, argv[1], argc == 3 ? argv[2] : NULL);
        }
    }
    return rfa_fail(RFA_ERR_USAGE, "no help for '%s%s%s': rfa --help lists the verbs", argv[1],
                    argc == 3 ? " " : "", argc == 3 ? argv[2] : "");
}
