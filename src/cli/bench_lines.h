// Results of rfa bench on stdout, as a table or as JSON.
#ifndef RFA_CLI_BENCH_LINES_H
#define RFA_CLI_BENCH_LINES_H

#include "bench/bench.h"

void rfa_bench_print_header(void);
void rfa_bench_print_row(const rfa_bench_result *result);
void rfa_bench_print_json(const rfa_bench_result *result);

#endif
