// Attention against the references of truth.h.
#ifndef RFA_BENCH_CHECK_H
#define RFA_BENCH_CHECK_H

#include "bench/layer.h"
#include "bench/measure.h"

// A short sequence in two segments or more: every row of the output, and the gradient along one
// direction of q, k, v (and what a gate reads) against fourth-order differences of the reference.
// At full length, up to 2^17 tokens, where kinds have no noise or without it: the first and last
// row of each rank. In a training pass: sum(out dout) = sum(v dv), as the output is linear in the
// values. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_bench_check_attention(const rfa_bench *bench,
                                                   rfa_bench_result *result,
                                                   const rfa_attention_options *options,
                                                   rfa_exchange_algorithm algorithm,
                                                   ptrdiff_t length);

#endif
