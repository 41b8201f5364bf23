// Results kept for a file (storage/benchfile.h).
#ifndef RFA_BENCH_RECORD_H
#define RFA_BENCH_RECORD_H

#include "bench/bench.h"

typedef struct {
    rfa_bench_result *results;
    int64_t count, capacity;
} rfa_bench_record;

// Keeps a copy. RFA_ERR_MEMORY. Local.
RFA_NODISCARD rfa_status rfa_bench_record_add(rfa_bench_record *record,
                                              const rfa_bench_result *result);
void rfa_bench_record_destroy(rfa_bench_record *record); // idempotent

// Rank 0 writes them to path, with what makes them traceable. Agreed. Collective.
RFA_NODISCARD rfa_status rfa_bench_record_write(const rfa_bench_record *record,
                                                const char *path,
                                                const rfa_config *config,
                                                const rfa_comm *world);

#endif
