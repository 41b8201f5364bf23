#include "tasks/text_table.h"

#include "tasks/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME = 64 };

int64_t rfa_label_number(const char *text, int64_t most)
{
    int64_t number = 0;
    const size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (digits == 0 || digits > 10) {
        return -1;
    }
    for (size_t i = 0; i < digits; i++) {
        number = 10 * number + (text[i] - '0');
    }
    if (*rest == '.') {
        rest += 1 + strspn(rest + 1, "0");
    }
    return *rest == 0 && number <= most ? number : -1;
}

// Item n of a list with commas: its size, or -1 behind the last one.
static int list_item(const char **item, const char *list, int n)
{
    const char *at = list;
    for (; n > 0; n--) {
        at = strchr(at, ',');
        if (!at) {
            return -1;
        }
        at++;
    }
    *item = at;
    return (int)strcspn(at, ",");
}

static bool is_word(const char *item, int size, const char *word)
{
    return (int)strlen(word) == size && strncasecmp(item, word, (size_t)size) == 0;
}

static bool names_label(const char *item, int size)
{
    return is_word(item, size, "label") || is_word(item, size, "sentiment") ||
           is_word(item, size, "class") || is_word(item, size, "target");
}

static bool names_text(const char *item, int size)
{
    return is_word(item, size, "text") || is_word(item, size, "review") ||
           is_word(item, size, "sentence") || is_word(item, size, "document");
}

// Columns from a list of names: one is the label, one the text. False when it doesn't hold both.
static bool set_columns(rfa_text_columns *columns, const char *list)
{
    const char *item;
    rfa_text_columns c = {.label = -1, .text = -1};
    for (int size; (size = list_item(&item, list, c.count)) >= 0; c.count++) {
        if (names_label(item, size) && c.label < 0) {
            c.label = c.count;
        } else if (names_text(item, size) && c.text < 0) {
            c.text = c.count;
        }
    }
    if (c.label < 0 || c.text < 0 || c.count > RFA_TABLE_FIELDS) {
        return false;
    }
    *columns = c;
    return true;
}

// The header as such a list.
static void join_fields(char list[512], const rfa_field *fields, int count)
{
    size_t used = 0;
    list[0] = 0;
    for (int f = 0; f < count && used < 512; f++) {
        const int n = snprintf(list + used, 512 - used, "%s%s", f ? "," : "", fields[f].text);
        used += n > 0 ? (size_t)n : 0;
    }
}

// Class of a label; -1 when it is none.
static int find_class(const rfa_text_options *options, rfa_classes *classes, const char *label)
{
    const char *item;
    if (options->labels[0]) {
        for (int n = 0, size; (size = list_item(&item, options->labels, n)) >= 0; n++) {
            if ((int)strlen(label) == size && memcmp(item, label, (size_t)size) == 0) {
                return n;
            }
        }
        return -1;
    }
    const int number = (int)rfa_label_number(label, RFA_TREE_CLASSES - 1);
    for (; classes->count <= number; classes->count++) {
        snprintf(classes->name[classes->count], RFA_CLASS_NAME, "%d", classes->count);
    }
    return number;
}

static rfa_status name_classes(rfa_classes *classes, const rfa_text_options *options)
{
    const char *item;
    for (int size; (size = list_item(&item, options->labels, classes->count)) >= 0;) {
        if (size == 0 || size >= RFA_CLASS_NAME || classes->count == RFA_TREE_CLASSES) {
            return rfa_fail(RFA_ERR_USAGE, "--labels '%s': name %d is empty or too long",
                            options->labels, classes->count + 1);
        }
        memcpy(classes->name[classes->count], item, (size_t)size);
        classes->name[classes->count++][size] = 0;
    }
    return classes->count >= 2
               ? RFA_OK
               : rfa_fail(RFA_ERR_USAGE, "--labels '%s': two classes or more", options->labels);
}

typedef struct {
    rfa_index *index;
    rfa_text_columns *columns;
    rfa_classes *classes;
    const rfa_text_options *options;
    const char *path;
    rfa_table *table;
    int64_t name; // of the file, in the index
} job;

static rfa_status add(const job *j, const rfa_field *fields, int count)
{
    const rfa_text_columns *c = j->columns;
    const long long line = rfa_table_line(j->table);
    if (count != c->count) {
        return rfa_fail(RFA_ERR_IO, "%s:%lld: %d column%s, not %d", j->path, line, count,
                        count == 1 ? "" : "s", c->count);
    }
    const rfa_field *text = &fields[c->text];
    const int label = rfa_field_is_word(&fields[c->label])
                          ? find_class(j->options, j->classes, fields[c->label].text)
                          : -1;
    if (label < 0) {
        return rfa_fail(RFA_ERR_IO, "%s:%lld: the label is '%.40s', %s%.80s", j->path, line,
                        fields[c->label].text,
                        j->options->labels[0] ? "none of " : "not a number from 0 to 1023",
                        j->options->labels);
    }
    if (text->size == 0) {
        rfa_index_skip(j->index, "%s:%lld: the text is empty", j->path, line);
        return RFA_OK;
    }
    if (!rfa_is_utf8(text->text, text->length) && j->index->not_text++ == 0) {
        snprintf(j->index->not_text_first, sizeof j->index->not_text_first, "%.400s:%lld", j->path,
                 line);
    }
    const rfa_entry entry = {.file = {j->name},
                             .place = {text->place},
                             .size = {text->size},
                             .origin = line,
                             .label = label,
                             .quoted = text->quoted};
    return rfa_index_add(j->index, &entry);
}

// What the first record says about the columns; *header when it is none of the examples.
static rfa_status learn_columns(const job *j, char separator, bool *header)
{
    rfa_table *table = NULL;
    rfa_field fields[RFA_TABLE_FIELDS];
    rfa_text_columns named;
    char list[512];
    int count = 0;
    RFA_TRY(rfa_table_open(&table, j->path, separator, RFA_TABLE_FIELDS, true));
    const rfa_status status = rfa_table_next(table, fields, &count);
    if (status == RFA_OK) {
        join_fields(list, fields, count);
        *header = set_columns(&named, list);
        if (j->columns->count == 0 && !(*header && set_columns(j->columns, list))) {
            RFA_ASSERT(set_columns(j->columns, "label,text"));
        }
    }
    rfa_table_close(&table);
    return status;
}

rfa_status rfa_text_table(rfa_index *index,
                          rfa_text_columns *columns,
                          rfa_classes *classes,
                          const char *path,
                          const rfa_text_options *options)
{
    job j = {
        .index = index, .columns = columns, .classes = classes, .options = options, .path = path};
    rfa_field fields[RFA_TABLE_FIELDS];
    const int64_t before = index->count;
    const char separator = strstr(path, ".csv") ? ',' : '\t';
    int count = 0;
    bool header = false;
    if (options->columns[0] && columns->count == 0 && !set_columns(columns, options->columns)) {
        return rfa_fail(
            RFA_ERR_USAGE,
            "--columns '%s': names up to %d columns, of which one is label and one text",
            options->columns, RFA_TABLE_FIELDS);
    }
    if (options->labels[0] && classes->count == 0) {
        RFA_TRY(name_classes(classes, options));
    }
    RFA_TRY(learn_columns(&j, separator, &header));
    RFA_TRY(rfa_index_name(index, &j.name, path));
    RFA_TRY(rfa_index_stamp(index, path));
    // The text in the last column of a line: further tabs are part of it.
    const bool rest = separator == '\t' && columns->text == columns->count - 1;
    RFA_TRY(rfa_table_open(&j.table, path, separator, columns->count, rest));
    rfa_status status;
    while ((status = rfa_table_next(j.table, fields, &count)) == RFA_OK && count > 0) {
        if (header) {
            header = false;
        } else if ((status = add(&j, fields, count)) != RFA_OK) {
            break;
        }
    }
    rfa_table_close(&j.table);
    if (status == RFA_OK && index->count == before) {
        status = rfa_fail(RFA_ERR_IO, "%s: no examples in it", path);
    }
    return status;
}
