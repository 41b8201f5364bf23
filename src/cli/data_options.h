// Options of `rfa data TASK` as a table that argp reads: names, values with their ranges, help.
#ifndef RFA_CLI_DATA_OPTIONS_H
#define RFA_CLI_DATA_OPTIONS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RFA_DATA_PATH = 2048, RFA_DATA_WORD = 1024, RFA_DATA_OPTIONS = 48 };

typedef enum {
    RFA_OPTION_TITLE, // help text above a group; name is NULL
    RFA_OPTION_FLAG,  // bool
    RFA_OPTION_PATH,  // char[RFA_DATA_PATH]
    RFA_OPTION_WORD,  // char[RFA_DATA_WORD]
    RFA_OPTION_INT64,
    RFA_OPTION_INT,
    RFA_OPTION_DOUBLE,
} rfa_option_kind;

typedef struct {
    const char *name;
    char letter; // 0: none
    rfa_option_kind kind;
    size_t offset; // in the task's options
    int64_t least, most;
    const char *value, *help;
    int group;
    bool generates; // has no meaning with --from
} rfa_data_option;

typedef struct {
    const char *task;
    const char *from; // option that says what to import, and its value; NULL: "from DIR"
    const char *text; // before and, behind \v, after the options
    const rfa_data_option *options;
    int count; // at most RFA_DATA_OPTIONS
} rfa_data_parser;

// What every task has; the first member of its options.
typedef struct {
    char out[RFA_DATA_PATH];
    char from[RFA_DATA_PATH]; // "": generate
    bool force, help;
    uint64_t given; // bit i: option i was given
} rfa_data_common;

// Sets options from the command line; argv[0] is the task. --help prints, and sets common.help.
// RFA_ERR_USAGE with one line. On rank 0.
RFA_NODISCARD rfa_status rfa_data_parse(const rfa_data_parser *parser,
                                        rfa_data_common *options,
                                        int argc,
                                        char **argv);
// Whether the option of this name was given.
bool rfa_data_given(const rfa_data_parser *parser,
                    const rfa_data_common *options,
                    const char *name);

#define RFA_OPTION_OUT(type, text)                                                                 \
    {"out", 'o',  RFA_OPTION_PATH, offsetof(type, common.out),                                     \
     0,     0,    "FILE",          "HDF5 file to write (" text "); its folder is made",            \
     1,     false},                                                                                \
    {                                                                                              \
        "force", 'f', RFA_OPTION_FLAG, offsetof(type, common.force), 0, 0, NULL,                   \
            "Overwrite an existing file", 1, false                                                 \
    }
#define RFA_OPTION_FROM(type, text)                                                                \
    {                                                                                              \
        "from", 0, RFA_OPTION_PATH, offsetof(type, common.from), 0, 0, "DIR", text, 1, false       \
    }
#define RFA_OPTION_HELP(type)                                                                      \
    {                                                                                              \
        "help", 'h', RFA_OPTION_FLAG, offsetof(type, common.help), 0, 0, NULL, "Print this help",  \
            9, false                                                                               \
    }

#endif
