#include "bench/measure.h"

#include "base/log.h"
#include "base/mem.h"
#include "tensor/gemm.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COPIED = 1 << 23 }; // elements: beyond caches

// A repeat calls a short case often enough for clocks and schedulers.
static const double least_seconds = 0.03;
enum { MOST_CALLS = 1 << 20, MOST_GROWTH = 8 };

// A call of so many seconds warms up by itself, and is the first repeat.
enum { LONG_SECONDS = 5 };

static double share(double work, double seconds, double rate)
{
    return work > 0 && rate > 0 ? work / seconds / rate : 0;
}

double rfa_bench_ratio(const rfa_bench_result *result)
{
    return share(result->flops, result->median, result->ceiling);
}

double rfa_bench_executed_ratio(const rfa_bench_result *result)
{
    return share(result->executed, result->median, result->ceiling);
}

double rfa_bench_copy_ratio(const rfa_bench_result *result)
{
    return share(result->bytes, result->median, result->copy);
}

// Everybody at once, as in a run: the rates of all threads of all ranks together.
static void sample_ceilings(rfa_bench *bench, int repeat)
{
    const ptrdiff_t n = bench->side, block = bench->block;
    enum { CALLS = 2 };
    double rates[2] = {0, 0}, products = 0, copies = 0;
    MPI_Barrier(bench->world->comm);
#pragma omp parallel reduction(+ : products, copies)
    {
        rfa_real *a = bench->matrices + omp_get_thread_num() * 3 * n * n;
        rfa_real *from = bench->blocks + omp_get_thread_num() * 2 * block;
        double best = INFINITY;
        for (int i = 0; i < CALLS; i++) {
            const double start = rfa_now();
            rfa_gemm(RFA_N, RFA_N, n, n, n, 1, a, n, a + n * n, n, 0, a + 2 * n * n, n);
            best = fmin(best, rfa_now() - start);
        }
        products += 2 * (double)n * (double)n * (double)n / best;
        const double start = rfa_now();
        memcpy(from + block, from, (size_t)block * sizeof *from);
        from[0] += from[2 * block - 1]; // the copy is wanted
        copies += 2 * (double)block * sizeof *from / (rfa_now() - start);
    }
    rates[0] = products;
    rates[1] = copies;
    MPI_Allreduce(MPI_IN_PLACE, rates, 2, MPI_DOUBLE, MPI_SUM, bench->world->comm);
    bench->ceilings[repeat] = rates[0];
    bench->copies[repeat] = rates[1];
}

static rfa_status create(rfa_bench *bench)
{
    const int64_t repeats = bench->config->bench.repeats;
    const ptrdiff_t n = bench->side, T = bench->threads;
    RFA_TRY(rfa_alloc(&bench->matrices, T * 3 * n * n, sizeof *bench->matrices, "ceiling"));
    RFA_TRY(rfa_alloc(&bench->blocks, T * 2 * bench->block, sizeof *bench->blocks, "ceiling"));
    RFA_TRY(rfa_alloc(&bench->seconds, (RFA_BENCH_PHASES + 1) * repeats, sizeof *bench->seconds,
                      "times"));
    RFA_TRY(rfa_alloc(&bench->ceilings, repeats, sizeof *bench->ceilings, "times"));
    return rfa_alloc(&bench->copies, repeats, sizeof *bench->copies, "times");
}

rfa_status rfa_bench_create(rfa_bench *bench,
                            const rfa_config *config,
                            const rfa_comm *world,
                            const rfa_bench_sink *sink)
{
    const ptrdiff_t n = (ptrdiff_t)config->bench.ceiling;
    *bench = (rfa_bench){
        .config = config,
        .world = world,
        .sink = sink,
        .threads = (int)config->parallel.threads,
        .side = n,
        .block = 8 * n * n < COPIED ? 8 * n * n : COPIED,
    };
    omp_set_num_threads(bench->threads);
    const rfa_status status = rfa_agree(world, create(bench));
    for (ptrdiff_t i = 0; status == RFA_OK && i < bench->threads * 3 * n * n; i++) {
        bench->matrices[i] = (rfa_real)(i % 11) - 5;
    }
    if (status == RFA_OK) {
        sample_ceilings(bench, 0); // cold: written over by the first repeat
    }
    return status;
}

void rfa_bench_destroy(rfa_bench *bench)
{
    rfa_free(bench->matrices);
    rfa_free(bench->blocks);
    rfa_free(bench->seconds);
    rfa_free(bench->ceilings);
    rfa_free(bench->copies);
    *bench = (rfa_bench){0};
}

rfa_lap rfa_lap_start(void)
{
    return (rfa_lap){rfa_now(), (double)rfa_gemm_flops()};
}

void rfa_lap_add(rfa_lap *lap, rfa_lap start)
{
    lap->seconds += rfa_now() - start.seconds;
    lap->executed += (double)rfa_gemm_flops() - start.executed;
}

void rfa_bench_begin(rfa_bench *bench)
{
    rfa_mem_restart();
    bench->held = rfa_mem_now();
}

rfa_bench_result
rfa_bench_result_of(const rfa_bench *bench, const char *name, const char *variant, double tokens)
{
    rfa_bench_result result = {
        .ranks = bench->world->size,
        .threads = bench->threads,
        .repeats = (int)bench->config->bench.repeats,
        .tokens = tokens,
    };
    snprintf(result.name, sizeof result.name, "%s", name);
    snprintf(result.variant, sizeof result.variant, "%s", variant);
    return result;
}

void rfa_bench_parameter_add(rfa_bench_result *result, const char *name, int64_t value)
{
    RFA_ASSERT(result->parameters < RFA_BENCH_PARAMETERS);
    result->parameter[result->parameters++] = (rfa_bench_parameter){name, value};
}

void rfa_bench_spoil(const rfa_bench *bench, const char *name, rfa_real *value)
{
    char point[RFA_BENCH_NAME + 8];
    snprintf(point, sizeof point, "bench.%s", name);
    if (rfa_fault(point, bench->world, RFA_ERR_INTERNAL) != RFA_OK) {
        *value += (rfa_real)0.03125;
    }
}

void rfa_bench_append(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

static void describe(char *text, size_t size, const rfa_bench_result *result)
{
    snprintf(text, size, "%s %s", result->name, result->variant);
    for (int i = 0; i < result->parameters; i++) {
        rfa_bench_append(text, size, " %s=%" PRId64, result->parameter[i].name,
                         result->parameter[i].value);
    }
}

rfa_status
rfa_bench_check(const rfa_bench *bench, rfa_bench_result *result, double error, double tolerance)
{
    char text[512];
    double all[2] = {error, tolerance};
    const double part = error / tolerance;
    struct {
        double value;
        int rank;
    } worst = {isfinite(part) ? part : INFINITY, bench->world->rank};
    MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE_INT, MPI_MAXLOC, bench->world->comm);
    MPI_Bcast(all, 2, MPI_DOUBLE, worst.rank, bench->world->comm);
    result->error = all[0];
    result->tolerance = all[1];
    if (worst.value <= 1) {
        return RFA_OK;
    }
    describe(text, sizeof text, result);
    return rfa_fail(RFA_ERR_INTERNAL, "bench %s: wrong result: error %.3g, tolerance %.3g", text,
                    all[0], all[1]);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void summarise(rfa_bench *bench, rfa_bench_result *result, int phase)
{
    const int n = result->repeats;
    double *seconds = bench->seconds + (ptrdiff_t)phase * n;
    result->median = median(seconds, n); // sorts
    result->minimum = seconds[0];
    result->maximum = seconds[n - 1];
    result->ceiling = median(bench->ceilings, n);
    result->copy = median(bench->copies, n);
    result->peak = (double)(rfa_mem_peak() - bench->held);
    MPI_Allreduce(MPI_IN_PLACE, &result->peak, 1, MPI_DOUBLE, MPI_MAX, bench->world->comm);
    bench->sink->take(bench->sink->context, result);
}

// Mean times and executed flops of calls, by phase, and in place phases of all of them.
typedef struct {
    double seconds[RFA_BENCH_PHASES + 1], executed[RFA_BENCH_PHASES + 1];
} times;

static rfa_status
call(times *out, const rfa_bench *bench, int phases, rfa_bench_work run, void *context, int calls)
{
    rfa_lap laps[RFA_BENCH_PHASES] = {{0}};
    *out = (times){{0}, {0}};
    MPI_Barrier(bench->world->comm);
    for (int i = 0; i < calls; i++) {
        RFA_TRY(run(context, laps));
    }
    for (int phase = 0; phase < phases; phase++) {
        out->seconds[phase] = laps[phase].seconds / calls;
        out->executed[phase] = laps[phase].executed / calls;
        out->seconds[phases] += out->seconds[phase];
        out->executed[phases] += out->executed[phase];
    }
    MPI_Allreduce(MPI_IN_PLACE, out->seconds, phases + 1, MPI_DOUBLE, MPI_MAX, bench->world->comm);
    MPI_Allreduce(MPI_IN_PLACE, out->executed, phases + 1, MPI_DOUBLE, MPI_SUM, bench->world->comm);
    return RFA_OK;
}

rfa_status rfa_bench_measure(
    rfa_bench *bench, rfa_bench_result *results, int phases, rfa_bench_work run, void *context)
{
    const int repeats = (int)bench->config->bench.repeats;
    rfa_bench_result all = results[0];
    times t;
    RFA_ASSERT(phases <= RFA_BENCH_PHASES);
    sample_ceilings(bench, 0);
    RFA_TRY(call(&t, bench, phases, run, context, 1));
    const bool is_long = t.seconds[phases] >= LONG_SECONDS;
    int calls = 1; // the first ones are cold, single ones may be luck: up by steps
    for (double seconds = t.seconds[phases]; seconds < least_seconds && calls < MOST_CALLS;) {
        calls *= (int)fmin(fmax(ceil(least_seconds / seconds), 2), MOST_GROWTH);
        RFA_TRY(call(&t, bench, phases, run, context, calls));
        seconds = t.seconds[phases] * calls;
    }
    for (int repeat = 0; repeat < repeats; repeat++) {
        if (repeat > 0 || !is_long) {
            sample_ceilings(bench, repeat);
            RFA_TRY(call(&t, bench, phases, run, context, calls));
        }
        for (int phase = 0; phase <= phases; phase++) {
            bench->seconds[phase * repeats + repeat] = t.seconds[phase];
        }
    }
    all.calls = calls;
    all.executed = t.executed[phases];
    snprintf(all.phase, sizeof all.phase, "%s", "all");
    for (int phase = 0; phase < phases; phase++) {
        results[phase].calls = calls;
        all.flops += phase > 0 ? results[phase].flops : 0;
        all.bytes += phase > 0 ? results[phase].bytes : 0;
        results[phase].executed = t.executed[phase];
        summarise(bench, &results[phase], phase);
    }
    if (phases > 1) {
        summarise(bench, &all, phases);
    }
    return RFA_OK;
}

bool rfa_bench_word(char word[RFA_BENCH_NAME], const char **text)
{
    static const char between[] = ", \t";
    *text += strspn(*text, between);
    const size_t length = strcspn(*text, between);
    if (length < RFA_BENCH_NAME) {
        snprintf(word, RFA_BENCH_NAME, "%.*s", (int)length, *text);
    } else {
        snprintf(word, RFA_BENCH_NAME, "%.*s...", RFA_BENCH_NAME - 4, *text);
    }
    *text += length;
    return length > 0;
}

rfa_status rfa_bench_numbers(ptrdiff_t *numbers,
                             int *count,
                             int most,
                             const char *key,
                             const char *text,
                             ptrdiff_t least,
                             ptrdiff_t greatest)
{
    char word[RFA_BENCH_NAME];
    *count = 0;
    while (rfa_bench_word(word, &text)) {
        char *end = NULL;
        const long long value = strtoll(word, &end, 10);
        if (*end || value < least || value > greatest) {
            return rfa_fail(RFA_ERR_USAGE, "bench.%s: '%s' is not a whole number, %td to %td", key,
                            word, least, greatest);
        }
        if (*count == most) {
            return rfa_fail(RFA_ERR_USAGE, "bench.%s: more than %d numbers", key, most);
        }
        numbers[(*count)++] = (ptrdiff_t)value;
    }
    return *count > 0 ? RFA_OK : rfa_fail(RFA_ERR_USAGE, "bench.%s is empty", key);
}
