// A trained run as the verbs that look into it open it: its configuration, its checkpoint, its
// data, and what their files say of it.
#ifndef RFA_CLI_TRAINED_H
#define RFA_CLI_TRAINED_H

#include "cli/settings.h"
#include "storage/attributes.h"
#include "train/state.h"

typedef struct {
    const char *run, *data, *split; // data NULL: the run's own
    bool best;                      // the parameters of the best validation, not the last
    rfa_settings settings;          // how to compute; may not change what
    bool whole;                     // no windows, and layers keep what they compute
    // filled by open
    char path[RFA_STATE_PATH];
    rfa_session session;
} rfa_trained;

// The session of a run, with its initial parameters. Checks that there is a checkpoint. Agreed.
// Collective.
RFA_NODISCARD rfa_status rfa_trained_open(rfa_trained *trained, const rfa_comm *world);

// Reads the trained parameters. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_trained_load(rfa_trained *trained);
void rfa_trained_close(rfa_trained *trained); // after open. Collective

// Attributes of a file made from it, on rank 0: program, machine, run, parameters, data. Agreed.
// Collective.
RFA_NODISCARD rfa_status rfa_trained_describe(rfa_attributes *list, const rfa_trained *trained);

#endif
