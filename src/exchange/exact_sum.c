#include "exchange/exact_sum.h"

#include "base/mem.h"
#include "base/profile.h"

#include <math.h>
#include <string.h>

// x + M - M rounds x to a multiple of 2^-q for M = 1.5 * 2^(52 - q): the last bit of a double near
// M is worth 2^-q, and the bits of x + M less those of M are the multiple itself.
#define HIGH 0x1.8p34 // q = 18
#define LOW 0x1.8p1   // q = 51
#define UNIT 0x1p-51
#define RANGE 0x1p14
#define SMALL 0.5    // so that x + LOW has the exponent of LOW
#define LIMIT 0x1p61 // of low, in units: two of them and more terms still are an int64_t
#define CARRY (51 - 18)

enum { PIECE = 1 << 27 }; // numbers a reduction: MPI counts and many libraries' byte counts are int

static ptrdiff_t blocks_of(const rfa_exact_sum *sum)
{
    return sum->size / RFA_EXACT_BLOCK + (sum->size % RFA_EXACT_BLOCK > 0);
}

static ptrdiff_t block_size(const rfa_exact_sum *sum, ptrdiff_t block)
{
    const ptrdiff_t left = sum->size - block * RFA_EXACT_BLOCK;
    return left < RFA_EXACT_BLOCK ? left : RFA_EXACT_BLOCK;
}

rfa_status rfa_exact_sum_create(rfa_exact_sum *sum, ptrdiff_t size, const char *what)
{
    *sum = (rfa_exact_sum){.size = size};
    rfa_status status = rfa_alloc(&sum->low, size + 1, sizeof *sum->low, what);
    if (status == RFA_OK) {
        status = rfa_alloc(&sum->high, size, sizeof *sum->high, what);
    }
    if (status == RFA_OK) {
        status = rfa_alloc(&sum->bound, blocks_of(sum), sizeof *sum->bound, what);
    }
    if (status == RFA_OK) {
        status = rfa_alloc(&sum->used, blocks_of(sum), sizeof *sum->used, what);
    }
    if (status != RFA_OK) {
        rfa_exact_sum_destroy(sum);
    }
    return status;
}

void rfa_exact_sum_destroy(rfa_exact_sum *sum)
{
    rfa_free(sum->low);
    rfa_free(sum->high);
    rfa_free(sum->bound);
    rfa_free(sum->used);
    *sum = (rfa_exact_sum){0};
}

void rfa_exact_sum_clear(rfa_exact_sum *sum)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    memset(sum->low, 0, (size_t)(sum->size + 1) * sizeof *sum->low);
    for (ptrdiff_t b = 0; b < blocks_of(sum); b++) {
        sum->bound[b] = 0;
        if (sum->used[b]) {
            memset(sum->high + b * RFA_EXACT_BLOCK, 0,
                   (size_t)block_size(sum, b) * sizeof *sum->high);
            sum->used[b] = 0;
        }
    }
}

// Element i of an array of double (wide) or of rfa_real.
static inline double element(const void *x, ptrdiff_t i, bool wide)
{
    return wide ? ((const double *)x)[i] : (double)((const rfa_real *)x)[i];
}

static inline int64_t bits_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline int64_t units_of(double x)
{
    return bits_of(x + LOW) - bits_of(LOW);
}

// The greatest magnitude of n elements, NaN when there is one. As numbers, the bits of magnitudes
// have the magnitudes' order, with NaN at the end.
static inline __attribute__((always_inline)) double
greatest(const void *x, ptrdiff_t from, ptrdiff_t n, bool wide)
{
    if (wide || sizeof(rfa_real) == sizeof(double)) {
        int64_t most = 0;
        double value;
        for (ptrdiff_t i = from; i < from + n; i++) {
            const int64_t size = bits_of(((const double *)x)[i]) & INT64_MAX;
            most = size > most ? size : most;
        }
        memcpy(&value, &most, sizeof value);
        return value;
    }
    int32_t most = 0;
    float value;
    for (ptrdiff_t i = from; i < from + n; i++) {
        int32_t size;
        memcpy(&size, (const float *)x + i, sizeof size);
        size &= INT32_MAX;
        most = size > most ? size : most;
    }
    memcpy(&value, &most, sizeof value);
    return (double)value;
}

// What is a multiple of 2^-18 goes from low to high.
static void carry(rfa_exact_sum *sum, ptrdiff_t block)
{
    int64_t *restrict low = sum->low + block * RFA_EXACT_BLOCK;
    double *restrict high = sum->high + block * RFA_EXACT_BLOCK;
    for (ptrdiff_t i = 0; i < block_size(sum, block); i++) {
        const int64_t rest = low[i] % ((int64_t)1 << CARRY);
        high[i] += (double)(low[i] - rest) * UNIT;
        low[i] = rest;
    }
    sum->bound[block] = 0x1p33;
    sum->used[block] = 1;
}

// So that low may grow by more units.
static void make_room(rfa_exact_sum *sum, ptrdiff_t block, double more)
{
    if (sum->bound[block] + more > LIMIT) {
        carry(sum, block);
    }
    sum->bound[block] += more;
}

// Adds n terms from x[from] on to the sums low and high. Returns how many were out of range, NaN
// included.
static inline __attribute__((always_inline)) int64_t add_large(int64_t *restrict low,
                                                               double *restrict high,
                                                               const void *x,
                                                               ptrdiff_t from,
                                                               ptrdiff_t n,
                                                               bool wide)
{
    int64_t bad = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double term = element(x, from + i, wide), h = term + HIGH - HIGH;
        high[i] += h;
        low[i] += units_of(term - h);
        bad += !(fabs(term) < RANGE);
    }
    return bad;
}

static inline __attribute__((always_inline)) void
add(rfa_exact_sum *sum, ptrdiff_t at, const void *x, ptrdiff_t n, bool wide)
{
    RFA_ASSERT(at >= 0 && n >= 0 && at <= sum->size - n);
    for (ptrdiff_t done = 0; done < n;) {
        const ptrdiff_t block = (at + done) / RFA_EXACT_BLOCK;
        const ptrdiff_t left = (block + 1) * RFA_EXACT_BLOCK - (at + done);
        const ptrdiff_t count = left < n - done ? left : n - done;
        int64_t *restrict low = sum->low + at + done;
        const double most = greatest(x, done, count, wide);
        make_room(sum, block, (most < SMALL ? most : 0x1p-18) / UNIT + 1);
        if (most < SMALL) {
            for (ptrdiff_t i = 0; i < count; i++) {
                low[i] += units_of(element(x, done + i, wide));
            }
        } else {
            sum->used[block] = 1;
            sum->low[sum->size] += add_large(low, sum->high + at + done, x, done, count, wide);
        }
        done += count;
    }
}

void rfa_exact_sum_add_double(rfa_exact_sum *sum, ptrdiff_t at, const double *x, ptrdiff_t n)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    add(sum, at, x, n, true);
}

void rfa_exact_sum_add(rfa_exact_sum *sum, ptrdiff_t at, const rfa_real *x, ptrdiff_t n)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    add(sum, at, x, n, false);
}

void rfa_exact_sum_merge(rfa_exact_sum *into, const rfa_exact_sum *from)
{
    RFA_PROFILE(RFA_PHASE_SUMS);
    RFA_ASSERT(into->size == from->size);
    int64_t *restrict to = into->low;
    const int64_t *restrict low = from->low;
    for (ptrdiff_t b = 0; b < blocks_of(from); b++) {
        make_room(into, b, from->bound[b]);
    }
    for (ptrdiff_t i = 0; i < into->size + 1; i++) {
        to[i] += low[i];
    }
    for (ptrdiff_t b = 0; b < blocks_of(from); b++) {
        double *restrict high = into->high + b * RFA_EXACT_BLOCK;
        for (ptrdiff_t i = 0; from->used[b] && i < block_size(from, b); i++) {
            high[i] += from->high[b * RFA_EXACT_BLOCK + i];
        }
        into->used[b] |= from->used[b];
    }
}

static void reduce(void *numbers, MPI_Datatype type, int bytes, ptrdiff_t count, MPI_Comm comm)
{
    for (ptrdiff_t at = 0; at < count; at += PIECE) {
        const ptrdiff_t n = count - at < PIECE ? count - at : PIECE;
        MPI_Allreduce(MPI_IN_PLACE, (char *)numbers + at * bytes, rfa_int(n), type,
                      type == MPI_BYTE ? MPI_BOR : MPI_SUM, comm);
    }
}

// Moves the used blocks of high to its front, and back. Returns how many numbers they are.
static ptrdiff_t pack(rfa_exact_sum *sum)
{
    ptrdiff_t packed = 0;
    for (ptrdiff_t b = 0; b < blocks_of(sum); b++) {
        if (sum->used[b]) {
            const ptrdiff_t n = block_size(sum, b);
            memmove(sum->high + packed, sum->high + b * RFA_EXACT_BLOCK,
                    (size_t)n * sizeof *sum->high);
            packed += n;
        }
    }
    return packed;
}

static void unpack(rfa_exact_sum *sum, const ptrdiff_t total)
{
    ptrdiff_t packed = total;
    for (ptrdiff_t b = blocks_of(sum) - 1; b >= 0; b--) {
        double *block = sum->high + b * RFA_EXACT_BLOCK;
        const size_t bytes = (size_t)block_size(sum, b) * sizeof *block;
        if (sum->used[b]) {
            packed -= block_size(sum, b);
            memmove(block, sum->high + packed, bytes);
        } else if (total > b * RFA_EXACT_BLOCK) {
            memset(block, 0, bytes); // what was packed here stands in its place by now
        }
    }
}

void rfa_exact_sum_reduce(rfa_exact_sum *sum, const rfa_comm *comm)
{
    RFA_PROFILE(RFA_PHASE_REDUCE);
    if (comm->size == 1) {
        return;
    }
    for (ptrdiff_t b = 0; b < blocks_of(sum); b++) {
        if (sum->bound[b] > 2 * LIMIT / comm->size) {
            carry(sum, b);
        }
        sum->bound[b] = 2 * LIMIT; // of all ranks together
    }
    reduce(sum->used, MPI_BYTE, 1, blocks_of(sum), comm->comm);
    reduce(sum->low, MPI_INT64_T, sizeof *sum->low, sum->size + 1, comm->comm);
    const ptrdiff_t packed = pack(sum);
    reduce(sum->high, MPI_DOUBLE, sizeof *sum->high, packed, comm->comm);
    unpack(sum, packed);
}

bool rfa_exact_sum_is_good(const rfa_exact_sum *sum)
{
    return sum->low[sum->size] == 0;
}

// With high, low is split so that both parts of the last sum are exact.
double rfa_exact_sum_value(const rfa_exact_sum *sum, ptrdiff_t i)
{
    const int64_t low = sum->low[i];
    if (!sum->used[i / RFA_EXACT_BLOCK]) {
        return (double)low * UNIT;
    }
    const int64_t rest = low % ((int64_t)1 << CARRY);
    return sum->high[i] + (double)(low - rest) * UNIT + (double)rest * UNIT;
}

void rfa_exact_sum_values(rfa_real *values, const rfa_exact_sum *sum)
{
    for (ptrdiff_t i = 0; i < sum->size; i++) {
        values[i] = (rfa_real)rfa_exact_sum_value(sum, i);
    }
}
