// Makes the ListOps data set, from the generator or from the released files.
#ifndef RFA_CLI_DATA_LISTOPS_H
#define RFA_CLI_DATA_LISTOPS_H

#include "cli/data_options.h"
#include "storage/dataset_writer.h"
#include "tasks/listops.h"
#include "tasks/listops_tsv.h"

// Plain bytes: rank 0 parses them and tells the others.
typedef struct {
    rfa_data_common common;               // from: folder of the released files
    char validation[RFA_DATA_WORD];       // of trees, which have no validation split of their own
    int64_t examples[RFA_LISTOPS_SPLITS]; // train, val, test
    rfa_listops_options tree;
} rfa_data_listops;

// What was made, for the summary; on rank 0.
typedef struct {
    int64_t examples[RFA_LISTOPS_SPLITS], tokens[RFA_LISTOPS_SPLITS];
    int64_t shortest[RFA_LISTOPS_SPLITS], longest[RFA_LISTOPS_SPLITS];
    int64_t counts[RFA_LISTOPS_SPLITS][RFA_LISTOPS_CLASSES];
    int64_t repeats;    // examples that occur before in their own split
    int64_t leaks;      // examples that occur in an earlier split
    int64_t candidates; // trees drawn
    int64_t in_window;  // of these, of the right length
    char digest[17];
} rfa_data_summary;

// Candidate trees in order of their numbers, each on any rank; the first different ones in the
// window of lengths are kept, so the file does not depend on the number of ranks. Two passes: find
// and compare fingerprints, then write. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_data_listops_generate(const rfa_comm *world,
                                                   const rfa_data_listops *options,
                                                   rfa_data_summary *summary);

// Imports trees with labels (tasks/listops_trees.h), and prints what was made. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_data_listops_trees(const rfa_comm *world,
                                                const rfa_data_listops *options);

// What all ListOps data sets have in common.
rfa_dataset_description rfa_data_listops_description(void);

// Reads the released files twice, to check and count, then to write. Equal examples are counted
// and kept: the released splits stay what they are. Rank 0 works. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_data_listops_import(const rfa_comm *world,
                                                 const rfa_data_listops *options,
                                                 rfa_data_summary *summary);

#endif
