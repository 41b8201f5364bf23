// States across ranks: algorithms, kinds, sums and scaled elements, sizes.
#include "base/log.h"
#include "base/mem.h"
#include "bench/measure.h"
#include "exchange/element.h"
#include "exchange/partition.h"
#include "exchange/states.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_STATES = 32 };

typedef struct {
    rfa_exchange *exchange;
    rfa_exchange_kind kind;
    rfa_exchange_rows rows;
    bool started;  // by non-blocking calls, with nothing to compute meanwhile
    ptrdiff_t own; // segments of this rank
    int first;     // its first one
    int segments;
    double *template; // [own][size]
    double *leaves;   // [own][size]
} exchange_case;

static const char *const algorithms[] = {"auto", "exscan", "transposed"};
static const char *const kinds[] = {"prefix", "suffix", "total"};
static const char *const ways[] = {"sums", "started", "elements"}; // started: sums too
enum { SUMS, STARTED, ELEMENTS, WAYS };

// Number i of a segment's row: of sums any, of elements a scale and a decay before the others; none
// decays in a total.
static double number(const exchange_case *c, int segment, ptrdiff_t i)
{
    const uint64_t mixed = ((uint64_t)segment << 32 | (uint64_t)i) * 0x9E3779B97F4A7C15U;
    const double u = (double)(mixed >> 40) / 16777216 - 0.5;
    const ptrdiff_t place = c->rows.unit > 1 ? i % c->rows.unit : RFA_ELEMENT_HEADER;
    if (place == 0) {
        return 2 * u;
    }
    if (place == 1) {
        return c->kind == RFA_TOTAL ? 0 : u - 0.5;
    }
    return u;
}

static rfa_status run(void *context, rfa_lap *laps)
{
    exchange_case *c = context;
    memcpy(c->leaves, c->template, (size_t)(c->own * c->rows.size) * sizeof *c->leaves);
    const rfa_lap start = rfa_lap_start();
    rfa_status status = RFA_OK;
    if (c->started) {
        status = rfa_exchange_rows_start(c->exchange, c->kind, c->leaves, c->rows);
        rfa_exchange_finish(c->exchange);
    } else {
        status = rfa_exchange_rows_run(c->exchange, c->kind, c->leaves, c->rows);
    }
    rfa_lap_add(&laps[0], start);
    return status;
}

// Adds a segment to what a reader behind it sees: number i of the sum `to`, whose element's header
// is to_header and becomes the new one.
static double
fold(const exchange_case *c, double to, double to_header, int segment, ptrdiff_t i, double *size)
{
    const ptrdiff_t unit = c->rows.unit;
    const double x = number(c, segment, i);
    if (unit == 1) {
        *size += fabs(x);
        return to + x;
    }
    const ptrdiff_t head = i - i % unit;
    const double m = number(c, segment, head);
    const double decay = number(c, segment, head + 1);
    const double most = fmax(to_header + decay, m);
    const double far = exp(to_header + decay - most), near = exp(m - most);
    *size = *size * far + fabs(x) * near;
    return to * far + x * near;
}

// Number i of the row that segment g (TOTAL: any) ends with, by a fold in order.
static double truth(const exchange_case *c, int g, ptrdiff_t i, double *size)
{
    const ptrdiff_t unit = c->rows.unit, place = unit > 1 ? i % unit : RFA_ELEMENT_HEADER;
    const int count = c->kind == RFA_TOTAL    ? c->segments
                      : c->kind == RFA_PREFIX ? g
                                              : c->segments - 1 - g;
    double sum = 0, m = -INFINITY, passed = 0;
    *size = 0;
    for (int k = 0; k < count; k++) {
        const int segment = c->kind == RFA_SUFFIX ? c->segments - 1 - k : k;
        sum = place < RFA_ELEMENT_HEADER ? 0 : fold(c, sum, m, segment, i, size);
        if (unit > 1) {
            const double decay = number(c, segment, i - i % unit + 1);
            m = fmax(m + decay, number(c, segment, i - i % unit));
            passed += decay;
        }
    }
    if (place < RFA_ELEMENT_HEADER) {
        *size = fabs(sum = place == 0 ? m : passed) + 1;
        return sum;
    }
    *size += 1;
    return sum;
}

// All numbers of this rank's first and last row; each has G roundings in double, twice with scales.
static void check(const exchange_case *c, double *error, double *tolerance)
{
    const ptrdiff_t rows = c->kind == RFA_TOTAL ? 1 : c->own;
    const double bound = 4 * (c->segments + 4) * ldexp(1, -53);
    *error = 0;
    *tolerance = bound;
    for (ptrdiff_t row = 0; row<rows; row += rows> 1 ? rows - 1 : 1) {
        for (ptrdiff_t i = 0; i < c->rows.size; i++) {
            double size = 0;
            const double want = truth(c, c->first + (int)row, i, &size);
            const double got = c->leaves[row * c->rows.size + i];
            const double gap = want == got ? 0 : fabs(got - want);
            *error = gap / size <= *error ? *error : gap / size;
        }
    }
}

static rfa_status create(exchange_case *c)
{
    const ptrdiff_t numbers = c->own * c->rows.size;
    RFA_TRY(rfa_alloc(&c->template, numbers, sizeof *c->template, "states"));
    RFA_TRY(rfa_alloc(&c->leaves, numbers, sizeof *c->leaves, "states"));
    for (ptrdiff_t i = 0; i < numbers; i++) {
        c->template[i] = number(c, c->first + (int)(i / c->rows.size), i % c->rows.size);
    }
    return RFA_OK;
}

static rfa_status measure_state(rfa_bench *bench,
                                rfa_exchange_algorithm algorithm,
                                rfa_exchange_kind kind,
                                int way,
                                ptrdiff_t state)
{
    const rfa_comm *world = bench->world;
    const int G = (int)bench->config->parallel.segments;
    const ptrdiff_t size = state * (ptrdiff_t)bench->config->bench.examples;
    exchange_case c = {
        .kind = kind,
        .rows = {.size = size, .stride = size, .unit = way == ELEMENTS ? state : 1},
        .started = way == STARTED,
        .first = rfa_part_begin(G, world->size, world->rank),
        .segments = G,
    };
    char variant[RFA_BENCH_NAME];
    rfa_lap lap = {0};
    double error = 0, tolerance = 0;
    c.own = rfa_part_begin(G, world->size, world->rank + 1) - c.first;
    snprintf(variant, sizeof variant, "%s+%s+%s", algorithms[algorithm], kinds[kind], ways[way]);
    rfa_bench_result result = rfa_bench_result_of(bench, "exchange", variant, 0);
    rfa_bench_parameter_add(&result, "numbers", state);
    rfa_bench_parameter_add(&result, "B", bench->config->bench.examples);
    rfa_bench_parameter_add(&result, "G", G);
    rfa_bench_begin(bench);
    rfa_status status = rfa_agree(world, rfa_exchange_create(&c.exchange, world, G, algorithm));
    if (status == RFA_OK) {
        status = rfa_agree(world, create(&c));
    }
    if (status == RFA_OK) {
        status = run(&c, &lap);
    }
    if (status == RFA_OK) {
        result.bytes = (double)rfa_exchange_costs(c.exchange)->bytes_sent;
        MPI_Allreduce(MPI_IN_PLACE, &result.bytes, 1, MPI_DOUBLE, MPI_SUM, world->comm);
        rfa_real sign = 0;
        rfa_bench_spoil(bench, "exchange", &sign);
        c.leaves[size - 1] += (double)sign;
        check(&c, &error, &tolerance);
        status = rfa_bench_check(bench, &result, error, tolerance);
    }
    if (status == RFA_OK) {
        status = rfa_bench_measure(bench, &result, 1, run, &c);
    }
    rfa_free(c.leaves);
    rfa_free(c.template);
    rfa_exchange_destroy(&c.exchange);
    return status;
}

rfa_status rfa_bench_exchange(rfa_bench *bench)
{
    ptrdiff_t states[MOST_STATES];
    int count = 0;
    if (bench->world->size > bench->config->parallel.segments) {
        return rfa_fail(RFA_ERR_USAGE,
                        "bench exchange: %d ranks share %d parallel.segments: use fewer ranks or "
                        "more segments",
                        bench->world->size, (int)bench->config->parallel.segments);
    }
    RFA_TRY(rfa_bench_numbers(states, &count, MOST_STATES, "states", bench->config->bench.states,
                              RFA_ELEMENT_HEADER + 1, 1 << 30));
    for (int i = 0; i < count; i++) {
        for (int kind = RFA_PREFIX; kind <= RFA_TOTAL; kind++) {
            for (int way = 0; way < WAYS; way++) {
                for (int a = RFA_EXCHANGE_EXSCAN; a <= RFA_EXCHANGE_TRANSPOSED; a++) {
                    RFA_TRY(measure_state(bench, (rfa_exchange_algorithm)a, (rfa_exchange_kind)kind,
                                          way, states[i]));
                }
            }
        }
    }
    return RFA_OK;
}
