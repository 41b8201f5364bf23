// Dashes and dots of Pathfinder as small pictures of bytes.
#ifndef RFA_TASKS_DASHES_H
#define RFA_TASKS_DASHES_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

// All dashes of one length, thickness and margin. A dash begins in the middle of its square and
// ends `reach` steps of the finer canvas away, in one of the directions that whole steps allow.
typedef struct {
    int length, margin, antialias;
    int half, side;          // of the square: side = 2 half + 1
    int reach;               // length * antialias
    unsigned char *pictures; // [(2 reach + 1)^2][side][side]; 255: full brightness
    unsigned char *masks;    // the same shape: the dash with its margin
    // Full pixels of each mask within length + margin, moved by (1, 1), as places from the dash's
    // beginning: what keeps a path from beginning there.
    int16_t *reach_y, *reach_x; // [first[(2 reach + 1)^2]]
    int32_t *first; // [(2 reach + 1)^2 + 1] those of dash i are [first[i], first[i + 1])
    bool *starts;   // [(2 reach + 1)^2] whether a path can begin with this dash
    // The circle where the next dash may begin: places a pixel of arc apart, and directions.
    int circle;
    double *circle_y, *circle_x; // [circle]
    double *angles;              // [(2 box + 1)^2] of the whole step (dy, dx)
    int box;                     // length + margin + 1
} rfa_dashes;

RFA_NODISCARD rfa_status
rfa_dashes_create(rfa_dashes *dashes, int length, double thickness, int margin, int antialias);
void rfa_dashes_destroy(rfa_dashes *dashes); // idempotent

// Which dash goes in this direction (sine: down, cosine: right).
int rfa_dashes_find(const rfa_dashes *dashes, double sine, double cosine);
static inline const unsigned char *
rfa_dash(const rfa_dashes *dashes, const unsigned char *all, int dash)
{
    return all + (ptrdiff_t)dash * dashes->side * dashes->side;
}

// The direction of a step from a pivot to a place on the circle.
static inline double rfa_dash_angle(const rfa_dashes *dashes, int dy, int dx)
{
    return dashes->angles[(dy + dashes->box) * (2 * dashes->box + 1) + dx + dashes->box];
}

// PIL's resize of a square by Lanczos' filter of support 3, to fewer pixels: 8 bits in and out,
// horizontally first, each pass rounded and clipped. work [from * to]. Rows of in outside [begin,
// end) are taken to be 0.
void rfa_lanczos(unsigned char *out,
                 int to,
                 const unsigned char *in,
                 int from,
                 int begin,
                 int end,
                 unsigned char *work);

#endif
