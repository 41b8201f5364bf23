// The state of a run as a checkpoint: parameters and moments by name.
#ifndef RFA_TRAIN_STATE_H
#define RFA_TRAIN_STATE_H

#include "optim/adamw.h"
#include "storage/checkpoint.h"
#include "train/session.h"

// Rank 0 only: writes the checkpoint beside run_path. header's texts are filled in here. Local.
RFA_NODISCARD rfa_status rfa_state_save(const char *run_path,
                                        const rfa_session *session,
                                        const rfa_adamw *optimiser,
                                        const rfa_checkpoint_header *header);

// The same as RUN.best.ckpt, the state at the best validation so far. Local.
RFA_NODISCARD rfa_status rfa_state_save_best(const char *run_path,
                                             const rfa_session *session,
                                             const rfa_adamw *optimiser,
                                             const rfa_checkpoint_header *header);

// The path under which rfa_state_load finds it: RUN.best.h5 for RUN.h5. RFA_ERR_USAGE when too
// long. Local.
enum { RFA_STATE_PATH = 1024 };
RFA_NODISCARD rfa_status rfa_state_best_path(char best[RFA_STATE_PATH], const char *run_path);

// Rank 0 reads, checks configuration and data, and all ranks get the values. optimiser NULL: the
// parameters alone, and no check of the configuration (evaluation). header's texts are not kept.
// Collective.
RFA_NODISCARD rfa_status rfa_state_load(const char *run_path,
                                        rfa_session *session,
                                        rfa_adamw *optimiser,
                                        rfa_checkpoint_header *header);

#endif
