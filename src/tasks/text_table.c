#include "tasks/text_table.h"

#include "tasks/token_ids.h"

#include <stdio.h>
#include <string.h>

enum { LIST = 512 };

typedef struct {
    rfa_index *index;
    rfa_text_tables *tables;
    const char *path;
    rfa_table *table;
    int64_t name; // of the file, in the index
} job;

// Document d of a record into the entry; *empty when there is nothing in it.
static rfa_status
set_document(const job *j, rfa_entry *entry, int d, const rfa_field *field, bool *empty)
{
    rfa_text_tables *t = j->tables;
    ptrdiff_t count = field->size;
    if (t->found.ids) {
        RFA_TRY(rfa_token_ids(NULL, &count, PTRDIFF_MAX, &t->highest, field->text, field->length,
                              t->vocabulary));
    } else if (!rfa_is_utf8(field->text, field->length) && j->index->not_text++ == 0) {
        snprintf(j->index->not_text_first, sizeof j->index->not_text_first, "%.400s:%lld", j->path,
                 (long long)entry->origin);
    }
    *empty = count == 0;
    t->longest = field->size > t->longest ? field->size : t->longest;
    entry->file[d] = j->name;
    entry->place[d] = field->place;
    entry->size[d] = field->size;
    entry->quoted |= field->quoted << d;
    return RFA_OK;
}

static rfa_status add(const job *j, const rfa_field *fields, int count, int64_t line)
{
    const rfa_columns *c = &j->tables->found;
    rfa_entry entry = {.origin = line};
    if (count != c->count) {
        return rfa_fail(RFA_ERR_IO, "%d column%s, not %d", count, count == 1 ? "" : "s", c->count);
    }
    const rfa_field *label = &fields[c->label];
    if (!rfa_field_is_word(label)) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.40s' and more", label->text);
    }
    RFA_TRY(rfa_labels_find(&j->tables->labels, &entry.label, label->text));
    for (int d = 0; d < c->documents; d++) {
        bool empty;
        RFA_TRY(set_document(j, &entry, d, &fields[c->document[d]], &empty));
        if (empty) {
            rfa_index_skip(j->index, "%s:%lld: the text is empty", j->path, (long long)line);
            return RFA_OK;
        }
    }
    return rfa_index_add(j->index, &entry);
}

// What the first record says about the columns; *header when it is none of the examples.
static rfa_status learn_columns(const job *j, char separator, bool *header)
{
    rfa_text_tables *t = j->tables;
    rfa_table *table = NULL;
    rfa_field fields[RFA_TABLE_FIELDS];
    rfa_columns named = {0};
    char list[LIST];
    int count = 0;
    if (t->found.documents == 0 && t->columns && t->columns[0] &&
        !rfa_columns_set(&t->found, t->columns, t->any_kind)) {
        return rfa_fail(RFA_ERR_USAGE,
                        "--columns '%s': names up to %d columns, of which one is label and one "
                        "text%s",
                        t->columns, RFA_TABLE_FIELDS, t->any_kind ? " or ids, or two of them" : "");
    }
    RFA_TRY(rfa_table_open(&table, j->path, separator, RFA_TABLE_FIELDS, true));
    const rfa_status status = rfa_table_next(table, fields, &count);
    if (status == RFA_OK) {
        rfa_list_join(list, LIST, fields, count);
        *header = rfa_columns_set(&named, list, t->any_kind);
        if (t->found.documents == 0 && *header) {
            t->found = named;
        } else if (t->found.documents == 0) {
            RFA_ASSERT(rfa_columns_set(&t->found, "label,text", false));
        }
    }
    rfa_table_close(&table);
    return status;
}

static rfa_status add_records(job *j, bool header)
{
    rfa_field fields[RFA_TABLE_FIELDS];
    int count = 0;
    rfa_status status;
    while ((status = rfa_table_next(j->table, fields, &count)) == RFA_OK && count > 0) {
        const int64_t line = rfa_table_line(j->table);
        if (header) {
            header = false;
            continue;
        }
        status = add(j, fields, count, line);
        if (status != RFA_OK) {
            return rfa_fail_within(status, "%s:%lld", j->path, (long long)line);
        }
    }
    return status;
}

rfa_status rfa_text_table(rfa_index *index, rfa_text_tables *tables, const char *path)
{
    job j = {.index = index, .tables = tables, .path = path};
    const rfa_columns *c = &tables->found;
    const int64_t before = index->count;
    const char separator = strstr(path, ".csv") ? ',' : '\t';
    bool header = false;
    RFA_TRY(learn_columns(&j, separator, &header));
    RFA_TRY(rfa_index_name(index, &j.name, path));
    RFA_TRY(rfa_index_stamp(index, path));
    // One text, in the last column of a line: further tabs are part of it.
    const bool rest =
        separator == '\t' && !c->ids && c->documents == 1 && c->document[0] == c->count - 1;
    RFA_TRY(rfa_table_open(&j.table, path, separator, c->count, rest));
    rfa_status status = add_records(&j, header);
    rfa_table_close(&j.table);
    if (status == RFA_OK && index->count == before) {
        status = rfa_fail(RFA_ERR_IO, "%s: no examples in it", path);
    }
    return status;
}
