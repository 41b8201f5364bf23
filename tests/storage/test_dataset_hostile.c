// Ranks: 1 2 3 4
// Precision: f32
// Damaged, foreign and malicious data sets: each is an I/O error on all ranks that names the file
// and what is wrong, and nothing hangs.
#include "support/support.h"

#include "storage/dataset.h"
#include "storage/dataset_support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], good[128], bad[128];

static int make_folder(void **state)
{
    (void)state;
    char digest[17];
    dataset_folder(folder);
    snprintf(good, sizeof good, "%s/good.h5", folder);
    snprintf(bad, sizeof bad, "%s/bad.h5", folder);
    dataset_write(good, 16, true, digest);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    dataset_remove(folder);
    return 0;
}

// Opening bad fails everywhere alike, and says why; opening good works still.
static void check_refused(const char *what, const char *why)
{
    rfa_dataset *d = NULL;
    MPI_Barrier(test_world.comm);
    const rfa_status status = rfa_dataset_open(&d, &test_world, bad, "train");
    const bool named = strstr(rfa_error_text(), bad) && strstr(rfa_error_text(), why);
    if (status != RFA_ERR_IO || !named || d) {
        print_error("%s: status %d: %s; expected: %s\n", what, status, rfa_error_text(), why);
    }
    rfa_dataset_close(&d);
    check(status == RFA_ERR_IO && named);
    check_ok(rfa_dataset_open(&d, &test_world, good, "train"));
    rfa_dataset_close(&d);
}

static const hsize_t huge[1] = {(hsize_t)1 << 60}, matrix[2] = {10, 10}, none[1] = {0};

static void no_complete(hid_t f)
{
    H5Adelete(f, "complete");
}
static void not_complete(hid_t f)
{
    attribute(f, "complete", 0);
}
static void strange_complete(hid_t f)
{
    attribute(f, "complete", 7);
}
static void text_complete(hid_t f)
{
    text(f, "complete", "yes");
}
static void no_task(hid_t f)
{
    H5Adelete(f, "task");
}
static void number_task(hid_t f)
{
    attribute(f, "task", 1);
}
static void long_task(hid_t f)
{
    char name[200];
    memset(name, 'x', sizeof name);
    name[199] = 0;
    text(f, "task", name);
}
static void no_classes(hid_t f)
{
    H5Adelete(f, "classes");
}
static void one_class(hid_t f)
{
    attribute(f, "classes", 1);
}
static void many_classes(hid_t f)
{
    attribute(f, "classes", (int64_t)1 << 40);
}
static void no_digest(hid_t f)
{
    H5Adelete(f, "digest");
}
static void short_digest(hid_t f)
{
    text(f, "digest", "12ab");
}
static void no_vocabulary(hid_t f)
{
    drop(f, "vocabulary");
}
static void number_vocabulary(hid_t f)
{
    const int64_t zeros[16] = {0};
    dataset_put(f, "vocabulary", H5T_STD_I32LE, zeros, 16);
}
static void no_split(hid_t f)
{
    drop(f, "train");
}
static void split_no_group(hid_t f)
{
    const int64_t zero = 0;
    drop(f, "train");
    dataset_put(f, "train", H5T_STD_I32LE, &zero, 1);
}
static void no_tokens(hid_t f)
{
    drop(f, "train/tokens");
}
static void no_offsets(hid_t f)
{
    drop(f, "train/offsets");
}
static void no_lengths(hid_t f)
{
    drop(f, "train/lengths");
}
static void no_labels(hid_t f)
{
    drop(f, "train/labels");
}
static void float_tokens(hid_t f)
{
    retype(f, "train/tokens", H5T_IEEE_F32LE, 0);
}
static void wide_tokens(hid_t f)
{
    retype(f, "train/tokens", H5T_STD_I64LE, 0);
}
static void signed_tokens(hid_t f)
{
    retype(f, "train/tokens", H5T_STD_I8LE, 0);
}
static void fewer_tokens(hid_t f)
{
    retype(f, "train/tokens", H5T_STD_U8LE, 1);
}
static void matrix_tokens(hid_t f)
{
    promise(f, "train/tokens", H5T_STD_U8LE, 2, matrix, false);
}
static void empty_tokens(hid_t f)
{
    promise(f, "train/tokens", H5T_STD_U8LE, 1, none, false);
}
static void promised_tokens(hid_t f)
{
    promise(f, "train/tokens", H5T_STD_U8LE, 1, huge, true);
}
static void text_tokens(hid_t f)
{
    promise(f, "train/tokens", H5T_C_S1, 1, matrix, false);
}
static void group_tokens(hid_t f)
{
    drop(f, "train/tokens");
    H5Gclose(H5Gcreate2(f, "train/tokens", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void late_offsets(hid_t f)
{
    change(f, "train/offsets", 0, 1, H5T_STD_I64LE);
}
static void negative_offsets(hid_t f)
{
    change(f, "train/offsets", 3, -5, H5T_STD_I64LE);
}
static void empty_example(hid_t f)
{
    hsize_t count;
    int64_t *values = dataset_get(f, "train/offsets", &count);
    values[7] = values[6];
    dataset_put(f, "train/offsets", H5T_STD_I64LE, values, count);
    rfa_free(values);
}
static void long_offsets(hid_t f)
{
    change(f, "train/offsets", -1, (int64_t)1 << 50, H5T_STD_I64LE);
}
static void unsigned_offsets(hid_t f)
{
    hsize_t count;
    int64_t *values = dataset_get(f, "train/offsets", &count);
    for (hsize_t i = 0; i < count; i++) {
        values[i] = INT64_MAX;
    }
    dataset_put(f, "train/offsets", H5T_STD_U64LE, values, count);
    rfa_free(values);
}
static void float_offsets(hid_t f)
{
    retype(f, "train/offsets", H5T_IEEE_F64LE, 0);
}
static void no_examples(hid_t f)
{
    const int64_t zero = 0;
    dataset_put(f, "train/offsets", H5T_STD_I64LE, &zero, 1);
}
static void no_offset_at_all(hid_t f)
{
    promise(f, "train/offsets", H5T_STD_I64LE, 1, none, false);
}
static void promised_offsets(hid_t f)
{
    const hsize_t many[1] = {1 << 20};
    promise(f, "train/offsets", H5T_STD_I64LE, 1, many, true);
}
static void promised_huge_offsets(hid_t f)
{
    promise(f, "train/offsets", H5T_STD_I64LE, 1, huge, true);
}
static void wrong_length(hid_t f)
{
    change(f, "train/lengths", 11, 12345, H5T_STD_I32LE);
}
static void fewer_lengths(hid_t f)
{
    retype(f, "train/lengths", H5T_STD_I32LE, 1);
}
static void fewer_labels(hid_t f)
{
    retype(f, "train/labels", H5T_STD_I32LE, 2);
}
static void high_label(hid_t f)
{
    change(f, "train/labels", 5, DATASET_CLASSES, H5T_STD_I32LE);
}
static void negative_label(hid_t f)
{
    change(f, "train/labels", -1, -1, H5T_STD_I32LE);
}
static void unwritten_labels(hid_t f)
{
    const hsize_t shape[1] = {DATASET_EXAMPLES};
    promise(f, "train/labels", H5T_STD_I32LE, 1, shape, false);
}

static void contents_are_checked(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        void (*damage)(hid_t file);
        const char *why;
    } cases[] = {
        {"no complete", no_complete, "attribute 'complete' is missing"},
        {"not complete", not_complete, "attribute 'complete' is 0"},
        {"strange complete", strange_complete, "attribute 'complete' is 7"},
        {"text complete", text_complete, "attribute 'complete' of / is of the wrong type"},
        {"no task", no_task, "attribute 'task' of / is missing"},
        {"number as task", number_task, "attribute 'task' of / is of the wrong type"},
        {"long task", long_task, "attribute 'task' has 199 bytes"},
        {"no classes", no_classes, "attribute 'classes' of / is missing"},
        {"one class", one_class, "attribute 'classes' is 1"},
        {"many classes", many_classes, "attribute 'classes' is 1099511627776"},
        {"no digest", no_digest, "attribute 'digest' of / is missing"},
        {"short digest", short_digest, "attribute 'digest' is '12ab'"},
        {"no vocabulary", no_vocabulary, "dataset 'vocabulary' is missing"},
        {"number vocabulary", number_vocabulary, "'vocabulary' holds integers, expected strings"},
        {"no split", no_split, "group 'train' is missing"},
        {"split is no group", split_no_group, "'train' is not a group"},
        {"no tokens", no_tokens, "dataset 'train/tokens' is missing"},
        {"no offsets", no_offsets, "dataset 'train/offsets' is missing"},
        {"no lengths", no_lengths, "dataset 'train/lengths' is missing"},
        {"no labels", no_labels, "dataset 'train/labels' is missing"},
        {"float tokens", float_tokens, "'train/tokens' holds floating-point numbers"},
        {"wide tokens", wide_tokens, "'train/tokens' doesn't hold unsigned 8-bit or 16-bit"},
        {"signed tokens", signed_tokens, "'train/tokens' doesn't hold unsigned"},
        {"fewer tokens", fewer_tokens, "'train/offsets' ends with"},
        {"matrix of tokens", matrix_tokens, "'train/tokens' has 2 dimensions, expected 1"},
        {"empty tokens", empty_tokens, "but 'train/tokens' has 0 tokens"},
        {"promised tokens", promised_tokens, "'train/tokens' is incomplete: 0 of"},
        {"text tokens", text_tokens, "'train/tokens' holds strings"},
        {"group of tokens", group_tokens, "dataset 'train/tokens' can't be opened"},
        {"late offsets", late_offsets, "'train/offsets' begins with 1, not 0"},
        {"negative offsets", negative_offsets, "'train/offsets' doesn't ascend at index 3: -5"},
        {"empty example", empty_example, "'train/offsets' doesn't ascend at index 7"},
        {"long offsets", long_offsets, "'train/offsets' ends with 1125899906842624"},
        {"unsigned offsets", unsigned_offsets, "'train/offsets' begins with 9223372036854775807"},
        {"float offsets", float_offsets, "'train/offsets' holds floating-point numbers"},
        {"no examples", no_examples, "split 'train' is empty"},
        {"no offset at all", no_offset_at_all, "split 'train' is empty"},
        {"promised offsets", promised_offsets, "'train/offsets' is incomplete"},
        {"promised huge offsets", promised_huge_offsets, "dataset 'train/offsets' is too large"},
        {"wrong length", wrong_length, "'train/lengths' is 12345 at index 11"},
        {"fewer lengths", fewer_lengths, "'train/lengths' has 39 elements"},
        {"fewer labels", fewer_labels, "'train/labels' has 38 elements"},
        {"high label", high_label, "'train/labels' is 10 at index 5"},
        {"negative label", negative_label, "'train/labels' is -1 at index 39"},
        {"unwritten labels", unwritten_labels, "'train/labels' is incomplete: 0 of 160 bytes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (test_world.rank == 0) {
            dataset_copy(good, bad);
            const hid_t file = H5Fopen(bad, H5F_ACC_RDWR, H5P_DEFAULT);
            cases[i].damage(file);
            H5Fclose(file);
        }
        check_refused(cases[i].name, cases[i].why);
    }
}

static void files_are_checked(void **state)
{
    (void)state;
    check_refused("no file", "No such file");
    if (test_world.rank == 0) {
        mkdir(bad, 0777);
    }
    check_refused("folder", "not a regular file");
    if (test_world.rank == 0) {
        rmdir(bad);
        FILE *file = fopen(bad, "w");
        fputs("Source\tTarget\n", file);
        fclose(file);
    }
    check_refused("text", "can't be opened as HDF5");
    if (test_world.rank == 0) {
        fclose(fopen(bad, "w"));
    }
    check_refused("no bytes", "can't be opened as HDF5");
    if (test_world.rank == 0) {
        unlink(bad);
        mkfifo(bad, 0666);
    }
    check_refused("pipe", "not a regular file");
    if (test_world.rank == 0) {
        unlink(bad);
        const hid_t file = H5Fcreate(bad, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        const int64_t numbers[3] = {1, 2, 3};
        dataset_put(file, "measurements", H5T_STD_I32LE, numbers, 3);
        H5Fclose(file);
    }
    check_refused("foreign HDF5", "not a data set");
    struct stat info;
    check(stat(good, &info) == 0);
    for (int tenth = 1; tenth < 10; tenth += 2) {
        if (test_world.rank == 0) {
            dataset_copy(good, bad);
            (void)!truncate(bad, info.st_size * tenth / 10);
        }
        check_refused("cut off", "can't be opened as HDF5");
    }
    rfa_dataset *d = NULL;
    check_status(rfa_dataset_open(&d, &test_world, good, "dev"), RFA_ERR_IO);
    check(!d && strstr(rfa_error_text(), "group 'dev' is missing"));
}

// The file opens, since tokens are only read when wanted; the read names the place.
static void foreign_ids_are_found(void **state)
{
    (void)state;
    const int64_t example = 12;
    const ptrdiff_t token = 17, length = dataset_length(example);
    if (test_world.rank == 0) {
        int64_t place = token;
        for (int64_t i = 0; i < example; i++) {
            place += dataset_length(i);
        }
        dataset_copy(good, bad);
        const hid_t file = H5Fopen(bad, H5F_ACC_RDWR, H5P_DEFAULT);
        change(file, "train/tokens", place, 16, H5T_STD_U8LE);
        H5Fclose(file);
    }
    check(token < length);
    MPI_Barrier(test_world.comm);
    rfa_dataset *d = NULL;
    check_ok(rfa_dataset_open(&d, &test_world, bad, "train"));
    // Only one rank reads the place; the others read another example, or nothing.
    for (int reader = 0; reader < test_world.size; reader++) {
        const int64_t examples[1] = {reader == test_world.rank ? example : 2};
        const ptrdiff_t lengths[1] = {dataset_length(examples[0])};
        rfa_leaf leaf;
        uint16_t *ids = NULL;
        check_ok(rfa_alloc(&ids, rfa_leaves_fill(&leaf, lengths, 1, 1, 1, 0), 2, "test"));
        check_status(rfa_dataset_read(d, ids, examples, &leaf, test_world.rank % 2 == reader % 2),
                     RFA_ERR_IO);
        check(strstr(rfa_error_text(), "'train/tokens': example 12, token 17: id 16 is not in the "
                                       "vocabulary of 16") &&
              strstr(rfa_error_text(), bad));
        // The next read is none the worse.
        const int64_t whole = 3;
        const ptrdiff_t whole_length = dataset_length(whole);
        rfa_free(ids);
        check_ok(rfa_alloc(&ids, rfa_leaves_fill(&leaf, &whole_length, 1, 1, 1, 0), 2, "test"));
        check_ok(rfa_dataset_read(d, ids, &whole, &leaf, 1));
        check(ids[0] == dataset_id(whole, 0, 16));
        rfa_free(ids);
    }
    rfa_dataset_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_checked, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(contents_are_checked, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(foreign_ids_are_found, make_folder, remove_folder),
    };
    return test_main(tests);
}
