#include "tasks/dashes.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TAPS = 64, BITS = 22 }; // weights of one output pixel, and their fixed point

static double lanczos3(double x)
{
    if (x == 0.0) {
        return 1.0;
    }
    const double a = M_PI * x, b = a / 3;
    return x > -3.0 && x < 3.0 ? sin(a) / a * sin(b) / b : 0.0;
}

// Weights of the input pixels [*first, *first + count) in output pixel i; count is returned.
static int weights(int32_t out[TAPS], int *first, int i, int from, int to)
{
    const double scale = (double)from / to, support = 3 * scale, centre = (i + 0.5) * scale;
    double real[TAPS], sum = 0;
    const int begin = (int)fmax(centre - support + 0.5, 0);
    const int end = (int)fmin(centre + support + 0.5, from);
    const int count = end - begin;
    RFA_ASSERT(count > 0 && count <= TAPS);
    for (int k = 0; k < count; k++) {
        real[k] = lanczos3((begin + k - centre + 0.5) / scale);
        sum += real[k];
    }
    for (int k = 0; k < count; k++) {
        out[k] = (int32_t)lround(real[k] / sum * (1 << BITS));
    }
    *first = begin;
    return count;
}

static unsigned char clip(int64_t sum)
{
    const int64_t value = (sum + (1 << (BITS - 1))) >> BITS;
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

void rfa_lanczos(unsigned char *out,
                 int to,
                 const unsigned char *in,
                 int from,
                 int begin,
                 int end,
                 unsigned char *work)
{
    int32_t w[TAPS];
    int first;
    begin = begin < 0 ? 0 : begin;
    end = end > from ? from : end;
    for (int x = 0; x < to; x++) { // rows of work: rows of in
        const int count = weights(w, &first, x, from, to);
        for (int y = begin; y < end; y++) {
            int64_t sum = 0;
            for (int k = 0; k < count; k++) {
                sum += (int64_t)w[k] * in[(ptrdiff_t)y * from + first + k];
            }
            work[(ptrdiff_t)y * to + x] = clip(sum);
        }
    }
    for (int y = 0; y < to; y++) {
        const int count = weights(w, &first, y, from, to);
        const int low = first > begin ? first : begin;
        const int high = first + count < end ? first + count : end;
        for (int x = 0; x < to; x++) {
            int64_t sum = 0;
            for (int k = low; k < high; k++) {
                sum += (int64_t)w[k - first] * work[(ptrdiff_t)k * to + x];
            }
            out[(ptrdiff_t)y * to + x] = clip(sum);
        }
    }
}

static void set(unsigned char *canvas, int side, int y, int x)
{
    if (y >= 0 && y < side && x >= 0 && x < side) {
        canvas[(ptrdiff_t)y * side + x] = 255;
    }
}

// A line one pixel wide, both ends included: one pixel for each step along the longer axis.
static void thin_line(unsigned char *canvas, int side, int centre, int dy, int dx)
{
    const int steps = abs(dy) > abs(dx) ? abs(dy) : abs(dx);
    const int shorter = abs(dy) > abs(dx) ? abs(dx) : abs(dy);
    for (int i = 0; i <= steps; i++) {
        // Halves go outward.
        const int across = steps > 0 ? (2 * i * shorter + steps) / (2 * steps) : 0;
        const int y = abs(dy) > abs(dx) ? i : across, x = abs(dy) > abs(dx) ? across : i;
        set(canvas, side, centre + (dy < 0 ? -y : y), centre + (dx < 0 ? -x : x));
    }
}

static int round_half_out(double x)
{
    return (int)(x >= 0 ? floor(x + 0.5) : -floor(-x + 0.5));
}

static int round_half_in(double x)
{
    return (int)(x >= 0 ? ceil(x - 0.5) : -ceil(-x - 0.5));
}

// A wider line as PIL has it: a four-cornered figure with whole corners, and in each row the pixels
// from the rounded left to the rounded right edge.
static void wide_line(unsigned char *canvas, int side, int centre, int dy, int dx, int width)
{
    const double ratio = (width - 1) / 2.0 / hypot(dx, dy);
    const int sx = round_half_in(ratio * dy), sy = round_half_out(ratio * dx);
    const int x[4] = {-sx, dx - sx, dx + sx, sx}, y[4] = {sy, dy + sy, dy - sy, -sy};
    for (int row = -centre; row <= centre; row++) {
        double left = INFINITY, right = -INFINITY;
        for (int e = 0; e < 4; e++) {
            const int f = (e + 1) % 4;
            const int low = y[e] < y[f] ? y[e] : y[f], high = y[e] < y[f] ? y[f] : y[e];
            if (row < low || row > high) {
                continue;
            }
            if (low == high) {
                left = fmin(left, fmin(x[e], x[f]));
                right = fmax(right, fmax(x[e], x[f]));
            } else {
                const double at = x[e] + (double)(row - y[e]) * (x[f] - x[e]) / (y[f] - y[e]);
                left = fmin(left, at);
                right = fmax(right, at);
            }
        }
        // Places on the canvas are positive, so halves go up on the left and down on the right.
        const int end = left <= right ? round_half_in(right + centre) : -1;
        for (int c = left <= right ? round_half_out(left + centre) : 0; c <= end; c++) {
            set(canvas, side, row + centre, c);
        }
    }
}

// out: canvas grown by a disk.
static void grow(unsigned char *out, const unsigned char *canvas, int side, int radius)
{
    memset(out, 0, (size_t)side * (size_t)side);
    for (int y = 0; y < side; y++) {
        for (int x = 0; x < side; x++) {
            for (int v = -radius; v <= radius && canvas[(ptrdiff_t)y * side + x]; v++) {
                for (int u = -radius; u <= radius; u++) {
                    if (u * u + v * v <= radius * radius) {
                        set(out, side, y + v, x + u);
                    }
                }
            }
        }
    }
}

// Draws every dash. canvas, grown [from^2], work [from * side].
static void
draw_all(rfa_dashes *d, int width, unsigned char *canvas, unsigned char *grown, unsigned char *work)
{
    const int from = 2 * d->half * d->antialias + 1, centre = d->half * d->antialias;
    const ptrdiff_t pixels = (ptrdiff_t)d->side * d->side;
    for (int dy = -d->reach; dy <= d->reach; dy++) {
        for (int dx = -d->reach; dx <= d->reach; dx++) {
            const int dash = (dy + d->reach) * (2 * d->reach + 1) + dx + d->reach;
            memset(canvas, 0, (size_t)from * (size_t)from);
            if (width <= 1 || (dy == 0 && dx == 0)) {
                thin_line(canvas, from, centre, dy, dx);
            } else {
                wide_line(canvas, from, centre, dy, dx, width);
            }
            grow(grown, canvas, from, d->margin * d->antialias);
            rfa_lanczos(d->pictures + dash * pixels, d->side, canvas, from, 0, from, work);
            rfa_lanczos(d->masks + dash * pixels, d->side, grown, from, 0, from, work);
        }
    }
}

// Lists what keeps a path from beginning with each dash. The original asks OpenCV's dilation, which
// gives the lowest number where nothing of the dash lies in the picture, and takes that for
// "nothing is free": a dash must reach into the picture from each of its corners.
static void list_reach(rfa_dashes *d)
{
    const int ends = 2 * d->reach + 1, most = d->length + d->margin;
    int32_t n = 0;
    for (int dash = 0; dash < ends * ends; dash++) {
        const unsigned char *mask = rfa_dash(d, d->masks, dash);
        bool corner[4] = {false};
        d->first[dash] = n;
        for (int i = 0; i < d->side * d->side; i++) {
            const int y = i / d->side - d->half + 1, x = i % d->side - d->half + 1;
            if (mask[i] == 255 && abs(y) <= most && abs(x) <= most) {
                d->reach_y[n] = (int16_t)y;
                d->reach_x[n++] = (int16_t)x;
                corner[0] = corner[0] || (y >= 0 && x >= 0);
                corner[1] = corner[1] || (y >= 0 && x <= 0);
                corner[2] = corner[2] || (y <= 0 && x >= 0);
                corner[3] = corner[3] || (y <= 0 && x <= 0);
            }
        }
        d->starts[dash] = corner[0] && corner[1] && corner[2] && corner[3];
    }
    d->first[ends * ends] = n;
}

static void list_circle(rfa_dashes *d)
{
    const int radius = d->length + d->margin;
    for (int i = 0; i < d->circle; i++) {
        d->circle_y[i] = radius * sin((double)i / radius);
        d->circle_x[i] = radius * cos((double)i / radius);
    }
    for (int dy = -d->box; dy <= d->box; dy++) {
        for (int dx = -d->box; dx <= d->box; dx++) {
            d->angles[(dy + d->box) * (2 * d->box + 1) + dx + d->box] = atan2(dy, dx);
        }
    }
}

static rfa_status alloc_all(rfa_dashes *d)
{
    const ptrdiff_t ends = 2 * d->reach + 1, size = ends * ends * d->side * d->side;
    const ptrdiff_t box = 2 * d->box + 1;
    RFA_TRY(rfa_alloc(&d->pictures, size, 1, "dashes"));
    RFA_TRY(rfa_alloc(&d->masks, size, 1, "dashes"));
    RFA_TRY(rfa_alloc(&d->reach_y, size, sizeof *d->reach_y, "dashes"));
    RFA_TRY(rfa_alloc(&d->reach_x, size, sizeof *d->reach_x, "dashes"));
    RFA_TRY(rfa_alloc(&d->first, ends * ends + 1, sizeof *d->first, "dashes"));
    RFA_TRY(rfa_alloc(&d->starts, ends * ends, sizeof *d->starts, "dashes"));
    RFA_TRY(rfa_alloc(&d->circle_y, d->circle, sizeof *d->circle_y, "dashes"));
    RFA_TRY(rfa_alloc(&d->circle_x, d->circle, sizeof *d->circle_x, "dashes"));
    return rfa_alloc(&d->angles, box * box, sizeof *d->angles, "dashes");
}

rfa_status
rfa_dashes_create(rfa_dashes *dashes, int length, double thickness, int margin, int antialias)
{
    rfa_dashes *d = dashes;
    *d = (rfa_dashes){.length = length, .margin = margin, .antialias = antialias};
    d->half = length + (int)ceil(thickness) + margin;
    d->side = 2 * d->half + 1;
    d->reach = length * antialias;
    d->circle = (int)ceil(2 * M_PI * (length + margin));
    d->box = length + margin + 1;
    const ptrdiff_t from = 2 * d->half * antialias + 1;
    unsigned char *canvas = NULL;
    RFA_TRY(rfa_alloc(&canvas, 2 * from * from + from * d->side, 1, "canvas of a dash"));
    const rfa_status status = alloc_all(d);
    if (status == RFA_OK) {
        draw_all(d, (int)lround(thickness * antialias), canvas, canvas + from * from,
                 canvas + 2 * from * from);
        list_reach(d);
        list_circle(d);
    } else {
        rfa_dashes_destroy(d);
    }
    rfa_free(canvas);
    return status;
}

void rfa_dashes_destroy(rfa_dashes *dashes)
{
    rfa_free(dashes->pictures);
    rfa_free(dashes->masks);
    rfa_free(dashes->reach_y);
    rfa_free(dashes->reach_x);
    rfa_free(dashes->first);
    rfa_free(dashes->starts);
    rfa_free(dashes->circle_y);
    rfa_free(dashes->circle_x);
    rfa_free(dashes->angles);
    *dashes = (rfa_dashes){0};
}

int rfa_dashes_find(const rfa_dashes *dashes, double sine, double cosine)
{
    const rfa_dashes *d = dashes;
    const int centre = d->half * d->antialias;
    const int dy = (int)ceil(centre + d->reach * sine) - centre;
    const int dx = (int)ceil(centre + d->reach * cosine) - centre;
    return (dy + d->reach) * (2 * d->reach + 1) + dx + d->reach;
}
