// What the verbs share: options, and configurations that all ranks see alike.
#ifndef RFA_CLI_SETTINGS_H
#define RFA_CLI_SETTINGS_H

#include "config/config.h"

#include <getopt.h>

enum { RFA_MOST_SETTINGS = 64 };

// A configuration file or text, and --set assignments over it.
typedef struct {
    const char *file;
    const char *assignment[RFA_MOST_SETTINGS];
    int count;
} rfa_settings;

// getopt_long that prints nothing; '?' for what it does not know. Starts over at each verb.
int rfa_next_option(int argc, char **argv, const struct option *options);
RFA_NODISCARD rfa_status rfa_bad_option(char **argv); // one line for the last '?'

void rfa_print_lines(const char *const *lines); // to NULL

RFA_NODISCARD rfa_status rfa_settings_add(rfa_settings *settings, const char *assignment);

// Rank 0 reads and checks; all ranks get the same configuration or the same error. *config is
// overwritten, but when settings->file is NULL it is what the assignments change. Collective.
RFA_NODISCARD rfa_status rfa_settings_load(rfa_config *config,
                                           const rfa_settings *settings,
                                           const rfa_comm *world);

#endif
