// Ranks: 1 2
// Precision: f32
// Data sets of pairs, and ids that are stored less one.
#include "storage/dataset_support.h"

#include "storage/dataset.h"

static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    dataset_folder(folder);
    snprintf(path, sizeof path, "%s/pairs.h5", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    dataset_remove(folder);
    return 0;
}

static ptrdiff_t length_of(int i, int d)
{
    return 1 + (13 * i + 29 * d) % 40;
}

static int id_of(int i, int d, ptrdiff_t t)
{
    return 1 + (int)((i * 71 + d * 37 + t * 11) % 256);
}

// 6 examples of the highest ids that 8 bits can hold. Local.
static rfa_status write_pairs(int documents)
{
    static char text[257][16];
    static const char *symbols[257];
    for (int i = 0; i < 257; i++) {
        snprintf(text[i], sizeof text[i], "s%d", i);
        symbols[i] = text[i];
    }
    const rfa_dataset_description description = {.task = "t",
                                                 .title = "t",
                                                 .vocabulary = symbols,
                                                 .symbols = 257,
                                                 .classes = 2,
                                                 .documents = documents,
                                                 .first_id = 1};
    rfa_dataset_writer *w = NULL;
    int64_t tokens[2] = {0};
    char digest[17];
    for (int i = 0; i < 6; i++) {
        tokens[0] += length_of(i, 0);
        tokens[1] += length_of(i, 1);
    }
    rfa_status status = rfa_dataset_writer_create(&w, path, &description, true);
    if (status == RFA_OK) {
        status = rfa_dataset_writer_begin_pairs(w, "train", 6, tokens, "line");
    }
    for (int i = 0; i < 6 && status == RFA_OK; i++) {
        uint16_t ids[2][40];
        const uint16_t *const both[2] = {ids[0], ids[1]};
        const ptrdiff_t length[2] = {length_of(i, 0), length_of(i, 1)};
        for (int d = 0; d < 2; d++) {
            for (ptrdiff_t t = 0; t < 40; t++) {
                ids[d][t] = (uint16_t)id_of(i, d, t);
            }
        }
        status = rfa_dataset_writer_add_pair(w, both, length, i % 2, i + 1);
    }
    if (status == RFA_OK) {
        status = rfa_dataset_writer_end(w);
    }
    if (status == RFA_OK) {
        status = rfa_dataset_writer_finish(w, digest);
    }
    rfa_dataset_writer_destroy(&w);
    return status;
}

static void both_documents_are_read(void **state)
{
    (void)state;
    rfa_dataset *pair = NULL;
    check_ok(test_world.rank == 0 ? write_pairs(2) : RFA_OK);
    check_ok(rfa_dataset_open(&pair, &test_world, path, "train"));
    check(rfa_dataset_sequences(pair) == 2 && rfa_dataset_examples(pair) == 6);
    // Sequences of both documents at once, in any order.
    static const int64_t mixed[4] = {11, 2, 3, 0};
    rfa_leaf leaves[4];
    uint16_t got[4 * 48];
    for (int l = 0; l < 4; l++) {
        const ptrdiff_t length = length_of((int)mixed[l] / 2, (int)mixed[l] % 2);
        check(rfa_dataset_length(pair, mixed[l]) == length);
        leaves[l] = (rfa_leaf){.example = l, .tokens = length, .rows = 48, .row0 = l * 48};
    }
    check_ok(rfa_dataset_read(pair, got, mixed, leaves, 4));
    for (int l = 0; l < 4; l++) {
        const int e = (int)mixed[l] / 2, d = (int)mixed[l] % 2;
        bool same = true;
        for (ptrdiff_t t = 0; t < 48; t++) {
            same = same && got[l * 48 + t] == (t < length_of(e, d) ? id_of(e, d, t) : 0);
        }
        check(same);
    }
    rfa_dataset_close(&pair);
    for (int d = 0; d < 2; d++) {
        rfa_dataset *data = NULL;
        check_ok(rfa_dataset_open_document(&data, &test_world, path, "train", d));
        check(rfa_dataset_documents(data) == 2 && rfa_dataset_examples(data) == 6);
        for (int64_t i = 0; i < 6; i++) {
            const ptrdiff_t length = rfa_dataset_length(data, i);
            check(length == length_of((int)i, d) && rfa_dataset_label(data, i) == i % 2);
            const rfa_leaf leaf = {.tokens = length, .rows = 48};
            uint16_t ids[48];
            check_ok(rfa_dataset_read(data, ids, &i, &leaf, 1));
            bool same = true;
            for (ptrdiff_t t = 0; t < 48; t++) {
                same = same && ids[t] == (t < length ? id_of((int)i, d, t) : 0);
            }
            check(same);
        }
        rfa_dataset_close(&data);
    }
}

static void one_document_is_no_pair(void **state)
{
    (void)state;
    rfa_dataset *data = NULL;
    check_ok(test_world.rank == 0 ? write_pairs(1) : RFA_OK);
    check_status(rfa_dataset_open_document(&data, &test_world, path, "train", 1), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "not a data set of pairs") != NULL);
    check_ok(rfa_dataset_open(&data, &test_world, path, "train"));
    check(rfa_dataset_documents(data) == 1 && rfa_dataset_sequences(data) == 1);
    rfa_dataset_close(&data);
}

// Damages of what pairs and stored values add.
static void damage_is_found(void **state)
{
    (void)state;
    static const char *const what[] = {"documents", "first_id", "train/offsets2", "train/lengths2",
                                       "tokens2",   "is 17 at", "documents"};
    for (int kind = 0; kind < 7; kind++) {
        rfa_dataset *data = NULL;
        check_ok(test_world.rank == 0 ? write_pairs(2) : RFA_OK);
        if (test_world.rank == 0) {
            const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
            const hid_t tokens = H5Dopen2(file, "train/tokens2", H5P_DEFAULT);
            switch (kind) {
            case 0: attribute(file, "documents", 3); break;
            case 1: attribute(tokens, "first_id", 2); break;
            case 2: change(file, "train/offsets2", -1, 1, H5T_STD_I64LE); break;
            case 3: change(file, "train/lengths2", 2, 99, H5T_STD_I32LE); break;
            case 4: drop(file, "train/tokens2"); break;
            case 5: change(file, "train/lengths2", 2, 17, H5T_STD_I32LE); break;
            default: attribute(file, "documents", 0); break;
            }
            H5Dclose(tokens);
            H5Fclose(file);
        }
        check_status(rfa_dataset_open_document(&data, &test_world, path, "train", 1), RFA_ERR_IO);
        check(strstr(rfa_error_text(), what[kind]) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_documents_are_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(one_document_is_no_pair, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(damage_is_found, make_folder, remove_folder),
    };
    return test_main(tests);
}
