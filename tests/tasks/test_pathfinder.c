// Precision: f32
// Pictures of Pathfinder: statistics beside those of the original generator, and what labels mean.
#include "support/support.h"

#include "tasks/dashes.h"
#include "tasks/pathfinder.h"

#include <math.h>
#include <string.h>

enum { LARGEST = 128, BINS = 10 };

// Bounds of the histogram: what is black, Lanczos' faint rings, dim and bright parts of dashes,
// dots.
static const int bounds[BINS + 1] = {0, 1, 7, 64, 96, 120, 136, 180, 200, 240, 256};

// Measured on pictures of the original generator (github.com/drewlinsley/pathfinder, commit
// ab9c130, with the image functions of the SciPy of its time): number of pictures, percent of black
// pixels and mean value, each with its standard deviation over pictures, and the histogram in
// percent.
typedef struct {
    int size, contour, pictures;
    double black, black_deviation, mean, mean_deviation, histogram[BINS];
    int own; // pictures that are drawn here
} reference;
static const reference references[] = {
    {32,
     14,
     2000,
     65.809,
     3.80,
     20.217,
     2.01,
     {65.81, 17.69, 3.93, 1.94, 1.32, 1.75, 5.04, 0.92, 1.18, 0.44},
     4000},
    {32,
     6,
     300,
     77.35,
     3.29,
     12.947,
     1.78,
     {77.35, 12.36, 2.70, 1.03, 0.72, 1.22, 2.50, 0.68, 1.03, 0.40},
     4000},
    {128,
     14,
     38,
     86.21,
     0.49,
     7.876,
     0.30,
     {86.21, 7.36, 2.35, 0.67, 0.34, 0.06, 1.05, 0.58, 1.12, 0.26},
     120},
};

static double sum[BINS], squares[BINS];

// The difference of two means is within 4.5 standard errors: one of 150 000 tests fails by chance.
static bool close_to(const char *what, double own, double deviation, int n, double want, int m)
{
    const double bound = 4.5 * deviation * sqrt(1.0 / n + 1.0 / m);
    if (!(fabs(own - want) <= bound)) {
        print_error("%s: %.4f, of the original %.4f, bound %.4f\n", what, own, want, bound);
        return false;
    }
    return true;
}

static bool compare(const reference *r)
{
    static unsigned char pixels[LARGEST * LARGEST];
    const rfa_pathfinder_options options = rfa_pathfinder_defaults(r->size, r->contour);
    const int n = r->own, count = r->size * r->size;
    double mean = 0, by_label[2] = {0};
    int labels[2] = {0};
    rfa_pathfinder *g = NULL;
    check_ok(rfa_pathfinder_check(&options));
    check_ok(rfa_pathfinder_create(&g, &options));
    memset(sum, 0, sizeof sum);
    memset(squares, 0, sizeof squares);
    for (int i = 0; i < n; i++) {
        int label = -1, bins[BINS] = {0};
        double total = 0;
        check_ok(rfa_pathfinder_draw(g, pixels, &label, (uint64_t)i));
        for (int p = 0; p < count; p++) {
            int b = 0;
            while (pixels[p] >= bounds[b + 1]) {
                b++;
            }
            bins[b]++;
            total += pixels[p];
        }
        for (int b = 0; b < BINS; b++) {
            const double share = 100.0 * bins[b] / count;
            sum[b] += share;
            squares[b] += share * share;
        }
        mean += total / count;
        by_label[label] += total / count;
        labels[label]++;
    }
    rfa_pathfinder_destroy(&g);
    bool good = close_to("black", sum[0] / n, r->black_deviation, n, r->black, r->pictures) &&
                close_to("mean", mean / n, r->mean_deviation, n, r->mean, r->pictures);
    for (int b = 0; b < BINS; b++) {
        const double own = sum[b] / n, deviation = sqrt(squares[b] / n - own * own);
        // The reference is rounded to 0.01, so half of it is allowed besides.
        good =
            close_to("histogram", own, deviation + 0.005, n, r->histogram[b], r->pictures) && good;
    }
    // Brightness must not tell the label; labels are halves.
    return close_to("labels", by_label[0] / labels[0], r->mean_deviation, labels[0],
                    by_label[1] / labels[1], labels[1]) &&
           close_to("ones", (double)labels[1] / n, 0.5, n, 0.5, 1 << 30) && good;
}

// P25: the published generator's pictures, not those of another version of it.
static void statistics_are_the_originals(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof references / sizeof *references; r++) {
        check(compare(&references[r]));
    }
}

// Level dashes in the original's pictures have the values 153 202 174, upright ones 153 220 174,
// where the dots are the brightest: 1.5 times 102 135 116 and 102 147 116. They fall apart since
// PIL shrinks the one axis after the other, each rounded.
static void dashes_are_the_originals(void **state)
{
    (void)state;
    rfa_dashes d;
    check_ok(rfa_dashes_create(&d, 2, 0.5, 1, 2));
    const unsigned char *level = rfa_dash(&d, d.pictures, rfa_dashes_find(&d, 0, 1));
    const unsigned char *upright = rfa_dash(&d, d.pictures, rfa_dashes_find(&d, 1, 0));
    const int row = d.half * d.side + d.half;
    check(level[row] == 102 && level[row + 1] == 135 && level[row + 2] == 116);
    check(upright[row] == 102 && upright[row + d.side] == 147 && upright[row + 2 * d.side] == 116);
    // At this size paths of the original begin to the upper left only, within 30 degrees.
    int starts = 0;
    for (int degree = -180; degree < 180; degree++) {
        const double a = degree * M_PI / 180;
        const bool start = d.starts[rfa_dashes_find(&d, sin(a), cos(a))];
        starts += start;
        check(!start || (degree >= -151 && degree <= -119));
    }
    check(starts >= 28 && starts <= 32);
    rfa_dashes_destroy(&d);
}

// The same number gives the same picture, whatever came before, from any generator.
static void pictures_follow_from_their_number(void **state)
{
    (void)state;
    static unsigned char a[32 * 32], b[32 * 32];
    rfa_pathfinder_options options = rfa_pathfinder_defaults(32, 9);
    rfa_pathfinder *g = NULL, *h = NULL;
    int label[2];
    check_ok(rfa_pathfinder_create(&g, &options));
    check_ok(rfa_pathfinder_create(&h, &options));
    for (int i = 0; i < 20; i++) {
        check_ok(rfa_pathfinder_draw(g, a, &label[0], (uint64_t)i << 38));
        for (int j = 0; j < i % 3; j++) {
            check_ok(rfa_pathfinder_draw(h, b, &label[1], 77));
        }
        check_ok(rfa_pathfinder_draw(h, b, &label[1], (uint64_t)i << 38));
        check(memcmp(a, b, sizeof a) == 0 && label[0] == label[1]);
        check_ok(rfa_pathfinder_draw(h, b, &label[1], ((uint64_t)i << 38) + 1));
        check(memcmp(a, b, sizeof a) != 0);
    }
    rfa_pathfinder_destroy(&g);
    rfa_pathfinder_destroy(&h);
}

// Marks what hangs together with pixel `at`, when gaps of up to 6 pixels are bridged.
static void flood(unsigned char *seen, const unsigned char *pixels, int n, int at)
{
    enum { BRIDGE = 6 };
    static int stack[LARGEST * LARGEST];
    int top = 0;
    memset(seen, 0, (size_t)n * (size_t)n);
    stack[top++] = at;
    seen[at] = 1;
    while (top > 0) {
        const int p = stack[--top], y = p / n, x = p % n;
        for (int v = -BRIDGE; v <= BRIDGE; v++) {
            for (int u = -BRIDGE; u <= BRIDGE; u++) {
                const int q = (y + v) * n + x + u;
                if (y + v >= 0 && x + u >= 0 && y + v < n && x + u < n && !seen[q] &&
                    pixels[q] >= 64) {
                    seen[q] = 1;
                    stack[top++] = q;
                }
            }
        }
    }
}

// First and last pixel that is dot all around; the two dots lie apart.
static void find_dots(int at[2], const unsigned char *pixels, int n)
{
    at[0] = at[1] = -1;
    for (int y = 1; y < n - 1; y++) {
        for (int x = 1; x < n - 1; x++) {
            int least = 255;
            for (int k = 0; k < 9; k++) {
                const int value = pixels[(y + k / 3 - 1) * n + x + k % 3 - 1];
                least = value < least ? value : least;
            }
            if (least >= 242) { // dashes have 230 at most
                at[0] = at[0] < 0 ? y * n + x : at[0];
                at[1] = y * n + x;
            }
        }
    }
}

// Dots of label 1 hang together along the dashes; of label 0 they do only where two paths meet.
static void labels_mean_what_they_say(void **state)
{
    (void)state;
    static unsigned char pixels[LARGEST * LARGEST], seen[LARGEST * LARGEST];
    rfa_pathfinder_options options = rfa_pathfinder_defaults(128, 6);
    options.distractors = 0;
    options.margin_high = 2; // gaps of 4 pixels
    rfa_pathfinder *g = NULL;
    int joined[2] = {0}, count[2] = {0};
    check_ok(rfa_pathfinder_create(&g, &options));
    for (int i = 0; i < 200; i++) {
        int label, dot[2];
        check_ok(rfa_pathfinder_draw(g, pixels, &label, (uint64_t)i));
        find_dots(dot, pixels, options.size);
        check(dot[0] >= 0 && dot[1] >= 0);
        flood(seen, pixels, options.size, dot[0]);
        joined[label] += seen[dot[1]];
        count[label]++;
    }
    rfa_pathfinder_destroy(&g);
    print_message("joined %d of %d with label 1, %d of %d with label 0\n", joined[1], count[1],
                  joined[0], count[0]);
    check(joined[1] == count[1]);
    check(joined[0] < count[0] * 7 / 10);
}

static void wrong_options_are_named(void **state)
{
    (void)state;
    rfa_pathfinder_options o = rfa_pathfinder_defaults(32, 14);
    check_ok(rfa_pathfinder_check(&o));
    o.contour = 1;
    check_status(rfa_pathfinder_check(&o), RFA_ERR_USAGE);
    check(strstr(rfa_error_text(), "--contour is 1") != NULL);
    o = rfa_pathfinder_defaults(32, 14);
    o.size = 2000;
    check_status(rfa_pathfinder_check(&o), RFA_ERR_USAGE);
    o = rfa_pathfinder_defaults(32, 14);
    o.thickness = 0.7;
    check_status(rfa_pathfinder_check(&o), RFA_ERR_USAGE);
    // Paths that don't fit: an error, not an endless search.
    o = rfa_pathfinder_defaults(16, 60);
    o.seed_distance = 2;
    static unsigned char pixels[16 * 16];
    int label;
    rfa_pathfinder *g = NULL;
    check_ok(rfa_pathfinder_check(&o));
    check_ok(rfa_pathfinder_create(&g, &o));
    check_status(rfa_pathfinder_draw(g, pixels, &label, 0), RFA_ERR_USAGE);
    check(strstr(rfa_error_text(), "no two paths of 60 dashes fit") != NULL);
    rfa_pathfinder_destroy(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_are_the_originals),
        cmocka_unit_test(dashes_are_the_originals),
        cmocka_unit_test(pictures_follow_from_their_number),
        cmocka_unit_test(labels_mean_what_they_say),
        cmocka_unit_test(wrong_options_are_named),
    };
    return test_main(tests);
}
