#include "cli/bench_lines.h"

#include "base/log.h"
#include "tensor/gemm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// What and where | times | speed | share of ceilings | memory | check
#define COLUMNS "%-34s %-9s %9s %9s %9s %9s %9s %6s %6s %6s %8s %8s"

void rfa_bench_print_header(void)
{
    rfa_print(COLUMNS "  %s", "case", "phase", "min ms", "median ms", "max ms", "tokens/s",
              "GFLOP/s", "model%", "done%", "copy%", "peak MiB", "error", "parameters");
}

// Three or four digits.
static const char *number(char text[16], double value)
{
    if (!(value > 0)) {
        snprintf(text, 16, "%s", "-");
    } else if (value < 1000) {
        snprintf(text, 16, value < 10 ? "%.3f" : value < 100 ? "%.2f" : "%.1f", value);
    } else if (value < 1e6) {
        snprintf(text, 16, "%.0f", value);
    } else {
        snprintf(text, 16, "%.3g", value);
    }
    return text;
}

static const char *percent(char text[16], double share)
{
    snprintf(text, 16, share > 0 ? "%.1f" : "-", 100 * share);
    return text;
}

static const char *of_tolerance(char text[16], const rfa_bench_result *result)
{
    snprintf(text, 16, "%.0e", result->error);
    return text;
}

void rfa_bench_print_row(const rfa_bench_result *r)
{
    char what[2 * RFA_BENCH_NAME + 2], parameters[512] = "", t[10][16];
    snprintf(what, sizeof what, "%s %s", r->name, r->variant);
    for (int i = 0; i < r->parameters; i++) {
        const size_t used = strlen(parameters);
        snprintf(parameters + used, sizeof parameters - used, "%s%s=%" PRId64, used ? " " : "",
                 r->parameter[i].name, r->parameter[i].value);
    }
    rfa_print(COLUMNS "  %s", what, r->phase, number(t[0], 1e3 * r->minimum),
              number(t[1], 1e3 * r->median), number(t[2], 1e3 * r->maximum),
              number(t[3], r->tokens / r->median), number(t[4], r->flops / r->median / 1e9),
              percent(t[5], rfa_bench_ratio(r)), percent(t[6], rfa_bench_executed_ratio(r)),
              percent(t[7], rfa_bench_copy_ratio(r)), number(t[8], r->peak / 1048576),
              of_tolerance(t[9], r), parameters);
}

void rfa_bench_print_json(const rfa_bench_result *r)
{
    char parameters[512] = "";
    for (int i = 0; i < r->parameters; i++) {
        const size_t used = strlen(parameters);
        snprintf(parameters + used, sizeof parameters - used, "%s\"%s\": %" PRId64,
                 used ? ", " : "", r->parameter[i].name, r->parameter[i].value);
    }
    rfa_print("{\"case\": \"%s\", \"variant\": \"%s\", \"phase\": \"%s\", \"parameters\": {%s}, "
              "\"ranks\": %d, \"threads\": %d, \"repeats\": %d, \"calls\": %d, "
              "\"minimum_seconds\": %.9g, "
              "\"median_seconds\": %.9g, \"maximum_seconds\": %.9g, \"tokens\": %.17g, "
              "\"tokens_per_second\": %.9g, \"flops\": %.17g, \"flops_per_second\": %.9g, "
              "\"ceiling\": %.9g, \"ratio\": %.9g, \"executed_flops\": %.17g, "
              "\"executed_ratio\": %.9g, \"bytes\": %.17g, \"copy_bandwidth\": %.9g, "
              "\"copy_ratio\": %.9g, \"peak_bytes\": %.17g, \"error\": %.9g, \"tolerance\": %.9g, "
              "\"blas\": \"%s\"}",
              r->name, r->variant, r->phase, parameters, r->ranks, r->threads, r->repeats, r->calls,
              r->minimum, r->median, r->maximum, r->tokens, r->tokens / r->median, r->flops,
              r->flops / r->median, r->ceiling, rfa_bench_ratio(r), r->executed,
              rfa_bench_executed_ratio(r), r->bytes, r->copy, rfa_bench_copy_ratio(r), r->peak,
              r->error, r->tolerance, rfa_gemm_library());
}
