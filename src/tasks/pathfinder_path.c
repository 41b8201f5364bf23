#include "tasks/pathfinder_impl.h"

#include <math.h>

static bool inside(const rfa_pathfinder *g, int y, int x)
{
    return y >= 0 && x >= 0 && y < g->size && x < g->size;
}

// The pixel at this distance: each coordinate rounded up.
static int shifted(int from, double distance, double component)
{
    return (int)ceil(from + distance * component);
}

// The part of a dash's square at (y, x) that lies in the picture: rows [y0, y1), columns [x0, x1).
typedef struct {
    int y0, y1, x0, x1;
} window;

static window clip(const rfa_pathfinder *g, int y, int x)
{
    const int half = g->now->half;
    const int y1 = y + half + 1, x1 = x + half + 1;
    return (window){.y0 = y > half ? y - half : 0,
                    .y1 = y1 < g->size ? y1 : g->size,
                    .x0 = x > half ? x - half : 0,
                    .x1 = x1 < g->size ? x1 : g->size};
}

// Row r of the dash's square, so that column c of the picture is [c].
static const unsigned char *
square_row(const rfa_pathfinder *g, const unsigned char *all, const rfa_placed *p, int r)
{
    const rfa_dashes *d = g->now;
    return rfa_dash(d, all, p->dash) + (ptrdiff_t)(r - p->y + d->half) * d->side - p->x + d->half;
}

static bool crosses(const rfa_pathfinder *g, const rfa_placed *p)
{
    const window w = clip(g, p->y, p->x);
    for (int r = w.y0; r < w.y1; r++) {
        const unsigned char *own = square_row(g, g->now->masks, p, r);
        const unsigned char *taken = g->mask + (ptrdiff_t)r * g->size;
        for (int c = w.x0; c < w.x1; c++) {
            if (own[c] + taken[c] >= CROSS) {
                return true;
            }
        }
    }
    return false;
}

void rfa_path_take(rfa_pathfinder *g, const rfa_placed *p)
{
    const window w = clip(g, p->y, p->x);
    for (int r = w.y0; r < w.y1; r++) {
        const unsigned char *own = square_row(g, g->now->masks, p, r);
        unsigned char *taken = g->mask + (ptrdiff_t)r * g->size;
        for (int c = w.x0; c < w.x1; c++) {
            taken[c] = own[c] > taken[c] ? own[c] : taken[c];
        }
    }
}

void rfa_path_paint(rfa_pathfinder *g, const rfa_path *s, double brightness)
{
    for (int i = 0; i < s->count; i++) {
        const rfa_placed *p = &s->dashes[i];
        const window w = clip(g, p->y, p->x);
        for (int r = w.y0; r < w.y1; r++) {
            const unsigned char *own = square_row(g, g->now->pictures, p, r);
            double *to = g->picture + (ptrdiff_t)r * g->size;
            for (int c = w.x0; c < w.x1; c++) {
                // As the original keeps them: halves of the output's steps go up or down by it.
                const double value = (float)(own[c] / 255.0 * brightness);
                to[c] = value > to[c] ? value : to[c];
            }
        }
    }
}

// The highest mask value within the margin of a place.
static int taken_near(const rfa_pathfinder *g, int y, int x)
{
    const int m = g->now->margin;
    int highest = 0;
    for (int v = -m; v <= m; v++) {
        for (int u = -m; u <= m; u++) {
            if (u * u + v * v <= m * m && inside(g, y + v, x + u)) {
                const int value = g->mask[(ptrdiff_t)(y + v) * g->size + x + u];
                highest = value > highest ? value : highest;
            }
        }
    }
    return highest;
}

// Whether a dash that begins at (y, x) touches what is taken, or the border; what lies outside the
// picture is free.
static bool is_free(const rfa_pathfinder *g, int dash, int border, int y, int x)
{
    const rfa_dashes *d = g->now;
    const int far = g->size - border;
    for (int32_t i = d->first[dash]; i < d->first[dash + 1]; i++) {
        const int v = y + d->reach_y[i], u = x + d->reach_x[i];
        if (inside(g, v, u) && (v < border || u < border || v >= far || u >= far ||
                                g->mask[(ptrdiff_t)v * g->size + u] > FREE)) {
            return false;
        }
    }
    return true;
}

// A free place, all alike; false when there is none. Most often one of a few places taken at random
// is free; only else all are looked at.
static bool pick_free(rfa_pathfinder *g, int dash, int border, int *y, int *x)
{
    const int reach = g->now->length + g->now->margin;
    const int low = border > reach ? border - reach : 0, width = g->size - 2 * low;
    for (int t = 0; t < PICKS; t++) {
        *y = low + (int)rfa_rng_below(&g->random, (uint32_t)width);
        *x = low + (int)rfa_rng_below(&g->random, (uint32_t)width);
        if (is_free(g, dash, border, *y, *x)) {
            return true;
        }
    }
    int count = 0;
    for (int i = 0; i < width * width; i++) {
        if (is_free(g, dash, border, low + i / width, low + i % width)) {
            g->places[count++] = i;
        }
    }
    if (count == 0) {
        return false;
    }
    const int place = g->places[rfa_rng_below(&g->random, (uint32_t)count)];
    *y = low + place / width;
    *x = low + place % width;
    return true;
}

// Begins a path at (y, x) in a direction; false when its head or pivot is outside.
static bool begin(const rfa_pathfinder *g, rfa_path *s, int y, int x, int degree)
{
    const rfa_dashes *d = g->now;
    const double sine = g->sine[degree], cosine = g->cosine[degree];
    const int head_y = shifted(y, d->length, sine), head_x = shifted(x, d->length, cosine);
    const int back = d->length + d->margin;
    s->pivot_y = shifted(head_y, back, -sine);
    s->pivot_x = shifted(head_x, back, -cosine);
    if (!inside(g, head_y, head_x) || !inside(g, s->pivot_y, s->pivot_x)) {
        return false;
    }
    s->angle = (degree - 180) * M_PI / 180;
    s->dashes[0] = (rfa_placed){.dash = rfa_dashes_find(d, sine, cosine), .y = y, .x = x};
    s->count = 1;
    s->origin_y = s->tip_y = y;
    s->origin_x = s->tip_x = x;
    return true;
}

bool rfa_path_begin(rfa_pathfinder *g, rfa_path *s, int border)
{
    for (int t = 0; t < TRIES; t++) {
        const int degree = (int)rfa_rng_below(&g->random, DEGREES);
        const int dash = rfa_dashes_find(g->now, g->sine[degree], g->cosine[degree]);
        int y, x;
        if (!g->now->starts[dash]) {
            return false;
        }
        if (!pick_free(g, dash, border, &y, &x)) {
            return false;
        }
        if (begin(g, s, y, x, degree)) {
            return true;
        }
    }
    return false;
}

bool rfa_path_begin_beside(rfa_pathfinder *g, rfa_path *s, const rfa_path *first)
{
    const double distance = g->options.seed_distance;
    for (int t = 0; t < TRIES; t++) {
        const int degree = (int)rfa_rng_below(&g->random, DEGREES);
        const int way = (int)rfa_rng_below(&g->random, DEGREES);
        const int y = (int)nearbyint(first->origin_y + distance * g->sine[way]);
        const int x = (int)nearbyint(first->origin_x + distance * g->cosine[way]);
        if (begin(g, s, y, x, degree)) {
            return true;
        }
    }
    return false;
}

// Where the next dash may begin, with the chance of each.
typedef struct {
    int count;
    int y[CANDIDATES], x[CANDIDATES];
    double angle[CANDIDATES], weight[CANDIDATES], sum;
} choice;

// Equal places are neighbours on the circle, which ends where it begins.
static bool is_listed(const choice *c, int y, int x)
{
    enum { NEAR = 3 };
    for (int i = 0; i < c->count; i++) {
        if ((i < NEAR || i >= c->count - NEAR) && c->y[i] == y && c->x[i] == x) {
            return true;
        }
    }
    return false;
}

// Whole places on the circle round the pivot. A place without a chance is left out.
static void list_choice(const rfa_pathfinder *g, choice *c, const rfa_path *s)
{
    const rfa_dashes *d = g->now;
    c->count = 0;
    c->sum = 0;
    for (int i = 0; i < d->circle; i++) {
        const double fy = s->pivot_y + d->circle_y[i], fx = s->pivot_x + d->circle_x[i];
        if (fy < 0 || fx < 0 || fy >= g->size || fx >= g->size) {
            continue;
        }
        const int y = (int)fy, x = (int)fx;
        const double angle = rfa_dash_angle(d, y - s->pivot_y, x - s->pivot_x);
        double turn = fabs(angle - s->angle);
        turn = fmin(turn, fabs(2 * M_PI - turn)) * g->options.continuity;
        if (turn >= M_PI / 2 || is_listed(c, y, x)) {
            continue;
        }
        const int taken = taken_near(g, y, x);
        const double cosine = cos(turn), weight = cosine * cosine * (1 - taken / 255.0);
        if (taken == 255 || weight <= 0) {
            continue;
        }
        c->y[c->count] = y;
        c->x[c->count] = x;
        c->angle[c->count] = angle;
        c->weight[c->count++] = weight;
        c->sum += weight;
    }
}

static int pick_weighted(rfa_pathfinder *g, const choice *c)
{
    double left = rfa_rng_uniform(&g->random) * c->sum;
    int last = 0;
    for (int i = 0; i < c->count; i++) {
        if (c->weight[i] > 0) {
            last = i;
            if ((left -= c->weight[i]) < 0) {
                break;
            }
        }
    }
    return last;
}

bool rfa_path_extend(rfa_pathfinder *g, rfa_path *s)
{
    const rfa_dashes *d = g->now;
    choice c; // what is beyond its count is never read
    s->pivot_y = shifted(s->pivot_y, d->length + 2 * d->margin, sin(s->angle));
    s->pivot_x = shifted(s->pivot_x, d->length + 2 * d->margin, cos(s->angle));
    list_choice(g, &c, s);
    if (c.count == 0 || c.sum < 1e-4) {
        return false;
    }
    for (int t = 0; t < TRIES; t++) {
        const int i = pick_weighted(g, &c);
        const double back = c.angle[i] + M_PI;
        const rfa_placed p = {
            .dash = rfa_dashes_find(d, sin(back), cos(back)), .y = c.y[i], .x = c.x[i]};
        if (!crosses(g, &p)) {
            rfa_path_take(
                g, &s->dashes[s->count - 1]); // one late, so that a path does not block itself
            s->dashes[s->count++] = p;
            s->angle = c.angle[i];
            s->tip_y = p.y;
            s->tip_x = p.x;
            return true;
        }
    }
    return false;
}
