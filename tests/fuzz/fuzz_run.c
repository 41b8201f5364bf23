// Records of runs: hostile content under a good seal, and damage under the seal. What is read can
// be taken up, written and read again.
#include "base/mem.h"
#include "fuzz/hdf5_edit.h"
#include "storage/h5_image.h"
#include "storage/runfile.h"

static edit_template good;
static char *path;
static const char config[] = "data:\n  file: d.h5\ntrain:\n  steps: 4\n  rate: 0.5\n";

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    const int64_t matrix[4] = {3, 1, 0, 2};
    rfa_run *run = NULL;
    path = fuzz_path("run.h5");
    PROMISE(rfa_run_create(&run, path, config, -1, true) == RFA_OK);
    rfa_run_set_number(run, "ranks", 2);
    rfa_run_set_flag(run, "dirty", false);
    const rfa_start_record start = {
        .ranks = 2, .threads = 1, .started = "2025-01-31T12:00:00Z", .hosts = "a b"};
    PROMISE(rfa_run_add_start(run, &start) == RFA_OK);
    for (int step = 1; step <= 4; step++) {
        const rfa_step_record record = {.step = step, .loss = 1.0 / step, .digest = 77};
        PROMISE(rfa_run_add_step(run, &record) == RFA_OK);
    }
    rfa_evaluation_record record = {.step = 4,
                                    .split = "val",
                                    .loss = 0.5,
                                    .correct = 5,
                                    .examples = 6,
                                    .classes = 2,
                                    .confusion = matrix};
    PROMISE(rfa_run_add_evaluation(run, &record) == RFA_OK);
    PROMISE(rfa_run_set_test(run, &record) == RFA_OK);
    PROMISE(rfa_run_write(run) == RFA_OK);
    rfa_run_destroy(&run);
    edit_load(&good, path);
    return 0;
}

// Bytes of the sealed file changed by the input; never those of the seal's name, whose loss says
// that another program wrote the file.
static void check_damage(edit_bytes *bytes)
{
    char *copy = malloc(good.size);
    rfa_run_view view = {0};
    PROMISE(copy);
    memcpy(copy, good.bytes, good.size);
    while (bytes->left > 0) {
        size_t at = edit_take(bytes, 256);
        at = (at << 8 | edit_take(bytes, 256)) % (good.size - 24);
        copy[at] = (char)(copy[at] ^ (int)edit_take(bytes, 256));
    }
    fuzz_write(path, copy, good.size);
    const rfa_status status = rfa_run_read(&view, path);
    PROMISE(status == (memcmp(copy, good.bytes, good.size) == 0 ? RFA_OK : RFA_ERR_IO));
    rfa_run_view_free(&view);
    free(copy);
}

static void check_taken(const rfa_run_view *view)
{
    rfa_run *run = NULL;
    rfa_run_view again = {0};
    for (int64_t i = 0; i < view->evaluations; i++) {
        const rfa_evaluation_record *e = &view->evaluation[i];
        PROMISE(memchr(e->split, '\0', sizeof e->split));
        PROMISE((e->classes == 0) == (e->confusion == NULL));
    }
    const rfa_status status = rfa_run_create(&run, path, config, 4, false);
    PROMISE(status == RFA_OK || status == RFA_ERR_IO || status == RFA_ERR_MEMORY);
    rfa_run_destroy(&run);
    if (status == RFA_OK) {
        PROMISE(rfa_run_read(&again, path) == RFA_OK);
        rfa_run_view_free(&again);
    }
}

static void check_hostile(edit_bytes *bytes)
{
    rfa_run_view view = {0};
    hid_t file = edit_open(&good, bytes);
    const rfa_status made = rfa_h5_image_write(file, path);
    H5Fclose(file);
    if (made != RFA_OK) { // the library refuses to write some of its own files
        return;
    }
    const rfa_status status = rfa_run_read(&view, path);
    PROMISE(status == RFA_OK || status == RFA_ERR_IO || status == RFA_ERR_MEMORY);
    if (status == RFA_OK) {
        check_taken(&view);
    } else {
        PROMISE(strstr(rfa_error_text(), path) || status == RFA_ERR_MEMORY);
    }
    rfa_run_view_free(&view);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    edit_bytes bytes = {data, size};
    if (edit_take(&bytes, 8) == 7) {
        check_damage(&bytes);
    } else {
        check_hostile(&bytes);
    }
    PROMISE(rfa_mem_now() == held);
    edit_nothing_open();
    return 0;
}
