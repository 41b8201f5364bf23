// Inside of tasks/pathfinder: the state of a picture, and the paths that grow in it.
#ifndef RFA_TASKS_PATHFINDER_IMPL_H
#define RFA_TASKS_PATHFINDER_IMPL_H

#include "rng/rng.h"
#include "tasks/dashes.h"
#include "tasks/pathfinder.h"

#include <stdbool.h>

enum {
    DEGREES = 360,
    CANDIDATES = 512, // places on a circle, at most
    MARGINS = 4,      // at most so many from margin_low to margin_high
    DASHES = 64,      // of a path
    ATTEMPTS = 5,     // of a distractor
    TRIES = 3,        // of a dash
    PICKS = 64,       // of a free place, before all are looked at
    PAIR_LIMIT = 100000,
    FREE = 76,   // 0.3 of 255: what counts as free
    CROSS = 459, // 1.8 of 255: two masks of this sum cross
};

typedef struct {
    int dash, y, x; // which dash, and where it begins
} rfa_placed;

// A path while it grows.
typedef struct {
    int pivot_y, pivot_x; // from where it turns next
    double angle;         // of the last dash
    rfa_placed dashes[DASHES];
    int count;
    int origin_y, origin_x, tip_y, tip_x;
} rfa_path;

struct rfa_pathfinder {
    rfa_pathfinder_options options;
    rfa_dashes dashes[MARGINS];
    const rfa_dashes *now; // of this picture's margin
    double sine[DEGREES], cosine[DEGREES];
    rfa_rng_reader random;
    int size;
    unsigned char *mask, *kept; // [size^2] 255: taken; and a copy to go back to
    int *places;                // [size^2] work space
    double *picture;            // [size^2]
    unsigned char *small;       // [size^2] a dot
    unsigned char *large;       // [(size * antialias)^2] the same on the finer canvas
    unsigned char *work;        // [size * antialias * size]
};

// The mask with a dash's margin. Where masks meet, no later dash lies.
void rfa_path_take(rfa_pathfinder *g, const rfa_placed *p);
// All dashes of a path into the picture.
void rfa_path_paint(rfa_pathfinder *g, const rfa_path *s, double brightness);
// Begins a path anywhere but near what is there, and not in the border; false when that fails.
bool rfa_path_begin(rfa_pathfinder *g, rfa_path *s, int border);
// Begins the second path at the seed distance of the first.
bool rfa_path_begin_beside(rfa_pathfinder *g, rfa_path *s, const rfa_path *first);
// One more dash; false when none fits.
bool rfa_path_extend(rfa_pathfinder *g, rfa_path *s);

#endif
