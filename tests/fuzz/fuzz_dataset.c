// Data sets: hostile content. What opens can be read, every example of it, with ids and labels in
// range.
#include "base/mem.h"
#include "fuzz/hdf5_edit.h"
#include "storage/dataset.h"
#include "storage/dataset_writer.h"

static edit_template good;
static char *path;
static rfa_comm world;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const symbols[] = {"pad", "a", "b", "c"};
    const rfa_dataset_description description = {
        .task = "listops", .title = "t", .vocabulary = symbols, .symbols = 4, .classes = 3};
    const uint16_t ids[5] = {1, 2, 3, 2, 1};
    rfa_dataset_writer *writer = NULL;
    char digest[17];
    int provided = 0;
    MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided);
    rfa_comm_create(&world, MPI_COMM_SELF);
    path = fuzz_path("data.h5");
    PROMISE(rfa_dataset_writer_create(&writer, path, &description, true) == RFA_OK);
    PROMISE(rfa_dataset_writer_begin(writer, "train", 4, 14, "line") == RFA_OK);
    for (int i = 0; i < 4; i++) {
        PROMISE(rfa_dataset_writer_add(writer, ids, 2 + i, i % 3, i) == RFA_OK);
    }
    PROMISE(rfa_dataset_writer_end(writer) == RFA_OK);
    PROMISE(rfa_dataset_writer_finish(writer, digest) == RFA_OK);
    rfa_dataset_writer_destroy(&writer);
    edit_load(&good, path);
    return 0;
}

static void check_taken(rfa_dataset *data)
{
    enum { MOST = 64 };
    uint16_t ids[MOST];
    PROMISE(rfa_dataset_classes(data) >= 2 && rfa_dataset_vocabulary(data) >= 2);
    PROMISE(strlen(rfa_dataset_digest(data)) == 16 && rfa_dataset_examples(data) >= 1);
    for (int64_t i = 0; i < rfa_dataset_examples(data); i++) {
        const ptrdiff_t length = rfa_dataset_length(data, i);
        PROMISE(length >= 1 && length <= rfa_dataset_longest(data));
        PROMISE(rfa_dataset_label(data, i) >= 0 &&
                rfa_dataset_label(data, i) < rfa_dataset_classes(data));
        const ptrdiff_t tokens = length < MOST ? length : MOST;
        const rfa_leaf leaf = {
            .example = 0, .begin = length - tokens, .tokens = tokens, .rows = MOST, .row0 = 0};
        const rfa_status status = rfa_dataset_read(data, ids, &i, &leaf, 1);
        PROMISE(status == RFA_OK || status == RFA_ERR_IO);
        for (ptrdiff_t t = 0; t < tokens && status == RFA_OK; t++) {
            PROMISE(ids[t] < rfa_dataset_vocabulary(data));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    edit_bytes bytes = {data, size};
    rfa_dataset *set = NULL;
    hid_t file = edit_open(&good, &bytes);
    const ssize_t length =
        H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
    char *image = length > 0 ? malloc((size_t)length) : NULL;
    if (image && H5Fget_file_image(file, image, (size_t)length) == length) {
        fuzz_write(path, image, (size_t)length);
    }
    H5Fclose(file);
    if (image) {
        const rfa_status status = rfa_dataset_open(&set, &world, path, "train");
        PROMISE(status == RFA_OK || status == RFA_ERR_IO || status == RFA_ERR_MEMORY);
        if (status == RFA_OK) {
            check_taken(set);
        } else {
            PROMISE(!set && (strstr(rfa_error_text(), path) || status == RFA_ERR_MEMORY));
        }
        rfa_dataset_close(&set);
        free(image);
    }
    PROMISE(rfa_mem_now() == held);
    edit_nothing_open();
    return 0;
}
