// Where the time of a step goes: each thread has a stack of phases; time and flops go to the phase
// on top of it, so that nested phases exclude each other and all of them add up to the whole. A
// mark is one line at the head of a function or block:
//
//   RFA_PROFILE(RFA_PHASE_NORM); // until the end of the block, also by return
//
// Costs a branch when nothing is measured, and two looks at the clock (about 50 ns) when something
// is. What is computed does not depend on it. Local.
#ifndef RFA_BASE_PROFILE_H
#define RFA_BASE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    RFA_PHASE_REST, // what has no mark, and threads that wait for others
    RFA_PHASE_ATTENTION,
    RFA_PHASE_FEATURES,
    RFA_PHASE_PRODUCTS, // of linear layers, with their biases
    RFA_PHASE_NORM,
    RFA_PHASE_GELU,
    RFA_PHASE_DROPOUT, // with its random numbers
    RFA_PHASE_EMBEDDING,
    RFA_PHASE_HEAD,
    RFA_PHASE_SUMS, // of gradients, exact, over examples and tokens
    RFA_PHASE_OPTIMISER,
    RFA_PHASE_DIGEST, // of the parameters
    RFA_PHASE_DATA,
    RFA_PHASE_EXCHANGE, // of attention, with the wait for other ranks
    RFA_PHASE_REDUCE,   // of gradients over ranks, with the wait
    RFA_PHASE_AGREE,    // the wait for other ranks elsewhere
    RFA_PHASES
} rfa_phase;

const char *rfa_phase_name(rfa_phase phase);

// Starts and ends a stretch that is measured, on a thread outside of parallel regions; marks
// elsewhere count nothing. Stretches add up until rfa_profile_clear.
void rfa_profile_begin(void);
void rfa_profile_end(void);
void rfa_profile_clear(void);

// A stretch from here to the end of the block, if wanted.
#define RFA_PROFILE_STRETCH(wanted)                                                                \
    const bool rfa_profile_stretch __attribute__((cleanup(rfa_profile_stretch_end), unused)) =     \
        rfa_profile_stretch_begin(wanted)

// Of all stretches so far: seconds of all threads together, those that did nothing included (in
// RFA_PHASE_REST), so that they add up to threads times the length of the stretches; flops of
// rfa_gemm. False when there was none.
typedef struct {
    double seconds[RFA_PHASES];
    int64_t flops[RFA_PHASES];
} rfa_profile;
bool rfa_profile_read(rfa_profile *out, int threads);

// Not for callers: what the mark is made of.
extern bool rfa_profile_on;
void rfa_profile_push(rfa_phase phase);
void rfa_profile_pop(void);
void rfa_profile_add_flops(int64_t flops);

static inline bool rfa_profile_enter(rfa_phase phase)
{
    const bool on = rfa_profile_on;
    if (__builtin_expect(on, 0)) {
        rfa_profile_push(phase);
    }
    return on;
}

static inline void rfa_profile_leave(const bool *pushed)
{
    if (__builtin_expect(*pushed, 0)) {
        rfa_profile_pop();
    }
}

static inline void rfa_profile_flops(int64_t flops)
{
    if (__builtin_expect(rfa_profile_on, 0)) {
        rfa_profile_add_flops(flops);
    }
}

static inline bool rfa_profile_stretch_begin(bool wanted)
{
    if (wanted) {
        rfa_profile_begin();
    }
    return wanted;
}

static inline void rfa_profile_stretch_end(const bool *begun)
{
    if (*begun) {
        rfa_profile_end();
    }
}

#define RFA_PROFILE_NAME_(line) rfa_profile_pushed_##line
#define RFA_PROFILE_NAME(line) RFA_PROFILE_NAME_(line)
#define RFA_PROFILE(phase)                                                                         \
    const bool RFA_PROFILE_NAME(__LINE__) __attribute__((cleanup(rfa_profile_leave), unused)) =    \
        rfa_profile_enter(phase)

#endif
