#include "bench/bench.h"

#include "bench/measure.h"
#include "tensor/gemm.h"

#include <string.h>

static const struct {
    const char *name;
    rfa_status (*run)(rfa_bench *bench);
} cases[] = {
    {"gemm", rfa_bench_gemm},           {"features", rfa_bench_features},
    {"attention", rfa_bench_attention}, {"exchange", rfa_bench_exchange},
    {"step", rfa_bench_step},           {"length", rfa_bench_length},
    {"drift", rfa_bench_drift},
};
enum { CASES = sizeof cases / sizeof *cases };

static int find(const char *name)
{
    int c = 0;
    while (c < CASES && strcmp(cases[c].name, name) != 0) {
        c++;
    }
    return c;
}

// All names are looked up before anything is measured.
static rfa_status check_names(const char *list)
{
    char word[RFA_BENCH_NAME], known[256] = "";
    if (!rfa_bench_word(word, &(const char *){list})) {
        return rfa_fail(RFA_ERR_USAGE, "bench.cases is empty: nothing to measure");
    }
    for (int c = 0; c < CASES; c++) {
        rfa_bench_append(known, sizeof known, "%s%s", c ? ", " : "", cases[c].name);
    }
    while (rfa_bench_word(word, &list)) {
        if (find(word) == CASES) {
            return rfa_fail(RFA_ERR_USAGE, "bench: no case '%s': %s", word, known);
        }
    }
    return RFA_OK;
}

rfa_status
rfa_bench_run(const rfa_config *config, const rfa_comm *world, const rfa_bench_sink *sink)
{
    const char *list = config->bench.cases;
    char word[RFA_BENCH_NAME];
    rfa_bench bench;
    RFA_TRY(check_names(list));
    RFA_TRY(rfa_agree(world, rfa_gemm_start() ? RFA_OK
                                              : rfa_fail(RFA_ERR_INTERNAL,
                                                         "%s computes wrong products on this "
                                                         "processor",
                                                         rfa_gemm_library())));
    rfa_status status = rfa_bench_create(&bench, config, world, sink);
    while (status == RFA_OK && rfa_bench_word(word, &list)) {
        status = cases[find(word)].run(&bench);
    }
    rfa_bench_destroy(&bench);
    return status;
}
