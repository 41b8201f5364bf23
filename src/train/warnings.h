// What makes a result worth less than it looks, said at the start and kept with the run.
#ifndef RFA_TRAIN_WARNINGS_H
#define RFA_TRAIN_WARNINGS_H

#include "train/session.h"

// One line each on stderr, and all of them in text: validation is the test split; a class that a
// split lacks; a validation of so few examples that its 95 % interval is wider than 10 points. What
// rfa_config_warn says of warm-up is in text as well. Errors agreed. Collective.
RFA_NODISCARD rfa_status rfa_warn_of_data(char *text,
                                          size_t size,
                                          const rfa_session *session,
                                          const rfa_dataset *validation);

#endif
