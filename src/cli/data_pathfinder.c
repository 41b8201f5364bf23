#include "base/mem.h"
#include "cli/data_run.h"
#include "tasks/pathfinder.h"
#include "tasks/pathfinder_files.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 50000000, GENERATOR_VERSION = 1 }; // the latter counts up with other pictures

typedef struct {
    rfa_pathfinder *generator;
    unsigned char *pixels;
    ptrdiff_t count;
} drawer;

typedef struct {
    rfa_data_common common;
    int which; // 0 Pathfinder, 1 Path-X
    int64_t examples[RFA_SPLITS], seed;
    rfa_pathfinder_options o;
    rfa_image_facts facts;
    rfa_image_reader reader; // of released pictures
    drawer drawer;           // of drawn ones
} path_task;

#define COUNT(n) offsetof(path_task, examples[n])
#define OPTION(name) offsetof(path_task, o.name)

#define SHARED_OPTIONS                                                                             \
    {NULL, 0, RFA_OPTION_TITLE, 0, 0, 0, NULL, "Generator:", 3, false},                            \
        {"train", 0,   RFA_OPTION_INT64, COUNT(0), 1, MOST, "N", "Training examples (160000)",     \
         3,       true},                                                                           \
        {"val", 0,   RFA_OPTION_INT64, COUNT(1), 1, MOST, "N", "Validation examples (20000)",      \
         3,     true},                                                                             \
        {"test", 0, RFA_OPTION_INT64, COUNT(2), 1, MOST, "N", "Test examples (20000)", 3, true},   \
        {"seed", 0,   RFA_OPTION_INT64, offsetof(path_task, seed), 0, INT64_MAX, "S", "Seed (1)",  \
         3,      true},                                                                            \
        {"size", 0, RFA_OPTION_INT, OPTION(size), 0, INT32_MAX, "N", "Pixels of a side", 3, true}, \
        {"distractor",                                                                             \
         0,                                                                                        \
         RFA_OPTION_INT,                                                                           \
         OPTION(distractor),                                                                       \
         0,                                                                                        \
         INT32_MAX,                                                                                \
         "N",                                                                                      \
         "Dashes of a distractor (a third of the contour)",                                        \
         3,                                                                                        \
         true},                                                                                    \
        {"distractors",                                                                            \
         0,                                                                                        \
         RFA_OPTION_INT,                                                                           \
         OPTION(distractors),                                                                      \
         0,                                                                                        \
         INT32_MAX,                                                                                \
         "N",                                                                                      \
         "How many distractors are tried (20, at 128 pixels 35, over their dashes)",               \
         3,                                                                                        \
         true},                                                                                    \
        {"continuity",                                                                             \
         0,                                                                                        \
         RFA_OPTION_DOUBLE,                                                                        \
         OPTION(continuity),                                                                       \
         0,                                                                                        \
         0,                                                                                        \
         "C",                                                                                      \
         "Straightness of paths (1, at 128 pixels 1.8)",                                           \
         3,                                                                                        \
         true},                                                                                    \
        {"segment",                                                                                \
         0,                                                                                        \
         RFA_OPTION_INT,                                                                           \
         OPTION(segment),                                                                          \
         0,                                                                                        \
         INT32_MAX,                                                                                \
         "N",                                                                                      \
         "Length of a dash (2, at 128 pixels 5)",                                                  \
         3,                                                                                        \
         true},                                                                                    \
        RFA_OPTION_HELP(path_task)

static const rfa_data_option pathfinder_options[] = {
    RFA_OPTION_OUT(path_task, "data/pathfinder.h5"),
    RFA_OPTION_FROM(path_task,
                    "Import the released pictures from DIR, that holds curv_contour_length_14 (or "
                    "a folder that does), instead of generating"),
    {"contour", 0, RFA_OPTION_INT, OPTION(contour), 0, INT32_MAX, "N",
     "Dashes of the paths: 14 is hard, the published task; 9; 6 is easy (14)", 2, false},
    SHARED_OPTIONS,
};
static const rfa_data_option pathx_options[] = {
    RFA_OPTION_OUT(path_task, "data/pathx.h5"),
    RFA_OPTION_FROM(path_task,
                    "Import the released pictures from DIR (pathfinder128), instead of "
                    "generating"),
    {"contour", 0, RFA_OPTION_INT, OPTION(contour), 0, INT32_MAX, "N",
     "Dashes of the paths: 14 is hard, the published task (14)", 2, false},
    SHARED_OPTIONS,
};

#define TEXT(name, size, tokens)                                                                   \
    "Writes the " name " task of the Long Range Arena, pictures of " size                          \
    " pixels in which two dots are on one dashed path (label 1) or on two (0), as one HDF5 data "  \
    "set.\v"                                                                                       \
    "A token is a pixel, row by row, " tokens " of them; its id is the grey value plus\n"          \
    "1, so that black is not padding. The generator draws from the distribution of\n"              \
    "the published one, not the same pictures. The same bytes on any number of ranks;\n"           \
    "a call that was stopped goes on when it is repeated."

static const rfa_data_parser parsers[2] = {
    {.task = "pathfinder",
     .options = pathfinder_options,
     .count = sizeof pathfinder_options / sizeof *pathfinder_options,
     .text = TEXT("Pathfinder", "32 x 32", "1024")},
    {.task = "pathx",
     .options = pathx_options,
     .count = sizeof pathx_options / sizeof *pathx_options,
     .text = TEXT("Path-X", "128 x 128", "16384")},
};

// Options that were not given follow from size and contour.
static void complete(path_task *t, const rfa_data_parser *parser)
{
    const rfa_pathfinder_options own = t->o;
    t->o = rfa_pathfinder_defaults(own.size, own.contour < 3 ? 3 : own.contour);
    t->o.contour = own.contour;
    t->o.seed = (uint64_t)t->seed;
    if (rfa_data_given(parser, &t->common, "distractor")) {
        t->o.distractors =
            t->o.distractors * t->o.distractor / (own.distractor > 0 ? own.distractor : 1);
        t->o.distractor = own.distractor;
    }
    if (rfa_data_given(parser, &t->common, "distractors")) {
        t->o.distractors = own.distractors;
    }
    if (rfa_data_given(parser, &t->common, "continuity")) {
        t->o.continuity = own.continuity;
    }
    if (rfa_data_given(parser, &t->common, "segment")) {
        t->o.segment = own.segment;
    }
}

static rfa_status list(void *task, rfa_index *index)
{
    path_task *t = task;
    if (!t->common.from[0]) {
        complete(t, &parsers[t->which]);
        return rfa_pathfinder_check(&t->o);
    }
    const int contour = t->o.contour, size = t->o.size;
    if (contour != 6 && contour != 9 && contour != 14) {
        return rfa_fail(RFA_ERR_USAGE, "--contour %d: the released pictures have 6, 9 or 14",
                        contour);
    }
    RFA_TRY(rfa_pathfinder_list(index, &t->facts, t->common.from, contour));
    return size != 128 || (t->facts.width == 128 && t->facts.height == 128)
               ? RFA_OK
               : rfa_fail(RFA_ERR_IO, "%s: pictures of %d x %d pixels, not of Path-X's 128 x 128",
                          t->common.from, t->facts.width, t->facts.height);
}

static rfa_status write_attributes(const void *self, rfa_dataset_writer *w)
{
    const path_task *t = self;
    const rfa_pathfinder_options *o = &t->o;
    const bool imported = t->common.from[0];
    RFA_TRY(rfa_dataset_writer_text(w, "source", imported ? t->common.from : "generated"));
    RFA_TRY(
        rfa_dataset_writer_text(w, "generator", imported ? t->facts.name : "rfa data pathfinder"));
    RFA_TRY(rfa_dataset_writer_int(w, "width", imported ? t->facts.width : o->size));
    RFA_TRY(rfa_dataset_writer_int(w, "height", imported ? t->facts.height : o->size));
    RFA_TRY(rfa_dataset_writer_int(w, "contour", o->contour));
    if (imported) {
        return RFA_OK;
    }
    RFA_TRY(rfa_dataset_writer_int(w, "generator_version", GENERATOR_VERSION));
    RFA_TRY(rfa_dataset_writer_int(w, "seed", t->seed));
    RFA_TRY(rfa_dataset_writer_int(w, "border", o->padding));
    RFA_TRY(rfa_dataset_writer_int(w, "segment", o->segment));
    RFA_TRY(rfa_dataset_writer_double(w, "thickness", o->thickness));
    RFA_TRY(rfa_dataset_writer_int(w, "margin_low", o->margin_low));
    RFA_TRY(rfa_dataset_writer_int(w, "margin_high", o->margin_high));
    RFA_TRY(rfa_dataset_writer_int(w, "antialias", o->antialias));
    RFA_TRY(rfa_dataset_writer_double(w, "continuity", o->continuity));
    RFA_TRY(rfa_dataset_writer_int(w, "seed_distance", o->seed_distance));
    RFA_TRY(rfa_dataset_writer_double(w, "marker_radius", o->marker_radius));
    RFA_TRY(rfa_dataset_writer_int(w, "distractor", o->distractor));
    RFA_TRY(rfa_dataset_writer_int(w, "distractors", o->distractors));
    RFA_TRY(rfa_dataset_writer_double(w, "contrast", o->contrast));
    return rfa_dataset_writer_double(w, "paddle_contrast", o->paddle_contrast);
}

static rfa_status draw(void *self, rfa_example *example, int split, int64_t index)
{
    const drawer *d = self; // of drawn pictures
    // Splits lie far apart, so that the size of one does not change another.
    const uint64_t number = (uint64_t)split << 40 | (uint64_t)index;
    RFA_TRY(rfa_pathfinder_draw(d->generator, d->pixels, &example->label, number));
    rfa_byte_ids(example->ids[0], d->pixels, d->count);
    example->length[0] = d->count;
    example->origin = (int64_t)number;
    return RFA_OK;
}

// Of everything that drawn pictures depend on.
static rfa_fingerprint recipe_of(const path_task *t)
{
    const rfa_pathfinder_options *o = &t->o;
    return rfa_data_recipe(
        NULL, "pathfinder %d %lld %d %d %d %.17g %d %d %d %.17g %d %.17g %d %d %d %.17g %.17g",
        GENERATOR_VERSION, (long long)t->seed, o->size, o->padding, o->segment, o->thickness,
        o->margin_low, o->margin_high, o->antialias, o->continuity, o->seed_distance,
        o->marker_radius, o->contour, o->distractor, o->distractors, o->contrast,
        o->paddle_contrast);
}

static rfa_status open_generator(path_task *t, rfa_source *source)
{
    drawer *d = &t->drawer;
    d->count = (ptrdiff_t)t->o.size * t->o.size;
    *source = (rfa_source){.self = d, .load = draw, .capacity = d->count};
    memcpy(source->examples, t->examples, sizeof source->examples);
    RFA_TRY(rfa_pathfinder_create(&d->generator, &t->o));
    return rfa_alloc(&d->pixels, d->count, 1, "picture");
}

static rfa_status open(void *task, const rfa_index *index, rfa_source *source, rfa_data_job *job)
{
    static const char *const names[2] = {"two paths", "one path"};
    path_task *t = task;
    const bool imported = t->common.from[0];
    if (imported) {
        t->reader = (rfa_image_reader){.index = index, .facts = &t->facts};
        *source = (rfa_source){.self = &t->reader,
                               .load = rfa_image_load,
                               .capacity = (ptrdiff_t)t->facts.width * t->facts.height};
    } else {
        RFA_TRY(open_generator(t, source));
    }
    source->documents = 1;
    source->classes = 2;
    *job = (rfa_data_job){
        .description = {.task = parsers[t->which].task,
                        .title = "Pathfinder: are the two dots on one dashed path?",
                        .vocabulary = rfa_pixel_symbols(),
                        .symbols = RFA_BYTE_SYMBOLS,
                        .classes = 2,
                        .first_id = 1},
        .origin_name = "picture",
        .class_names = names,
        .part = source->capacity > 4096 ? 64 : 1024,
        .recipe = imported ? rfa_data_recipe(index, "pathfinder files 1") : recipe_of(t),
        .attributes = write_attributes,
    };
    return RFA_OK;
}

static void close(void *task)
{
    path_task *t = task;
    rfa_image_reader_free(&t->reader);
    rfa_pathfinder_destroy(&t->drawer.generator);
    rfa_free(t->drawer.pixels);
    t->drawer.pixels = NULL;
}

static rfa_status run(const rfa_comm *world, int which, int argc, char **argv)
{
    const rfa_data_course course = {.parser = &parsers[which],
                                    .size = sizeof(path_task),
                                    .generates = true,
                                    .list = list,
                                    .open = open,
                                    .close = close};
    path_task *t = NULL;
    RFA_TRY(rfa_agree(world, rfa_alloc(&t, 1, sizeof *t, "Pathfinder task")));
    snprintf(t->common.out, sizeof t->common.out, "data/%s.h5", parsers[which].task);
    t->which = which;
    t->examples[0] = 160000;
    t->examples[1] = t->examples[2] = 20000;
    t->seed = 1;
    t->o.size = which ? 128 : 32;
    t->o.contour = 14;
    const rfa_status status = rfa_data_run(world, &course, t, argc, argv);
    rfa_free(t);
    return status;
}

rfa_status rfa_data_pathfinder(const rfa_comm *world, int argc, char **argv)
{
    return run(world, 0, argc, argv);
}

rfa_status rfa_data_pathx(const rfa_comm *world, int argc, char **argv)
{
    return run(world, 1, argc, argv);
}
