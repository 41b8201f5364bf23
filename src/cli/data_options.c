#include "cli/data_options.h"

#include <argp.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_KEY = 0x100 }; // of options without a letter

typedef struct {
    const rfa_data_parser *parser;
    rfa_data_common *options;
    int next; // argument after the one that argp refused
    rfa_status status;
} parse_state;

static rfa_status
parse_int(int64_t *out, const char *option, const char *value, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    if (end == value || *end != 0 || strchr(" \t\n", value[0])) {
        return rfa_fail(RFA_ERR_USAGE, "--%s '%s': not an integer", option, value);
    }
    if (errno != 0 || number < least || number > most) {
        return rfa_fail(RFA_ERR_USAGE, "--%s %s: not in %lld to %lld", option, value,
                        (long long)least, (long long)most);
    }
    *out = number;
    return RFA_OK;
}

static rfa_status parse_double(double *out, const char *option, const char *value)
{
    char *end;
    errno = 0;
    const double number = strtod(value, &end);
    if (end == value || *end != 0 || errno != 0 || !isfinite(number) || strchr(" \t\n", value[0])) {
        return rfa_fail(RFA_ERR_USAGE, "--%s '%s': not a number", option, value);
    }
    *out = number;
    return RFA_OK;
}

static rfa_status parse_path(char *out, const char *option, const char *value)
{
    const size_t size = strlen(value) + 1;
    if (size == 1 || size > RFA_DATA_PATH - 16) {
        return rfa_fail(RFA_ERR_USAGE, "--%s: a path of %zu bytes", option, size - 1);
    }
    memcpy(out, value, size);
    return RFA_OK;
}

static rfa_status parse_word(char *out, const char *option, const char *value)
{
    const size_t size = strlen(value) + 1;
    if (size == 1 || size > RFA_DATA_WORD) {
        return rfa_fail(RFA_ERR_USAGE, "--%s: a word of %zu bytes", option, size - 1);
    }
    memcpy(out, value, size);
    return RFA_OK;
}

static int key_of(const rfa_data_parser *parser, int option)
{
    return parser->options[option].letter ? parser->options[option].letter : FIRST_KEY + option;
}

static rfa_status take(const parse_state *p, int index, const char *value)
{
    const rfa_data_option *o = &p->parser->options[index];
    char *target = (char *)p->options + o->offset;
    int64_t number = 0;
    rfa_status status = RFA_OK;
    p->options->given |= (uint64_t)1 << index;
    switch (o->kind) {
    case RFA_OPTION_FLAG: *(bool *)target = true; break;
    case RFA_OPTION_PATH: status = parse_path(target, o->name, value); break;
    case RFA_OPTION_WORD: status = parse_word(target, o->name, value); break;
    case RFA_OPTION_DOUBLE: status = parse_double((double *)(void *)target, o->name, value); break;
    case RFA_OPTION_INT64:
        status = parse_int((int64_t *)(void *)target, o->name, value, o->least, o->most);
        break;
    case RFA_OPTION_INT:
        status = parse_int(&number, o->name, value, o->least, o->most);
        *(int *)(void *)target = (int)number;
        break;
    case RFA_OPTION_TITLE: break;
    }
    return status;
}

static error_t parse_option(int key, char *value, struct argp_state *state)
{
    parse_state *p = state->input;
    switch (key) {
    case ARGP_KEY_ERROR: p->next = state->next; return 0;
    case ARGP_KEY_INIT:
    case ARGP_KEY_FINI:
    case ARGP_KEY_SUCCESS:
    case ARGP_KEY_END:
    case ARGP_KEY_NO_ARGS: return 0;
    case ARGP_KEY_ARGS: return ARGP_ERR_UNKNOWN; // one by one, please
    case ARGP_KEY_ARG:
        p->status = rfa_fail(RFA_ERR_USAGE, "rfa data %s: unexpected '%s'; see --help",
                             p->parser->task, value);
        return EINVAL;
    default: break;
    }
    for (int i = 0; i < p->parser->count; i++) {
        if (p->parser->options[i].name && key_of(p->parser, i) == key) {
            p->status = take(p, i, value);
            return p->status == RFA_OK ? 0 : EINVAL;
        }
    }
    return ARGP_ERR_UNKNOWN;
}

// argp only says that something was wrong with the argument before `next`. Local.
static rfa_status explain(const rfa_data_parser *parser, int argc, char **argv, int next)
{
    const char *bad = next - 1 >= 1 && next - 1 < argc ? argv[next - 1] : "";
    const size_t length = strcspn(bad, "=");
    for (int i = 0; i < parser->count; i++) {
        const rfa_data_option *o = &parser->options[i];
        if (o->name && length > 2 && strncmp(bad, "--", 2) == 0 && strlen(o->name) == length - 2 &&
            strncmp(bad + 2, o->name, length - 2) == 0) {
            return rfa_fail(RFA_ERR_USAGE, "rfa data %s: %.*s takes %s value", parser->task,
                            (int)length, bad, o->value ? "a" : "no");
        }
    }
    return rfa_fail(RFA_ERR_USAGE, "rfa data %s: unknown option '%s'; see --help", parser->task,
                    bad);
}

bool rfa_data_given(const rfa_data_parser *parser, const rfa_data_common *options, const char *name)
{
    int i = 0;
    while (!parser->options[i].name || strcmp(parser->options[i].name, name) != 0) {
        i++;
        RFA_ASSERT(i < parser->count);
    }
    return options->given >> i & 1;
}

rfa_status
rfa_data_parse(const rfa_data_parser *parser, rfa_data_common *options, int argc, char **argv)
{
    struct argp_option list[RFA_DATA_OPTIONS + 1] = {0};
    RFA_ASSERT(parser->count <= RFA_DATA_OPTIONS);
    for (int i = 0; i < parser->count; i++) {
        const rfa_data_option *o = &parser->options[i];
        list[i] = (struct argp_option){.name = o->name,
                                       .key = o->name ? key_of(parser, i) : 0,
                                       .arg = o->value,
                                       .doc = o->help,
                                       .group = o->group};
    }
    const struct argp argp = {.options = list, .parser = parse_option, .doc = parser->text};
    parse_state state = {.parser = parser, .options = options};
    const error_t error =
        argp_parse(&argp, argc, argv, ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_NO_ERRS, NULL, &state);
    if (options->help) {
        char name[64];
        snprintf(name, sizeof name, "rfa data %s", parser->task);
        argp_help(&argp, stdout, ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, name);
        fflush(stdout);
        return RFA_OK;
    }
    if (state.status != RFA_OK) {
        return state.status;
    }
    if (error) {
        return explain(parser, argc, argv, state.next);
    }
    for (int i = 0; i < parser->count && options->from[0]; i++) {
        if (parser->options[i].generates && options->given >> i & 1) {
            return rfa_fail(RFA_ERR_USAGE,
                            "--from imports files, so --%s, which is for the generator, has no "
                            "meaning",
                            parser->options[i].name);
        }
    }
    return RFA_OK;
}
