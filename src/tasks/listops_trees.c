#include "tasks/listops_trees.h"

#include "tasks/listops.h"
#include "tasks/text_table.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

// The two files; NAME is the first in order of those that have both.
static bool find(char train[PATH_SIZE], char test[PATH_SIZE], const char *root)
{
    char best[256] = "";
    bool found = false;
    DIR *list = opendir(root);
    // cppcheck-suppress readdirCalled
    for (const struct dirent *e; list && (e = readdir(list));) {
        const char *name = e->d_name;
        if (strncmp(name, "train", 5) != 0 || strlen(name) < 9 ||
            strcmp(name + strlen(name) - 4, ".tsv") != 0 || (name[5] != '_' && name[5] != '.')) {
            continue;
        }
        if (snprintf(test, PATH_SIZE, "%s/test%s", root, name + 5) < PATH_SIZE &&
            rfa_is_file(test) && (!found || strcmp(name + 5, best) < 0)) {
            snprintf(best, sizeof best, "%s", name + 5);
            found = true;
        }
    }
    if (list) {
        closedir(list);
    }
    return found && snprintf(train, PATH_SIZE, "%s/train%s", root, best) < PATH_SIZE &&
           snprintf(test, PATH_SIZE, "%s/test%s", root, best) < PATH_SIZE;
}

bool rfa_listops_trees_found(const char *root)
{
    char train[PATH_SIZE], test[PATH_SIZE];
    return find(train, test, root);
}

static rfa_status list(rfa_index *index, int64_t *longest, const char *root, int percent)
{
    char train[PATH_SIZE], test[PATH_SIZE];
    rfa_text_tables tables = {.columns = "label,text"};
    if (!find(train, test, root)) {
        return rfa_fail(RFA_ERR_IO, "%s: no train_NAME.tsv with a test_NAME.tsv in it", root);
    }
    RFA_TRY(rfa_text_table(index, &tables, train));
    const int64_t count = index->count;
    RFA_TRY(rfa_text_table(index, &tables, test));
    *longest = tables.longest;
    return rfa_index_split(index, count, percent);
}

rfa_status rfa_listops_trees_list(rfa_index *index, int64_t *longest, const char *root, int percent)
{
    *index = (rfa_index){0};
    const rfa_status status = list(index, longest, root, percent);
    if (status != RFA_OK) {
        rfa_index_destroy(index);
    }
    return status;
}

static rfa_status parse(rfa_listops_trees_reader *r, rfa_example *example, const rfa_entry *e)
{
    int value;
    if (memchr(r->text, 0, (size_t)e->size[0])) {
        return rfa_fail(RFA_ERR_IO, "not text: a zero byte");
    }
    r->text[e->size[0]] = 0;
    RFA_TRY(rfa_listops_encode(example->ids[0], &example->length[0],
                               rfa_listops_trees_symbols(r->longest), r->text));
    RFA_TRY(rfa_listops_evaluate(&value, example->ids[0], example->length[0]));
    example->label = value;
    return value == e->label ? RFA_OK
                             : rfa_fail(RFA_ERR_IO, "the label is %d, but the tree's value is %d",
                                        e->label, value);
}

rfa_status rfa_listops_trees_load(void *self, rfa_example *example, int split, int64_t index)
{
    rfa_listops_trees_reader *r = self;
    const rfa_entry *e = &r->index->entries[r->index->first[split] + index];
    const char *path = rfa_index_file(r->index, e, 0);
    RFA_ASSERT(e->size[0] <= r->longest);
    RFA_TRY(rfa_bytes_read(&r->bytes, path, e->place[0], r->text, e->size[0]));
    example->origin = e->origin;
    const rfa_status status = parse(r, example, e);
    return status == RFA_OK ? RFA_OK
                            : rfa_fail_within(status, "%s:%lld", path, (long long)e->origin);
}
