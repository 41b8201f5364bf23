// Precision: f32
// Parts: what is written comes back; anything else is refused, every byte of it.
#include "support/support.h"

#include "tasks/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXAMPLES = 5, MOST = 40 };

static char folder[64], path[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/rfa-part-XXXXXX");
    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/part-000003", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static ptrdiff_t length_of(int i, int d)
{
    return 1 + (7 * i + 11 * d) % (MOST - 1);
}

static void write_part(const rfa_part_key *key)
{
    uint16_t ids[2][MOST];
    rfa_part part = {0};
    rfa_part_start(&part, key);
    for (int i = 0; i < key->examples; i++) {
        rfa_example e = {.ids = {ids[0], ids[1]}, .label = i % 3, .origin = 1000000007LL * i};
        for (int d = 0; d < 2; d++) {
            e.length[d] = length_of(i, d);
            for (ptrdiff_t t = 0; t < MOST; t++) {
                ids[d][t] = (uint16_t)(1 + (i * 31 + d * 17 + t * 1009) % 65535);
            }
        }
        check_ok(rfa_part_add(&part, &e));
    }
    check_ok(rfa_part_write(&part, path));
    rfa_part_destroy(&part);
}

static void comes_back(void **state)
{
    (void)state;
    for (int documents = 1; documents <= 2; documents++) {
        const rfa_part_key key = {.recipe = {0x123456789abcdefu, 42},
                                  .split = 1,
                                  .examples = EXAMPLES,
                                  .documents = documents,
                                  .first = 5000000000};
        rfa_part part = {0};
        rfa_part_example e;
        write_part(&key);
        check_ok(rfa_part_read(&part, path, &key));
        int64_t tokens[2] = {0};
        for (int i = 0; i < EXAMPLES; i++) {
            check(rfa_part_next(&part, &e) && e.label == i % 3 && e.origin == 1000000007LL * i);
            for (int d = 0; d < documents; d++) {
                check(e.length[d] == length_of(i, d));
                for (ptrdiff_t t = 0; t < e.length[d]; t++) {
                    check(e.ids[d][t] == 1 + (i * 31 + d * 17 + t * 1009) % 65535);
                }
                tokens[d] += e.length[d];
            }
            if (documents == 1) {
                const rfa_fingerprint own = rfa_fingerprint_ids(e.ids[0], e.length[0]);
                check(own.high == e.fingerprint.high && own.low == e.fingerprint.low);
            }
        }
        check(!rfa_part_next(&part, &e));
        check(memcmp(tokens, part.tokens, sizeof tokens) == 0);
        rfa_part_destroy(&part);
    }
}

static void another_key_is_refused(void **state)
{
    (void)state;
    const rfa_part_key key = {
        .recipe = {1, 2}, .split = 1, .examples = EXAMPLES, .documents = 1, .first = 7};
    rfa_part part = {0};
    write_part(&key);
    for (int what = 0; what < 5; what++) {
        rfa_part_key other = key;
        other.recipe.high += what == 0;
        other.recipe.low += what == 1;
        other.split += what == 2;
        other.examples += what == 3;
        other.first += what == 4;
        check_status(rfa_part_read(&part, path, &other), RFA_ERR_IO);
    }
    rfa_part_destroy(&part);
}

// One byte changed anywhere, or missing at the end, or more.
static void damage_is_found(void **state)
{
    (void)state;
    const rfa_part_key key = {
        .recipe = {1, 2}, .split = 0, .examples = EXAMPLES, .documents = 2, .first = 0};
    unsigned char bytes[4096];
    rfa_part part = {0};
    write_part(&key);
    FILE *file = fopen(path, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    check(size > 100 && size < sizeof bytes);
    bool all = true;
    for (size_t i = 0; i <= size + 1; i++) {
        file = fopen(path, "wb");
        bytes[i] ^= 0x10;
        const size_t count = i < size ? size : i == size ? size - 1 : size + 1;
        all = fwrite(bytes, 1, count, file) == count && all;
        bytes[i] ^= 0x10;
        fclose(file);
        all = rfa_part_read(&part, path, &key) == RFA_ERR_IO && all;
    }
    check(all);
    unlink(path);
    check_status(rfa_part_read(&part, path, &key), RFA_ERR_IO);
    rfa_part_destroy(&part);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(damage_is_found),
    };
    if (make_folder(NULL) != 0) {
        return 1;
    }
    const int failed = test_main(tests);
    remove_folder(NULL);
    return failed;
}
