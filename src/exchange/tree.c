#include "exchange/tree.h"

#include "base/mem.h"

#include <string.h>

enum {
    CACHED = 16384,   // doubles of all rows of a block: half of a small L2 cache
    BLOCK_MIN = 256,  // columns; below, the step list costs more than the sums
    BLOCK_MAX = 4096, // columns
};

int rfa_tree_cover(int *begins, int segments, int begin, int end)
{
    int count = 0;
    while (begin < end) {
        int length = begin == 0 ? segments : begin & -begin;
        while (length > end - begin) {
            length /= 2;
        }
        if (begins) {
            begins[count] = begin;
        }
        count++;
        begin += length;
    }
    return count;
}

// Appends the steps of the aligned subtree over leaves [first, end).
static void grow(rfa_tree *tree, const int *bounds, int first, int end)
{
    if (end - first < 2) {
        return;
    }
    int mid = first + (end - first) / 2;
    if (bounds) {
        const int middle = bounds[first] + (bounds[end] - bounds[first]) / 2;
        mid = first + 1;
        while (bounds[mid] < middle) {
            mid++;
        }
        RFA_ASSERT(bounds[mid] == middle);
    }
    grow(tree, bounds, first, mid);
    grow(tree, bounds, mid, end);
    tree->step[tree->steps++] = (rfa_tree_step){first, mid, end};
}

rfa_status
rfa_tree_create(rfa_tree *tree, const int *bounds, const int *root, int roots, bool joined)
{
    *tree = (rfa_tree){.leaves = root[roots], .roots = roots};
    rfa_status status = rfa_alloc(&tree->root, roots + 1, sizeof *tree->root, "segment tree");
    if (status == RFA_OK) {
        status = rfa_alloc(&tree->step, tree->leaves, sizeof *tree->step, "segment tree");
    }
    if (status != RFA_OK) {
        rfa_tree_destroy(tree);
        return status;
    }
    memcpy(tree->root, root, (size_t)(roots + 1) * sizeof *root);
    for (int k = 0; k < roots; k++) {
        grow(tree, bounds, root[k], root[k + 1]);
    }
    if (joined) {
        for (int k = 1; k < roots; k++) {
            tree->step[tree->steps++] = (rfa_tree_step){0, root[k], root[k + 1]};
        }
        tree->root[1] = tree->leaves;
        tree->roots = 1;
    }
    return RFA_OK;
}

void rfa_tree_destroy(rfa_tree *tree)
{
    rfa_free(tree->root);
    rfa_free(tree->step);
    *tree = (rfa_tree){0};
}

int rfa_tree_slot(const rfa_tree *tree, bool suffix, int k)
{
    return suffix ? tree->root[k] : tree->root[k + 1] - 1;
}

// The one operation of the tree: left stands before right in the sequence. Sums commute, but no
// caller may rely on it.
static inline double combine(double left, double right)
{
    return left + right;
}

// into is the right row for prefixes, else the left row.
static void step_up(double *restrict left, double *restrict right, bool suffix, ptrdiff_t n)
{
    if (suffix) {
        for (ptrdiff_t i = 0; i < n; i++) {
            left[i] = combine(left[i], right[i]);
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            right[i] = combine(left[i], right[i]);
        }
    }
}

// near holds the sum of the child that the other child's result includes, far what the parent got:
// near's child gets the parent's, far's child gets both. empty: what the parent got is the
// identity.
static void
step_down(double *restrict near, double *restrict far, bool suffix, bool empty, ptrdiff_t n)
{
    if (empty) {
        memcpy(far, near, (size_t)n * sizeof *far);
    } else if (suffix) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double sum = near[i], outer = far[i];
            near[i] = outer;
            far[i] = combine(sum, outer);
        }
    } else {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double sum = near[i], outer = far[i];
            near[i] = outer;
            far[i] = combine(outer, sum);
        }
    }
}

static void block_up(const rfa_tree *tree, bool suffix, double *rows, ptrdiff_t stride, ptrdiff_t n)
{
    for (int s = 0; s < tree->steps; s++) {
        const rfa_tree_step at = tree->step[s];
        const int left = suffix ? at.first : at.mid - 1;
        const int right = suffix ? at.mid : at.end - 1;
        step_up(rows + left * stride, rows + right * stride, suffix, n);
    }
}

static void block_down(
    const rfa_tree *tree, bool suffix, bool open, double *rows, ptrdiff_t stride, ptrdiff_t n)
{
    for (int s = tree->steps - 1; s >= 0; s--) {
        const rfa_tree_step at = tree->step[s];
        const bool empty = open && (suffix ? at.end == tree->leaves : at.first == 0);
        const int near = suffix ? at.mid : at.mid - 1;
        const int far = suffix ? at.first : at.end - 1;
        step_down(rows + near * stride, rows + far * stride, suffix, empty, n);
    }
    if (open) {
        memset(rows + (suffix ? tree->leaves - 1 : 0) * stride, 0, (size_t)n * sizeof *rows);
    }
}

void rfa_tree_sweep(const rfa_tree *tree,
                    rfa_sweep sweep,
                    bool suffix,
                    bool open,
                    double *rows,
                    ptrdiff_t stride,
                    ptrdiff_t n)
{
    ptrdiff_t block = CACHED / tree->leaves;
    block = block < BLOCK_MIN ? BLOCK_MIN : block > BLOCK_MAX ? BLOCK_MAX : block;
    const ptrdiff_t blocks = (n + block - 1) / block;
#pragma omp parallel for schedule(static) if (blocks > 8)
    for (ptrdiff_t b = 0; b < blocks; b++) {
        const ptrdiff_t begin = b * block;
        const ptrdiff_t columns = n - begin < block ? n - begin : block;
        if (sweep & RFA_SWEEP_UP) {
            block_up(tree, suffix, rows + begin, stride, columns);
        }
        if (sweep & RFA_SWEEP_DOWN) {
            block_down(tree, suffix, open, rows + begin, stride, columns);
        }
    }
}
