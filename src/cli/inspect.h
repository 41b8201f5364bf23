// What rfa inspect shows, in parts: all print to stdout, on rank 0.
#ifndef RFA_CLI_INSPECT_H
#define RFA_CLI_INSPECT_H

#include "storage/attributes.h"
#include "storage/runfile.h"

// Names and values after a title, folded to the width of a page: "model   layers 2, width 64". Only
// names that begin with prefix (which is left out), but not the ones in the list skip (NULL-ended,
// may be NULL); nothing when there are none.
RFA_NODISCARD rfa_status rfa_inspect_list(const char *title,
                                          const rfa_attributes *list,
                                          const char *prefix,
                                          const char *const *skip);
// The same for a configuration: a line or more for each section.
RFA_NODISCARD rfa_status rfa_inspect_config(const char *config_text);

// {"a":1,"b":"two"}, without a newline.
RFA_NODISCARD rfa_status rfa_inspect_object(const rfa_attributes *list);
RFA_NODISCARD rfa_status rfa_inspect_quoted(const char *text);

// A run, for people and as one JSON object.
RFA_NODISCARD rfa_status rfa_inspect_run(const char *path, const rfa_run_view *view);
RFA_NODISCARD rfa_status rfa_inspect_run_json(const char *path, const rfa_run_view *view);

#endif
