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

// What both halves of a crossing need.
typedef struct {
    border in, out;
    bool comes_in, goes_out; // here: something enters at, or leaves from, a segment of this rank
    ptrdiff_t size, state;
    double *carry, *aside;
} crossing;

static crossing crossing_of(const rfa_attention *attention,
                            const rfa_attention_saved *saved,
                            const rfa_plan *plan,
                            bool backward)
{
    const border in = border_of(attention, plan, backward);
    const border out = border_of(attention, plan, !backward);
    const int rank = attention->sequence->rank;
    const rfa_linear_scratch *scratch = attention->scratch;
    return (crossing){
        .in = in,
        .out = out,
        .comes_in = enters(plan, backward) && rank == in.rank,
        .goes_out = leaves(plan, backward) && rank == out.rank,
        .size = rfa_linear_row_size(attention, plan),
        .state = rfa_linear_state_numbers(&attention->options),
        .carry = rfa_linear_own(saved)->carry,
        .aside = scratch->aside,
    };
}

void rfa_linear_carry_in(const rfa_attention *attention,
                         const rfa_attention_saved *saved,
                         const rfa_plan *plan,
                         double *states,
                         bool backward)
{
    const crossing c = crossing_of(attention, saved, plan, backward);
    if (c.goes_out) {
        memcpy(c.aside, states + c.out.row, (size_t)c.size * sizeof *states);
    }
    if (c.comes_in) {
        double *first = states + c.in.row;
        rfa_element_combine(first, c.carry, first, c.size / c.state, c.state);
    }
}

void rfa_linear_carry_out(rfa_attention *attention,
                          const rfa_attention_saved *saved,
                          const rfa_plan *plan,
                          double *states,
                          bool backward)
{
    const crossing c = crossing_of(attention, saved, plan, backward);
    if (c.comes_in) {
        memcpy(states + c.in.row, c.carry, (size_t)c.size * sizeof *states);
    }
    if (c.goes_out) {
        rfa_element_combine(c.aside, states + c.out.row, c.aside, c.size / c.state, c.state);
    }
    if (leaves(plan, backward)) {
        rfa_hand_over(c.carry, c.aside, c.size, c.out.rank, c.in.rank, attention->sequence,
                      &attention->gather_cost);
    }
}
