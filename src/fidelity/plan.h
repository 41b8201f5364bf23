// What a configuration asks rfa fidelity for; private to fidelity/run.c.
#ifndef RFA_FIDELITY_PLAN_H
#define RFA_FIDELITY_PLAN_H

#include "fidelity/run.h"

// Fills f's lists and sizes, opens the file where there is one, and allocates its arrays, NaN
// where nothing is known yet. Local; every rank reads the file's sizes.
RFA_NODISCARD rfa_status rfa_fidelity_plan(rfa_fidelity *f,
                                           rfa_ensemble ensembles[RFA_ENSEMBLES],
                                           const rfa_config *config);

#endif
