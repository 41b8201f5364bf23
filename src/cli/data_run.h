// The course of `rfa data TASK`, the same for every task: rank 0 reads the command line and looks
// at the files, the others get its findings, all load parts and rank 0 puts them together.
#ifndef RFA_CLI_DATA_RUN_H
#define RFA_CLI_DATA_RUN_H

#include "cli/data_make.h"
#include "tasks/tree.h"

// A task is plain bytes that begin with rfa_data_common: its options, what was found, and what its
// source needs. Pointers in it stay NULL until open.
typedef struct {
    const rfa_data_parser *parser;
    size_t size;    // of the task
    bool generates; // also without --from
    // Checks options and lists what --from has. On rank 0.
    rfa_status (*list)(void *task, rfa_index *index);
    // Fills source and job, but for what follows from task and index: examples, when they are
    // imported, options, index and self. Local, on all ranks.
    rfa_status (*open)(void *task, const rfa_index *index, rfa_source *source, rfa_data_job *job);
    void (*close)(void *task); // idempotent, also without open
} rfa_data_course;

// argv[0] is the task. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_data_run(
    const rfa_comm *world, const rfa_data_course *course, void *task, int argc, char **argv);

// names[i] = name of class i. Local.
void rfa_data_class_names(const char **names, const rfa_classes *classes);

#endif
