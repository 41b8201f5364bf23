#include "storage/attributes.h"

#include "base/mem.h"
#include "storage/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

static rfa_status copy_text(const char **out, const char *text)
{
    char *copy = NULL;
    *out = NULL;
    if (text) {
        RFA_TRY(rfa_alloc(&copy, (ptrdiff_t)strlen(text) + 1, 1, "attribute"));
        strcpy(copy, text); // NOLINT(clang-analyzer-security.insecureAPI.strcpy): of that size
        *out = copy;
    }
    return RFA_OK;
}

static void free_item(rfa_run_attribute *item)
{
    rfa_free((char *)item->name);
    rfa_free((char *)item->text);
    *item = (rfa_run_attribute){0};
}

static rfa_run_attribute *find(const rfa_attributes *list, const char *name)
{
    for (int64_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

// Capacity: the count rounded up to a multiple of STRIDE.
enum { STRIDE = 32 };

rfa_status rfa_attributes_set(rfa_attributes *list, const rfa_run_attribute *attribute)
{
    if (list->count % STRIDE == 0) {
        rfa_run_attribute *items = NULL;
        RFA_TRY(rfa_alloc(&items, list->count + STRIDE, sizeof *items, "attributes"));
        if (list->items) {
            memcpy(items, list->items, (size_t)list->count * sizeof *items);
        }
        rfa_free(list->items);
        list->items = items;
    }
    rfa_run_attribute copy = *attribute;
    RFA_TRY(copy_text(&copy.name, attribute->name));
    const rfa_status status = copy_text(&copy.text, attribute->text);
    if (status != RFA_OK) {
        rfa_free((char *)copy.name);
        return status;
    }
    rfa_run_attribute *at = find(list, attribute->name);
    if (at) {
        free_item(at);
    } else {
        at = &list->items[list->count++];
    }
    *at = copy;
    return RFA_OK;
}

rfa_status rfa_attributes_set_text(rfa_attributes *list, const char *name, const char *text)
{
    return text ? rfa_attributes_set(list, &(rfa_run_attribute){.name = name, .text = text})
                : RFA_OK;
}

rfa_status rfa_attributes_set_int(rfa_attributes *list, const char *name, int64_t value)
{
    const rfa_run_attribute number = {
        .name = name, .number = (double)value, .integer = value, .whole = true};
    return rfa_attributes_set(list, &number);
}

rfa_status rfa_attributes_set_flag(rfa_attributes *list, const char *name, bool flag)
{
    return rfa_attributes_set(list,
                              &(rfa_run_attribute){.name = name, .integer = flag, .flag = true});
}

const rfa_run_attribute *rfa_attributes_find(const rfa_attributes *list, const char *name)
{
    return find(list, name);
}

const char *rfa_attributes_text(const rfa_attributes *list, const char *name)
{
    const rfa_run_attribute *found = find(list, name);
    return found ? found->text : NULL;
}

void rfa_attributes_free(rfa_attributes *list)
{
    for (int64_t i = 0; i < list->count; i++) {
        free_item(&list->items[i]);
    }
    rfa_free(list->items);
    *list = (rfa_attributes){0};
}

rfa_status rfa_attribute_word(char **out, const rfa_run_attribute *attribute, bool json)
{
    const size_t size = attribute->text ? rfa_json_quoted_size(attribute->text) : RFA_JSON_NUMBER;
    RFA_TRY(rfa_alloc(out, (ptrdiff_t)size, 1, attribute->name));
    if (attribute->text && json) {
        rfa_json_quote(*out, attribute->text);
    } else if (attribute->text) {
        snprintf(*out, size, "%s", attribute->text);
    } else if (attribute->flag) {
        snprintf(*out, size, "%s", attribute->integer ? "true" : "false");
    } else if (attribute->whole) {
        snprintf(*out, size, "%" PRId64, attribute->integer);
    } else if (json) {
        rfa_json_number(*out, attribute->number);
    } else {
        snprintf(*out, size, "%.6g", attribute->number);
    }
    return RFA_OK;
}

// What a plain scalar says: YAML's core schema, without octal, hexadecimal and empty values.
static void resolve(rfa_run_attribute *item, const char *text)
{
    char *end = NULL;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        item->flag = true;
        item->integer = text[0] == 't';
        item->number = (double)item->integer;
        return;
    }
    if (strchr("+-.0123456789", text[0]) && text[0]) {
        errno = 0;
        item->integer = strtoll(text, &end, 10);
        if (*end == '\0' && errno == 0) {
            item->whole = true;
            item->number = (double)item->integer;
            return;
        }
        item->integer = 0;
        item->number = strtod(text, &end);
        if (*end == '\0') {
            return;
        }
        item->number = 0;
    }
    item->text = text;
}

enum { NAME_SIZE = 256, DEPTH = 8 };

// Adds the scalars below node; name holds the keys so far.
static rfa_status add_node( // NOLINT(misc-no-recursion): DEPTH bounds it
    rfa_attributes *list,
    yaml_document_t *document,
    const yaml_node_t *node,
    char name[NAME_SIZE],
    int depth)
{
    const size_t length = strlen(name);
    if (node->type == YAML_SCALAR_NODE) {
        rfa_run_attribute item = {.name = name};
        const char *text = (const char *)node->data.scalar.value;
        if (node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
            resolve(&item, text);
        } else {
            item.text = text;
        }
        return rfa_attributes_set(list, &item);
    }
    if (node->type != YAML_MAPPING_NODE || depth >= DEPTH) {
        return RFA_OK;
    }
    const yaml_node_pair_t *end = node->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < end; pair++) {
        const yaml_node_t *key = yaml_document_get_node(document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(document, pair->value);
        if (key->type == YAML_SCALAR_NODE) {
            snprintf(name + length, NAME_SIZE - length, "%s%s", length ? "." : "",
                     (const char *)key->data.scalar.value);
            RFA_TRY(add_node(list, document, value, name, depth + 1));
            name[length] = '\0';
        }
    }
    return RFA_OK;
}

rfa_status rfa_attributes_parse(rfa_attributes *list, const char *yaml)
{
    *list = (rfa_attributes){0};
    yaml_parser_t parser;
    yaml_document_t document;
    if (!yaml_parser_initialize(&parser)) {
        return rfa_fail(RFA_ERR_MEMORY, "configuration: cannot allocate a parser");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)yaml, strlen(yaml));
    rfa_status status = RFA_OK;
    if (!yaml_parser_load(&parser, &document)) {
        status = rfa_fail(RFA_ERR_USAGE, "configuration: line %zu: %s",
                          parser.problem_mark.line + 1, parser.problem ? parser.problem : "?");
    } else {
        const yaml_node_t *root = yaml_document_get_root_node(&document);
        char name[NAME_SIZE] = "";
        if (root && root->type != YAML_MAPPING_NODE) {
            status = rfa_fail(RFA_ERR_USAGE, "configuration: not a YAML mapping");
        } else if (root) {
            status = add_node(list, &document, root, name, 0);
        }
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    if (status != RFA_OK) {
        rfa_attributes_free(list);
    }
    return status;
}
