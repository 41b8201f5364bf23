// Help of all verbs, as a page of the manual and as completion for bash: both follow from the
// tables of verbs and of keys, and from what each verb's --help says of its options.
#ifndef RFA_CLI_MANUAL_H
#define RFA_CLI_MANUAL_H

#include "cli/commands.h"

#include <stdbool.h>
#include <stddef.h>

// What `rfa VERB [TASK] --help` prints.
typedef struct {
    const char *verb, *task; // task: NULL but for rfa data TASK
    const char *help;        // one line
    char *text;
} rfa_page;

enum { RFA_MOST_PAGES = 64 };

typedef struct {
    rfa_page page[RFA_MOST_PAGES];
    int count;
} rfa_pages;

// The next option in text: "--out" without its dashes into name, and the word of its value, such
// as FILE, into value ("" when it takes none). *text moves on; false at the end. Lines that are
// examples, which begin with a program's name, are passed over.
bool rfa_page_option(const char **text, char *name, char *value, size_t size);

void rfa_print_manual(const rfa_pages *pages);     // troff, man(7)
void rfa_print_completion(const rfa_pages *pages); // bash

#endif
