// What a run will need, found without running it.
#ifndef RFA_TRAIN_PLAN_H
#define RFA_TRAIN_PLAN_H

#include "base/comm.h"
#include "config/config.h"

// Lays out everything that training with this configuration would hold, in memory that is mapped
// and not touched (but for the parameters, the order of examples and the lengths of the data), for
// the batches of the first 2000 steps and of the evaluations, and prints the bytes a rank and the
// schedule. Errors:
// RFA_ERR_MEMORY when the ranks of a host need more than is available there; those of a start.
// Collective over world.
RFA_NODISCARD rfa_status rfa_plan_memory(const rfa_config *config, const rfa_comm *world);

#endif
