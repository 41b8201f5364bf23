#include "tasks/columns.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

int rfa_list_item(const char **item, const char *list, int n)
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

void rfa_list_join(char *list, int size, const rfa_field *fields, int count)
{
    int used = 0;
    list[0] = 0;
    for (int f = 0; f < count && used < size; f++) {
        const int n =
            snprintf(list + used, (size_t)(size - used), "%s%s", f ? "," : "", fields[f].text);
        used += n > 0 ? n : 0;
    }
}

static bool is_one_of(const char *item, int size, const char *const *words)
{
    for (; *words; words++) {
        if ((int)strlen(*words) == size && strncasecmp(item, *words, (size_t)size) == 0) {
            return true;
        }
    }
    return false;
}

static const char *const labels[] = {"label", "sentiment", "class", "target", NULL};
static const char *const texts[] = {"text", "review", "sentence", "document", NULL};
static const char *const numbers[] = {"ids", "tokens", NULL};

bool rfa_columns_set(rfa_columns *columns, const char *list, bool any_kind)
{
    const char *item;
    rfa_columns c = {.label = -1};
    for (int size; (size = rfa_list_item(&item, list, c.count)) >= 0; c.count++) {
        if (is_one_of(item, size, labels) && c.label < 0) {
            c.label = c.count;
            continue;
        }
        if (any_kind && size > 1 && (item[size - 1] == '1' || item[size - 1] == '2')) {
            size--;
        }
        const bool ids = any_kind && is_one_of(item, size, numbers);
        if ((ids || is_one_of(item, size, texts)) && c.documents < (any_kind ? RFA_DOCUMENTS : 1)) {
            if (c.documents > 0 && c.ids != ids) {
                return false;
            }
            c.ids = ids;
            c.document[c.documents++] = c.count;
        }
    }
    if (c.label < 0 || c.documents == 0 || c.count > RFA_TABLE_FIELDS) {
        return false;
    }
    *columns = c;
    return true;
}
