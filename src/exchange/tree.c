#include "exchange/tree.h"

#include "base/mem.h"
#include "exchange/element.h"

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

// What a sweep works on: sums, or with unit > 1 scaled elements, of n columns.
typedef struct {
    bool suffix, open;
    ptrdiff_t stride, n, unit;
} columns;

// into is the right row for prefixes, else the left row.
static void step_up(double *restrict left, double *restrict right, const columns *c)
{
    double *into = c->suffix ? left : right;
    if (c->unit > 1) {
        rfa_element_combine(into, c->suffix ? right : left, into, c->n / c->unit, c->unit);
        return;
    }
    const double *from = c->suffix ? right : left;
    for (ptrdiff_t i = 0; i < c->n; i++) {
        into[i] += from[i];
    }
}

// near holds the sum of the child that the other child's result includes, far what the parent got:
// near's child gets the parent's, far's child gets both. empty: what the parent got is the
// identity.
static void step_down(double *restrict near, double *restrict far, bool empty, const columns *c)
{
    if (empty) {
        memcpy(far, near, (size_t)c->n * sizeof *far);
    } else if (c->unit > 1) {
        rfa_element_step(near, far, c->n / c->unit, c->unit);
    } else {
        for (ptrdiff_t i = 0; i < c->n; i++) {
            const double sum = near[i], outer = far[i];
            near[i] = outer;
            far[i] = outer + sum;
        }
    }
}

static void block_up(const rfa_tree *tree, double *rows, const columns *c)
{
    for (int s = 0; s < tree->steps; s++) {
        const rfa_tree_step at = tree->step[s];
        const int left = c->suffix ? at.first : at.mid - 1;
        const int right = c->suffix ? at.mid : at.end - 1;
        step_up(rows + left * c->stride, rows + right * c->stride, c);
    }
}

static void block_down(const rfa_tree *tree, double *rows, const columns *c)
{
    for (int s = tree->steps - 1; s >= 0; s--) {
        const rfa_tree_step at = tree->step[s];
        const bool empty = c->open && (c->suffix ? at.end == tree->leaves : at.first == 0);
        const int near = c->suffix ? at.mid : at.mid - 1;
        const int far = c->suffix ? at.first : at.end - 1;
        step_down(rows + near * c->stride, rows + far * c->stride, empty, c);
    }
    if (c->open) {
        double *first = rows + (c->suffix ? tree->leaves - 1 : 0) * c->stride;
        memset(first, 0, (size_t)c->n * sizeof *rows);
        if (c->unit > 1) {
            rfa_element_clear(first, c->n / c->unit, c->unit);
        }
    }
}

void rfa_tree_sweep(const rfa_tree *tree,
                    rfa_sweep sweep,
                    bool suffix,
                    bool open,
                    double *rows,
                    ptrdiff_t stride,
                    ptrdiff_t n,
                    ptrdiff_t unit)
{
    RFA_ASSERT(n % unit == 0);
    ptrdiff_t block = CACHED / tree->leaves;
    block = block < BLOCK_MIN ? BLOCK_MIN : block > BLOCK_MAX ? BLOCK_MAX : block;
    block = (block + unit - 1) / unit * unit;
    const ptrdiff_t blocks = (n + block - 1) / block;
#pragma omp parallel for schedule(static) if (blocks > 8)
    for (ptrdiff_t b = 0; b < blocks; b++) {
        const ptrdiff_t begin = b * block, left = n - begin;
        const columns c = {suffix, open, stride, left < block ? left : block, unit};
        if (sweep & RFA_SWEEP_UP) {
            block_up(tree, rows + begin, &c);
        }
        if (sweep & RFA_SWEEP_DOWN) {
            block_down(tree, rows + begin, &c);
        }
    }
}
