// Precision: f32
#define _GNU_SOURCE // nftw
#include "storage/checkpoint_support.h"

#include "storage/checkpoint_list.h"

// Everything that was written comes back, parameters first, each group in the order of writing and
// not of names: "embedding" was written before "block0".
static void test_all_in_order(void **state)
{
    (void)state;
    const char *run = in_scratch("a.h5");
    rfa_checkpoint_array want[ARRAYS];
    rfa_checkpoint_list list;
    check_ok(save(run, 10));
    check_ok(save(run, 20));
    check_ok(rfa_checkpoint_list_read(&list, run));
    arrays_of(want, written);
    check(list.count == ARRAYS && list.header.step == 20);
    check(list.header.digest == header_of(20).digest);
    check(strcmp(list.header.data_digest, "0123456789abcdef") == 0);
    for (int i = 0; i < ARRAYS; i++) {
        const rfa_checkpoint_array *a = &list.array[i];
        size_t count = 1;
        check(strcmp(a->name, want[i].name) == 0 && a->dimensions == want[i].dimensions);
        for (int d = 0; d < a->dimensions; d++) {
            check(a->shape[d] == want[i].shape[d]);
            count *= (size_t)a->shape[d];
        }
        check(same_bytes(a->values, want[i].values, count * sizeof *a->values));
    }
    rfa_checkpoint_list_free(&list);
    rfa_checkpoint_list_free(&list);
    check(list.count == 0 && !list.array && !list.header.config_text);
}

// As when a run is resumed: the newest that is whole, and never a damaged one.
static void test_damage(void **state)
{
    (void)state;
    const char *run = in_scratch("b.h5"), *now = in_scratch("b.ckpt");
    rfa_checkpoint_list list;
    check_status(rfa_checkpoint_list_read(&list, run), RFA_ERR_IO);
    check_ok(save(run, 10));
    check_ok(save(run, 20));
    check(truncate(now, size_of(now) / 2) == 0);
    check_ok(rfa_checkpoint_list_read(&list, run));
    check(list.header.step == 10 && list.count == ARRAYS);
    fill(written, 10);
    check(same_bytes(list.array[0].values, written, A * sizeof *written));
    rfa_checkpoint_list_free(&list);
    check(truncate(in_scratch("b.ckpt.prev"), 1000) == 0);
    check_status(rfa_checkpoint_list_read(&list, run), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "b.ckpt") != NULL && list.count == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_in_order),
        cmocka_unit_test(test_damage),
    };
    scratch_begin("checkpoint_list");
    const int failed = test_main(tests);
    scratch_end();
    return failed;
}
