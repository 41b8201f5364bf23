// States of causal linear heads between the windows of a long sequence. The scan of a forward comes
// to a window at its first segment and leaves it at the last one; that of adjoints the other way.
#include "exchange/element.h"
#include "exchange/hand.h"
#include "layers/attention_linear.h"

#include <string.h>

// Who holds the first segment that a scan comes to, and the last one; where its row is there.
typedef struct {
    int rank;
    ptrdiff_t row; // on that rank
} border;

static border border_of(const rfa_attention *attention, const rfa_plan *plan, bool last)
{
    const ptrdiff_t size = rfa_linear_row_size(attention, plan);
    return (border){.rank = last ? attention->sequence->size - 1 : 0,
                    .row = last ? (plan->own - 1) * size : 0};
}

// Whether anything comes in, or goes on.
static bool enters(const rfa_plan *plan, bool backward)
{
    return backward ? plan->is_followed && !plan->cut : plan->follows;
}

static bool leaves(const rfa_plan *plan, bool backward)
{
    return backward ? plan->follows && !plan->cut : plan->is_followed;
}

void rfa_linear_carry_in(const rfa_attention *attention,
                         const rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         double *states,
                         bool backward)
{
    const border in = border_of(attention, plan, backward);
    const border out = border_of(attention, plan, !backward);
    const ptrdiff_t size = rfa_linear_row_size(attention, plan);
    const ptrdiff_t state = rfa_linear_state_numbers(&attention->options);
    const rfa_linear_scratch *scratch = attention->scratch;
    if (leaves(plan, backward) && attention->sequence->rank == out.rank) {
        memcpy(scratch->aside, states + out.row, (size_t)size * sizeof *states);
    }
    if (enters(plan, backward) && attention->sequence->rank == in.rank) {
        rfa_element_combine(states + in.row, rfa_linear_own(saved)->carry, states + in.row,
                            size / state, state);
    }
}

void rfa_linear_carry_out(rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          double *states,
                          bool backward)
{
    const border in = border_of(attention, plan, backward);
    const border out = border_of(attention, plan, !backward);
    const ptrdiff_t size = rfa_linear_row_size(attention, plan);
    const ptrdiff_t state = rfa_linear_state_numbers(&attention->options);
    const rfa_linear_scratch *scratch = attention->scratch;
    double *carry = rfa_linear_own(saved)->carry;
    if (enters(plan, backward) && attention->sequence->rank == in.rank) {
        memcpy(states + in.row, carry, (size_t)size * sizeof *states);
    }
    if (!leaves(plan, backward)) {
        return;
    }
    if (attention->sequence->rank == out.rank) {
        rfa_element_combine(scratch->aside, states + out.row, scratch->aside, size / state, state);
    }
    rfa_hand_over(carry, scratch->aside, size, out.rank, in.rank, attention->sequence,
                  &attention->gather_cost);
}
