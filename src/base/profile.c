#include "base/profile.h"

#include "base/log.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { DEPTH = 16, THREADS = 512 };

// One thread's stack and what it has measured. Aligned: no two threads share a cache line.
typedef struct {
    _Alignas(128) rfa_profile sum;
    double since; // when the phase on top got its last second
    int depth;
    rfa_phase stack[DEPTH];
} track;

bool rfa_profile_on;

static track tracks[THREADS];
static atomic_int used;
static _Thread_local track *mine;
static double length, begun; // of all stretches; of the one that is open

static const char *const names[RFA_PHASES] = {
    [RFA_PHASE_REST] = "rest",           [RFA_PHASE_ATTENTION] = "attention",
    [RFA_PHASE_FEATURES] = "features",   [RFA_PHASE_PRODUCTS] = "products",
    [RFA_PHASE_NORM] = "norm",           [RFA_PHASE_GELU] = "gelu",
    [RFA_PHASE_DROPOUT] = "dropout",     [RFA_PHASE_EMBEDDING] = "embedding",
    [RFA_PHASE_HEAD] = "head",           [RFA_PHASE_SUMS] = "sums",
    [RFA_PHASE_OPTIMISER] = "optimiser", [RFA_PHASE_DIGEST] = "digest",
    [RFA_PHASE_DATA] = "data",           [RFA_PHASE_EXCHANGE] = "exchange",
    [RFA_PHASE_REDUCE] = "reduce",       [RFA_PHASE_AGREE] = "agree",
};

const char *rfa_phase_name(rfa_phase phase)
{
    return names[phase];
}

// This thread's track, or NULL when there are too many threads: their time goes to the rest.
static track *own(void)
{
    if (!mine && atomic_load_explicit(&used, memory_order_relaxed) < THREADS) {
        const int i = atomic_fetch_add_explicit(&used, 1, memory_order_relaxed);
        mine = i < THREADS ? &tracks[i] : NULL;
    }
    return mine;
}

static void charge(track *t)
{
    const double now = rfa_now();
    if (t->depth > 0) {
        t->sum.seconds[t->stack[t->depth - 1]] += now - t->since;
    }
    t->since = now;
}

void rfa_profile_push(rfa_phase phase)
{
    track *t = own();
    if (t) {
        RFA_ASSERT(t->depth < DEPTH);
        charge(t);
        t->stack[t->depth++] = phase;
    }
}

void rfa_profile_pop(void)
{
    track *t = own();
    if (t) {
        RFA_ASSERT(t->depth > 0);
        charge(t);
        t->depth--;
    }
}

void rfa_profile_add_flops(int64_t flops)
{
    track *t = own();
    if (t) {
        t->sum.flops[t->depth > 0 ? t->stack[t->depth - 1] : RFA_PHASE_REST] += flops;
    }
}

void rfa_profile_begin(void)
{
    RFA_ASSERT(!rfa_profile_on);
    begun = rfa_now();
    rfa_profile_on = true;
}

void rfa_profile_end(void)
{
    if (rfa_profile_on) {
        rfa_profile_on = false;
        length += rfa_now() - begun;
    }
}

void rfa_profile_clear(void)
{
    RFA_ASSERT(!rfa_profile_on);
    for (int i = 0; i < THREADS; i++) {
        tracks[i].sum = (rfa_profile){0};
    }
    length = 0;
}

bool rfa_profile_read(rfa_profile *out, int threads)
{
    *out = (rfa_profile){0};
    double sum = 0;
    for (int i = 0; i < THREADS; i++) {
        for (int p = 0; p < RFA_PHASES; p++) {
            out->seconds[p] += tracks[i].sum.seconds[p];
            out->flops[p] += tracks[i].sum.flops[p];
            sum += tracks[i].sum.seconds[p];
        }
    }
    out->seconds[RFA_PHASE_REST] += (double)threads * length - sum;
    return length > 0;
}
