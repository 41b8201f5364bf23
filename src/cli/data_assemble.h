// Inside of cli/data_make: which examples a part holds, and the data set from all parts.
#ifndef RFA_CLI_DATA_ASSEMBLE_H
#define RFA_CLI_DATA_ASSEMBLE_H

#include "cli/data_make.h"
#include "tasks/part.h"

typedef struct {
    const rfa_comm *world;
    const rfa_data_job *job;
    const rfa_source *source;
    int64_t parts, total;                      // parts; examples of all splits
    int64_t first_part[RFA_SPLITS + 1];        // of each split
    int64_t tokens[RFA_SPLITS][RFA_DOCUMENTS]; // known when all parts are made
} rfa_data_plan;

void rfa_data_plan_create(rfa_data_plan *plan,
                          const rfa_comm *world,
                          const rfa_data_job *job,
                          const rfa_source *source);
rfa_part_key rfa_data_part_key(const rfa_data_plan *plan, int64_t number);
void rfa_data_part_path(char path[RFA_DATA_PATH + 64], const rfa_data_plan *plan, int64_t number);
// Examples in parts [0, number).
int64_t rfa_data_examples_before(const rfa_data_plan *plan, int64_t number);

// All parts into the data set, its end, and the summary on stdout. part is work space. On rank 0.
RFA_NODISCARD rfa_status rfa_data_assemble(const rfa_data_plan *plan,
                                           rfa_dataset_writer *writer,
                                           rfa_part *part);

#endif
