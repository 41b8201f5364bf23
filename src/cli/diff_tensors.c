#include "cli/diff.h"
#include "storage/checkpoint_list.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const rfa_checkpoint_array *find(const rfa_checkpoint_list *list, const char *name)
{
    for (int i = 0; i < list->count; i++) {
        if (strcmp(list->array[i].name, name) == 0) {
            return &list->array[i];
        }
    }
    return NULL;
}

static ptrdiff_t count_of(const rfa_checkpoint_array *array)
{
    ptrdiff_t count = 1;
    for (int i = 0; i < array->dimensions; i++) {
        count *= array->shape[i];
    }
    return count;
}

static bool same_shape(const rfa_checkpoint_array *a, const rfa_checkpoint_array *b)
{
    return a->dimensions == b->dimensions &&
           memcmp(a->shape, b->shape, (size_t)a->dimensions * sizeof *a->shape) == 0;
}

// "[64, 128]: row 3, column 5" for value i.
static void place(char *text, size_t size, const rfa_checkpoint_array *array, ptrdiff_t i)
{
    if (array->dimensions == 2) {
        snprintf(text, size, "row %td, column %td", i / array->shape[1], i % array->shape[1]);
    } else {
        snprintf(text, size, "index %td", i);
    }
}

typedef struct {
    ptrdiff_t differing, first;
    double most; // of |a - b|; infinite when one of the two is not a number
} comparison;

// By bits: 0 and -0 differ.
static comparison compare(const rfa_checkpoint_array *a, const rfa_checkpoint_array *b)
{
    comparison c = {.first = -1};
    const ptrdiff_t count = count_of(a);
    for (ptrdiff_t i = 0; i < count; i++) {
        const double x = (double)a->values[i], y = (double)b->values[i];
        if (!rfa_same_bits(x, y)) {
            const double gap = fabs(x - y);
            c.first = c.differing++ == 0 ? i : c.first;
            c.most = fmax(c.most, isnan(gap) ? INFINITY : gap);
        }
    }
    return c;
}

// A line for the first arrays that differ, then their number. Returns how many do.
static int compare_lists(const rfa_checkpoint_list *a, const rfa_checkpoint_list *b)
{
    enum { SHOWN = 8 };
    int differing = 0, together = 0;
    double most = 0;
    for (int i = 0; i < a->count; i++) {
        const rfa_checkpoint_array *x = &a->array[i], *y = find(b, x->name);
        char where[64];
        if (!y || !same_shape(x, y)) {
            if (differing++ < SHOWN) {
                printf("tensor         %s: %s\n", x->name, y ? "another shape in B" : "not in B");
            }
            continue;
        }
        together++;
        const comparison c = compare(x, y);
        if (c.differing > 0) {
            most = fmax(most, c.most);
            if (differing++ < SHOWN) {
                place(where, sizeof where, x, c.first);
                printf("tensor         %s: %td of %td values differ, by %.3g at most; first at %s: "
                       "%.9g, %.9g\n",
                       x->name, c.differing, count_of(x), c.most, where, (double)x->values[c.first],
                       (double)y->values[c.first]);
            }
        }
    }
    for (int i = 0; i < b->count; i++) {
        if (!find(a, b->array[i].name) && differing++ < SHOWN) {
            printf("tensor         %s: not in A\n", b->array[i].name);
        }
    }
    if (differing > 0) {
        printf("tensors        after step %" PRId64 ": %d differ, %d were compared, by %.3g at "
               "most\n",
               a->header.step, differing, together, most);
    } else {
        printf("tensors        after step %" PRId64 ": all %d are the same\n", a->header.step,
               together);
    }
    return differing;
}

rfa_status rfa_diff_tensors(bool *differ, const rfa_diff_side *a, const rfa_diff_side *b)
{
    rfa_checkpoint_list left, right = {0};
    RFA_TRY(rfa_checkpoint_list_read(&left, a->path));
    const rfa_status status = rfa_checkpoint_list_read(&right, b->path);
    if (status == RFA_OK) {
        if (left.header.step == right.header.step) {
            *differ |= compare_lists(&left, &right) > 0;
        } else {
            printf("tensors        not compared: the newest checkpoint of A is after step %" PRId64
                   ", of B after step %" PRId64 "\n",
                   left.header.step, right.header.step);
        }
    }
    rfa_checkpoint_list_free(&right);
    rfa_checkpoint_list_free(&left);
    return status;
}
