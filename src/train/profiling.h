// Where the time of training steps went: rfa train --profile.
#ifndef RFA_TRAIN_PROFILING_H
#define RFA_TRAIN_PROFILING_H

#include "base/profile.h"
#include "storage/runfile.h"
#include "train/session.h"

// Prints the profile of the steps that this process has measured (none: nothing) on rank 0, and
// gives it to run (NULL elsewhere). RFA_ERR_MEMORY, not agreed. Collective.
RFA_NODISCARD rfa_status rfa_profiling_end(rfa_run *run, const rfa_session *session, int64_t steps);

#endif
