#include "exchange/gather.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/profile.h"

// One row is the unit of counts and displacements, so that they stay small.
rfa_status rfa_gather_rows(rfa_real *all,
                           const ptrdiff_t *counts,
                           ptrdiff_t width,
                           const rfa_comm *sequence,
                           rfa_exchange_cost *cost)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    if (sequence->size == 1) {
        return RFA_OK;
    }
    int *table = NULL;
    RFA_TRY(rfa_agree(sequence, rfa_alloc(&table, 2 * (ptrdiff_t)sequence->size, sizeof *table,
                                          "gather counts")));
    ptrdiff_t at = 0;
    for (int r = 0; r < sequence->size; r++) {
        table[r] = rfa_int(counts[r]);
        table[sequence->size + r] = rfa_int(at);
        at += counts[r];
    }
    const double start = rfa_now();
    MPI_Datatype row;
    MPI_Type_contiguous(rfa_int(width * (ptrdiff_t)sizeof *all), MPI_BYTE, &row);
    MPI_Type_commit(&row);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, table, table + sequence->size, row,
                   sequence->comm);
    MPI_Type_free(&row);
    cost->seconds += rfa_now() - start;
    cost->calls++;
    cost->messages += sequence->size - 1;
    cost->bytes_sent +=
        (int64_t)counts[sequence->rank] * width * (int64_t)sizeof *all * (sequence->size - 1);
    rfa_free(table);
    return RFA_OK;
}
