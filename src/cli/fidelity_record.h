// Results of rfa fidelity: tables on stdout, and a file.
#ifndef RFA_CLI_FIDELITY_RECORD_H
#define RFA_CLI_FIDELITY_RECORD_H

#include "fidelity/run.h"

void rfa_fidelity_print(const rfa_fidelity *f);

// path is checked beforehand. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_fidelity_write(const rfa_fidelity *f,
                                            const char *path,
                                            const rfa_config *config,
                                            const rfa_comm *world);

#endif
