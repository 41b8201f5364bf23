// Rows of all ranks of a sequence, gathered in place: for attention that must see every key.
#ifndef RFA_EXCHANGE_GATHER_H
#define RFA_EXCHANGE_GATHER_H

#include "exchange/states.h"

// all [sum of counts][width]: rank r's counts[r] rows are in place on rank r; afterwards all rows
// are on every rank, in ascending rank order. cost accumulates. Errors: RFA_ERR_MEMORY, agreed.
// Collective.
RFA_NODISCARD rfa_status rfa_gather_rows(rfa_real *all,
                                         const ptrdiff_t *counts,
                                         ptrdiff_t width,
                                         const rfa_comm *sequence,
                                         rfa_exchange_cost *cost);

#endif
