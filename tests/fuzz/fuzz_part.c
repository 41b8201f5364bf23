// Parts of data sets. The fuzzer's bytes stand behind a good head, whose size and checksum fit
// them: so the records themselves are reached.
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "tasks/part.h"

#include <zlib.h>

enum { HEAD = 71, SIZE_AT = 59, CRC_AT = 67, MOST = 4096 };

static char *path;
static unsigned char file[HEAD + MOST];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    path = fuzz_path("part");
    return 0;
}

static void put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        at[i] = (unsigned char)(value >> 8 * i);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    if (size < 18 || size > MOST) {
        return 0;
    }
    const rfa_part_key key = {.split = data[0] & 3,
                              .examples = data[1] & 7,
                              .documents = 1 + (data[0] >> 2 & 1),
                              .first = data[1]};
    rfa_part part = {0};
    rfa_part_example e;
    memset(file, 0, HEAD);
    memcpy(file, "rfa part 1\n", 11);
    put(file + 27, (uint64_t)key.split, 4);
    put(file + 31, (uint64_t)key.examples, 4);
    put(file + 35, (uint64_t)key.first, 8);
    put(file + 43, data[2], 8);
    put(file + 51, data[3], 8);
    put(file + SIZE_AT, size - 4, 8);
    memcpy(file + HEAD, data + 4, size - 4);
    put(file + CRC_AT, crc32_z(0, data + 4, size - 4), 4);
    fuzz_write(path, file, HEAD + size - 4);
    const rfa_status status = rfa_part_read(&part, path, &key);
    if (status == RFA_OK) {
        int examples = 0;
        uint32_t sum = 0;
        while (rfa_part_next(&part, &e)) {
            examples++;
            for (int d = 0; d < key.documents; d++) {
                PROMISE(e.length[d] >= 1);
                for (ptrdiff_t t = 0; t < e.length[d]; t++) {
                    sum += e.ids[d][t];
                }
            }
        }
        PROMISE(examples == key.examples && sum < UINT32_MAX);
    } else {
        PROMISE(status == RFA_ERR_IO && strncmp(rfa_error_text(), path, strlen(path)) == 0);
    }
    rfa_part_destroy(&part);
    PROMISE(rfa_mem_now() == held);
    return 0;
}
