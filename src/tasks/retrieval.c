#include "tasks/retrieval.h"

#include "tasks/labels.h"
#include "tasks/papers.h"
#include "tasks/table.h"
#include "tasks/text.h"

#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 4096 };

rfa_status rfa_retrieval_load(void *self, rfa_example *example, int split, int64_t index)
{
    rfa_retrieval_reader *r = self;
    const rfa_entry *e = &r->index->entries[r->index->first[split] + index];
    example->label = e->label;
    example->origin = e->origin;
    for (int d = 0; d < RFA_DOCUMENTS; d++) {
        RFA_TRY(rfa_text_document(&r->bytes, r->index, e, example, d, r->max_length, r->buffer));
    }
    return RFA_OK;
}

// What one line of pairs is made of.
typedef struct {
    rfa_index *index;
    const rfa_papers *papers; // NULL: the texts are in the line
    const char *path;
    int64_t name; // of the file, in the index
} job;

static void check_utf8(const job *j, const rfa_field *field, int64_t line)
{
    if (!rfa_is_utf8(field->text, field->length) && j->index->not_text++ == 0) {
        snprintf(j->index->not_text_first, sizeof j->index->not_text_first, "%.400s:%lld", j->path,
                 (long long)line);
    }
}

// Both documents of a line: where their bytes are. *empty: the number of the empty one, or -1.
static rfa_status set_documents(const job *j, rfa_entry *entry, const rfa_field *fields, int *empty)
{
    *empty = -1;
    for (int d = 0; d < RFA_DOCUMENTS; d++) {
        if (j->papers) {
            const rfa_paper *paper = rfa_field_is_word(&fields[1 + d])
                                         ? rfa_papers_find(j->papers, fields[1 + d].text)
                                         : NULL;
            if (!paper) {
                return rfa_fail(RFA_ERR_IO, "no paper has the id '%.60s'", fields[1 + d].text);
            }
            entry->file[d] = paper->file;
            entry->place[d] = paper->place;
            entry->size[d] = paper->size;
        } else {
            entry->file[d] = j->name;
            entry->place[d] = fields[3 + d].place;
            entry->size[d] = fields[3 + d].size;
            check_utf8(j, &fields[3 + d], entry->origin);
        }
        *empty = entry->size[d] == 0 ? d : *empty;
    }
    return RFA_OK;
}

static rfa_status add_pair(const job *j, const rfa_field *fields, int count, int64_t line)
{
    const int columns = j->papers ? 3 : 5;
    if (count != columns) {
        return rfa_fail(RFA_ERR_IO, "%d column%s, not %d", count, count == 1 ? "" : "s", columns);
    }
    const int64_t label = rfa_field_is_word(&fields[0]) ? rfa_label_number(fields[0].text, 1) : -1;
    if (label < 0) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.20s', not 0 or 1", fields[0].text);
    }
    rfa_entry entry = {.origin = line, .label = (int32_t)label};
    int empty;
    RFA_TRY(set_documents(j, &entry, fields, &empty));
    if (empty >= 0) {
        rfa_index_skip(j->index, "%s:%lld: document %d is empty", j->path, (long long)line,
                       empty + 1);
        return RFA_OK;
    }
    return rfa_index_add(j->index, &entry);
}

static rfa_status list_file(rfa_index *index, const rfa_papers *papers, const char *path)
{
    job j = {.index = index, .papers = papers, .path = path};
    rfa_table *table = NULL;
    rfa_field fields[RFA_TABLE_FIELDS];
    const int64_t before = index->count;
    int count = 0;
    RFA_TRY(rfa_index_stamp(index, path));
    RFA_TRY(rfa_index_name(index, &j.name, path));
    RFA_TRY(rfa_table_open(&table, path, '\t', papers ? 3 : 5, false));
    rfa_status status;
    while ((status = rfa_table_next(table, fields, &count)) == RFA_OK && count > 0) {
        const int64_t line = rfa_table_line(table);
        status = add_pair(&j, fields, count, line);
        if (status != RFA_OK) {
            status = rfa_fail_within(status, "%s:%lld", path, (long long)line);
            break;
        }
    }
    rfa_table_close(&table);
    if (status == RFA_OK && index->count == before) {
        status = rfa_fail(RFA_ERR_IO, "%s: no pairs in it", path);
    }
    return status;
}

// root/PREFIX.SPLIT.tsv or .tsv.gz; eval or val for the validation split.
static bool find_pairs(char path[PATH_SIZE], const char *root, const char *prefix, int split)
{
    static const char *const names[RFA_SPLITS][2] = {
        {"train", "train"}, {"eval", "val"}, {"test", "test"}};
    for (int n = 0; n < 4; n++) {
        if (snprintf(path, PATH_SIZE, "%s/%s.%s.tsv%s", root, prefix, names[split][n / 2],
                     n % 2 ? ".gz" : "") < PATH_SIZE &&
            rfa_is_file(path)) {
            return true;
        }
    }
    return false;
}

static rfa_status
list_splits(rfa_index *index, const rfa_papers *papers, const char *root, const char *prefix)
{
    static const char *const names[RFA_SPLITS] = {"train", "eval", "test"};
    char path[PATH_SIZE];
    for (int s = 0; s < RFA_SPLITS; s++) {
        if (!find_pairs(path, root, prefix, s)) {
            return rfa_fail(RFA_ERR_IO, "%s: %s.%s.tsv (or .gz) is missing", root, prefix,
                            names[s]);
        }
        index->first[s] = index->count;
        RFA_TRY(list_file(index, papers, path));
        index->last[s] = index->count;
    }
    return RFA_OK;
}

static rfa_status list_with_papers(rfa_index *index, const char *root)
{
    char path[PATH_SIZE];
    rfa_papers papers = {0};
    if (snprintf(path, sizeof path, "%s/papers.tsv", root) >= PATH_SIZE) {
        return rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", root);
    }
    rfa_status status = rfa_papers_read(&papers, index, path);
    if (status == RFA_OK) {
        status = list_splits(index, &papers, root, "pairs");
    }
    rfa_papers_free(&papers);
    return status;
}

rfa_status rfa_retrieval_list(rfa_index *index, char format[64], const char *root)
{
    static const char *const files[] = {"new_aan_pairs.train.tsv", "new_aan_pairs.train.tsv.gz",
                                        "papers.tsv"};
    char folder[PATH_SIZE];
    *index = (rfa_index){0};
    for (int f = 0; f < 3; f++) {
        if (rfa_find_folder(folder, sizeof folder, root, files[f]) == RFA_OK) {
            snprintf(format, 64, "%s", f < 2 ? "five-column table" : "papers and pairs");
            const rfa_status status = f < 2 ? list_splits(index, NULL, folder, "new_aan_pairs")
                                            : list_with_papers(index, folder);
            if (status != RFA_OK) {
                rfa_index_destroy(index);
            }
            return status;
        }
        if (!rfa_is_folder(root) || strstr(rfa_error_text(), "which one")) {
            return RFA_ERR_IO;
        }
    }
    return rfa_fail(RFA_ERR_IO,
                    "%s: neither new_aan_pairs.train.tsv nor papers.tsv in it, nor one or two "
                    "levels deeper",
                    root);
}
