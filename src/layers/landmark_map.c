#include "layers/landmark_map.h"

#include "layers/linear.h"
#include "layers/norm.h"

#include <string.h>

// One leaf's arrays; [rows][heads d] is [rows heads][d].
typedef struct {
    rfa_real *x, *linear, *stats; // [rows][heads d] twice, [rows heads][2]
    rfa_real *dw, *db, *dscale;   // [d][d], [d], [d]
} arrays;

static arrays arrays_at(rfa_real *work, ptrdiff_t rows, ptrdiff_t heads, ptrdiff_t d)
{
    const ptrdiff_t size = rfa_padded(rows * heads * d);
    rfa_real *stats = work + 2 * size, *dw = stats + rfa_padded(rows * heads * 2);
    rfa_real *db = dw + rfa_padded(d * d);
    return (arrays){work, work + size, stats, dw, db, db + rfa_padded(d)};
}

ptrdiff_t rfa_landmark_map_work(ptrdiff_t rows, ptrdiff_t heads, ptrdiff_t d)
{
    return 2 * rfa_padded(rows * heads * d) + rfa_padded(rows * heads * 2) + rfa_padded(d * d) +
           2 * rfa_padded(d);
}

static void
gather(rfa_real *packed, const rfa_real *x, ptrdiff_t ld, ptrdiff_t rows, ptrdiff_t width)
{
    for (ptrdiff_t t = 0; t < rows; t++) {
        memcpy(packed + t * width, x + t * ld, (size_t)width * sizeof *x);
    }
}

static void add(rfa_real *restrict y, const rfa_real *restrict x, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

void rfa_landmark_map_forward(rfa_real *y,
                              const rfa_real *x,
                              ptrdiff_t ld,
                              const rfa_landmark_map *map,
                              ptrdiff_t rows,
                              ptrdiff_t heads,
                              ptrdiff_t d,
                              rfa_real *work)
{
    const arrays at = arrays_at(work, rows, heads, d);
    gather(at.x, x, ld, rows, heads * d);
    rfa_linear_forward(at.linear, at.x, map->w, map->b, rows * heads, d, d);
    rfa_norm_forward(y, at.stats, at.linear, map->scale, map->shift, rows * heads, d);
}

void rfa_landmark_map_backward(rfa_real *dx,
                               ptrdiff_t ld_dx,
                               const rfa_landmark_map_gradient *gradient,
                               rfa_real *dy,
                               const rfa_real *x,
                               ptrdiff_t ld,
                               const rfa_landmark_map *map,
                               ptrdiff_t rows,
                               ptrdiff_t heads,
                               ptrdiff_t d,
                               rfa_real *work)
{
    const ptrdiff_t vectors = rows * heads, width = heads * d;
    const arrays at = arrays_at(work, rows, heads, d);
    rfa_real *dlinear = at.x;
    gather(at.x, x, ld, rows, width);
    rfa_linear_forward(at.linear, at.x, map->w, map->b, vectors, d, d);
    // Stats alone are wanted here; y goes where dlinear will be.
    rfa_norm_forward(dlinear, at.stats, at.linear, map->scale, map->shift, vectors, d);
    memset(dlinear, 0, (size_t)(rows * width) * sizeof *dlinear);
    rfa_norm_backward(dlinear, at.dscale, at.db, dy, at.stats, at.linear, map->scale, vectors, d);
    add(gradient->scale, at.dscale, d);
    add(gradient->shift, at.db, d);

    rfa_real *packed = at.linear;
    gather(packed, x, ld, rows, width);
    rfa_linear_backward_weight(at.dw, at.db, dlinear, packed, vectors, d, d);
    add(gradient->w, at.dw, d * d);
    add(gradient->b, at.db, d);
    rfa_linear_backward_input(dy, dlinear, map->w, vectors, d, d);
    for (ptrdiff_t t = 0; t < rows; t++) {
        add(dx + t * ld_dx, dy + t * width, width);
    }
}
