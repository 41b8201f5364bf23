#include "tasks/labels.h"

#include "tasks/columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

rfa_status rfa_labels_list(rfa_labels *labels, const char *list)
{
    const char *item;
    rfa_classes *c = &labels->classes;
    for (int size; (size = rfa_list_item(&item, list, c->count)) >= 0;) {
        if (size == 0 || size >= RFA_CLASS_NAME || c->count == RFA_TREE_CLASSES) {
            return rfa_fail(RFA_ERR_USAGE, "--labels '%s': name %d is empty or too long", list,
                            c->count + 1);
        }
        memcpy(c->name[c->count], item, (size_t)size);
        c->name[c->count++][size] = 0;
    }
    labels->listed = labels->named = labels->closed = true;
    return c->count >= 2 ? RFA_OK
                         : rfa_fail(RFA_ERR_USAGE, "--labels '%s': two classes or more", list);
}

void rfa_labels_count(rfa_labels *labels, int count)
{
    rfa_classes *c = &labels->classes;
    for (; c->count < count; c->count++) {
        snprintf(c->name[c->count], RFA_CLASS_NAME, "%d", c->count);
    }
    labels->closed = true;
}

static rfa_status find_number(rfa_labels *labels, int *label, const char *text)
{
    rfa_classes *c = &labels->classes;
    const int most = labels->closed ? c->count - 1 : RFA_TREE_CLASSES - 1;
    *label = (int)rfa_label_number(text, most);
    if (*label < 0) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.40s', not a number from 0 to %d", text, most);
    }
    const bool closed = labels->closed;
    rfa_labels_count(labels, *label + 1);
    labels->closed = closed;
    return RFA_OK;
}

rfa_status rfa_labels_find(rfa_labels *labels, int *label, const char *text)
{
    rfa_classes *c = &labels->classes;
    if (labels->any_names && c->count == 0) {
        labels->named = rfa_label_number(text, RFA_TREE_CLASSES - 1) < 0;
    }
    if (!labels->named) {
        return find_number(labels, label, text);
    }
    for (int n = 0; n < c->count; n++) {
        if (strcmp(c->name[n], text) == 0) {
            *label = n;
            return RFA_OK;
        }
    }
    const size_t size = strlen(text);
    if (labels->listed) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.40s', none of those of --labels", text);
    }
    if (labels->closed) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.40s', which the training table doesn't have",
                        text);
    }
    if (size == 0 || size >= RFA_CLASS_NAME || c->count == RFA_TREE_CLASSES) {
        return rfa_fail(RFA_ERR_IO, "the label is '%.40s', a name of %zu bytes after %d others",
                        text, size, c->count);
    }
    *label = c->count;
    memcpy(c->name[c->count++], text, size + 1);
    return RFA_OK;
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

void rfa_labels_close(rfa_labels *labels, rfa_index *index)
{
    rfa_classes *c = &labels->classes;
    if (!labels->closed && labels->named) {
        const rfa_classes came = *c;
        int place[RFA_TREE_CLASSES] = {0};
        qsort(c->name, (size_t)c->count, sizeof *c->name, compare);
        for (int n = 0; n < c->count; n++) {
            const char(*found)[RFA_CLASS_NAME] =
                bsearch(came.name[n], c->name, (size_t)c->count, sizeof *c->name, compare);
            place[n] = (int)(found - (const char(*)[RFA_CLASS_NAME])c->name);
        }
        for (int64_t i = 0; i < index->count; i++) {
            index->entries[i].label = place[index->entries[i].label];
        }
    }
    labels->closed = true;
}
