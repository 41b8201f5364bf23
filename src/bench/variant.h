// Kinds of attention by words: "rfa+causal+gated".
#ifndef RFA_BENCH_VARIANT_H
#define RFA_BENCH_VARIANT_H

#include "bench/measure.h"

// All that config->attention can be, by name, as a list that rfa_bench_word walks.
const char *rfa_bench_variants(void);

// *out = config with the section attention as the words of name say; "own" changes nothing, a kind
// begins with the defaults of that section, its sizes excepted. RFA_ERR_USAGE for unknown words and
// combinations that rfa_config_check refuses. Local.
RFA_NODISCARD rfa_status rfa_bench_variant(rfa_config *out,
                                           const rfa_config *config,
                                           const char *name);

// The words that hold for config->attention, joined. Local.
void rfa_bench_variant_name(char name[RFA_BENCH_NAME], const rfa_config *config);

#endif
