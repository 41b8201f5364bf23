// Checkpoints whose every number follows from the step.
#ifndef TESTS_STORAGE_CHECKPOINT_SUPPORT_H
#define TESTS_STORAGE_CHECKPOINT_SUPPORT_H

#include "storage/scratch.h"

#include "storage/checkpoint.h"

#include <math.h>

enum { ARRAYS = 4, A = 5 * 7, B = 64, C = 2 * 3 * 4 * 5, D = 20000, ALL = A + B + C + D };

static float written[ALL], got[ALL];

static inline void arrays_of(rfa_checkpoint_array arrays[ARRAYS], float *values)
{
    const rfa_checkpoint_array all[ARRAYS] = {
        {"parameters/embedding.tokens", 2, {5, 7}, values},
        {"parameters/block0.attention.bias", 1, {B}, values + A},
        {"moment1/block0.feature.pool", 4, {2, 3, 4, 5}, values + A + B},
        {"moment2/head.weight", 2, {200, 100}, values + A + B + C},
    };
    memcpy(arrays, all, sizeof all);
}

static inline rfa_checkpoint_header header_of(int64_t step)
{
    return (rfa_checkpoint_header){.step = step,
                                   .best_correct = step / 2,
                                   .best_step = step - 1,
                                   .digest = 0xfedcba9876543210u + (uint64_t)step,
                                   .config_text = (char *)"train:\n  steps: 100\n",
                                   .data_digest = (char *)"0123456789abcdef"};
}

// The values of a step: any bits, NaN, infinities and subnormals among them.
static inline void fill(float *values, int64_t step)
{
    uint32_t x = (uint32_t)step * 2654435761u + 1;
    for (int i = 0; i < ALL; i++) {
        x = x * 1664525u + 1013904223u;
        const uint32_t bits = x ^ x >> 15;
        memcpy(&values[i], &bits, sizeof bits);
    }
    values[0] = NAN;
    values[1] = -INFINITY;
    values[2] = -0.0f;
    values[3] = 1e-44f;
}

static inline rfa_status save(const char *run, int64_t step)
{
    rfa_checkpoint_array arrays[ARRAYS];
    const rfa_checkpoint_header header = header_of(step);
    fill(written, step);
    arrays_of(arrays, written);
    return rfa_checkpoint_write(run, &header, arrays, ARRAYS);
}

// *step = that of the checkpoint that was read; everything in it must be what was saved then.
static inline rfa_status load(const char *run, int64_t *step)
{
    rfa_checkpoint_array arrays[ARRAYS];
    rfa_checkpoint_header header;
    memset(got, 0, sizeof got);
    arrays_of(arrays, got);
    const rfa_status status = rfa_checkpoint_read(run, &header, arrays, ARRAYS);
    if (status == RFA_OK) {
        const rfa_checkpoint_header want = header_of(header.step);
        *step = header.step;
        fill(written, header.step);
        if (!same_bytes(got, written, sizeof got) || header.best_correct != want.best_correct ||
            header.best_step != want.best_step || header.digest != want.digest ||
            strcmp(header.config_text, want.config_text) != 0 ||
            strcmp(header.data_digest, want.data_digest) != 0) {
            print_error("what was read of step %lld is wrong\n", (long long)header.step);
            check(false);
        }
        rfa_checkpoint_header_free(&header);
    } else {
        check(!header.config_text && !header.data_digest);
    }
    return status;
}

static inline void check_step(const char *run, int64_t step)
{
    int64_t have = -1;
    rfa_checkpoint_header header;
    check_ok(load(run, &have));
    check(have == step);
    check_ok(rfa_checkpoint_read_header(run, &header));
    check(header.step == step);
    rfa_checkpoint_header_free(&header);
}

static inline void check_unusable(const char *run, const char *why)
{
    int64_t step = -1;
    check_status(load(run, &step), RFA_ERR_IO);
    if (!strstr(rfa_error_text(), why)) {
        print_error("'%s' is not in '%s'\n", why, rfa_error_text());
        check(false);
    }
    check_status(rfa_checkpoint_read_header(run, &(rfa_checkpoint_header){0}), RFA_ERR_IO);
}

#endif
