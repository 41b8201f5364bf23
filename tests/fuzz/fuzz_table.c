// Tables of labels and texts, with tabs or commas. Every example that comes out can be loaded, and
// its ids are those of its bytes.
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "tasks/table.h"
#include "tasks/text_table.h"
#include "tasks/token_ids.h"

enum { MOST = 64 };

static char *paths[2];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    paths[0] = fuzz_path("train.tsv");
    paths[1] = fuzz_path("train.csv");
    return 0;
}

static void load_all(const rfa_index *index)
{
    rfa_bytes bytes = {0};
    unsigned char buffer[2 * MOST + 2];
    uint16_t ids[MOST] = {0};
    for (int64_t i = 0; i < index->count; i++) {
        const rfa_entry *e = &index->entries[i];
        rfa_example example = {.ids = {ids}};
        PROMISE(e->label >= 0 && e->label < RFA_TREE_CLASSES && e->size[0] > 0);
        PROMISE(i == 0 || e->origin > index->entries[i - 1].origin);
        PROMISE(rfa_text_document(&bytes, index, e, &example, 0, MOST, buffer) == RFA_OK);
        PROMISE(example.length[0] >= 1 && example.length[0] <= MOST);
        for (ptrdiff_t t = 0; t < example.length[0]; t++) {
            PROMISE(ids[t] >= 1 && ids[t] <= 256);
        }
    }
    rfa_bytes_close(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    static rfa_text_tables tables;
    rfa_index index = {0};
    if (size == 0) {
        return 0;
    }
    const char *path = paths[data[0] & 1];
    memset(&tables, 0, sizeof tables);
    tables.any_kind = tables.labels.any_names = data[0] & 2;
    tables.vocabulary = RFA_TOKEN_IDS;
    fuzz_write(path, data + 1, size - 1);
    const rfa_status status = rfa_text_table(&index, &tables, path);
    if (status == RFA_OK) {
        PROMISE(index.count > 0);
        load_all(&index);
    } else {
        PROMISE(status == RFA_ERR_IO && strncmp(rfa_error_text(), path, strlen(path)) == 0);
    }
    rfa_index_destroy(&index);
    PROMISE(rfa_mem_now() == held);
    return 0;
}
