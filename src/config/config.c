#include "config/config.h"

#include "base/log.h"
#include "base/mem.h"
#include "config/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

rfa_status rfa_config_set(rfa_config *config, const char *assignment)
{
    char shown[RFA_SHOWN], name[RFA_SHOWN], place[RFA_SHOWN + 16], hint[400];
    const char *equals = strchr(assignment, '=');
    snprintf(place, sizeof place, "--set %s", rfa_shown(shown, assignment, strlen(assignment)));
    if (!equals) {
        return rfa_fail(RFA_ERR_USAGE, "%s: must be key=value, such as train.rate=0.001", place);
    }
    rfa_shown(name, assignment, (size_t)(equals - assignment));
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        const size_t n = strlen(key->section);
        if (strncmp(name, key->section, n) == 0 && name[n] == '.' &&
            strcmp(name + n + 1, key->name) == 0) {
            return rfa_key_assign(config, key, equals + 1, strlen(equals + 1), place);
        }
    }
    rfa_key_hint(hint, sizeof hint, name);
    return rfa_fail(RFA_ERR_USAGE, "%s: unknown key '%s'%s", place, name, hint);
}

// Kernels run over whole blocks of 16 numbers, without tails.
static rfa_status check_multiple(const char *key, int64_t value, int64_t factor, const char *why)
{
    if (value % factor == 0) {
        return RFA_OK;
    }
    const int64_t below = value - value % factor;
    if (below == 0) {
        return rfa_fail(RFA_ERR_USAGE, "%s (%" PRId64 ") must be a multiple of %" PRId64 ": %s",
                        key, value, factor, why);
    }
    return rfa_fail(RFA_ERR_USAGE,
                    "%s (%" PRId64 ") must be a multiple of %" PRId64 ", such as %" PRId64
                    " or %" PRId64 ": %s",
                    key, value, factor, below, below + factor, why);
}

static rfa_status check_model(const rfa_config *c)
{
    const int64_t width = c->model.width, heads = c->model.heads;
    RFA_TRY(check_multiple("model.width", width, 16, "kernels work on blocks of 16 numbers"));
    RFA_TRY(check_multiple("model.feed_forward", c->model.feed_forward, 16,
                           "kernels work on blocks of 16 numbers"));
    if (width % heads != 0) {
        return rfa_fail(RFA_ERR_USAGE,
                        "model.heads (%" PRId64 ") must divide model.width (%" PRId64 ")", heads,
                        width);
    }
    if (width / heads < 2) {
        return rfa_fail(RFA_ERR_USAGE,
                        "model.heads (%" PRId64
                        ") leaves each head 1 channel of model.width (%" PRId64
                        "): at least 2 are needed",
                        heads, width);
    }
    return RFA_OK;
}

// Which sees what, and what forgets.
static rfa_status check_direction(const rfa_config *c)
{
    const int kind = c->attention.kind, direction = c->attention.direction;
    const bool linear =
        kind == RFA_ATTENTION_RFA || kind == RFA_ATTENTION_ELU || kind == RFA_ATTENTION_PERFORMER;
    if (direction != RFA_FORWARD && !(c->attention.causal && linear)) {
        return rfa_fail(RFA_ERR_USAGE,
                        "attention.direction needs attention.causal: true and a linear kind (rfa, "
                        "elu, performer): only a scan can be turned round");
    }
    if (direction == RFA_BOTH && c->model.heads < 2) {
        return rfa_fail(RFA_ERR_USAGE, "attention.direction both needs 2 model.heads or more: half "
                                       "of them run each way");
    }
    if (c->attention.gate != RFA_GATE_NONE && !(c->attention.causal && linear)) {
        return rfa_fail(
            RFA_ERR_USAGE,
            "attention.gate needs attention.causal: true and a linear kind (rfa, elu, "
            "performer): without an order nothing can be forgotten; for an encoder take "
            "attention.direction: both with it");
    }
    if (kind == RFA_ATTENTION_LARA && c->attention.causal) {
        return rfa_fail(
            RFA_ERR_USAGE,
            "attention.kind lara with attention.causal true: each landmark is an average "
            "over the whole sequence, so every token would see later ones: use eva");
    }
    if (c->attention.causal && direction == RFA_FORWARD && c->model.pooling == RFA_POOLING_FIRST) {
        return rfa_fail(RFA_ERR_USAGE,
                        "model.pooling first with attention.causal true: the first token of a "
                        "causal model sees only itself: use model.pooling: mean%s",
                        linear ? ", or attention.direction: both" : "");
    }
    if (c->attention.causal && direction == RFA_REVERSE && c->model.pooling == RFA_POOLING_LAST) {
        return rfa_fail(RFA_ERR_USAGE, "model.pooling last with attention.direction reverse: the "
                                       "last token sees only itself: use model.pooling: first");
    }
    return RFA_OK;
}

// What can be walked window by window: nothing that looks ahead.
static rfa_status check_window(const rfa_config *c)
{
    const int kind = c->attention.kind;
    const bool linear =
        kind == RFA_ATTENTION_RFA || kind == RFA_ATTENTION_ELU || kind == RFA_ATTENTION_PERFORMER;
    if (c->train.window == 0) {
        return RFA_OK;
    }
    if (c->train.window % 16 != 0) {
        return rfa_fail(RFA_ERR_USAGE, "train.window (%" PRId64 ") must be a multiple of 16",
                        c->train.window);
    }
    if (!linear) {
        return rfa_fail(RFA_ERR_USAGE,
                        "train.window with attention.kind %s: only states of linear attention "
                        "(rfa, elu, performer) can go from window to window",
                        rfa_key_find("attention", "kind")->choices[kind]);
    }
    if (c->train.carry == RFA_CARRY_STATEFUL && c->model.pooling == RFA_POOLING_PADDED_MEAN) {
        return rfa_fail(RFA_ERR_USAGE, "model.pooling padded_mean with train.carry stateful: a "
                                       "window has no padded length: use model.pooling: mean");
    }
    if (c->train.carry == RFA_CARRY_STATEFUL && c->train.micro_batch > 0) {
        return rfa_fail(RFA_ERR_USAGE, "train.carry stateful keeps the states of a whole batch: "
                                       "train.micro_batch must be 0");
    }
    if (!c->attention.causal || c->attention.direction != RFA_FORWARD) {
        return rfa_fail(RFA_ERR_USAGE,
                        "train.window needs attention.causal: true and attention.direction: "
                        "forward: other heads look ahead, into windows to come; less memory for "
                        "these: train.recompute");
    }
    return RFA_OK;
}

static rfa_status check_landmarks(const rfa_config *c)
{
    const bool lara = c->attention.kind == RFA_ATTENTION_LARA;
    if (lara && c->attention.antithetic && c->attention.draws % 2 != 0) {
        return rfa_fail(RFA_ERR_USAGE,
                        "attention.antithetic needs an even number of attention.draws (%" PRId64
                        "): they come in pairs",
                        c->attention.draws);
    }
    return RFA_OK;
}

static rfa_status check_maps(const rfa_config *c)
{
    const int kind = c->attention.kind, map = c->attention.map - 1;
    const bool of_rfa = map == RFA_MAP_GAUSSIAN || map == RFA_MAP_ARCCOS;
    if (kind == RFA_ATTENTION_RFA && map >= 0 && !of_rfa) {
        return rfa_fail(RFA_ERR_USAGE, "attention.map: kind rfa has gaussian and arccos; positive "
                                       "features are attention.kind: performer");
    }
    if (kind == RFA_ATTENTION_PERFORMER && of_rfa) {
        return rfa_fail(RFA_ERR_USAGE, "attention.map: kind performer has positive and oprf; "
                                       "gaussian and arccos are attention.kind: rfa");
    }
    if (kind == RFA_ATTENTION_PERFORMER && map == RFA_MAP_OPRF && c->attention.causal &&
        c->attention.direction != RFA_BOTH) {
        return rfa_fail(RFA_ERR_USAGE,
                        "attention.map oprf with attention.causal true: the shape of its features "
                        "follows from all tokens, later ones too: use attention.map: positive, or "
                        "for an encoder attention.direction: both");
    }
    const bool pool = (kind == RFA_ATTENTION_RFA || kind == RFA_ATTENTION_PERFORMER) &&
                      c->attention.rows - 1 != RFA_ROWS_FASTFOOD;
    if (pool && c->attention.pool < c->model.layers * c->model.heads) {
        return rfa_fail(RFA_ERR_USAGE,
                        "attention.pool (%" PRId64 ") is smaller than model.layers * "
                        "model.heads (%" PRId64 " * %" PRId64
                        "): each head of a step takes a projection of its own",
                        c->attention.pool, c->model.layers, c->model.heads);
    }
    return RFA_OK;
}

static rfa_status check_parallel(const rfa_config *c)
{
    enum { SUM_TERMS = (1 << 20) / 3 }; // exchange/exact_sum.h: up to three a segment of an example
    const int64_t segments = c->parallel.segments;
    if ((segments & (segments - 1)) != 0) {
        return rfa_fail(RFA_ERR_USAGE, "parallel.segments (%" PRId64 ") must be a power of two",
                        segments);
    }
    if (c->parallel.sequence > segments) {
        return rfa_fail(RFA_ERR_USAGE,
                        "parallel.sequence (%" PRId64 ") exceeds parallel.segments (%" PRId64
                        "): a rank needs a segment of its own",
                        c->parallel.sequence, segments);
    }
    const int64_t window = c->train.window, length = c->data.max_length;
    const bool together = window > 0 && c->train.carry != RFA_CARRY_STATEFUL; // in one sum
    const int64_t windows = together ? (length + window - 1) / window : 1;
    if (windows > SUM_TERMS / (c->train.batch * segments)) {
        char text[64] = "";
        if (windows > 1) {
            snprintf(text, sizeof text, " * windows (%" PRId64 ")", windows);
        }
        return rfa_fail(RFA_ERR_USAGE,
                        "train.batch (%" PRId64 ") * parallel.segments (%" PRId64
                        ")%s exceeds %d, the most terms of an exact sum of gradients",
                        c->train.batch, segments, text, SUM_TERMS);
    }
    return RFA_OK;
}

static rfa_status check_schedule(const rfa_config *c)
{
    if (c->train.cycle_beta1 && c->train.schedule != RFA_SCHEDULE_ONE_CYCLE) {
        return rfa_fail(RFA_ERR_USAGE, "train.cycle_beta1 needs train.schedule: one_cycle");
    }
    return RFA_OK;
}

rfa_status rfa_config_check(const rfa_config *config)
{
    RFA_TRY(check_model(config));
    RFA_TRY(check_direction(config));
    RFA_TRY(check_maps(config));
    RFA_TRY(check_landmarks(config));
    RFA_TRY(check_parallel(config));
    RFA_TRY(check_schedule(config));
    return check_window(config);
}

// The keys of attention that only some kinds know.
static const struct {
    const char *name;
    unsigned kinds; // bits
} partial_keys[] = {
#define KIND(k) (1U << RFA_ATTENTION_##k)
    {"direction", KIND(RFA) | KIND(ELU) | KIND(PERFORMER)},
    {"features", KIND(RFA) | KIND(PERFORMER)},
    {"map", KIND(RFA) | KIND(PERFORMER)},
    {"norm", KIND(RFA)},
    {"rows", KIND(RFA) | KIND(PERFORMER)},
    {"pool", KIND(RFA) | KIND(PERFORMER)},
    {"redraw", KIND(RFA) | KIND(PERFORMER)},
    {"sigma", KIND(RFA)},
    {"bandwidth", KIND(RFA)},
    {"gate", KIND(RFA) | KIND(ELU) | KIND(PERFORMER)},
    {"gate_bias", KIND(RFA) | KIND(ELU) | KIND(PERFORMER)},
    {"landmarks", KIND(LARA) | KIND(EVA)},
    {"landmark_map", KIND(LARA) | KIND(EVA)},
    {"draws", KIND(RA) | KIND(LARA)},
    {"antithetic", KIND(LARA)},
    {"weights", KIND(LARA)},
    {"specificity", KIND(LARA)},
    {"window", KIND(EVA)},
#undef KIND
};

static void warn_of_idle_keys(const rfa_config *config)
{
    char names[256] = "";
    size_t used = 0;
    rfa_config defaults;
    rfa_config_defaults(&defaults);
    for (size_t i = 0; i < sizeof partial_keys / sizeof *partial_keys; i++) {
        const rfa_key *key = rfa_key_find("attention", partial_keys[i].name);
        if (!(partial_keys[i].kinds & 1U << config->attention.kind) &&
            !rfa_key_equal(key, config, &defaults)) {
            rfa_append(names, sizeof names, &used, "%sattention.%s", used ? ", " : "", key->name);
        }
    }
    if (used > 0) {
        rfa_note("rfa: warning: no effect with attention.kind %s: %s",
                 rfa_key_find("attention", "kind")->choices[config->attention.kind], names);
    }
}

void rfa_config_warn(const rfa_config *config)
{
    warn_of_idle_keys(config);
    if (config->train.warmup > config->train.steps) {
        rfa_note("rfa: warning: train.warmup (%" PRId64 ") exceeds train.steps (%" PRId64
                 "): the learning rate never reaches its peak",
                 config->train.warmup, config->train.steps);
    }
    if (config->train.patience > 0 && config->train.evaluate_every == 0) {
        rfa_note("rfa: warning: train.patience counts validations: no effect with "
                 "train.evaluate_every 0");
    }
}

// The part of the canonical text that names one key.
static void
append_line(char *out, size_t size, size_t *used, const rfa_config *c, const rfa_key *key)
{
    rfa_append(out, size, used, "  %s: ", key->name);
    rfa_key_value(out, size, used, c, key);
    rfa_append(out, size, used, "\n");
}

static bool begins_section(const rfa_key *key)
{
    return key == rfa_keys || strcmp(key[-1].section, key->section) != 0;
}

static size_t write_text(char *out, size_t size, const rfa_config *config)
{
    size_t used = 0;
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        if (strcmp(key->section, "bench") == 0 || strcmp(key->section, "fidelity") == 0) {
            // No part of a run.
            continue;
        }
        if (begins_section(key)) {
            rfa_append(out, size, &used, "%s:\n", key->section);
        }
        append_line(out, size, &used, config, key);
    }
    return used;
}

rfa_status rfa_config_text(char **out, const rfa_config *config)
{
    const size_t size = write_text(NULL, 0, config) + 1;
    RFA_TRY(rfa_alloc(out, (ptrdiff_t)size, 1, "configuration text"));
    write_text(*out, size, config);
    return RFA_OK;
}

int rfa_config_differences(char *text, int size, const rfa_config *a, const rfa_config *b)
{
    const size_t room = size > 0 ? (size_t)size : 0;
    size_t used = 0;
    int count = 0;
    if (room > 0) {
        text[0] = '\0';
    }
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        if (!key->neutral && !rfa_key_equal(key, a, b)) {
            rfa_append(text, room, &used, "%s%s.%s (", count++ ? ", " : "", key->section,
                       key->name);
            rfa_key_value(text, room, &used, a, key);
            rfa_append(text, room, &used, ", was ");
            rfa_key_value(text, room, &used, b, key);
            rfa_append(text, room, &used, ")");
        }
    }
    if (used >= room && room > 3) {
        memcpy(text + room - 4, "...", 4);
    }
    return count;
}

// Prints text as comment lines of at most 80 columns.
static void print_comment(void (*print_line)(const char *line), const char *text)
{
    enum { COLUMNS = 76 };
    while (*text) {
        int n = (int)strlen(text);
        if (n > COLUMNS) {
            for (n = COLUMNS; n > 0 && text[n] != ' '; n--) {
            }
            n = n > 0 ? n : COLUMNS;
        }
        char line[COLUMNS + 8];
        snprintf(line, sizeof line, "  # %.*s", n, text);
        print_line(line);
        text += n;
        text += *text == ' ';
    }
}

void rfa_config_help(void (*print_line)(const char *line))
{
    rfa_config defaults;
    rfa_config_defaults(&defaults);
    print_line("# Every key with its default: a valid configuration file. Keys that a file");
    print_line("# leaves out keep their defaults; --set section.key=value comes after the file.");
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        char line[RFA_CONFIG_TEXT * 2 + 64];
        size_t used = 0;
        if (begins_section(key)) {
            print_line("");
            rfa_append(line, sizeof line, &used, "%s:", key->section);
            print_line(line);
        }
        print_comment(print_line, key->help);
        used = 0;
        rfa_key_range(line, sizeof line, &used, key);
        rfa_append(line, sizeof line, &used, "%s",
                   key->neutral ? "; a resumed run may change it" : "");
        print_comment(print_line, line);
        used = 0;
        append_line(line, sizeof line, &used, &defaults, key);
        line[used - 1] = '\0'; // print_line ends lines itself
        print_line(line);
    }
}
