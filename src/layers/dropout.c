#include "layers/dropout.h"

#include "base/profile.h"
#include "base/status.h"

#include <math.h>

enum { PER_BLOCK = 8, BATCH = 128 }; // 16-bit words a block; words drawn at once

void rfa_dropout(rfa_real *x,
                 rfa_real *also,
                 ptrdiff_t rows,
                 ptrdiff_t width,
                 ptrdiff_t begin,
                 const rfa_rng *stream,
                 double p)
{
    RFA_PROFILE(RFA_PHASE_DROPOUT);
    RFA_ASSERT(width % PER_BLOCK == 0);
    const int threshold = (int)lround(p * 65536);
    if (threshold == 0) {
        return;
    }
    const rfa_real scale = (rfa_real)(65536.0 / (65536 - threshold));
    const ptrdiff_t n = rows * width;
    const uint64_t first = (uint64_t)begin * (uint64_t)(width / PER_BLOCK);
    for (ptrdiff_t at = 0; at < n; at += BATCH) {
        uint16_t words[BATCH];
        const ptrdiff_t count = n - at < BATCH ? n - at : BATCH;
        rfa_rng_words16(words, stream, first + (uint64_t)(at / PER_BLOCK), count / PER_BLOCK);
        for (ptrdiff_t i = 0; i < count; i++) {
            x[at + i] *= words[i] >= threshold ? scale : 0;
        }
        for (ptrdiff_t i = 0; also && i < count; i++) {
            also[at + i] *= words[i] >= threshold ? scale : 0;
        }
    }
}
