// Two levels of YAML: sections, and in each "key: scalar"; before them "include: FILE".
#include "config/keys.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

enum {
    TEXT_MOST = 32768, // bytes of a file; the help, with every key, has some 5 000
    DEPTH_MOST = 4,    // files that include each other
};

typedef struct {
    const char *name, *text;
    size_t length;
    yaml_document_t document;
    yaml_node_item_t last; // node read last: libyaml numbers nodes in reading order
    size_t line;           // and its line
    rfa_config config;     // becomes the caller's only when all is well
    int depth;             // of includes, from 0; -1: a text without a folder includes nothing
} reader;

static rfa_status load(rfa_config *config, const char *path, int depth);

static size_t line_of(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

// Line, from 1, of the byte at offset; beyond the end, of the last byte.
static size_t line_at(const reader *r, size_t offset)
{
    size_t line = 1;
    for (size_t i = 0; i < offset && i + 1 < r->length; i++) {
        line += r->text[i] == '\n';
    }
    return line;
}

// libyaml places the end of the text on a line after the last.
static size_t line_of_mark(const reader *r, yaml_mark_t mark)
{
    const size_t line = mark.line + 1, last = line_at(r, r->length);
    return line < last ? line : last;
}

static bool is_indented_by_tab(const reader *r, size_t line)
{
    const char *s = r->text;
    for (size_t i = 1; s && i < line; i++) {
        s = strchr(s, '\n');
        s = s ? s + 1 : NULL;
    }
    return s && s[strspn(s, " ")] == '\t';
}

static rfa_status syntax_error(const reader *r, const yaml_parser_t *parser)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        return rfa_fail(RFA_ERR_MEMORY, "%.300s: cannot allocate memory for YAML", r->name);
    }
    const char *problem = parser->problem ? parser->problem : "broken YAML";
    if (parser->error == YAML_READER_ERROR) { // has an offset, and no marks
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: %s", r->name,
                        line_at(r, parser->problem_offset), problem);
    }
    const size_t line = line_of_mark(r, parser->problem_mark);
    const char *tab = is_indented_by_tab(r, line) ? "; indent with spaces, not with tabs" : "";
    if (parser->context) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: %s, %s from line %zu%s", r->name, line, problem,
                        parser->context, line_of_mark(r, parser->context_mark), tab);
    }
    return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: %s%s", r->name, line, problem, tab);
}

// The next node in reading order. An alias gives a node that was read before: it would hide where a
// value comes from, and could lead in circles.
static rfa_status next_node(const yaml_node_t **out, reader *r, yaml_node_item_t item)
{
    static const char *const plain[] = {NULL, YAML_STR_TAG, YAML_SEQ_TAG, YAML_MAP_TAG};
    const yaml_node_t *node = yaml_document_get_node(&r->document, item);
    RFA_ASSERT(node);
    *out = node;
    if (item <= r->last) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: aliases (*name) are not supported", r->name,
                        r->line);
    }
    r->last = item;
    r->line = line_of(node);
    if (strcmp((const char *)node->tag, plain[node->type]) != 0) {
        char shown[RFA_SHOWN];
        const char *tag = (const char *)node->tag;
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: tags (%s) are not supported", r->name, r->line,
                        rfa_shown(shown, tag, strlen(tag)));
    }
    return RFA_OK;
}

static bool is_same_scalar(const yaml_node_t *a, const yaml_node_t *b)
{
    return a->data.scalar.length == b->data.scalar.length &&
           memcmp(a->data.scalar.value, b->data.scalar.value, a->data.scalar.length) == 0;
}

// Reads the name of a pair; a name that the mapping has had before is an error.
static rfa_status next_name(char out[RFA_SHOWN],
                            reader *r,
                            const yaml_node_t *mapping,
                            const yaml_node_pair_t *pair,
                            const char *section)
{
    const yaml_node_t *node = NULL;
    RFA_TRY(next_node(&node, r, pair->key));
    if (node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: the name of a %s must be one word", r->name,
                        r->line, *section ? "key" : "section");
    }
    // Names that are cut or cleaned here are unknown either way.
    rfa_shown(out, (const char *)node->data.scalar.value, node->data.scalar.length);
    for (const yaml_node_pair_t *p = mapping->data.mapping.pairs.start; p < pair; p++) {
        const yaml_node_t *former = yaml_document_get_node(&r->document, p->key);
        if (is_same_scalar(former, node)) {
            return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: '%s%s%s' is given twice, first in line %zu",
                            r->name, r->line, section, *section ? "." : "", out, line_of(former));
        }
    }
    return RFA_OK;
}

static bool is_null(const yaml_node_t *node)
{
    static const char *const names[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (node->type == YAML_SCALAR_NODE && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
            node->data.scalar.length == strlen(names[i]) &&
            strcmp((const char *)node->data.scalar.value, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static rfa_status read_value(reader *r, const rfa_key *key, yaml_node_item_t item)
{
    const yaml_node_t *node = NULL;
    RFA_TRY(next_node(&node, r, item));
    if (node->type != YAML_SCALAR_NODE) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: %s.%s takes one value, not a %s", r->name,
                        r->line, key->section, key->name,
                        node->type == YAML_SEQUENCE_NODE ? "list" : "mapping");
    }
    const bool is_word = key->type == RFA_KEY_TEXT || key->type == RFA_KEY_CHOICE;
    if (!is_word && node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE) {
        return rfa_fail(RFA_ERR_USAGE,
                        "%.300s:%zu: %s.%s is quoted, which makes it a text; drop "
                        "the quotes",
                        r->name, r->line, key->section, key->name);
    }
    char place[400];
    snprintf(place, sizeof place, "%.300s:%zu", r->name, r->line);
    return rfa_key_assign(&r->config, key, (const char *)node->data.scalar.value,
                          is_null(node) ? 0 : node->data.scalar.length, place);
}

static rfa_status read_section(reader *r, const char *section, yaml_node_item_t item)
{
    const yaml_node_t *node = NULL;
    RFA_TRY(next_node(&node, r, item));
    if (is_null(node)) { // all its keys are comments
        return RFA_OK;
    }
    if (node->type != YAML_MAPPING_NODE) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: section '%s' must hold 'key: value' lines",
                        r->name, r->line, section);
    }
    const yaml_node_pair_t *end = node->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < end; pair++) {
        char name[RFA_SHOWN];
        RFA_TRY(next_name(name, r, node, pair, section));
        const rfa_key *key = rfa_key_find(section, name);
        if (!key) {
            char typed[2 * RFA_SHOWN], hint[400];
            snprintf(typed, sizeof typed, "%s.%s", section, name);
            rfa_key_hint(hint, sizeof hint, typed);
            return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: unknown key '%s'%s", r->name, r->line,
                            typed, hint);
        }
        RFA_TRY(read_value(r, key, pair->value));
    }
    return RFA_OK;
}

// "include: FILE": what FILE says, from the including file's folder on, holds until the keys below.
static rfa_status read_include(reader *r, yaml_node_item_t item)
{
    const yaml_node_t *node = NULL;
    char path[RFA_CONFIG_TEXT];
    const char *slash = strrchr(r->name, '/');
    RFA_TRY(next_node(&node, r, item));
    if (node->type != YAML_SCALAR_NODE || is_null(node) || node->data.scalar.length == 0) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: include takes the path of one file", r->name,
                        r->line);
    }
    if (r->depth < 0 || r->depth == DEPTH_MOST) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: include %s", r->name, r->line,
                        r->depth < 0 ? "works in files only" : "goes in circles, or too deep");
    }
    const char *file = (const char *)node->data.scalar.value;
    const int folder = slash && file[0] != '/' ? (int)(slash - r->name) + 1 : 0;
    if (strlen(file) != node->data.scalar.length ||
        snprintf(path, sizeof path, "%.*s%s", folder, r->name, file) >= (int)sizeof path) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: include: a path with a zero byte, or too long",
                        r->name, r->line);
    }
    const rfa_status status = load(&r->config, path, r->depth + 1);
    return status == RFA_ERR_IO ? rfa_fail_within(status, "%.300s:%zu: include", r->name, r->line)
                                : status;
}

static rfa_status read_root(reader *r)
{
    const yaml_node_t *root = NULL;
    if (!yaml_document_get_root_node(&r->document)) { // nothing but comments
        return RFA_OK;
    }
    RFA_TRY(next_node(&root, r, 1));
    if (is_null(root)) {
        return RFA_OK;
    }
    if (root->type != YAML_MAPPING_NODE) {
        return rfa_fail(RFA_ERR_USAGE,
                        "%.300s:%zu: must be sections with keys, such as 'train: {steps: 100}'",
                        r->name, r->line);
    }
    const yaml_node_pair_t *end = root->data.mapping.pairs.top;
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start; pair < end; pair++) {
        char section[RFA_SHOWN];
        RFA_TRY(next_name(section, r, root, pair, ""));
        if (strcmp(section, "include") == 0) {
            if (pair != root->data.mapping.pairs.start) {
                return rfa_fail(RFA_ERR_USAGE,
                                "%.300s:%zu: include must stand first: what follows it counts",
                                r->name, r->line);
            }
            RFA_TRY(read_include(r, pair->value));
            continue;
        }
        if (!rfa_key_is_section(section)) {
            char hint[400];
            rfa_key_hint(hint, sizeof hint, section);
            return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: unknown section '%s'%s", r->name, r->line,
                            section, hint);
        }
        RFA_TRY(read_section(r, section, pair->value));
    }
    return RFA_OK;
}

static rfa_status read_documents(reader *r, yaml_parser_t *parser)
{
    rfa_status status = RFA_OK;
    if (!yaml_parser_load(parser, &r->document)) {
        return syntax_error(r, parser);
    }
    status = read_root(r);
    yaml_document_delete(&r->document);
    if (status != RFA_OK) {
        return status;
    }
    if (!yaml_parser_load(parser, &r->document)) {
        return syntax_error(r, parser);
    }
    if (yaml_document_get_root_node(&r->document)) {
        status = rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: a second document begins; one is allowed",
                          r->name, r->document.start_mark.line + 1);
    }
    yaml_document_delete(&r->document);
    return status;
}

static rfa_status
parse(rfa_config *config, const char *text, size_t length, const char *name, int depth)
{
    reader r = {
        .name = name, .text = text, .length = length, .line = 1, .config = *config, .depth = depth};
    const char *nul = memchr(text, '\0', length);
    if (length > TEXT_MOST) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s: longer than %d bytes: not a configuration", name,
                        TEXT_MOST);
    }
    if (nul) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s:%zu: holds a NUL character: not UTF-8 text", name,
                        line_at(&r, (size_t)(nul - text)));
    }
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        return rfa_fail(RFA_ERR_MEMORY, "%.300s: cannot allocate memory for YAML", name);
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    const rfa_status status = read_documents(&r, &parser);
    yaml_parser_delete(&parser);
    if (status == RFA_OK) {
        memcpy(config, &r.config, sizeof *config);
    }
    return status;
}

rfa_status rfa_config_parse(rfa_config *config, const char *text, const char *name)
{
    return parse(config, text, strlen(text), name, -1);
}

static rfa_status load(rfa_config *config, const char *path, int depth)
{
    char *text = NULL;
    size_t length = 0;
    struct stat info;
    // One named on the command line may be a pipe, as <(...) makes it; another would wait for ever.
    if (depth > 0 && stat(path, &info) == 0 && S_ISFIFO(info.st_mode)) {
        return rfa_fail(RFA_ERR_USAGE, "%.300s: a pipe can't be included", path);
    }
    RFA_TRY(rfa_alloc(&text, TEXT_MOST + 2, 1, "configuration"));
    FILE *file = fopen(path, "rb");
    rfa_status status = RFA_OK;
    if (!file) {
        status = rfa_fail(RFA_ERR_IO, "%.300s: %s", path, strerror(errno));
        goto out;
    }
    length = fread(text, 1, TEXT_MOST + 1, file); // zeroed memory: text ends in NUL
    if (ferror(file)) {
        status = rfa_fail(RFA_ERR_IO, "%.300s: %s", path, strerror(errno));
        goto out;
    }
    status =
        length > 0
            ? parse(config, text, length, path, depth)
            : rfa_fail(RFA_ERR_USAGE,
                       "%.300s is empty, perhaps half copied; {} stands for all defaults", path);
out:
    if (file) {
        fclose(file);
    }
    rfa_free(text);
    return status;
}

rfa_status rfa_config_load(rfa_config *config, const char *path)
{
    return load(config, path, 0);
}
