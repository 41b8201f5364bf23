// Runs that have ended already.
#ifndef RFA_TRAIN_FINISHED_H
#define RFA_TRAIN_FINISHED_H

#include "train/session.h"

// *finished on all ranks: the record at run_path says that the run has ended with the parameters of
// the session, loaded from its checkpoint. Then it says so, and prints the result lines that are on
// record. Collective; errors agreed.
RFA_NODISCARD rfa_status rfa_finished_check(bool *finished,
                                            const char *run_path,
                                            const rfa_session *session);

#endif
