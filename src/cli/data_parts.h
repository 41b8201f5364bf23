// The beginning and the end that all data sets share, and what generator and importer of ListOps
// share. All local, on rank 0.
#ifndef RFA_CLI_DATA_PARTS_H
#define RFA_CLI_DATA_PARTS_H

#include "cli/data_listops.h"
#include "storage/dataset_writer.h"

// Makes the folders of the output, and starts the file.
RFA_NODISCARD rfa_status rfa_data_create(rfa_dataset_writer **writer,
                                         const char *out,
                                         const rfa_dataset_description *description,
                                         bool force);
// Duplicates within splits and across them, who made it and when, and the end of the file.
RFA_NODISCARD rfa_status rfa_data_end(rfa_dataset_writer *writer,
                                      int64_t within,
                                      int64_t across,
                                      char digest[17]);

// Makes the folders of the output, and starts the file with its description.
RFA_NODISCARD rfa_status rfa_data_start(rfa_dataset_writer **writer,
                                        const rfa_data_listops *options);
// The attributes that tell where the file comes from, and the end of the file.
RFA_NODISCARD rfa_status rfa_data_finish(rfa_dataset_writer *writer,
                                         const rfa_data_listops *options,
                                         rfa_data_summary *summary);
// Counts an example of split s in the summary.
void rfa_data_count(rfa_data_summary *summary, int s, ptrdiff_t length, int label);

#endif
