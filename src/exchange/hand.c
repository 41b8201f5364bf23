#include "exchange/hand.h"

#include "base/log.h"
#include "base/profile.h"

#include <string.h>

enum { PIECE = 1 << 24, TAG = 17 }; // doubles a message

void rfa_hand_over(double *to,
                   const double *from,
                   ptrdiff_t n,
                   int sender,
                   int receiver,
                   const rfa_comm *sequence,
                   rfa_exchange_cost *cost)
{
    RFA_PROFILE(RFA_PHASE_EXCHANGE);
    const bool sends = sequence->rank == sender, receives = sequence->rank == receiver;
    if (sends && receives) {
        memcpy(to, from, (size_t)n * sizeof *to);
        return;
    }
    const double start = rfa_now();
    for (ptrdiff_t at = 0; at < n; at += PIECE) {
        const int count = rfa_int(n - at < PIECE ? n - at : PIECE);
        if (sends) {
            MPI_Send(from + at, count, MPI_DOUBLE, receiver, TAG, sequence->comm);
            cost->messages++;
            cost->bytes_sent += count * (int64_t)sizeof *from;
        } else if (receives) {
            MPI_Recv(to + at, count, MPI_DOUBLE, sender, TAG, sequence->comm, MPI_STATUS_IGNORE);
        }
    }
    cost->calls += sends || receives;
    cost->seconds += rfa_now() - start;
}
