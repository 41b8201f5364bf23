// Ranks: 1 2 3 4
// Precision: f32
// Data sets written and read back by leaves of many partitions, and the writer's promises.
#include "support/support.h"

#include "rng/rng.h"
#include "storage/dataset.h"
#include "storage/dataset_impl.h"
#include "storage/dataset_support.h"
#include "storage/dataset_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

static int make_folder(void **state)
{
    (void)state;
    dataset_folder(folder);
    snprintf(path, sizeof path, "%s/set.h5", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    dataset_remove(folder);
    return 0;
}

enum { MAX_EXAMPLES = 12, MAX_SEGMENTS = 32 };

// One read of a random batch in G segments over the ranks, against what was written. Ranks may
// take other examples each (data parallelism), the same twice, or none.
static void read_batch(rfa_dataset *d, rfa_rng_reader *common, rfa_rng_reader *own, int symbols)
{
    const int segments = 1 << rfa_rng_below(common, 6);
    const bool apart = rfa_rng_below(common, 2);
    const ptrdiff_t most = 1 + (ptrdiff_t)rfa_rng_below(common, DATASET_LONGEST);
    rfa_rng_reader *random = apart ? own : common;
    const int batch = (int)rfa_rng_below(random, MAX_EXAMPLES + 1);
    int64_t examples[MAX_EXAMPLES] = {0};
    ptrdiff_t lengths[MAX_EXAMPLES] = {0};
    for (int i = 0; i < batch; i++) {
        examples[i] = rfa_rng_below(random, DATASET_EXAMPLES);
        if (i > 0 && rfa_rng_below(random, 4) == 0) {
            examples[i] = examples[i - 1];
        }
        const ptrdiff_t length = rfa_dataset_length(d, examples[i]);
        lengths[i] = length < most ? length : most;
    }
    rfa_leaf leaves[MAX_EXAMPLES * MAX_SEGMENTS];
    const int parts = apart ? 1 : test_world.size, part = apart ? 0 : test_world.rank;
    const int leaf_count =
        batch * (rfa_part_begin(segments, parts, part + 1) - rfa_part_begin(segments, parts, part));
    const ptrdiff_t rows = rfa_leaves_fill(leaves, lengths, batch, segments, parts, part);
    uint16_t *ids = NULL;
    check_ok(rfa_alloc(&ids, rows + 1, sizeof *ids, "test"));
    memset(ids, 0xee, (size_t)(rows + 1) * sizeof *ids);
    check_ok(rfa_dataset_read(d, ids, examples, leaves, leaf_count));
    int wrong = ids[rows] != 0xeeee; // nothing beyond the rows
    for (int l = 0; l < leaf_count; l++) {
        const int64_t example = examples[leaves[l].example];
        for (ptrdiff_t t = 0; t < leaves[l].rows; t++) {
            const int want =
                t < leaves[l].tokens ? dataset_id(example, leaves[l].begin + t, symbols) : 0;
            wrong += ids[leaves[l].row0 + t] != want;
        }
    }
    check(wrong == 0);
    rfa_free(ids);
}

static void read_many(const char *file, int symbols)
{
    rfa_dataset *d = NULL;
    check_ok(rfa_dataset_open(&d, &test_world, file, "val"));
    check(rfa_dataset_examples(d) == DATASET_EXAMPLES);
    check(rfa_dataset_classes(d) == DATASET_CLASSES);
    check(rfa_dataset_vocabulary(d) == symbols);
    check(strcmp(rfa_dataset_task(d), "test task") == 0);
    check(strlen(rfa_dataset_digest(d)) == 16);
    check(strcmp(rfa_dataset_path(d), file) == 0);
    int wrong = 0;
    ptrdiff_t longest = 0;
    for (int64_t i = 0; i < DATASET_EXAMPLES; i++) {
        wrong += rfa_dataset_length(d, i) != dataset_length(i);
        wrong += rfa_dataset_label(d, i) != dataset_label(i);
        longest = dataset_length(i) > longest ? dataset_length(i) : longest;
    }
    check(wrong == 0 && rfa_dataset_longest(d) == longest);
    rfa_rng_reader common = rfa_rng_reader_at(rfa_rng_stream(7, RFA_RNG_TEST, 0, 0));
    rfa_rng_reader own =
        rfa_rng_reader_at(rfa_rng_stream(7, RFA_RNG_TEST, 1, (uint32_t)test_world.rank));
    for (int repetition = 0; repetition < 30; repetition++) {
        read_batch(d, &common, &own, symbols);
    }
    // Whole examples in one go were read collectively, by the library's own account.
    const int64_t examples[2] = {5, 3};
    const ptrdiff_t lengths[2] = {dataset_length(5), dataset_length(3)};
    rfa_leaf leaves[2];
    uint16_t *ids = NULL;
    check_ok(rfa_alloc(&ids, rfa_leaves_fill(leaves, lengths, 2, 1, 1, 0), sizeof *ids, "test"));
    check_ok(rfa_dataset_read(d, ids, examples, leaves, 2));
    H5D_mpio_actual_io_mode_t mode = H5D_MPIO_NO_COLLECTIVE;
    check(H5Pget_mpio_actual_io_mode(d->transfer, &mode) >= 0);
    check(mode == H5D_MPIO_CONTIGUOUS_COLLECTIVE);
    check(ids[leaves[1].row0] == dataset_id(3, 0, symbols));
    rfa_free(ids);
    const rfa_leaf nothing = {0}; // a rank without tokens may have no memory for them
    check_ok(rfa_dataset_read(d, NULL, examples, &nothing, 1));
    rfa_dataset_close(&d);
    rfa_dataset_close(&d);
    check(d == NULL);
}

static void reads_equal_what_was_written(void **state)
{
    (void)state;
    static const int vocabularies[3] = {16, 256, 300};
    for (int v = 0; v < 3; v++) {
        char digest[17];
        dataset_write(path, vocabularies[v], true, digest);
        read_many(path, vocabularies[v]);
    }
}

// Leaves that lie in each other, overlap, touch and are one token apart, in no order.
static void leaves_may_overlap(void **state)
{
    (void)state;
    static const int ranges[][2] = {{400, 512}, {10, 20}, {0, 100}, {30, 150},
                                    {151, 160}, {5, 6},   {0, 3},   {160, 161}};
    enum { COUNT = sizeof ranges / sizeof ranges[0] };
    char digest[17];
    dataset_write(path, 300, true, digest);
    rfa_dataset *d = NULL;
    check_ok(rfa_dataset_open(&d, &test_world, path, "train"));
    int64_t example = test_world.rank;
    while (dataset_length(example) < 512) {
        example++;
    }
    rfa_leaf leaves[COUNT];
    ptrdiff_t rows = 0;
    for (int l = 0; l < COUNT; l++) {
        const ptrdiff_t tokens = ranges[l][1] - ranges[l][0];
        leaves[l] = (rfa_leaf){
            .begin = ranges[l][0], .tokens = tokens, .rows = rfa_padded(tokens), .row0 = rows};
        rows += leaves[l].rows;
    }
    uint16_t *ids = NULL;
    check_ok(rfa_alloc(&ids, rows, sizeof *ids, "test"));
    check_ok(rfa_dataset_read(d, ids, &example, leaves, COUNT));
    int wrong = 0;
    for (int l = 0; l < COUNT; l++) {
        for (ptrdiff_t t = 0; t < leaves[l].tokens; t++) {
            wrong += ids[leaves[l].row0 + t] != dataset_id(example, leaves[l].begin + t, 300);
        }
    }
    check(wrong == 0);
    rfa_free(ids);
    rfa_dataset_close(&d);
}

static void other_byte_order_is_read(void **state)
{
    (void)state;
    char digest[17];
    dataset_write(path, 300, true, digest);
    dataset_retype(path, "val/tokens", H5T_STD_U16BE);
    dataset_retype(path, "val/offsets", H5T_STD_I64BE);
    dataset_retype(path, "val/labels", H5T_STD_U16BE);
    read_many(path, 300);
}

// FNV-1a over labels, lengths and ids, written once more from the header's text.
static void digest_is_as_documented(void **state)
{
    (void)state;
    char digest[17], expected[17];
    dataset_write(path, 300, true, digest);
    uint64_t h = 0xcbf29ce484222325u;
    const uint64_t prime = 0x100000001b3u;
    for (int split = 0; split < 2; split++) {
        for (int64_t i = 0; i < DATASET_EXAMPLES; i++) {
            const uint32_t head[2] = {(uint32_t)dataset_label(i), (uint32_t)dataset_length(i)};
            for (int b = 0; b < 8; b++) {
                h = (h ^ (head[b / 4] >> 8 * (b % 4) & 255)) * prime;
            }
            for (ptrdiff_t t = 0; t < dataset_length(i); t++) {
                const unsigned id = (unsigned)dataset_id(i, t, 300);
                h = (h ^ (id & 255)) * prime;
                h = (h ^ (id >> 8)) * prime;
            }
        }
    }
    snprintf(expected, sizeof expected, "%016llx", (unsigned long long)h);
    check(test_world.rank > 0 || strcmp(digest, expected) == 0);
    rfa_dataset *d = NULL;
    check_ok(rfa_dataset_open(&d, &test_world, path, "train"));
    check(strcmp(rfa_dataset_digest(d), expected) == 0);
    rfa_dataset_close(&d);
}

static bool exists(const char *file)
{
    struct stat info;
    return stat(file, &info) == 0;
}

static void writer_keeps_its_promises(void **state)
{
    (void)state;
    if (test_world.rank == 0) {
        char digest[17], again[17], tmp[160];
        snprintf(tmp, sizeof tmp, "%s.tmp", path);
        // An existing file is not touched, unless that is asked for.
        assert_int_equal(dataset_write_local(path, 16, false, digest), RFA_OK);
        assert_int_equal(dataset_write_local(path, 16, false, again), RFA_ERR_USAGE);
        assert_non_null(strstr(rfa_error_text(), "exists already"));
        assert_int_equal(dataset_write_local(path, 300, true, again), RFA_OK);
        assert_string_not_equal(digest, again);
        assert_false(exists(tmp));
        // Given up half-way: the former file stands, no temporary one is left.
        struct stat before, after;
        assert_int_equal(stat(path, &before), 0);
        rfa_dataset_writer *w = NULL;
        assert_int_equal(dataset_begin(&w, path, 16, true), RFA_OK);
        assert_int_equal(rfa_dataset_writer_begin(w, "train", 2, 6, "line"), RFA_OK);
        const uint16_t ids[4] = {1, 2, 3, 4};
        assert_int_equal(rfa_dataset_writer_add(w, ids, 4, 0, 0), RFA_OK);
        assert_true(exists(tmp));
        // Meanwhile nobody else writes the same file.
        rfa_dataset_writer *second = NULL;
        assert_int_equal(dataset_begin(&second, path, 16, true), RFA_ERR_IO);
        assert_non_null(strstr(rfa_error_text(), "another process"));
        assert_null(second);
        assert_true(exists(tmp));
        // Neither fewer nor more than announced.
        assert_int_equal(rfa_dataset_writer_add(w, ids, 3, 0, 0), RFA_ERR_IO);
        assert_int_equal(rfa_dataset_writer_end(w), RFA_ERR_IO);
        assert_int_equal(rfa_dataset_writer_add(w, ids, 2, 0, 0), RFA_OK);
        assert_int_equal(rfa_dataset_writer_add(w, ids, 1, 0, 0), RFA_ERR_IO);
        rfa_dataset_writer_destroy(&w);
        rfa_dataset_writer_destroy(&w);
        assert_false(exists(tmp));
        assert_int_equal(stat(path, &after), 0);
        assert_true(before.st_ino == after.st_ino && before.st_size == after.st_size);
        assert_int_equal(dataset_begin(&w, "/dev/null/set.h5", 16, true), RFA_ERR_IO);
        assert_int_equal(dataset_begin(&w, folder, 16, true), RFA_ERR_USAGE);
    }
    MPI_Barrier(test_world.comm);
}

// The disk fills up at every place of the file in turn: each time an error and no file.
static void full_disk_leaves_nothing(void **state)
{
    (void)state;
    if (test_world.rank == 0) {
        char digest[17], tmp[160];
        struct stat info;
        snprintf(tmp, sizeof tmp, "%s.tmp", path);
        assert_int_equal(dataset_write_local(path, 16, true, digest), RFA_OK);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(unlink(path), 0);
        signal(SIGXFSZ, SIG_IGN);
        struct rlimit former, limit;
        getrlimit(RLIMIT_FSIZE, &former);
        int tried = 0, failed = 0, left = 0, unexplained = 0;
        // From the second step on: HDF5 itself leaks when it can't write its first bytes.
        const rlim_t step = (rlim_t)info.st_size / 97 + 1;
        for (rlim_t size = step; size < (rlim_t)info.st_size; size += step) {
            limit = former;
            limit.rlim_cur = size;
            setrlimit(RLIMIT_FSIZE, &limit);
            const rfa_status status = dataset_write_local(path, 16, true, digest);
            setrlimit(RLIMIT_FSIZE, &former);
            tried++;
            failed += status == RFA_ERR_IO;
            unexplained += !strstr(rfa_error_text(), "File too large");
            left += exists(path) || exists(tmp);
        }
        if (failed < tried || left || unexplained) {
            print_error("%d of %d failed, %d left a file, %d without the cause: %s\n", failed,
                        tried, left, unexplained, rfa_error_text());
        }
        assert_true(tried > 90 && failed == tried && left == 0 && unexplained == 0);
        assert_int_equal(dataset_write_local(path, 16, true, digest), RFA_OK);
    }
    MPI_Barrier(test_world.comm);
}

// A fault on any one rank is everybody's error, and the next call works.
static void faults_are_agreed(void **state)
{
    (void)state;
    char digest[17], fault[64];
    dataset_write(path, 16, true, digest);
    for (int rank = 0; rank < test_world.size; rank++) {
        rfa_dataset *d = NULL;
        snprintf(fault, sizeof fault, "dataset.open@%d", rank);
        setenv("RFA_FAULT", fault, 1);
        check_status(rfa_dataset_open(&d, &test_world, path, "train"), RFA_ERR_IO);
        check(d == NULL && strstr(rfa_error_text(), "dataset.open"));
        unsetenv("RFA_FAULT");
        check_ok(rfa_dataset_open(&d, &test_world, path, "train"));
        const int64_t example = 1;
        const ptrdiff_t length = dataset_length(1);
        rfa_leaf leaf;
        uint16_t *ids = NULL;
        check_ok(rfa_alloc(&ids, rfa_leaves_fill(&leaf, &length, 1, 1, 1, 0), 2, "test"));
        snprintf(fault, sizeof fault, "dataset.read@%d", rank);
        setenv("RFA_FAULT", fault, 1);
        check_status(rfa_dataset_read(d, ids, &example, &leaf, 1), RFA_ERR_IO);
        unsetenv("RFA_FAULT");
        check_ok(rfa_dataset_read(d, ids, &example, &leaf, 1));
        check(ids[0] == dataset_id(1, 0, 16));
        rfa_free(ids);
        rfa_dataset_close(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_equal_what_was_written, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(leaves_may_overlap, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(other_byte_order_is_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(digest_is_as_documented, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(writer_keeps_its_promises, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(full_disk_leaves_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(faults_are_agreed, make_folder, remove_folder),
    };
    return test_main(tests);
}
