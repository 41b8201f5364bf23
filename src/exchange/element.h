// Scaled elements: the states of weighted attention, whose combination is associative but does not
// commute.
//
// An element is unit numbers (m, L, x...): the logarithm m of a common scale, -infinity when it is
// empty, the logarithm L of how much passing it decays others, and numbers x that stand for exp(m)
// x. A reader beside `near` sees `far` through it:
//   combine(far, near) = (max(m_far + L_near, m_near), L_far + L_near, x),
//   x = x_far exp(m_far + L_near - m) + x_near exp(m_near - m),
// so nothing overflows, and a factor of 1 is exact. Blelloch 1990 with the decays of Peng et al.
// 2021, eq. 7.
#ifndef RFA_EXCHANGE_ELEMENT_H
#define RFA_EXCHANGE_ELEMENT_H

#include <stddef.h>

enum { RFA_ELEMENT_HEADER = 2 }; // m and L

// Makes count elements empty: (-infinity, 0, 0...).
void rfa_element_clear(double *elements, ptrdiff_t count, ptrdiff_t unit);

// out = combine(far, near) for count elements; out may be far or near. Costs 2 numbers an x.
void rfa_element_combine(
    double *out, const double *far, const double *near, ptrdiff_t count, ptrdiff_t unit);

// The step down a tree: inner = outer, and outer = combine(outer, inner) with the former inner.
void rfa_element_step(double *inner, double *outer, ptrdiff_t count, ptrdiff_t unit);

#endif
