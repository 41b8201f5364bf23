// ListOps results by kind of expression, beside rules that know a part of the expression only: what
// a model has learned beyond them is what counts (a model that finds the root operator reaches 36
// %).
#ifndef RFA_TRAIN_LISTOPS_REPORT_H
#define RFA_TRAIN_LISTOPS_REPORT_H

#include "train/session.h"

// Prints on stdout of rank 0, each as "accuracy (right/examples)": the rules of the majority class,
// of the root operator (its most frequent value), and of the operator on its digits (where there
// are none, and for SM with other arguments too: as the former), with frequencies of the data set's
// training split; the predictions' accuracy by root operator, depth and length. All of the first
// `examples` examples of data, which is this split. RFA_ERR_IO names an example that is no
// expression. Cost: reads both splits once. Errors agreed. Collective.
RFA_NODISCARD rfa_status rfa_listops_report(const rfa_session *session,
                                            rfa_dataset *data,
                                            const char *split,
                                            int64_t examples,
                                            const rfa_predictions *predictions);

// Whether a data set has the task, symbols and classes of ListOps. Local.
bool rfa_listops_is(const rfa_dataset *data);

#endif
