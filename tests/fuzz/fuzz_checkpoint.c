// Checkpoints: hostile content under a good seal.
#include "base/mem.h"
#include "fuzz/hdf5_edit.h"
#include "storage/checkpoint.h"
#include "storage/h5_image.h"

static edit_template good;
static char *run_path, *path;
static float values[2][12];
static rfa_checkpoint_array arrays[] = {
    {.name = "parameters/a", .dimensions = 2, .shape = {3, 4}, .values = values[0]},
    {.name = "moment1/a", .dimensions = 1, .shape = {12}, .values = values[1]},
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const rfa_checkpoint_header header = {.step = 3,
                                          .best_correct = 1,
                                          .best_step = 2,
                                          .digest = 99,
                                          .config_text = (char[]){"train:\n  steps: 4\n"},
                                          .data_digest = (char[]){"0123456789abcdef"}};
    run_path = fuzz_path("run.h5");
    path = fuzz_path("run.ckpt");
    for (int i = 0; i < 12; i++) {
        values[0][i] = (float)i;
        values[1][i] = -(float)i;
    }
    PROMISE(rfa_checkpoint_write(run_path, &header, arrays, 2) == RFA_OK);
    edit_load(&good, path);
    return 0;
}

static void check_both_readers(void)
{
    rfa_checkpoint_header header = {0};
    int64_t count = 0, numbers = 0;
    rfa_status status = rfa_checkpoint_check(path, &header, &count, &numbers);
    const bool whole = status == RFA_OK;
    PROMISE(whole || status == RFA_ERR_IO || status == RFA_ERR_MEMORY);
    if (whole) {
        PROMISE(header.config_text && header.data_digest && count >= 0 && numbers >= 0);
    } else {
        PROMISE(strstr(rfa_error_text(), path) || status == RFA_ERR_MEMORY);
        PROMISE(!header.config_text && !header.data_digest);
    }
    rfa_checkpoint_header_free(&header);
    status = rfa_checkpoint_read(run_path, &header, arrays, 2);
    PROMISE(status == RFA_OK || status == RFA_ERR_IO || status == RFA_ERR_MEMORY);
    PROMISE(whole || status != RFA_OK); // what the check refuses is never read
    rfa_checkpoint_header_free(&header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    edit_bytes bytes = {data, size};
    hid_t file = edit_open(&good, &bytes);
    const rfa_status made = rfa_h5_image_write(file, path);
    H5Fclose(file);
    if (made == RFA_OK) { // the library refuses to write some of its own files
        check_both_readers();
    }
    PROMISE(rfa_mem_now() == held);
    edit_nothing_open();
    return 0;
}
