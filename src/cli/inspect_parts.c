#include "base/mem.h"
#include "cli/inspect.h"
#include "storage/json.h"

#include <stdio.h>
#include <string.h>

enum { TITLE = 13, PAGE = 100 }; // columns

static bool is_in(const char *const *names, const char *name)
{
    for (; names && *names; names++) {
        if (strcmp(*names, name) == 0) {
            return true;
        }
    }
    return false;
}

rfa_status rfa_inspect_list(const char *title,
                            const rfa_attributes *list,
                            const char *prefix,
                            const char *const *skip)
{
    const size_t cut = strlen(prefix);
    size_t column = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const rfa_run_attribute *item = &list->items[i];
        if (strncmp(item->name, prefix, cut) != 0 || is_in(skip, item->name)) {
            continue;
        }
        char *word = NULL;
        RFA_TRY(rfa_attribute_word(&word, item, false));
        for (char *c = word; *c; c++) {
            *c = (unsigned char)*c < ' ' ? ' ' : *c;
        }
        const char *name = item->name + cut;
        const size_t size = strlen(name) + 1 + strlen(word);
        if (column == 0) {
            printf("%-*s", TITLE, title);
            column = TITLE;
        } else if (column + 2 + size > PAGE) {
            printf(",\n%*s", TITLE, "");
            column = TITLE;
        } else {
            printf(", ");
            column += 2;
        }
        printf("%s %s", name, word);
        column += size;
        rfa_free(word);
    }
    if (column > 0) {
        printf("\n");
    }
    return RFA_OK;
}

rfa_status rfa_inspect_config(const char *config_text)
{
    rfa_attributes keys;
    RFA_TRY(rfa_attributes_parse(&keys, config_text));
    rfa_status status = RFA_OK;
    char done[64] = "";
    for (int64_t i = 0; i < keys.count && status == RFA_OK; i++) {
        const char *dot = strchr(keys.items[i].name, '.');
        char section[64];
        snprintf(section, sizeof section, "%.*s", dot ? (int)(dot - keys.items[i].name) + 1 : 0,
                 keys.items[i].name);
        if (section[0] && strcmp(section, done) != 0) { // keys of a section stand together
            char title[64];
            snprintf(title, sizeof title, "%.*s", (int)strlen(section) - 1, section);
            memcpy(done, section, sizeof done);
            status = rfa_inspect_list(title, &keys, section, NULL);
        }
    }
    rfa_attributes_free(&keys);
    return status;
}

rfa_status rfa_inspect_quoted(const char *text)
{
    char *quoted = NULL;
    RFA_TRY(rfa_alloc(&quoted, (ptrdiff_t)rfa_json_quoted_size(text), 1, "text"));
    fputs(rfa_json_quote(quoted, text), stdout);
    rfa_free(quoted);
    return RFA_OK;
}

rfa_status rfa_inspect_object(const rfa_attributes *list)
{
    printf("{");
    for (int64_t i = 0; i < list->count; i++) {
        char *word = NULL;
        printf("%s", i ? "," : "");
        RFA_TRY(rfa_inspect_quoted(list->items[i].name));
        RFA_TRY(rfa_attribute_word(&word, &list->items[i], true));
        printf(":%s", word);
        rfa_free(word);
    }
    printf("}");
    return RFA_OK;
}
