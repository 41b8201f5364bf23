#include "base/mem.h"
#include "tasks/pathfinder_impl.h"

#include <math.h>
#include <string.h>

rfa_pathfinder_options rfa_pathfinder_defaults(int size, int contour)
{
    const bool large = size == 128;
    return (rfa_pathfinder_options){.seed = 1,
                                    .size = size,
                                    .padding = 1,
                                    .segment = large ? 5 : 2,
                                    .thickness = large ? 1.5 : 0.5,
                                    .margin_low = large ? 2 : 1,
                                    .margin_high = large ? 3 : 1,
                                    .antialias = 2,
                                    .continuity = large ? 1.8 : 1.0,
                                    .seed_distance = large ? 20 : 7,
                                    .marker_radius = large ? 3 : 1.5,
                                    .contour = contour,
                                    .distractor = contour / 3,
                                    .distractors = (large ? 35 : 20) / (contour / 3),
                                    .contrast = large ? 0.9 : 2,
                                    .paddle_contrast = large ? 1 : 0.75};
}

static rfa_status out_of_range(const char *name, double value, double least, double most)
{
    return rfa_fail(RFA_ERR_USAGE, "--%s is %g, not %g to %g", name, value, least, most);
}

rfa_status rfa_pathfinder_check(const rfa_pathfinder_options *options)
{
    const rfa_pathfinder_options *o = options;
    const struct {
        const char *name;
        double value, least, most;
    } limits[] = {
        {"size", o->size, 16, 1024},
        {"segment", o->segment, 1, 16},
        {"thickness", o->thickness, 0.5, 8},
        {"margin", o->margin_low, 1, 8},
        {"margin-high", o->margin_high, o->margin_low, o->margin_low + MARGINS - 1},
        {"continuity", o->continuity, 0.1, 10},
        {"seed-distance", o->seed_distance, 1, 0.25 * o->size},
        {"marker-radius", o->marker_radius, 0.5, 16},
        {"contour", o->contour, 2, DASHES},
        {"distractor", o->distractor, 1, DASHES},
        {"distractors", o->distractors, 0, 1000},
        {"contrast", o->contrast, 0.01, 100},
        {"paddle-contrast", o->paddle_contrast, 0.01, 100},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!(limits[i].value >= limits[i].least && limits[i].value <= limits[i].most)) {
            return out_of_range(limits[i].name, limits[i].value, limits[i].least, limits[i].most);
        }
    }
    const double fine = o->thickness * o->antialias;
    return fine == round(fine) ? RFA_OK
                               : rfa_fail(RFA_ERR_USAGE, "--thickness is %g, not a multiple of %g",
                                          o->thickness, 1.0 / o->antialias);
}

static rfa_status prepare(rfa_pathfinder *g)
{
    const rfa_pathfinder_options *o = &g->options;
    const ptrdiff_t pixels = (ptrdiff_t)o->size * o->size, fine = o->antialias;
    for (int m = o->margin_low; m <= o->margin_high; m++) {
        RFA_TRY(rfa_dashes_create(&g->dashes[m - o->margin_low], o->segment, o->thickness, m,
                                  o->antialias));
    }
    for (int d = 0; d < DEGREES; d++) {
        g->sine[d] = sin((d - 180) * M_PI / 180);
        g->cosine[d] = cos((d - 180) * M_PI / 180);
    }
    RFA_TRY(rfa_alloc(&g->mask, pixels, 1, "picture"));
    RFA_TRY(rfa_alloc(&g->kept, pixels, 1, "picture"));
    RFA_TRY(rfa_alloc(&g->places, pixels, sizeof *g->places, "picture"));
    RFA_TRY(rfa_alloc(&g->small, pixels, 1, "picture"));
    RFA_TRY(rfa_alloc(&g->picture, pixels, sizeof *g->picture, "picture"));
    RFA_TRY(rfa_alloc(&g->large, pixels * fine * fine, 1, "picture"));
    return rfa_alloc(&g->work, pixels * fine, 1, "picture");
}

rfa_status rfa_pathfinder_create(rfa_pathfinder **out, const rfa_pathfinder_options *options)
{
    rfa_pathfinder *g = NULL;
    *out = NULL;
    RFA_TRY(rfa_alloc(&g, 1, sizeof *g, "Pathfinder"));
    g->options = *options;
    g->size = options->size;
    const rfa_status status = prepare(g);
    if (status != RFA_OK) {
        rfa_pathfinder_destroy(&g);
    }
    *out = g;
    return status;
}

void rfa_pathfinder_destroy(rfa_pathfinder **generator)
{
    rfa_pathfinder *g = *generator;
    if (g) {
        for (int m = 0; m < MARGINS; m++) {
            rfa_dashes_destroy(&g->dashes[m]);
        }
        rfa_free(g->mask);
        rfa_free(g->kept);
        rfa_free(g->places);
        rfa_free(g->small);
        rfa_free(g->picture);
        rfa_free(g->large);
        rfa_free(g->work);
        rfa_free(g);
        *generator = NULL;
    }
}

// The two paths; the mask is as before when they fail.
static bool draw_pair(rfa_pathfinder *g, rfa_path pair[2])
{
    const size_t bytes = (size_t)g->size * (size_t)g->size;
    memcpy(g->kept, g->mask, bytes);
    bool good = rfa_path_begin(g, &pair[0], 2 * g->options.seed_distance) &&
                rfa_path_begin_beside(g, &pair[1], &pair[0]);
    for (int i = 1; i < g->options.contour && good; i++) {
        good = rfa_path_extend(g, &pair[0]) && rfa_path_extend(g, &pair[1]);
    }
    if (good) {
        rfa_path_take(
            g, &pair[1].dashes[pair[1].count - 1]); // the last one of the first path never is
    } else {
        memcpy(g->mask, g->kept, bytes);
    }
    return good;
}

static bool draw_distractor(rfa_pathfinder *g, rfa_path *s)
{
    const int pixels = g->size * g->size;
    int open = 0;
    for (int i = 0; i < pixels; i++) {
        open += g->mask[i] <= FREE;
    }
    if (100 * open < pixels) {
        return false;
    }
    memcpy(g->kept, g->mask, (size_t)pixels);
    bool good = rfa_path_begin(g, s, 1);
    for (int i = 1; i < g->options.distractor && good; i++) {
        good = rfa_path_extend(g, s);
    }
    if (good) {
        rfa_path_take(g, &s->dashes[s->count - 1]);
    } else {
        memcpy(g->mask, g->kept, (size_t)pixels);
    }
    return good;
}

// A dot of full brightness.
static void dot(rfa_pathfinder *g, int y, int x)
{
    const int fine = g->options.antialias, side = g->size * fine;
    const double radius = g->options.marker_radius * fine;
    const int reach = (int)radius, y0 = y * fine - reach, y1 = y * fine + reach + 1;
    for (int r = y0 < 0 ? 0 : y0; r < y1 && r < side; r++) {
        unsigned char *row = g->large + (ptrdiff_t)r * side;
        const double v = r - y * fine;
        memset(row, 0, (size_t)side);
        for (int c = x * fine - reach; c <= x * fine + reach; c++) {
            const double u = c - x * fine;
            if (c >= 0 && c < side && u * u + v * v <= radius * radius) {
                row[c] = 255;
            }
        }
    }
    rfa_lanczos(g->small, g->size, g->large, side, y0, y1, g->work);
    for (int i = 0; i < g->size * g->size; i++) {
        const double value = g->small[i] / 255.0;
        g->picture[i] = value > g->picture[i] ? value : g->picture[i];
    }
}

// From the darkest to the brightest value as 0 to 255.
static void scale(const rfa_pathfinder *g, unsigned char *pixels)
{
    const int n = g->size * g->size;
    double low = g->picture[0], high = low;
    for (int i = 1; i < n; i++) {
        low = fmin(low, g->picture[i]);
        high = fmax(high, g->picture[i]);
    }
    const double factor = 255.0 / (high > low ? high - low : 1);
    for (int i = 0; i < n; i++) {
        pixels[i] = (unsigned char)((g->picture[i] - low) * factor + 0.5);
    }
}

static void clear(rfa_pathfinder *g)
{
    const int n = g->size, p = g->options.padding;
    memset(g->picture, 0, (size_t)n * (size_t)n * sizeof *g->picture);
    for (int i = 0; i < n * n; i++) {
        const int y = i / n, x = i % n;
        g->mask[i] = y < p || x < p || y >= n - p || x >= n - p ? 255 : 0;
    }
}

rfa_status
rfa_pathfinder_draw(rfa_pathfinder *generator, unsigned char *pixels, int *label, uint64_t number)
{
    rfa_pathfinder *g = generator;
    const rfa_pathfinder_options *o = &g->options;
    rfa_path pair[2], other;
    g->random = rfa_rng_reader_at(
        rfa_rng_stream(o->seed, RFA_RNG_PATHFINDER, (uint32_t)number, (uint32_t)(number >> 32)));
    *label = (int)rfa_rng_below(&g->random, 2);
    g->now = &g->dashes[rfa_rng_below(&g->random, (uint32_t)(o->margin_high - o->margin_low + 1))];
    clear(g);
    int attempts = 0;
    while (!draw_pair(g, pair)) {
        if (++attempts == PAIR_LIMIT) {
            return rfa_fail(RFA_ERR_USAGE,
                            "picture %llu: no two paths of %d dashes fit in %d tries: ask for "
                            "fewer, or a larger --size",
                            (unsigned long long)number, o->contour, PAIR_LIMIT);
        }
    }
    rfa_path_paint(g, &pair[0], o->contrast * o->paddle_contrast);
    rfa_path_paint(g, &pair[1], o->contrast * o->paddle_contrast);
    for (int d = 0; d < o->distractors; d++) {
        bool good = false;
        for (int a = 0; a < ATTEMPTS && !good; a++) {
            good = draw_distractor(g, &other);
        }
        if (good) {
            rfa_path_paint(g, &other, o->contrast);
        }
    }
    const int one = (int)rfa_rng_below(&g->random, 2), end = *label ? one : 1 - one;
    dot(g, pair[one].origin_y, pair[one].origin_x);
    dot(g, pair[end].tip_y, pair[end].tip_x);
    scale(g, pixels);
    return RFA_OK;
}
