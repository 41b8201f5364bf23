#include "base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 1 << 20 }; // bytes: from here on a plan's blocks are mapped

static _Atomic int64_t held, most;
static bool planning;

// Stands in the cache line before a block.
typedef struct {
    size_t bytes; // with this line
    bool mapped;
} head;

void rfa_mem_plan(bool on)
{
    planning = on;
}

bool rfa_mem_is_plan(void)
{
    return planning;
}

static void *map(size_t bytes)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
}

// Zeroed.
static char *get(const head *own)
{
    char *block = own->mapped ? map(own->bytes) : aligned_alloc(RFA_ALIGN, own->bytes);
    if (block == MAP_FAILED) {
        return NULL;
    }
    if (block && !own->mapped) {
        memset(block, 0, own->bytes);
    }
    return block;
}

rfa_status rfa_alloc(void *out, ptrdiff_t count, size_t size, const char *what)
{
    size_t bytes = 0;
    if (count < 0 || __builtin_mul_overflow((size_t)count, size, &bytes) ||
        bytes > PTRDIFF_MAX - 2 * (size_t)RFA_ALIGN) {
        return rfa_fail(RFA_ERR_MEMORY, "%s: size overflows", what);
    }
    bytes = (bytes + RFA_ALIGN - 1) / RFA_ALIGN * RFA_ALIGN + RFA_ALIGN;
    const head own = {bytes, planning && bytes >= LARGE};
    char *block = get(&own);
    if (!block) {
        return rfa_fail(RFA_ERR_MEMORY, "%s: cannot allocate %.1f MiB", what,
                        (double)bytes / 1048576.0);
    }
    memcpy(block, &own, sizeof own);
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
        head own;
        memcpy(&own, block, sizeof own);
        atomic_fetch_sub(&held, (int64_t)own.bytes);
        if (own.mapped) {
            munmap(block, own.bytes);
        } else {
            free(block);
        }
    }
}

// The number behind name in a file of "name number" lines, or of one number; < 0: none.
static double read_number(const char *path, const char *name)
{
    char line[256];
    double number = -1;
    FILE *file = fopen(path, "re");
    const size_t skip = strlen(name);
    while (file && number < 0 && fgets(line, sizeof line, file)) {
        if (strncmp(line, name, skip) == 0) {
            char *end = NULL;
            const double value = strtod(line + skip, &end);
            number = end > line + skip ? value : -1;
        }
    }
    if (file) {
        fclose(file);
    }
    return number;
}

double rfa_mem_resident(void)
{
    return 1024 * read_number("/proc/self/status", "VmRSS:");
}

double rfa_mem_available(void)
{
    return 1024 * read_number("/proc/meminfo", "MemAvailable:");
}

double rfa_mem_limit(void)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.max",
                                        "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    for (int i = 0; i < 2; i++) {
        const double limit = read_number(files[i], "");
        if (limit >= 0 && limit < 0x1p60) {
            return limit;
        }
    }
    return -1;
}

int64_t rfa_mem_now(void)
{
    return atomic_load(&held);
}

int64_t rfa_mem_peak(void)
{
    return atomic_load(&most);
}

void rfa_mem_restart(void)
{
    atomic_store(&most, atomic_load(&held));
}

void *rfa_carve(rfa_arena *arena, ptrdiff_t count, size_t size)
{
    const size_t bytes = ((size_t)count * size + RFA_ALIGN - 1) / RFA_ALIGN * RFA_ALIGN;
    void *part = arena->base ? arena->base + arena->used : NULL;
    arena->used += bytes;
    return part;
}
