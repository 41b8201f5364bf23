// The released ListOps files. Every example that comes out has the value of its expression.
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "tasks/listops.h"
#include "tasks/listops_tsv.h"

static char *folder, *path;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    folder = fuzz_path(".");
    path = fuzz_path("./basic_val.tsv");
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    rfa_listops_tsv *tsv = NULL;
    rfa_listops_row row = {.length = 1};
    int64_t line = 1;
    fuzz_write(path, data, size);
    rfa_status status = rfa_listops_tsv_open(&tsv, folder, "val");
    while (status == RFA_OK && row.length > 0) {
        status = rfa_listops_tsv_next(tsv, &row);
        if (status == RFA_OK && row.length > 0) {
            int value = -1;
            PROMISE(row.line > line && row.label >= 0 && row.label <= 9);
            PROMISE(rfa_listops_evaluate(&value, row.ids, row.length) == RFA_OK);
            PROMISE(value == row.label);
            for (ptrdiff_t i = 0; i < row.length; i++) {
                PROMISE(row.ids[i] > RFA_LISTOPS_PAD && row.ids[i] < RFA_LISTOPS_VOCABULARY);
            }
            line = row.line;
        }
    }
    if (status != RFA_OK) {
        PROMISE(status == RFA_ERR_IO && strncmp(rfa_error_text(), path, strlen(path)) == 0);
    }
    rfa_listops_tsv_close(&tsv);
    PROMISE(rfa_mem_now() == held);
    return 0;
}
