// Pathfinder of the Long Range Arena: are the two dots on the same dashed path? Pictures as those
// of the generator of Linsley, Kim, Veerabadran, Windolf, Serre, "Learning long-range spatial
// dependencies with horizontal gated recurrent units", NeurIPS 2018, written anew: the same
// distribution, other pictures.
#ifndef RFA_TASKS_PATHFINDER_H
#define RFA_TASKS_PATHFINDER_H

#include "base/status.h"

#include <stdint.h>

typedef struct {
    uint64_t seed;
    int size;                    // pixels of a side
    int padding;                 // pixels along the edge that stay free
    int segment;                 // length of a dash
    double thickness;            // of a dash
    int margin_low, margin_high; // gap between dashes, drawn for each picture
    int antialias;               // factor of the finer canvas
    double continuity;           // 1: turns up to 90 degrees; larger: straighter
    int seed_distance;           // between the first dashes of the two paths
    double marker_radius;        // of the dots
    int contour;                 // dashes of each of the two paths
    int distractor;              // dashes of a distractor
    int distractors;             // how many are tried
    double contrast;             // of distractors; dashes of the two paths have it times
    double paddle_contrast;      // this
} rfa_pathfinder_options;

// Sizes 32 (Pathfinder) and 128 (Path-X) of the released sets; contour 6, 9 or 14 at size 32, where
// 14 ("hard") is the task. A distractor has contour / 3 dashes.
rfa_pathfinder_options rfa_pathfinder_defaults(int size, int contour);

// RFA_ERR_USAGE names the option that is out of range. Local.
RFA_NODISCARD rfa_status rfa_pathfinder_check(const rfa_pathfinder_options *options);

// Tables of dashes and work space. Local.
typedef struct rfa_pathfinder rfa_pathfinder;
RFA_NODISCARD rfa_status rfa_pathfinder_create(rfa_pathfinder **out,
                                               const rfa_pathfinder_options *options);
void rfa_pathfinder_destroy(rfa_pathfinder **generator); // NULL-safe

// Picture `number`: pixels [size][size], label 1 when the dots are on one path. A function of
// options and number alone. About 1 ms at size 32 and contour 14. RFA_ERR_USAGE when no two paths
// fit in a hundred thousand tries. Local.
RFA_NODISCARD rfa_status rfa_pathfinder_draw(rfa_pathfinder *generator,
                                             unsigned char *pixels,
                                             int *label,
                                             uint64_t number);

#endif
