// RUN.jsonl, on its own and beside a record. What is read has ascending steps, and written again as
// lines it is read the same.
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "storage/runfile_parts.h"

static char *path;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    path = fuzz_path("run.jsonl");
    return 0;
}

// Whether a name is as written; others come back escaped.
static bool is_plain(const char *split)
{
    for (; *split; split++) {
        if (*split < ' ' || *split > '~' || *split == '\\') {
            return false;
        }
    }
    return true;
}

// Whether the names of all its splits are plain.
static bool check_view(const rfa_run_view *view)
{
    bool plain = is_plain(view->test.split);
    for (int64_t i = 1; i < view->steps; i++) {
        PROMISE(view->step[i].step > view->step[i - 1].step);
    }
    for (int64_t i = 0; i < view->evaluations; i++) {
        const rfa_evaluation_record *e = &view->evaluation[i];
        PROMISE(memchr(e->split, '\0', sizeof e->split) && e->classes >= 0);
        PROMISE((e->classes == 0) == (e->confusion == NULL));
        for (int64_t j = 0; j < i; j++) {
            PROMISE(view->evaluation[j].step != e->step ||
                    strcmp(view->evaluation[j].split, e->split) != 0);
        }
        plain = plain && is_plain(e->split);
    }
    return plain;
}

static void
put_evaluation(FILE *file, const rfa_evaluation_record *record, rfa_line_kind kind, const char *id)
{
    char *line = NULL;
    PROMISE(rfa_line_evaluation(&line, record, kind, id) == RFA_OK);
    PROMISE(fputs(line, file) >= 0);
    rfa_free(line);
}

static void check_again(const rfa_run_view *view, const char *id)
{
    rfa_run_view again = {0};
    char line[RFA_LINE_STEP_SIZE], same[RFA_RUN_ID] = "";
    FILE *file = fopen(path, "we");
    PROMISE(file);
    for (int64_t i = 0; i < view->steps; i++) {
        PROMISE(rfa_line_step(line, &view->step[i], id) > 0 && fputs(line, file) >= 0);
    }
    for (int64_t i = 0; i < view->evaluations; i++) {
        put_evaluation(file, &view->evaluation[i], RFA_LINE_EVALUATION, id);
    }
    if (view->test.examples > 0) {
        put_evaluation(file, &view->test, RFA_LINE_TEST, id);
    }
    fclose(file);
    PROMISE(rfa_lines_merge(&again, same, path, "run.h5") == RFA_OK);
    PROMISE(again.steps == view->steps && again.evaluations == view->evaluations);
    PROMISE(again.test.examples == (view->test.examples > 0 ? view->test.examples : 0));
    for (int64_t i = 0; i < view->steps; i++) {
        PROMISE(again.step[i].step == view->step[i].step);
        PROMISE(again.step[i].digest == view->step[i].digest);
    }
    rfa_run_view_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t held = rfa_mem_now();
    rfa_run_view view = {0};
    char id[RFA_RUN_ID] = "";
    if (size > 0 && data[0] == 'i') { // beside a record of another time
        memcpy(id, "000000000000000f", RFA_RUN_ID);
        data++;
        size--;
    }
    fuzz_write(path, data, size);
    const rfa_status status = rfa_lines_merge(&view, id, path, "run.h5");
    PROMISE(status == RFA_OK);
    const bool plain = check_view(&view);
    if (plain && id[0] && view.steps + view.evaluations > 0) {
        check_again(&view, id);
    }
    rfa_run_view_free(&view);
    PROMISE(rfa_mem_now() == held);
    return 0;
}
