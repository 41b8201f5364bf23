// A small data set for the tests of storage, whose content is a formula.
#ifndef TESTS_STORAGE_DATASET_SUPPORT_H
#define TESTS_STORAGE_DATASET_SUPPORT_H

#include "support/support.h"

#include "storage/dataset_writer.h"
#include "storage/h5.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATASET_EXAMPLES = 40, DATASET_LONGEST = 700, DATASET_CLASSES = 10 };

// The folder's name is rank 0's on all ranks. Collective.
static inline void dataset_folder(char out[64])
{
    int made = 1;
    if (test_world.rank == 0) {
        snprintf(out, 64, "/tmp/rfa-dataset-XXXXXX");
        made = mkdtemp(out) != NULL;
    }
    MPI_Bcast(out, 64, MPI_CHAR, 0, test_world.comm);
    check(made);
}

static inline void dataset_remove(const char *folder)
{
    MPI_Barrier(test_world.comm);
    if (test_world.rank == 0) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s'", folder);
        if (system(command) != 0) {
            print_error("%s is left\n", folder);
        }
    }
}

static inline ptrdiff_t dataset_length(int64_t example)
{
    static const ptrdiff_t lengths[8] = {1, 15, 16, 17, 100, 333, 512, DATASET_LONGEST};
    return lengths[(example * 5 + 3) % 8];
}

static inline int dataset_label(int64_t example)
{
    return (int)(example * 7 % DATASET_CLASSES);
}

// Ids from 1 on, the highest of the vocabulary among them.
static inline int dataset_id(int64_t example, ptrdiff_t token, int symbols)
{
    const uint32_t mixed = ((uint32_t)example * 2654435761u) ^ ((uint32_t)token * 2246822519u);
    return 1 + (int)((mixed ^ mixed >> 15) % (uint32_t)(symbols - 1));
}

// Local.
static inline rfa_status
dataset_begin(rfa_dataset_writer **writer, const char *path, int symbols, bool overwrite)
{
    static char names[300][16];
    static const char *vocabulary[300];
    for (int i = 0; i < symbols; i++) {
        snprintf(names[i], sizeof names[i], "s%d", i);
        vocabulary[i] = names[i];
    }
    const rfa_dataset_description description = {.task = "test task",
                                                 .title = "A test",
                                                 .vocabulary = vocabulary,
                                                 .symbols = symbols,
                                                 .classes = DATASET_CLASSES};
    return rfa_dataset_writer_create(writer, path, &description, overwrite);
}

static inline rfa_status dataset_fill(rfa_dataset_writer *w, const char *split, int symbols)
{
    uint16_t ids[DATASET_LONGEST];
    int64_t tokens = 0;
    for (int64_t i = 0; i < DATASET_EXAMPLES; i++) {
        tokens += dataset_length(i);
    }
    rfa_status status = rfa_dataset_writer_begin(w, split, DATASET_EXAMPLES, tokens, "line");
    for (int64_t i = 0; i < DATASET_EXAMPLES && status == RFA_OK; i++) {
        for (ptrdiff_t t = 0; t < dataset_length(i); t++) {
            ids[t] = (uint16_t)dataset_id(i, t, symbols);
        }
        status = rfa_dataset_writer_add(w, ids, dataset_length(i), dataset_label(i), i + 2);
    }
    return status == RFA_OK ? rfa_dataset_writer_end(w) : status;
}

// Splits "train" and "val" of the same content. Local.
static inline rfa_status
dataset_write_local(const char *path, int symbols, bool overwrite, char digest[17])
{
    rfa_dataset_writer *w = NULL;
    rfa_status status = dataset_begin(&w, path, symbols, overwrite);
    if (status == RFA_OK) {
        status = dataset_fill(w, "train", symbols);
    }
    if (status == RFA_OK) {
        status = dataset_fill(w, "val", symbols);
    }
    if (status == RFA_OK) {
        status = rfa_dataset_writer_finish(w, digest);
    }
    rfa_dataset_writer_destroy(&w);
    return status;
}

// By rank 0; digest on rank 0. Collective.
static inline void dataset_write(const char *path, int symbols, bool overwrite, char digest[17])
{
    check_ok(test_world.rank == 0 ? dataset_write_local(path, symbols, overwrite, digest) : RFA_OK);
}

// Local.
static inline void dataset_copy(const char *from, const char *to)
{
    char buffer[4096];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    while (in && out && (n = fread(buffer, 1, sizeof buffer, in)) > 0) {
        (void)!fwrite(buffer, 1, n, out);
    }
    if (!in || !out || fclose(in) != 0 || fclose(out) != 0) {
        print_error("%s can't be copied to %s\n", from, to);
        fail();
    }
}

// Replaces a one-dimensional integer dataset by count values of a type. Local.
static inline bool
dataset_put(hid_t file, const char *name, hid_t type, const int64_t *values, hsize_t count)
{
    if (H5Lexists(file, name, H5P_DEFAULT) > 0 && H5Ldelete(file, name, H5P_DEFAULT) < 0) {
        return false;
    }
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    const bool good = dataset >= 0 && (count == 0 || H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL,
                                                              H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Dclose(dataset);
    H5Sclose(space);
    return good;
}

// The values of a one-dimensional integer dataset; rfa_free. Local.
static inline int64_t *dataset_get(hid_t file, const char *name, hsize_t *count)
{
    int64_t *values = NULL;
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    *count = (hsize_t)H5Sget_simple_extent_npoints(space);
    if (rfa_alloc(&values, (ptrdiff_t)*count, sizeof *values, "test") == RFA_OK) {
        H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    }
    H5Sclose(space);
    H5Dclose(dataset);
    return values;
}

// What damages are made of. Local.
static inline void drop(hid_t file, const char *name)
{
    H5Ldelete(file, name, H5P_DEFAULT);
}

static inline void attribute(hid_t file, const char *name, int64_t value)
{
    H5Adelete(file, name);
    (void)!rfa_h5_write_int(file, "test", name, value);
}

static inline void text(hid_t file, const char *name, const char *value)
{
    H5Adelete(file, name);
    (void)!rfa_h5_write_text(file, "test", name, value);
}

// The values of a dataset with one changed; index < 0 counts from the end.
static inline void change(hid_t file, const char *name, int64_t index, int64_t value, hid_t type)
{
    hsize_t count;
    int64_t *values = dataset_get(file, name, &count);
    values[index < 0 ? (int64_t)count + index : index] = value;
    dataset_put(file, name, type, values, count);
    rfa_free(values);
}

static inline void retype(hid_t file, const char *name, hid_t type, hsize_t fewer)
{
    hsize_t count;
    int64_t *values = dataset_get(file, name, &count);
    dataset_put(file, name, type, values, count - fewer);
    rfa_free(values);
}

// A dataset of any shape that is never written.
static inline void
promise(hid_t file, const char *name, hid_t type, int rank, const hsize_t *shape, bool chunked)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, shape, NULL);
    const hsize_t chunk[2] = {1024, 1024};
    if (chunked) {
        H5Pset_chunk(list, rank, chunk);
    }
    drop(file, name);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(list);
}

// The same numbers in another type. Collective.
static inline void dataset_retype(const char *path, const char *name, hid_t type)
{
    bool good = true;
    if (test_world.rank == 0) {
        hsize_t count;
        const hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        int64_t *values = dataset_get(file, name, &count);
        good = dataset_put(file, name, type, values, count);
        rfa_free(values);
        good = H5Fclose(file) >= 0 && good;
    }
    check(good);
}

#endif
