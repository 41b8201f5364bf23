// Measures parts of the program: each case first checks its own result against a slow reference in
// double, then times repeats beside the ceilings of the same cores.
//
// Counting. flops: model flops, which count nothing twice that is computed twice, of the products
// alone (rfa_attention_flops, rfa_classifier_flops; a product of m x k by k x n: 2 m n k).
// executed: those of the products that the program did (rfa_gemm_flops), with chunks' own scores
// and all that is computed again. ceiling: rate of one large product on every thread of every rank
// at the same time, the median over samples that alternate with the repeats; so drift of the
// machine cancels in flops / seconds / ceiling. copy: bytes/s that all copies of large blocks
// together read and write, sampled likewise.
#ifndef RFA_BENCH_BENCH_H
#define RFA_BENCH_BENCH_H

#include "config/config.h"

enum { RFA_BENCH_NAME = 64, RFA_BENCH_PARAMETERS = 12 };

typedef struct {
    const char *name;
    int64_t value;
} rfa_bench_parameter;

// One line of a table.
typedef struct {
    char name[RFA_BENCH_NAME];    // of the case
    char variant[RFA_BENCH_NAME]; // "rfa+causal"; may be empty
    char phase[RFA_BENCH_NAME];   // "forward", "backward", "both"; may be empty
    rfa_bench_parameter parameter[RFA_BENCH_PARAMETERS];
    int parameters;
    int ranks, threads, repeats, calls; // calls: of each repeat; all below is of one
    double minimum, median, maximum;    // seconds of the slowest rank
    double tokens, flops, executed;     // of all ranks; 0: there are none
    double bytes;                       // of all ranks: what has to be moved at least
    double ceiling, copy;               // flops/s and bytes/s of all ranks
    double peak;                        // bytes that the case held at once, most of any rank
    double error, tolerance;            // of the check
} rfa_bench_result;

// Shares of the ceilings; 0 without flops, bytes or ceilings (drift, which measures no speed).
double rfa_bench_ratio(const rfa_bench_result *result);
double rfa_bench_executed_ratio(const rfa_bench_result *result);
double rfa_bench_copy_ratio(const rfa_bench_result *result);

// Where results go, one at a time, on all ranks. Local.
typedef struct {
    void (*take)(void *context, const rfa_bench_result *result);
    void *context;
} rfa_bench_sink;

// Runs the cases of config->bench.cases. RFA_ERR_USAGE for unknown cases or words and for numbers
// that don't fit; RFA_ERR_INTERNAL where a result is wrong: no line is made of it. Agreed.
// Collective.
RFA_NODISCARD rfa_status rfa_bench_run(const rfa_config *config,
                                       const rfa_comm *world,
                                       const rfa_bench_sink *sink);

#endif
