// Makes a data set from a source: ranks load its examples in parts, rank 0 puts them together.
#ifndef RFA_CLI_DATA_MAKE_H
#define RFA_CLI_DATA_MAKE_H

#include "cli/data_options.h"
#include "storage/dataset_writer.h"
#include "tasks/fingerprint.h"
#include "tasks/index.h"

// What is made, besides the examples.
typedef struct {
    const rfa_data_common *options;
    rfa_dataset_description description;
    const char *origin_name;        // of an example's number at its source: "line", "record"
    const char *const *class_names; // [classes], or NULL
    int64_t part;                   // examples of a part
    rfa_fingerprint recipe;         // of everything that the examples depend on
    const rfa_index *index;         // of an importer, or NULL: skipped examples are told
    // Attributes of the root that tell how it was made. On rank 0.
    rfa_status (*attributes)(const void *self, rfa_dataset_writer *writer);
    const void *self;
} rfa_data_job;

// Makes options->out and prints what is in it. The file depends on the source alone, not on the
// number of ranks. Finished parts lie in OUT.parts meanwhile: a call that was stopped (RFA_STOPPED)
// or killed goes on from them when it is repeated. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_data_make(const rfa_comm *world,
                                       const rfa_data_job *job,
                                       const rfa_source *source);

// Rank 0's index to all. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_data_share_index(const rfa_comm *world, rfa_index *index);

// Fingerprint of an index and of the importer's other options, as text.
rfa_fingerprint rfa_data_recipe(const rfa_index *index, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Percent of "last10%", 0 of "test". RFA_ERR_USAGE for anything else.
RFA_NODISCARD rfa_status rfa_data_validation(int *percent, const char *word);

// The tasks; argv[0] is the task. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_data_listops_command(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_data_text(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_data_image(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_data_retrieval(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_data_pathfinder(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_data_pathx(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_data_recall(const rfa_comm *world, int argc, char **argv);
RFA_NODISCARD rfa_status rfa_data_own(const rfa_comm *world, int argc, char **argv);

#endif
