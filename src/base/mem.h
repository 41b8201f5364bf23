// Aligned, zeroed, counted memory, and arenas that are carved into arrays.
#ifndef RFA_BASE_MEM_H
#define RFA_BASE_MEM_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { RFA_ALIGN = 64 }; // bytes: one cache line, one AVX-512 vector

// *(void **)out = count * size zeroed bytes, 64-byte aligned and padded to whole vectors; released
// by rfa_free. Errors: RFA_ERR_MEMORY, with what it was for in the text. Local.
RFA_NODISCARD rfa_status rfa_alloc(void *out, ptrdiff_t count, size_t size, const char *what);
void rfa_free(void *pointer); // NULL-safe

// From now on large blocks are only mapped, without a claim on memory, and take none until they are
// written: they can be counted where they would never fit. Local.
void rfa_mem_plan(bool on);
bool rfa_mem_is_plan(void);

// Bytes of this host and process, < 0: unknown. Resident: of this process now, libraries included.
// Available: to new processes of the host. Limit: of this control group.
double rfa_mem_resident(void);
double rfa_mem_available(void);
double rfa_mem_limit(void);

// Bytes held now, and the most that were held at once, by this rank through rfa_alloc.
int64_t rfa_mem_now(void);
int64_t rfa_mem_peak(void);
void rfa_mem_restart(void); // the peak is what is held now

// An arena is one allocation that arrays are carved from: first with base NULL to measure, then
// for real with the same calls. Never frees its parts.
typedef struct {
    char *base; // NULL while measuring
    size_t used;
} rfa_arena;

void *rfa_carve(rfa_arena *arena, ptrdiff_t count, size_t size);

#endif
