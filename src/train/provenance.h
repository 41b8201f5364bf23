// What makes a run file traceable: who computed it, from what, with what, where, how fast.
#ifndef RFA_TRAIN_PROVENANCE_H
#define RFA_TRAIN_PROVENANCE_H

#include "storage/runfile.h"
#include "train/session.h"

// Names of all hosts, each once, in rank order: "node1 node2". Collective; the text on rank 0.
void rfa_provenance_hosts(char *text, size_t size, const rfa_comm *all);

// Attributes of a file of results: program, libraries, hosts, ranks. hosts: as above. Local:
// for the rank that writes.
RFA_NODISCARD rfa_status rfa_provenance_set(rfa_attributes *list,
                                            const rfa_comm *all,
                                            const char *hosts);

// Of a start after the given step. run: on rank 0, NULL elsewhere. Collective; RFA_ERR_MEMORY, not
// agreed.
RFA_NODISCARD rfa_status rfa_provenance_describe(rfa_run *run,
                                                 const rfa_session *session,
                                                 int64_t step);

// Peak memory and GEMM flops of a rank: maximum and sum over ranks. Collective.
void rfa_provenance_peaks(rfa_run *run, const rfa_comm *all);

// Speed of all steps so far, over all starts, against sgemm in the same time. flops: model flops of
// these steps. Does nothing when rows are missing, or run is NULL. Local.
void rfa_provenance_measure(rfa_run *run, int64_t steps, double flops);

#endif
