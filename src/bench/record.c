#include "bench/record.h"

#include "base/mem.h"
#include "storage/benchfile.h"
#include "train/provenance.h"

#include <stdlib.h>
#include <string.h>

rfa_status rfa_bench_record_add(rfa_bench_record *record, const rfa_bench_result *result)
{
    if (record->count == record->capacity) {
        const int64_t capacity = 2 * record->capacity + 16;
        rfa_bench_result *more = NULL;
        RFA_TRY(rfa_alloc(&more, (ptrdiff_t)capacity, sizeof *more, "results"));
        if (record->count > 0) {
            memcpy(more, record->results, (size_t)record->count * sizeof *more);
        }
        rfa_free(record->results);
        record->results = more;
        record->capacity = capacity;
    }
    record->results[record->count++] = *result;
    return RFA_OK;
}

void rfa_bench_record_destroy(rfa_bench_record *record)
{
    rfa_free(record->results);
    *record = (rfa_bench_record){0};
}

// Columns as functions of a result.
static double minimum(const rfa_bench_result *r)
{
    return r->minimum;
}
static double median(const rfa_bench_result *r)
{
    return r->median;
}
static double maximum(const rfa_bench_result *r)
{
    return r->maximum;
}
static double repeats(const rfa_bench_result *r)
{
    return r->repeats;
}
static double calls(const rfa_bench_result *r)
{
    return r->calls;
}
static double tokens(const rfa_bench_result *r)
{
    return r->tokens;
}
static double flops(const rfa_bench_result *r)
{
    return r->flops;
}
static double executed(const rfa_bench_result *r)
{
    return r->executed;
}
static double ceiling(const rfa_bench_result *r)
{
    return r->ceiling;
}
static double bytes(const rfa_bench_result *r)
{
    return r->bytes;
}
static double copy(const rfa_bench_result *r)
{
    return r->copy;
}
static double peak(const rfa_bench_result *r)
{
    return r->peak;
}
static double error(const rfa_bench_result *r)
{
    return r->error;
}
static double tolerance(const rfa_bench_result *r)
{
    return r->tolerance;
}

static const struct {
    const char *name, *units, *long_name;
    double (*number)(const rfa_bench_result *result);
    bool whole;
} number_columns[] = {
    {"minimum_seconds", "s", "least time of a call, slowest rank", minimum, false},
    {"median_seconds", "s", "median time of a call, slowest rank", median, false},
    {"maximum_seconds", "s", "greatest time of a call, slowest rank", maximum, false},
    {"repeats", "1", "timed repeats", repeats, true},
    {"calls", "1", "calls of a repeat", calls, true},
    {"tokens", "1", "tokens of a call, all ranks; 0: none", tokens, false},
    {"flops", "1", "model flops of products of a call, all ranks", flops, false},
    {"executed_flops", "1", "flops of executed products of a call, all ranks", executed, false},
    {"ceiling", "s-1", "flops per second of large products, all ranks at once", ceiling, false},
    {"ratio", "1", "model flops per median second over the ceiling", rfa_bench_ratio, false},
    {"executed_ratio", "1", "executed flops per median second over the ceiling",
     rfa_bench_executed_ratio, false},
    {"bytes", "byte", "what a call must move at least, all ranks", bytes, false},
    {"copy_bandwidth", "byte s-1", "read and written by copies of large blocks, all ranks at once",
     copy, false},
    {"copy_ratio", "1", "bytes per median second over the bandwidth", rfa_bench_copy_ratio, false},
    {"peak_bytes", "byte", "memory held at once, most of any rank", peak, false},
    {"error", "1", "of the check against a reference", error, false},
    {"tolerance", "1", "that the error was held against", tolerance, false},
};
static const struct {
    const char *name, *long_name;
    size_t offset;
} text_columns[] = {
    {"case", "what was measured", offsetof(rfa_bench_result, name)},
    {"variant", "of what kind", offsetof(rfa_bench_result, variant)},
    {"phase", "which part of a call; all: their sum", offsetof(rfa_bench_result, phase)},
};
enum {
    NUMBERS = sizeof number_columns / sizeof *number_columns,
    TEXTS = sizeof text_columns / sizeof *text_columns,
    MOST_PARAMETERS = 32,
    MOST_COLUMNS = NUMBERS + TEXTS + MOST_PARAMETERS
};

// Names of all parameters, each once.
static int parameter_names(const char *names[MOST_PARAMETERS], const rfa_bench_record *record)
{
    int count = 0;
    for (int64_t i = 0; i < record->count; i++) {
        const rfa_bench_result *r = &record->results[i];
        for (int p = 0; p < r->parameters; p++) {
            int k = 0;
            while (k < count && strcmp(names[k], r->parameter[p].name) != 0) {
                k++;
            }
            if (k == count) {
                RFA_ASSERT(count < MOST_PARAMETERS);
                names[count++] = r->parameter[p].name;
            }
        }
    }
    return count;
}

static double parameter_of(const rfa_bench_result *result, const char *name)
{
    for (int p = 0; p < result->parameters; p++) {
        if (strcmp(result->parameter[p].name, name) == 0) {
            return (double)result->parameter[p].value;
        }
    }
    return -1;
}

// numbers [MOST_COLUMNS][count] and texts [TEXTS][count] back the columns.
static int fill_columns(rfa_bench_column columns[MOST_COLUMNS],
                        double *numbers,
                        const char **texts,
                        const rfa_bench_record *record)
{
    const int64_t n = record->count;
    const char *names[MOST_PARAMETERS];
    const int parameters = parameter_names(names, record);
    int count = 0;
    for (int c = 0; c < TEXTS; c++, count++, texts += n) {
        columns[count] = (rfa_bench_column){.name = text_columns[c].name,
                                            .units = "1",
                                            .long_name = text_columns[c].long_name,
                                            .texts = texts};
        for (int64_t i = 0; i < n; i++) {
            texts[i] = (const char *)&record->results[i] + text_columns[c].offset;
        }
    }
    for (int c = 0; c < NUMBERS + parameters; c++, count++, numbers += n) {
        const bool is_parameter = c >= NUMBERS;
        columns[count] = (rfa_bench_column){.numbers = numbers, .parameter = is_parameter};
        columns[count].name = is_parameter ? names[c - NUMBERS] : number_columns[c].name;
        columns[count].units = is_parameter ? "1" : number_columns[c].units;
        columns[count].long_name =
            is_parameter ? "parameter of the case; -1: it has none" : number_columns[c].long_name;
        columns[count].whole = is_parameter || number_columns[c].whole;
        for (int64_t i = 0; i < n; i++) {
            numbers[i] = is_parameter ? parameter_of(&record->results[i], names[c - NUMBERS])
                                      : number_columns[c].number(&record->results[i]);
        }
    }
    return count;
}

static rfa_status
describe(rfa_attributes *list, const rfa_config *config, const rfa_comm *world, const char *hosts)
{
    RFA_TRY(rfa_provenance_set(list, world, hosts));
    RFA_TRY(rfa_attributes_set_int(list, "threads", config->parallel.threads));
    RFA_TRY(rfa_attributes_set_text(list, "bench.cases", config->bench.cases));
    RFA_TRY(rfa_attributes_set_text(list, "bench.attention", config->bench.attention));
    RFA_TRY(rfa_attributes_set_text(list, "bench.lengths", config->bench.lengths));
    RFA_TRY(rfa_attributes_set_text(list, "bench.sizes", config->bench.sizes));
    RFA_TRY(rfa_attributes_set_text(list, "bench.states", config->bench.states));
    RFA_TRY(rfa_attributes_set_int(list, "bench.examples", config->bench.examples));
    return rfa_attributes_set_int(list, "bench.ceiling", config->bench.ceiling);
}

static rfa_status write(const rfa_bench_record *record,
                        const char *path,
                        const rfa_config *config,
                        const rfa_comm *world,
                        const char *hosts)
{
    const ptrdiff_t n = (ptrdiff_t)record->count;
    rfa_bench_column columns[MOST_COLUMNS];
    rfa_attributes attributes = {0};
    double *numbers = NULL;
    const char **texts = NULL;
    char *config_text = NULL;
    rfa_status status = rfa_alloc(&numbers, n * MOST_COLUMNS, sizeof *numbers, "results");
    if (status == RFA_OK) {
        status = rfa_alloc(&texts, n * TEXTS, sizeof *texts, "results");
    }
    if (status == RFA_OK) {
        status = rfa_config_text(&config_text, config);
    }
    if (status == RFA_OK) {
        status = describe(&attributes, config, world, hosts);
    }
    if (status == RFA_OK) {
        const int count = fill_columns(columns, numbers, texts, record);
        status = rfa_benchfile_write(path, &attributes, config_text, columns, count, n);
    }
    rfa_attributes_free(&attributes);
    rfa_free(config_text);
    rfa_free(texts);
    rfa_free(numbers);
    return status;
}

rfa_status rfa_bench_record_write(const rfa_bench_record *record,
                                  const char *path,
                                  const rfa_config *config,
                                  const rfa_comm *world)
{
    char hosts[1024] = "";
    rfa_provenance_hosts(hosts, sizeof hosts, world);
    return rfa_agree(world, world->rank == 0 ? write(record, path, config, world, hosts) : RFA_OK);
}
