// A checkpoint read whole, without knowing its model: for comparing two of them.
#ifndef RFA_STORAGE_CHECKPOINT_LIST_H
#define RFA_STORAGE_CHECKPOINT_LIST_H

#include "storage/checkpoint.h"

typedef struct {
    rfa_checkpoint_header header;
    int count;
    rfa_checkpoint_array *array; // parameters, then moments, each in the order of the table; names
                                 // and values owned
} rfa_checkpoint_list;

// The newest complete checkpoint of a run, as rfa_checkpoint_read finds it. RFA_ERR_IO. Local.
RFA_NODISCARD rfa_status rfa_checkpoint_list_read(rfa_checkpoint_list *list, const char *run_path);
void rfa_checkpoint_list_free(rfa_checkpoint_list *list); // idempotent

#endif
