#include "base/mem.h"
#include "cli/doctor.h"
#include "exchange/partition.h"
#include "exchange/states.h"

#include <math.h>
#include <stdint.h>
#include <unistd.h>

enum {
    SEGMENTS = 8,        // at least; then the next power of two that holds all ranks
    SHORT = 37,          // numbers of a state
    LONG = (1 << 17) + 9 // beyond 1 MiB, and beyond any library's short-message algorithms
};

typedef struct {
    const rfa_comm *world;
    int segments, begin, end; // own segments
    double *leaves, *segment; // [own][LONG], [segments]: one column of all leaves
    rfa_exchange *exscan, *transposed, *automatic;
    bool fold; // MPI_Exscan adds from left to right
} study;

// A number of either sign whose magnitude ranges over 2^20, so that the order of additions shows.
static double term(int segment, ptrdiff_t column)
{
    uint64_t x = ((uint64_t)segment << 32) + (uint64_t)column + 1;
    x *= 0x9E3779B97F4A7C15U;
    x ^= x >> 29;
    x *= 0xBF58476D1CE4E5B9U;
    x ^= x >> 32;
    return ldexp((double)(int64_t)x, -(int)(x % 20));
}

static double fold(const double *value, int begin, int end)
{
    const int middle = begin + (end - begin) / 2;
    return end - begin == 1 ? value[begin] : fold(value, begin, middle) + fold(value, middle, end);
}

// What exchange/states.h promises for one leaf, by walking down the tree.
static double expected(const study *s, rfa_exchange_kind kind, int segment)
{
    if (kind == RFA_TOTAL) {
        return fold(s->segment, 0, s->segments);
    }
    double sum = 0;
    bool empty = true;
    for (int begin = 0, end = s->segments; end - begin > 1;) {
        const int middle = begin + (end - begin) / 2;
        const bool right = segment >= middle;
        if (right == (kind == RFA_PREFIX)) {
            const double sibling =
                right ? fold(s->segment, begin, middle) : fold(s->segment, middle, end);
            sum = empty ? sibling : sum + sibling;
            empty = false;
        }
        begin = right ? middle : begin;
        end = right ? end : middle;
    }
    return sum;
}

// One exchange of size numbers against the serial tree: bit by bit when exact, else within the
// rounding of any order of additions. Collective; the result is this rank's.
static rfa_status check_kind(
    const study *s, rfa_exchange *exchange, rfa_exchange_kind kind, ptrdiff_t size, bool exact)
{
    static const char *const kinds[] = {"prefix", "suffix", "total"};
    const int own = s->end - s->begin;
    for (int k = 0; k < own; k++) {
        for (ptrdiff_t i = 0; i < size; i++) {
            s->leaves[k * size + i] = term(s->begin + k, i);
        }
    }
    RFA_TRY(rfa_exchange_run(exchange, kind, s->leaves, size));
    for (ptrdiff_t i = 0; i < size; i++) {
        double magnitude = 0;
        for (int g = 0; g < s->segments; g++) {
            s->segment[g] = term(g, i);
            magnitude += fabs(s->segment[g]);
        }
        const double bound = exact ? 0 : s->segments * 0x1p-52 * magnitude;
        for (int k = 0; k < (kind == RFA_TOTAL ? 1 : own); k++) {
            const double got = s->leaves[k * size + i], want = expected(s, kind, s->begin + k);
            if (!(fabs(got - want) <= bound)) {
                return rfa_fail(RFA_ERR_INTERNAL,
                                "%s by %s: number %td of %td of segment %d is %.17g, the serial "
                                "tree gives %.17g",
                                kinds[kind],
                                rfa_exchange_choice(exchange, kind) == RFA_EXCHANGE_EXSCAN
                                    ? "exscan"
                                    : "all-to-all",
                                i, size, s->begin + k, got, want);
            }
        }
    }
    return RFA_OK;
}

// Collective; agreed after each exchange, so that no rank leaves the others waiting.
static rfa_status check_sizes(const study *s)
{
    static const ptrdiff_t sizes[] = {SHORT, LONG};
    for (int n = 0; n < 2; n++) {
        for (int kind = RFA_PREFIX; kind <= RFA_TOTAL; kind++) {
            const bool chosen =
                rfa_exchange_choice(s->automatic, (rfa_exchange_kind)kind) == RFA_EXCHANGE_EXSCAN;
            RFA_TRY(rfa_agree(
                s->world, check_kind(s, s->transposed, (rfa_exchange_kind)kind, sizes[n], true)));
            RFA_TRY(rfa_agree(s->world, check_kind(s, s->exscan, (rfa_exchange_kind)kind, sizes[n],
                                                   chosen || s->world->size <= 2)));
        }
    }
    return RFA_OK;
}

// Whether the library's exscan over all ranks adds from left to right. Collective.
static bool is_left_fold(const study *s)
{
    int good = 1;
    for (ptrdiff_t size = SHORT; size <= LONG; size += LONG - SHORT) {
        for (ptrdiff_t i = 0; i < size; i++) {
            s->leaves[i] = term(s->world->rank, i);
        }
        MPI_Exscan(MPI_IN_PLACE, s->leaves, rfa_int(size), MPI_DOUBLE, MPI_SUM, s->world->comm);
        for (ptrdiff_t i = 0; i < size && s->world->rank > 0; i++) {
            double sum = term(0, i);
            for (int r = 1; r < s->world->rank; r++) {
                sum += term(r, i);
            }
            good &= s->leaves[i] == sum;
        }
    }
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, s->world->comm);
    return good;
}

static rfa_status run(study *s)
{
    const rfa_comm *world = s->world;
    rfa_status status = rfa_alloc(&s->leaves, (ptrdiff_t)LONG * (s->end - s->begin),
                                  sizeof *s->leaves, "exchange test");
    if (status == RFA_OK) {
        status = rfa_alloc(&s->segment, s->segments, sizeof *s->segment, "exchange test");
    }
    if (status == RFA_OK) {
        status = rfa_fault("doctor.exchange", world, RFA_ERR_INTERNAL);
    }
    while (rfa_fault("doctor.hang", world, RFA_ERR_INTERNAL) != RFA_OK) {
        pause(); // as a rank that a file system or network holds
    }
    RFA_TRY(rfa_agree(world, status));
    RFA_TRY(rfa_exchange_create(&s->automatic, world, s->segments, RFA_EXCHANGE_AUTO));
    RFA_TRY(rfa_exchange_create(&s->exscan, world, s->segments, RFA_EXCHANGE_EXSCAN));
    RFA_TRY(rfa_exchange_create(&s->transposed, world, s->segments, RFA_EXCHANGE_TRANSPOSED));
    s->fold = is_left_fold(s);
    return check_sizes(s);
}

static const char *choice(const study *s, rfa_exchange_kind kind)
{
    return rfa_exchange_choice(s->automatic, kind) == RFA_EXCHANGE_EXSCAN ? "exscan" : "all-to-all";
}

void rfa_doctor_exchange(rfa_doctor *doctor)
{
    study s = {.world = doctor->world, .segments = SEGMENTS};
    while (s.segments < s.world->size) {
        s.segments *= 2;
    }
    s.begin = rfa_part_begin(s.segments, s.world->size, s.world->rank);
    s.end = rfa_part_begin(s.segments, s.world->size, s.world->rank + 1);
    rfa_doctor_begin(doctor, "exchange");
    if (run(&s) != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "exchange", "%s", rfa_error_text());
    } else if (s.world->size == 1) {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "exchange",
                        "one rank: nothing crosses; the tree over %d segments is right",
                        s.segments);
    } else {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "exchange",
                        "prefix, suffix and total of %d and %d numbers over %d segments are those "
                        "of the serial tree, by exscan and by all-to-all; auto takes %s for prefix "
                        "and suffix, %s for totals; MPI_Exscan adds %s",
                        SHORT, LONG, s.segments, choice(&s, RFA_PREFIX), choice(&s, RFA_TOTAL),
                        s.fold ? "from left to right" : "in another order than left to right");
    }
    rfa_exchange_destroy(&s.transposed);
    rfa_exchange_destroy(&s.exscan);
    rfa_exchange_destroy(&s.automatic);
    rfa_free(s.segment);
    rfa_free(s.leaves);
}
