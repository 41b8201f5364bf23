// States that one rank of a sequence hands to another: between the windows of a long sequence.
#ifndef RFA_EXCHANGE_HAND_H
#define RFA_EXCHANGE_HAND_H

#include "exchange/states.h"

// to [n] of rank receiver = from [n] of rank sender; the other ranks do nothing, and these two may
// be the same. Any n. cost accumulates. To be called on all ranks of sequence.
void rfa_hand_over(double *to,
                   const double *from,
                   ptrdiff_t n,
                   int sender,
                   int receiver,
                   const rfa_comm *sequence,
                   rfa_exchange_cost *cost);

#endif
