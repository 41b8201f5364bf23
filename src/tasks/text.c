#include "tasks/text.h"

#include "tasks/table.h"
#include "tasks/text_table.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

rfa_status rfa_text_document(rfa_bytes *bytes,
                             const rfa_index *index,
                             const rfa_entry *entry,
                             rfa_example *example,
                             int document,
                             int64_t max_length,
                             unsigned char *buffer)
{
    const rfa_entry *e = entry;
    const bool quoted = e->quoted >> document & 1;
    // Doubled quotes are two bytes of the file; one more shows whether the last one is.
    const int64_t most = quoted ? 2 * max_length + 2 : max_length;
    int64_t size = e->size[document] < most ? e->size[document] : most;
    RFA_TRY(rfa_bytes_read(bytes, rfa_index_file(index, e, document), e->place[document], buffer,
                           size));
    if (quoted) {
        size = rfa_unquote((char *)buffer, size);
    }
    size = size < max_length ? size : max_length;
    rfa_byte_ids(example->ids[document], buffer, (ptrdiff_t)size);
    example->length[document] = (ptrdiff_t)size;
    return RFA_OK;
}

rfa_status rfa_text_load(void *self, rfa_example *example, int split, int64_t index)
{
    rfa_text_reader *r = self;
    const rfa_entry *e = &r->index->entries[r->index->first[split] + index];
    example->label = e->label;
    example->origin = e->origin;
    return rfa_text_document(&r->bytes, r->index, e, example, 0, r->max_length, r->buffer);
}

static const char *const endings[] = {".tsv", ".csv", ".tsv.gz", ".csv.gz"};
enum { ENDINGS = 4 };

// root/split with the ending that exists; false when none does.
static bool table_path(char path[PATH_SIZE], const char *root, const char *split)
{
    for (int e = 0; e < ENDINGS; e++) {
        if (snprintf(path, PATH_SIZE, "%s/%s%s", root, split, endings[e]) < PATH_SIZE &&
            rfa_is_file(path)) {
            return true;
        }
    }
    return false;
}

static rfa_status
list_tables(rfa_index *index, rfa_text_facts *facts, const char *root, const rfa_text_options *o)
{
    char path[PATH_SIZE];
    rfa_text_tables tables = {.columns = o->columns};
    int64_t ends[RFA_SPLITS] = {0};
    bool own = false; // validation split
    static const char *const names[RFA_SPLITS][2] = {
        {"train", "train"}, {"val", "eval"}, {"test", "test"}};
    if (o->labels[0]) {
        RFA_TRY(rfa_labels_list(&tables.labels, o->labels));
    }
    for (int s = 0; s < RFA_SPLITS; s++) {
        if (table_path(path, root, names[s][0]) || table_path(path, root, names[s][1])) {
            if (s == 1 && o->percent_given) {
                return rfa_fail(RFA_ERR_USAGE,
                                "%s is there, so --validation, which makes a validation split, has "
                                "no meaning",
                                path);
            }
            own = own || s == 1;
            RFA_TRY(rfa_text_table(index, &tables, path));
        } else if (s != 1) {
            return rfa_fail(RFA_ERR_IO, "%s: %s.tsv (or .csv, .tsv.gz, .csv.gz) is missing", root,
                            rfa_splits[s]);
        }
        ends[s] = index->count;
    }
    facts->classes = tables.labels.classes;
    snprintf(facts->format, sizeof facts->format, "%s table",
             strstr(path, ".csv") ? "comma-separated" : "tab-separated");
    if (!own) {
        return rfa_index_split(index, ends[0], o->percent);
    }
    snprintf(facts->validation, sizeof facts->validation, "file");
    for (int s = 0; s < RFA_SPLITS; s++) {
        index->first[s] = s > 0 ? ends[s - 1] : 0;
        index->last[s] = ends[s];
    }
    return RFA_OK;
}

static rfa_status
list_tree(rfa_index *index, rfa_text_facts *facts, const char *root, const rfa_text_options *o)
{
    RFA_TRY(
        rfa_tree_list(index, &facts->classes, root, "train", ".txt", "unsup", RFA_TREE_BY_NUMBER));
    const int64_t train = index->count;
    RFA_TRY(
        rfa_tree_list(index, &facts->classes, root, "test", ".txt", "unsup", RFA_TREE_BY_NUMBER));
    snprintf(facts->format, sizeof facts->format, "folder tree");
    return rfa_index_split(index, train, o->percent);
}

rfa_status rfa_text_list(rfa_index *index,
                         rfa_text_facts *facts,
                         const char *root,
                         const rfa_text_options *options)
{
    char folder[PATH_SIZE], path[PATH_SIZE];
    *index = (rfa_index){0};
    memset(facts, 0, sizeof *facts);
    if (options->percent > 0) {
        snprintf(facts->validation, sizeof facts->validation, "last%d%%", options->percent);
    } else {
        snprintf(facts->validation, sizeof facts->validation, "test");
    }
    if (!rfa_is_folder(root)) {
        return rfa_find_folder(folder, sizeof folder, root, "train");
    }
    rfa_status status;
    if (table_path(path, root, "train") || table_path(path, root, "test")) {
        status = list_tables(index, facts, root, options);
    } else if (options->columns[0] || options->labels[0]) {
        status = rfa_fail(RFA_ERR_USAGE, "%s: --%s is for tables, but there is no train.tsv", root,
                          options->columns[0] ? "columns" : "labels");
    } else {
        status = rfa_find_folder(folder, sizeof folder, root, "train");
        if (status == RFA_OK) {
            status = list_tree(index, facts, folder, options);
        }
    }
    if (status == RFA_OK && facts->classes.count < 2) {
        status = rfa_fail(RFA_ERR_IO, "%s: all labels are the same", root);
    }
    if (status != RFA_OK) {
        rfa_index_destroy(index);
    }
    return status;
}
