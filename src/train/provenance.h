// What makes a run file traceable: who computed it, from what, with what, where, how fast.
#ifndef RFA_TRAIN_PROVENANCE_H
#define RFA_TRAIN_PROVENANCE_H

#include "storage/runfile.h"
#include "train/session.h"

// run: on rank 0, NULL elsewhere. Collective.
void rfa_provenance_describe(rfa_run *run, const rfa_session *session);

// Peak memory and GEMM flops of a rank: maximum and sum over ranks. Collective.
void rfa_provenance_peaks(rfa_run *run, const rfa_comm *all);

// Speed so far against the ceiling of the same run. run may be NULL. Local.
void rfa_provenance_measure(rfa_run *run, double seconds, double flops, double ceiling);

#endif
