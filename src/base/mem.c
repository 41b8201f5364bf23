#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic int64_t held, most;

// The size stands in the cache line before the block.
rfa_status rfa_alloc(void *out, ptrdiff_t count, size_t size, const char *what)
{
    size_t bytes = 0;
    char *block = NULL;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ||
        bytes > PTRDIFF_MAX - 2 * (size_t)RFA_ALIGN) {
        return rfa_fail(RFA_ERR_MEMORY, "%s: size overflows", what);
    }
    bytes = (bytes + RFA_ALIGN - 1) / RFA_ALIGN * RFA_ALIGN + RFA_ALIGN;
    block = aligned_alloc(RFA_ALIGN, bytes);
    if (!block) {
        return rfa_fail(RFA_ERR_MEMORY, "%s: cannot allocate %.1f MiB", what,
                        (double)bytes / 1048576.0);
    }
    memset(block, 0, bytes);
    memcpy(block, &bytes, sizeof bytes);
    const int64_t now = atomic_fetch_add(&held, (int64_t)bytes) + (int64_t)bytes;
    int64_t peak = atomic_load(&most);
    while (now > peak && !atomic_compare_exchange_weak(&most, &peak, now)) {
    }
    block += RFA_ALIGN;
    memcpy(out, &block, sizeof block);
    return RFA_OK;
}

void rfa_free(void *pointer)
{
    if (pointer) {
        char *block = (char *)pointer - RFA_ALIGN;
        size_t bytes = 0;
        memcpy(&bytes, block, sizeof bytes);
        atomic_fetch_sub(&held, (int64_t)bytes);
        free(block);
    }
}

int64_t rfa_mem_now(void)
{
    return atomic_load(&held);
}

int64_t rfa_mem_peak(void)
{
    return atomic_load(&most);
}

void *rfa_carve(rfa_arena *arena, ptrdiff_t count, size_t size)
{
    const size_t bytes = ((size_t)count * size + RFA_ALIGN - 1) / RFA_ALIGN * RFA_ALIGN;
    void *part = arena->base ? arena->base + arena->used : NULL;
    arena->used += bytes;
    return part;
}
