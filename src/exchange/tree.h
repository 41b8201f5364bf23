// One binary tree over consecutive rows of numbers, swept in place in a fixed order of additions.
//
// The tree is full over the segments of a sequence; a rank knows two parts of it. Below: its own
// segments, under the roots of its maximal aligned subtrees. Above: the part from the subtree roots
// of all ranks, which are its leaves, up to the one root. Both are the same structure: leaves in
// order, and steps that join two neighbouring runs of leaves.
//
// A node's value lives in a leaf row of its own run: the last one for prefixes, the first one for
// suffixes and totals, so that a sweep up and a sweep down need no memory besides the leaves.
#ifndef RFA_EXCHANGE_TREE_H
#define RFA_EXCHANGE_TREE_H

#include "base/status.h"

#include <stdbool.h>

// The node over leaves [first, end), whose children are [first, mid) and [mid, end).
typedef struct {
    int first, mid, end;
} rfa_tree_step;

typedef struct {
    int leaves, roots, steps;
    int *root;           // [roots + 1]: root k spans leaves [root[k], root[k + 1])
    rfa_tree_step *step; // [steps]: children before parents
} rfa_tree;

typedef enum { RFA_SWEEP_UP = 1, RFA_SWEEP_DOWN = 2, RFA_SWEEP_BOTH = 3 } rfa_sweep;

// Writes the begins of the maximal aligned subtrees of [begin, end) in ascending order to begins
// (NULL: none) and returns their count, at most 2 log2 segments. segments: a power of two. Local.
int rfa_tree_cover(int *begins, int segments, int begin, int end);

// Leaf i spans segments [bounds[i], bounds[i + 1]); bounds NULL: one segment a leaf. root [roots +
// 1]: first leaf of each root's subtree, then the number of leaves. joined adds a left fold over
// the roots, so that one root remains. Errors: RFA_ERR_MEMORY. Local.
RFA_NODISCARD rfa_status
rfa_tree_create(rfa_tree *tree, const int *bounds, const int *root, int roots, bool joined);
void rfa_tree_destroy(rfa_tree *tree); // idempotent

// The leaf row that holds the value of root k.
int rfa_tree_slot(const rfa_tree *tree, bool suffix, int k);

// On rows [leaves][stride], columns [0, n). UP: each root's row becomes the sum of its leaves, the
// other rows hold inner sums. DOWN, after UP: each root's row holds its exclusive prefix (suffix),
// and each row becomes the one of its leaf. open: the sequence begins (ends) with this tree, so
// that the prefix of its first (suffix of its last) root is the identity, whatever its row holds;
// the identity is never added, and is written as zeros or empty elements. unit: 1 for sums, else
// the columns are scaled elements of unit numbers (exchange/element.h), and n is a multiple of it.
// Local; reads and writes each row once a direction, BOTH once in all; columns are shared among
// OpenMP threads.
void rfa_tree_sweep(const rfa_tree *tree,
                    rfa_sweep sweep,
                    bool suffix,
                    bool open,
                    double *rows,
                    ptrdiff_t stride,
                    ptrdiff_t n,
                    ptrdiff_t unit);

#endif
