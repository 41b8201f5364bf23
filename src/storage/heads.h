// Heads that rfa capture wrote: what the attention of a trained run saw.
//
//   /q, /k, /v   [heads][N][d] float32; scores are q . k / sqrt(d)
//   /length      [heads] valid tokens of each, optional: all N
//   /example, /layer, /head [heads] where each comes from, optional here
#ifndef RFA_STORAGE_HEADS_H
#define RFA_STORAGE_HEADS_H

#include "base/status.h"

#include <stdint.h>

typedef struct {
    char *path; // of rfa_alloc
    int64_t count, n, d;
    int64_t *length, *example, *layer, *head; // [count]; -1 where the file does not say
} rfa_heads;

// Looks at a file. RFA_ERR_IO names what is missing or of the wrong shape. Local.
RFA_NODISCARD rfa_status rfa_heads_open(rfa_heads *heads, const char *path);
void rfa_heads_close(rfa_heads *heads); // idempotent

// q, k, v [N][d] of one head. RFA_ERR_IO. Local.
RFA_NODISCARD rfa_status
rfa_heads_read(float *q, float *k, float *v, const rfa_heads *heads, int64_t head);

#endif
