// What the cases share: repeats beside samples of the ceilings, statistics, verdicts.
#ifndef RFA_BENCH_MEASURE_H
#define RFA_BENCH_MEASURE_H

#include "bench/bench.h"
#include "tensor/shapes.h"

typedef struct {
    const rfa_config *config;
    const rfa_comm *world;
    const rfa_bench_sink *sink;
    int threads;
    ptrdiff_t side, block;               // of the ceiling's matrices; elements of the copied block
    rfa_real *matrices;                  // [threads][3][side][side]
    rfa_real *blocks;                    // [threads][2][block]
    double *seconds, *ceilings, *copies; // [phases or 1][repeats]
    int64_t held;                        // bytes before the case
} rfa_bench;

enum { RFA_BENCH_PHASES = 8 }; // at most

RFA_NODISCARD rfa_status rfa_bench_create(rfa_bench *bench,
                                          const rfa_config *config,
                                          const rfa_comm *world,
                                          const rfa_bench_sink *sink);
void rfa_bench_destroy(rfa_bench *bench); // idempotent

// What a phase has taken on this rank: seconds, and flops of products.
typedef struct {
    double seconds, executed;
} rfa_lap;

rfa_lap rfa_lap_start(void);
void rfa_lap_add(rfa_lap *lap, rfa_lap start); // what has passed since start

// From here on memory counts as the case's own. Local.
void rfa_bench_begin(rfa_bench *bench);

// A result with what the configuration knows; parameters are added one by one. Local.
rfa_bench_result
rfa_bench_result_of(const rfa_bench *bench, const char *name, const char *variant, double tokens);
void rfa_bench_parameter_add(rfa_bench_result *result, const char *name, int64_t value);

// Agrees on the largest error over its tolerance of all ranks and fills result->error, tolerance of
// that rank. RFA_ERR_INTERNAL when it is too large or no number. Collective.
RFA_NODISCARD rfa_status rfa_bench_check(const rfa_bench *bench,
                                         rfa_bench_result *result,
                                         double error,
                                         double tolerance);

// For tests: changes a number of a result where the fault point bench.<case> is set. Local.
void rfa_bench_spoil(const rfa_bench *bench, const char *name, rfa_real *value);

// Runs once to warm up (a call of 5 s or more counts as a repeat instead), then repeats, of as many
// calls as make 30 ms: run adds to a lap of each phase, and returns an agreed status. Fills and
// sends results [phases], whose flops and bytes are those of a call, and where there are several
// one more of their sum. Collective.
typedef rfa_status (*rfa_bench_work)(void *context, rfa_lap *laps);
RFA_NODISCARD rfa_status rfa_bench_measure(
    rfa_bench *bench, rfa_bench_result *results, int phases, rfa_bench_work run, void *context);

// Numbers of a list "1024, 4096" in order, at most `most`, each from least to greatest.
// RFA_ERR_USAGE names the key. Local.
RFA_NODISCARD rfa_status rfa_bench_numbers(ptrdiff_t *numbers,
                                           int *count,
                                           int most,
                                           const char *key,
                                           const char *text,
                                           ptrdiff_t least,
                                           ptrdiff_t greatest);

// Copies the next word of a list separated by commas and blanks to word and moves *text on; false
// at the end. Longer words are cut and end in "...", which is no case, word or number.
bool rfa_bench_word(char word[RFA_BENCH_NAME], const char **text);

// Appends to a text of size bytes, cutting it where it ends.
void rfa_bench_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Cases. Collective.
RFA_NODISCARD rfa_status rfa_bench_gemm(rfa_bench *bench);
RFA_NODISCARD rfa_status rfa_bench_features(rfa_bench *bench);
RFA_NODISCARD rfa_status rfa_bench_attention(rfa_bench *bench);
RFA_NODISCARD rfa_status rfa_bench_exchange(rfa_bench *bench);
RFA_NODISCARD rfa_status rfa_bench_step(rfa_bench *bench);
RFA_NODISCARD rfa_status rfa_bench_length(rfa_bench *bench);
RFA_NODISCARD rfa_status rfa_bench_drift(rfa_bench *bench);

#endif
