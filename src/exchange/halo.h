// Rows that a segment's windows reach beyond the segment: attention to the window of a query needs
// keys of its neighbours. Window b of an example holds its tokens [b w, (b + 1) w); a segment
// reaches from the begin of the window of its first token to the end of that of its last one.
//
// Every segment, not every rank, gets the rows that it reaches in other segments, so that the way
// back of their gradients has one term a segment, and the order of terms does not depend on ranks.
#ifndef RFA_EXCHANGE_HALO_H
#define RFA_EXCHANGE_HALO_H

#include "exchange/partition.h"
#include "exchange/states.h"

#include <stdbool.h>

typedef struct {
    const ptrdiff_t *lengths; // [examples]
    int examples, segments;
    ptrdiff_t window; // w
    bool after;       // reach behind the segment too, else only before it
} rfa_halo;

// Tokens [begin, end) of the example, which hold the segment's own; equal where it has none.
typedef struct {
    ptrdiff_t begin, end;
} rfa_halo_reach;

rfa_halo_reach rfa_halo_reach_of(const rfa_halo *halo, int example, int segment);

// row0 [examples * own + 1]: where the rows of each of part p's segments begin in its array of
// halos, then their total. A segment's rows before it come first, then those behind it, each in
// the order of the example.
void rfa_halo_fill(ptrdiff_t *row0, const rfa_halo *halo, int parts, int p);

// to [total][width] = rows of other segments, whose owners hold from [rows][ld], the packed rows of
// rfa_leaves_fill. cost accumulates. Errors: RFA_ERR_MEMORY, agreed. Collective over sequence.
RFA_NODISCARD rfa_status rfa_halo_fetch(rfa_real *to,
                                        const rfa_real *from,
                                        ptrdiff_t ld,
                                        ptrdiff_t width,
                                        const rfa_halo *halo,
                                        const rfa_comm *sequence,
                                        rfa_exchange_cost *cost);

// The way back: sums [rows][width] of the owners accumulate parts [total][width], a row's terms in
// ascending order of the segments that reach it.
RFA_NODISCARD rfa_status rfa_halo_return(double *sums,
                                         const double *parts,
                                         ptrdiff_t width,
                                         const rfa_halo *halo,
                                         const rfa_comm *sequence,
                                         rfa_exchange_cost *cost);

#endif
