// The verbs of the program. Each is called by all ranks of world with the same arguments, argv[0]
// being the verb, parses on rank 0, and returns an agreed outcome that is the exit code; the error
// line is main's. --help prints to stdout and is RFA_OK. Collective.
#ifndef RFA_CLI_COMMANDS_H
#define RFA_CLI_COMMANDS_H

#include "base/status.h"

typedef struct {
    const char *name;
    rfa_status (*run)(const rfa_comm *world, int argc, char **argv);
    const char *help; // one line
} rfa_verb;

extern const rfa_verb rfa_verbs[];      // ended by a NULL name
extern const rfa_verb rfa_data_tasks[]; // the same: rfa data TASK
void rfa_usage(void);                   // all verbs, on stdout

RFA_NODISCARD rfa_status rfa_cmd_data(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_train(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_eval(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_inspect(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_diff(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_reproduce(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_bench(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_fidelity(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_capture(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_probe(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_doctor(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_cmd_help(const rfa_comm *world, int argc, char **argv);

#endif
