#include "train/warnings.h"

#include "base/log.h"
#include "base/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    char *text;
    size_t size, used;
} list;

static void keep(list *to, const char *line)
{
    const size_t left = to->size - to->used;
    const int n = snprintf(to->text + to->used, left, "%s%s", to->used > 0 ? "; " : "", line);
    to->used += n > 0 && (size_t)n < left ? (size_t)n : 0;
}

static void warn(list *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(list *to, const char *format, ...)
{
    char line[256];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    rfa_note("rfa: warning: %s", line);
    keep(to, line);
}

static void warn_of_classes(list *to, const rfa_dataset *data, const char *split)
{
    enum { MOST = 4096 }; // storage/dataset.c
    const int classes = rfa_dataset_classes(data);
    bool there[MOST] = {false};
    int missing = 0, first = -1;
    for (int64_t i = 0; i < rfa_dataset_examples(data); i++) {
        there[rfa_dataset_label(data, i)] = true;
    }
    for (int c = classes - 1; c >= 0; c--) {
        missing += !there[c];
        first = there[c] ? first : c;
    }
    if (missing == 1) {
        warn(to, "class %d of %d is missing in %s", first, classes, split);
    } else if (missing > 1) {
        warn(to, "%d of %d classes are missing in %s, %d the first", missing, classes, split,
             first);
    }
}

rfa_status
rfa_warn_of_data(char *text, size_t size, const rfa_session *session, const rfa_dataset *validation)
{
    list to = {text, size, 0};
    const rfa_config *config = &session->config;
    const int64_t some = config->train.evaluate_examples;
    const int64_t all = rfa_dataset_examples(validation), n = some > 0 && some < all ? some : all;
    const rfa_interval widest = rfa_wilson(n / 2, n);
    rfa_dataset *test = NULL;
    text[0] = '\0';
    RFA_TRY(rfa_dataset_open(&test, &session->grid.all, config->data.file, "test"));
    if (config->train.warmup > config->train.steps) {
        keep(&to, "warm-up exceeds the steps: the learning rate never reaches its peak");
    }
    if (strcmp(rfa_dataset_validation(validation), "test") == 0) {
        warn(&to,
             "validation is the test split, by the wish that %s was made with: what is chosen on "
             "it is no test result",
             rfa_dataset_path(validation));
    }
    warn_of_classes(&to, session->data, "train");
    warn_of_classes(&to, validation, "val");
    warn_of_classes(&to, test, "test");
    rfa_dataset_close(&test);
    if (widest.high - widest.low > 0.1) {
        warn(&to, "validation is of %" PRId64 " examples: its accuracy is sure to %.0f points", n,
             50 * (widest.high - widest.low));
    }
    return RFA_OK;
}
