// Classification of pictures as sequences of grey pixels: CIFAR-10's binary files, folders of PNG
// files, and idx files (MNIST, Fashion-MNIST).
#ifndef RFA_TASKS_IMAGE_H
#define RFA_TASKS_IMAGE_H

#include "tasks/bytes.h"
#include "tasks/png.h"
#include "tasks/tree.h"

typedef enum { RFA_IMAGE_CIFAR, RFA_IMAGE_TREE, RFA_IMAGE_IDX } rfa_image_format;

// What was found, besides the index. Plain bytes.
typedef struct {
    rfa_image_format format;
    char name[64]; // of the format
    int width, height;
    rfa_classes classes;
} rfa_image_facts;

// Lists the pictures below root: data_batch_1.bin ... and test_batch.bin (records of a label and
// 3072 colour bytes, or of a label and 1024 grey bytes), or train/CLASS/*.png and test/CLASS/*.png,
// or train-images-idx3-ubyte and its three companions; binary files also as .gz. percent: as
// rfa_index_split. Local.
RFA_NODISCARD rfa_status rfa_image_list(rfa_index *index,
                                        rfa_image_facts *facts,
                                        const char *root,
                                        int percent);
// idx files of one split of root ("train", "t10k"); label and size of every picture are checked.
RFA_NODISCARD rfa_status rfa_image_list_idx(rfa_index *index,
                                            rfa_image_facts *facts,
                                            const char *root,
                                            const char *split);

// Sets the size of all pictures from the first one of an index of PNG files. Local.
RFA_NODISCARD rfa_status rfa_image_measure(rfa_image_facts *facts, const rfa_index *index);

// The source over an index: self is a rfa_image_reader. id = grey value + 1.
typedef struct {
    const rfa_index *index;
    const rfa_image_facts *facts;
    rfa_grey grey;
    rfa_bytes bytes;
    unsigned char *buffer; // of a file
    int64_t capacity;
    rfa_image image;
} rfa_image_reader;
RFA_NODISCARD rfa_status rfa_image_load(void *self, rfa_example *example, int split, int64_t index);
void rfa_image_reader_free(rfa_image_reader *reader); // idempotent

#endif
