// Texts that are token ids: whole numbers with spaces between.
#ifndef RFA_TASKS_TOKEN_IDS_H
#define RFA_TASKS_TOKEN_IDS_H

#include "base/status.h"

#include <stdint.h>

enum { RFA_TOKEN_IDS = 65536 };

// ids [most] = the first numbers of size bytes of text, *count of them; *highest of all is raised.
// ids may be NULL, to check only. RFA_ERR_IO names what is no number in [1, limit); 0 is padding's.
// Local.
RFA_NODISCARD rfa_status rfa_token_ids(uint16_t *ids,
                                       ptrdiff_t *count,
                                       ptrdiff_t most,
                                       int *highest,
                                       const char *text,
                                       int64_t size,
                                       int limit);

#endif
