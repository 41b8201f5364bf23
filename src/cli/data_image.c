#include "base/mem.h"
#include "cli/data_run.h"
#include "tasks/image.h"

#include <string.h>

typedef struct {
    rfa_data_common common;
    char validation[RFA_DATA_WORD], grey[RFA_DATA_WORD];
    int percent;
    rfa_grey formula;
    rfa_image_facts facts;
    rfa_image_reader reader;
    const char *names[RFA_TREE_CLASSES];
} image_task;

static const rfa_data_option options[] = {
    RFA_OPTION_OUT(image_task, "data/image.h5"),
    RFA_OPTION_FROM(
        image_task,
        "What to import: a folder with data_batch_1.bin to data_batch_5.bin and "
        "test_batch.bin (CIFAR-10), with train/CLASS/*.png and test/CLASS/*.png, or with "
        "train-images-idx3-ubyte, t10k-images-idx3-ubyte and their labels (MNIST)"),
    {"grey", 0, RFA_OPTION_WORD, offsetof(image_task, grey), 0, 0, "FORMULA",
     "How colours become grey: tensorflow (as in the Long Range Arena) or pil, which differs by "
     "one "
     "in a quarter of CIFAR-10's pixels (tensorflow)",
     2, false},
    {"validation", 0, RFA_OPTION_WORD, offsetof(image_task, validation), 0, 0, "WHAT",
     "last10%: the last tenth of train, or another part up to last50% (last10%); test: the test "
     "again",
     2, false},
    RFA_OPTION_HELP(image_task),
};

static const rfa_data_parser parser = {
    .task = "image",
    .options = options,
    .count = sizeof options / sizeof *options,
    .text =
        "Writes a task of classifying pictures pixel by pixel, the Image task of the Long Range "
        "Arena with CIFAR-10, as one HDF5 data set.\v"
        "Examples:\n"
        "  rfa data image --from cifar-10-batches-bin\n"
        "  rfa data image --from /usr/share/datasets/fashion-mnist --out fashion.h5\n"
        "  mpirun -n 8 rfa data image --from pictures --grey pil --out pictures.h5\n"
        "\n"
        "A token is a pixel, row by row; its id is the grey value plus 1, so that black\n"
        "is not padding: a black picture has all its tokens. (The original masks black\n"
        "pixels. As sequences are stored without gaps, that can't be reproduced: other\n"
        "pixels would move to the places of black ones.) All pictures have one size.\n"
        "Binary files keep their order; PNG files come in the order of a hash of class\n"
        "and name, which mixes the classes. The same bytes on any number of ranks; a\n"
        "call that was stopped goes on when it is repeated.",
};

static rfa_status list(void *task, rfa_index *index)
{
    image_task *t = task;
    RFA_TRY(rfa_data_validation(&t->percent, t->validation));
    if (strcmp(t->grey, "pil") == 0) {
        t->formula = RFA_GREY_PIL;
    } else if (strcmp(t->grey, "tensorflow") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "--grey '%s': tensorflow or pil", t->grey);
    }
    RFA_TRY(rfa_image_list(index, &t->facts, t->common.from, t->percent));
    return t->facts.classes.count >= 2
               ? RFA_OK
               : rfa_fail(RFA_ERR_IO, "%s: all labels are the same", t->common.from);
}

static rfa_status write_attributes(const void *self, rfa_dataset_writer *writer)
{
    const image_task *t = self;
    RFA_TRY(rfa_dataset_writer_text(writer, "source", t->common.from));
    RFA_TRY(rfa_dataset_writer_text(writer, "generator", t->facts.name));
    RFA_TRY(rfa_dataset_writer_text(writer, "validation", t->validation));
    RFA_TRY(rfa_dataset_writer_text(writer, "grey", t->grey));
    RFA_TRY(rfa_dataset_writer_int(writer, "width", t->facts.width));
    return rfa_dataset_writer_int(writer, "height", t->facts.height);
}

static rfa_status open(void *task, const rfa_index *index, rfa_source *source, rfa_data_job *job)
{
    image_task *t = task;
    const ptrdiff_t pixels = (ptrdiff_t)t->facts.width * t->facts.height;
    t->reader = (rfa_image_reader){.index = index, .facts = &t->facts, .grey = t->formula};
    rfa_data_class_names(t->names, &t->facts.classes);
    *source = (rfa_source){.self = &t->reader,
                           .load = rfa_image_load,
                           .documents = 1,
                           .classes = t->facts.classes.count,
                           .capacity = pixels};
    *job = (rfa_data_job){
        .description = {.task = "image",
                        .title = "Classification of grey pictures, pixel by pixel",
                        .vocabulary = rfa_pixel_symbols(),
                        .symbols = RFA_BYTE_SYMBOLS,
                        .classes = t->facts.classes.count,
                        .first_id = 1},
        .origin_name = t->facts.format == RFA_IMAGE_TREE ? "place" : "record",
        .class_names = t->names,
        .part = pixels > 16384 ? 64 : 1024,
        .recipe = rfa_data_recipe(index, "image 1 %d", (int)t->formula),
        .attributes = write_attributes,
    };
    return RFA_OK;
}

static void close(void *task)
{
    image_task *t = task;
    rfa_image_reader_free(&t->reader);
}

rfa_status rfa_data_image(const rfa_comm *world, int argc, char **argv)
{
    static const rfa_data_course course = {
        .parser = &parser, .size = sizeof(image_task), .list = list, .open = open, .close = close};
    image_task *t = NULL;
    RFA_TRY(rfa_agree(world, rfa_alloc(&t, 1, sizeof *t, "image task")));
    memcpy(t->common.out, "data/image.h5", sizeof "data/image.h5");
    memcpy(t->validation, "last10%", sizeof "last10%");
    memcpy(t->grey, "tensorflow", sizeof "tensorflow");
    const rfa_status status = rfa_data_run(world, &course, t, argc, argv);
    rfa_free(t);
    return status;
}
