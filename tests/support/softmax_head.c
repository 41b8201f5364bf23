#include "support/softmax_head.h"
#include "support/support.h"

#include <math.h>
#include <string.h>

enum { LEADING_ROWS = 3, GUARD = 64 };

head head_create(const layout *at, uint32_t seed)
{
    const ptrdiff_t n = at->len * at->d;
    head x = {test_reals(n),       test_reals(n), test_reals(n), test_reals(n), test_reals(n),
              test_reals(at->len), test_reals(n), test_reals(n), test_reals(n)};
    test_fill(x.q, n, seed, at->scale);
    test_fill(x.k, n, seed + 1, at->scale);
    test_fill(x.v, n, seed + 2, 1);
    test_fill(x.dout, n, seed + 3, 1);
    return x;
}

void head_destroy(head *x)
{
    rfa_real *all[] = {x->q, x->k, x->v, x->dout, x->out, x->lse, x->dq, x->dk, x->dv};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
}

ptrdiff_t head_cut(rfa_softmax_block *blocks, const layout *at)
{
    const ptrdiff_t groups = rfa_padded(at->len) / RFA_ROWS;
    ptrdiff_t row = LEADING_ROWS;
    for (int g = 0; g < at->segments; g++) {
        const ptrdiff_t begin = groups * g / at->segments * RFA_ROWS;
        ptrdiff_t end = groups * (g + 1) / at->segments * RFA_ROWS;
        end = end < at->len ? end : at->len;
        blocks[g] =
            (rfa_softmax_block){row, rfa_padded(end - begin) + at->extra, end - begin, begin};
        row += blocks[g].rows;
    }
    return row;
}

static rfa_real *packed_create(const layout *at, ptrdiff_t rows)
{
    const ptrdiff_t n = rows * (at->d + at->columns);
    rfa_real *packed = test_reals(n);
    for (ptrdiff_t i = 0; i < n; i++) {
        packed[i] = (rfa_real)at->garbage;
    }
    return packed;
}

// Between token-major [len][width] and the segments' rows.
static void copy_rows(rfa_real *packed,
                      rfa_real *tokens,
                      const rfa_softmax_block *blocks,
                      int n,
                      ptrdiff_t ld,
                      ptrdiff_t width,
                      bool pack)
{
    for (int g = 0; g < n; g++) {
        for (ptrdiff_t t = 0; t < blocks[g].tokens; t++) {
            rfa_real *there = packed + (blocks[g].row0 + t) * ld;
            rfa_real *here = tokens + (blocks[g].begin + t) * width;
            memcpy(pack ? there : here, pack ? here : there, (size_t)width * sizeof *here);
        }
    }
}

static bool
rows_are_zero(const rfa_real *x, const rfa_softmax_block *block, ptrdiff_t ld, ptrdiff_t width)
{
    for (ptrdiff_t row = block->row0 + block->tokens; row < block->row0 + block->rows; row++) {
        for (ptrdiff_t c = 0; c < width; c++) {
            if (x[row * ld + c] != 0) {
                return false;
            }
        }
    }
    return true;
}

static bool same(rfa_real a, rfa_real b)
{
    return a == b || (a != a && b != b);
}

void head_run(head *x, const layout *at, unsigned mask)
{
    rfa_softmax_block blocks[MOST_BLOCKS];
    const ptrdiff_t rows = head_cut(blocks, at), ld = at->d + at->columns, d = at->d;
    rfa_real *q = packed_create(at, rows), *k = packed_create(at, rows),
             *v = packed_create(at, rows);
    rfa_real *dout = packed_create(at, rows), *out = packed_create(at, rows);
    rfa_real *dq = packed_create(at, rows), *lse = test_reals(rows);
    double *dkv = test_doubles(rows * 2 * d);
    for (ptrdiff_t i = 0; i < rows * 2 * d; i++) {
        dkv[i] = untouched;
    }
    ptrdiff_t most = 0;
    for (int g = 0; g < at->segments; g++) {
        most = blocks[g].rows > most ? blocks[g].rows : most;
    }
    const ptrdiff_t work_size = rfa_softmax_work_size(most, d);
    rfa_real *work = test_reals(work_size + GUARD);
    for (ptrdiff_t i = 0; i < work_size + GUARD; i++) {
        work[i] = i < work_size ? (rfa_real)NAN : (rfa_real)untouched;
    }
    copy_rows(q, x->q, blocks, at->segments, ld, d, true);
    copy_rows(k, x->k, blocks, at->segments, ld, d, true);
    copy_rows(v, x->v, blocks, at->segments, ld, d, true);
    copy_rows(dout, x->dout, blocks, at->segments, ld, d, true);
    const rfa_softmax_keys keys = {
        .k = k, .v = v, .ld_k = ld, .ld_v = ld, .blocks = blocks, .n = at->segments};
    const rfa_softmax_gradient dkeys = {.k = dkv, .v = dkv + d, .ld = 2 * d};

    for (int g = 0; g < at->segments; g++) {
        if (mask >> g & 1) {
            rfa_softmax_read(out, ld, lse, q, ld, blocks + g, &keys, d, at->causal, work);
            check(rows_are_zero(out, blocks + g, ld, d));
        }
    }
    for (int g = 0; g < at->segments; g++) {
        if (mask >> g & 1) {
            rfa_softmax_read_backward(dq, ld, &dkeys, dout, ld, out, ld, lse, q, ld, blocks + g,
                                      &keys, d, at->causal, work);
            check(rows_are_zero(dq, blocks + g, ld, d));
        }
    }
    copy_rows(out, x->out, blocks, at->segments, ld, d, false);
    copy_rows(dq, x->dq, blocks, at->segments, ld, d, false);
    copy_rows(lse, x->lse, blocks, at->segments, 1, 1, false);

    // Foreign columns and rows, padded rows of dkv, and what follows work keep what they held.
    bool kept = true;
    for (int i = 0; i < GUARD; i++) {
        kept = kept && work[work_size + i] == (rfa_real)untouched;
    }
    for (ptrdiff_t i = 0; i < rows; i++) {
        for (ptrdiff_t c = d; c < ld; c++) {
            kept = kept && same(out[i * ld + c], (rfa_real)at->garbage) &&
                   same(dq[i * ld + c], (rfa_real)at->garbage);
        }
    }
    for (int g = 0; g < at->segments; g++) {
        for (ptrdiff_t t = 0; t < blocks[g].rows; t++) {
            const double *from = dkv + (blocks[g].row0 + t) * 2 * d;
            for (ptrdiff_t c = 0; c < d; c++) {
                if (t < blocks[g].tokens) {
                    x->dk[(blocks[g].begin + t) * d + c] = (rfa_real)(from[c] - untouched);
                    x->dv[(blocks[g].begin + t) * d + c] = (rfa_real)(from[d + c] - untouched);
                } else {
                    kept = kept && from[c] == untouched && from[d + c] == untouched;
                }
            }
        }
    }
    for (ptrdiff_t i = 0; i < LEADING_ROWS * 2 * d; i++) {
        kept = kept && dkv[i] == untouched;
    }
    check(kept);
    rfa_real *all[] = {q, k, v, dout, out, dq, lse, work};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        rfa_free(all[i]);
    }
    rfa_free(dkv);
}
