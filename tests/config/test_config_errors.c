// Precision: f32
// The configuration when something is wrong: every kind of error with its line, and junk.
#include "support/support.h"

#include "config/config.h"
#include "config/keys.h"
#include "rng/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rfa_config defaults(void)
{
    rfa_config config;
    rfa_config_defaults(&config);
    return config;
}

static rfa_config parsed(const char *text)
{
    rfa_config config = defaults();
    check_ok(rfa_config_parse(&config, text, "run.yaml"));
    return config;
}

// To the last byte, tails of texts included.
static bool same(const rfa_config *a, const rfa_config *b)
{
    const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;
    return memcmp(x, y, sizeof *a) == 0;
}

static void check_said(const char *input, const char *want)
{
    if (!strstr(rfa_error_text(), want)) {
        print_error("%s\n  said:     %s\n  expected: %s\n", input, rfa_error_text(), want);
    }
    check(strstr(rfa_error_text(), want));
}

typedef struct {
    const char *input, *said;
} error_case;

static const error_case yaml_errors[] = {
    // numbers
    {"train:\n  steps: 4x\n", "run.yaml:2: train.steps: '4x' is not a whole number in plain digits "
                              "(whole number, 1 to 1000000000 steps)"},
    {"train:\n  steps: 2.9", "run.yaml:2: train.steps: '2.9' is not a whole"},
    {"train: {steps: 1e3}", "run.yaml:1: train.steps: '1e3' is not a whole"},
    {"train: {steps: 1_000}", "'1_000' is not a whole"},
    {"train: {steps: +5}", "'+5' is not a whole"},
    {"train: {steps: 010}", "'010' is not a whole"},
    {"train: {steps: 0x10}", "'0x10' is not a whole"},
    {"train: {steps: 1 000}", "'1 000' is not a whole"},
    {"train: {steps: -}", "'-' is not a whole"},
    {"train: {steps: five}", "'five' is not a whole"},
    {"train: {steps: 0}", "train.steps: '0' is out of range (whole number, 1 to 1000000000 steps)"},
    {"train: {steps: -1}", "train.steps: '-1' is out of range"},
    {"train: {steps: 1000000001}", "train.steps: '1000000001' is out of range"},
    {"train: {steps: 99999999999999999999}", "train.steps: '99999999999999999999' is out of range"},
    {"train: {seed: 9007199254740993}",
     "train.seed: '9007199254740993' is out of range (whole number, 0 to 9007199254740992)"},
    {"train:\n  seed: 1\n\n  rate: 1e-3x", "run.yaml:4: train.rate: '1e-3x' is not a number (real"},
    {"train: {rate: nan}", "'nan' is not a number"},
    {"train: {rate: .nan}", "'.nan' is not a number"},
    {"train: {rate: inf}", "'inf' is not a number"},
    {"train: {rate: -.inf}", "'-.inf' is not a number"},
    {"train: {rate: 0x1p-3}", "'0x1p-3' is not a number"},
    {"train: {rate: 1e}", "'1e' is not a number"},
    {"train: {rate: .}", "'.' is not a number"},
    {"train: {rate: .e3}", "'.e3' is not a number"},
    {"train: {rate: '0,1'}", "run.yaml:1: train.rate is quoted"},
    {"train: {rate: 1_0.5}", "'1_0.5' is not a number"},
    {"train: {rate: -1e-9}", "train.rate: '-1e-9' is out of range (real, 0 to 1)"},
    {"train: {rate: 1e999}", "'1e999' is out of range"},
    {"train: {rate: 1e-999}", "'1e-999' is out of range"},
    {"train: {rate: 1e-310}", "'1e-310' is out of range"},
    {"model: {dropout: 0.951}", "model.dropout: '0.951' is out of range (real, 0 to 0.95)"},
    {"train: {beta2: 1}", "train.beta2: '1' is out of range (real, 0 to 0.999999)"},
    {"train: {epsilon: 0}", "train.epsilon: '0' is out of range (real, 1e-12 to 1)"},
    {"parallel: {segments: 8192}", "'8192' is out of range (whole number, 1 to 4096)"},
    // words
    {"attention:\n  causal: yes", "run.yaml:2: attention.causal: 'yes' is neither true nor false"},
    {"attention: {causal: True}", "'True' is neither true nor false"},
    {"attention: {causal: 1}", "'1' is neither true nor false"},
    {"attention: {kind: transformer}",
     "attention.kind: 'transformer' is no choice (one of rfa, softmax, "},
    {"attention: {kind: RFA}", "'RFA' is no choice (one of rfa, softmax, "},
    {"model: {positions: 1}", "'1' is no choice (one of learned, sinusoidal, none)"},
    {"parallel: {exchange: fast}", "'fast' is no choice (one of auto, exscan, transposed)"},
    {"data: {file: \"a\\0b\"}", "data.file: 'a?b' holds a control character or is not UTF-8"},
    {"data: {file: \"a\\nb\"}", "data.file: 'a?b' holds a control character"},
    {"data: {file: \"a\\u2028b\"}", "holds a control character"},
    {"attention: {kind: \"rfa\\0\"}", "'rfa?' is too long or holds a NUL character"},
    {"train: {seed: 1\x01}", "run.yaml:1: control characters are not allowed"},
    // no value, or more than one
    {"train:\n  rate:\n  steps: 5", "run.yaml:2: train.rate has no value (real, 0 to 1)"},
    {"train: {rate: ~}", "run.yaml:1: train.rate has no value"},
    {"data: {file: null}", "data.file has no value (text, up to 511 bytes)"},
    {"data: {file: ''}", "data.file has no value"},
    {"train:\n  rate: [1, 2]", "run.yaml:2: train.rate takes one value, not a list"},
    {"train:\n  rate:\n    peak: 1", "run.yaml:3: train.rate takes one value, not a mapping"},
    {"train:\n  steps: \"100\"", "run.yaml:2: train.steps is quoted, which makes it a text"},
    {"train:\n  steps: |\n    100\n", "run.yaml:2: train.steps is quoted"},
    {"train: {steps: !!int 5}", "run.yaml:1: tags (tag:yaml.org,2002:int) are not supported"},
    // names
    {"train:\n  stepz: 1", "run.yaml:2: unknown key 'train.stepz'; did you mean 'train.steps'?"},
    {"train:\n  lerning_rate: 1", "unknown key 'train.lerning_rate'; did you mean 'train.rate'?"},
    {"train: {btach: 1}", "unknown key 'train.btach'; did you mean 'train.batch'?"},
    {"model: {n_heads: 1}", "unknown key 'model.n_heads'; did you mean 'model.heads'?"},
    {"model:\n  rate: 1", "run.yaml:2: unknown key 'model.rate'; did you mean 'train.rate'?"},
    {"model: {poo: 1}", "unknown key 'model.poo'; did you mean 'model.pooling'?"},
    {"model: {features: 8}", "unknown key 'model.features'; did you mean 'attention.features'?"},
    {"attention: {xyzzy: 1}",
     "unknown key 'attention.xyzzy'; keys of attention: kind, causal, direction, features, map"},
    {"model: {\"wi\\0dth\": 1}", "unknown key 'model.wi?dth'; did you mean 'model.width'?"},
    {"data: {}\nmodle:\n  width: 16", "run.yaml:2: unknown section 'modle'; did you mean 'model'?"},
    {"rate: 1", "run.yaml:1: unknown section 'rate'; did you mean 'train.rate'?"},
    {"train.rate: 1", "unknown section 'train.rate'; did you mean 'train.rate'?"},
    {"quux: 1", "unknown section 'quux'; sections: data, model, attention, parallel, train"},
    {"train: {rate: 1, seed: 1,\n rate: 2}",
     "run.yaml:2: 'train.rate' is given twice, first in line 1"},
    {"train:\n  rate: 1\nmodel: {}\ntrain:\n  seed: 1",
     "run.yaml:4: 'train' is given twice, first in line 1"},
    {"train:\n  ? [rate]\n  : 1", "run.yaml:2: the name of a key must be one word"},
    {"{[train]: {rate: 1}}", "run.yaml:1: the name of a section must be one word"},
    {"train:\n  '': 1", "run.yaml:2: the name of a key must be one word"},
    // structure
    {"train: 5", "run.yaml:1: section 'train' must hold 'key: value' lines"},
    {"\ntrain:\n  - rate\n", "run.yaml:3: section 'train' must hold 'key: value' lines"},
    {"- train", "run.yaml:1: must be sections with keys"},
    {"# note\nrate\n", "run.yaml:2: must be sections with keys"},
    {"train: {seed: 1}\n---\ntrain: {seed: 2}", "run.yaml:2: a second document begins"},
    {"train: {rate: &r 1, clip: *r}", "run.yaml:1: aliases (*name) are not supported"},
    {"train:\n  rate: &r 1\n  clip:\n    *r\n", "run.yaml:3: aliases (*name) are not supported"},
    {"train: &t\n  rate: 1\nmodel: *t", "run.yaml:3: aliases (*name) are not supported"},
    {"train: &t {rate: *t}", "run.yaml:1: aliases (*name) are not supported"},
    {"&t {train: *t}", "run.yaml:1: aliases (*name) are not supported"},
    {"&t train: {rate: 1}\n*t : {seed: 1}", "aliases (*name) are not supported"},
    {"train: {<<: {rate: 1}}", "unknown key 'train.<<'"},
    {"train: {rate: *r}", "run.yaml:1: found undefined alias"},
    // broken YAML
    {"train:\n\trate: 1\n",
     "run.yaml:2: found character that cannot start any token, while scanning "
     "for the next token from line 2; indent with spaces, not with tabs"},
    {"train:\n  rate: 1\n seed: 2\n",
     "run.yaml:3: did not find expected key, while parsing a block "
     "mapping from line 1"},
    {"train: {rate: 1\n", "run.yaml:1: did not find expected ',' or '}'"},
    {"train:\n  rate: \"1\n", "run.yaml:2: found unexpected end of stream"},
    {"train:\n  rate 1\n", "run.yaml:2: section 'train' must hold"},
    {"train:\n\n  seed: \xff\n", "run.yaml:3: invalid leading UTF-8 octet"},
    {"%YAML 3.0\n---\ntrain: {}", "run.yaml:1: found incompatible YAML document"},
};

static void test_yaml_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof yaml_errors / sizeof *yaml_errors; i++) {
        const error_case *c = &yaml_errors[i];
        const rfa_config before = defaults();
        rfa_config config = before;
        check_status(rfa_config_parse(&config, c->input, "run.yaml"), RFA_ERR_USAGE);
        check_said(c->input, c->said);
        check(same(&config, &before)); // nothing of a refused file counts
    }
}

static const error_case set_errors[] = {
    {"train.rate=4x", "--set train.rate=4x: train.rate: '4x' is not a number (real, 0 to 1)"},
    {"train.steps=2.9", "--set train.steps=2.9: train.steps: '2.9' is not a whole number"},
    {"train.steps=", "--set train.steps=: train.steps has no value"},
    {"train.steps= 5", "' 5' is not a whole number"},
    {"train.steps=\"5\"", "'\"5\"' is not a whole number"},
    {"attention.causal=[true]", "'[true]' is neither true nor false"},
    {"train.rate", "--set train.rate: must be key=value"},
    {"", "must be key=value"},
    {"=1", "unknown key ''"},
    {"rate=1", "--set rate=1: unknown key 'rate'; did you mean 'train.rate'?"},
    {"train.rat=1", "unknown key 'train.rat'; did you mean 'train.rate'?"},
    {"trian.rate=1", "unknown key 'trian.rate'; did you mean 'train.rate'?"},
    {"train.rate =1", "unknown key 'train.rate '; did you mean 'train.rate'?"},
    {"train=1", "unknown key 'train'; keys of train: seed, steps, batch"},
    {"data.file=\xff", "data.file: '?' holds a control character or is not UTF-8"},
    {"data.file=\xed\xa0\x80", "holds a control character or is not UTF-8"},
    {"data.file=\xe0\x80\xaf", "holds a control character or is not UTF-8"},
    {"data.file=\xc2\x85", "holds a control character or is not UTF-8"},
    {"data.file=\xf4\x90\x80\x80", "holds a control character or is not UTF-8"},
    {"data.file=\xe6\x97", "holds a control character or is not UTF-8"},
    {"data.file=\xc0\xaf", "holds a control character or is not UTF-8"},
    {"data.file=a\x1b[31m", "data.file: 'a?[31m' holds a control character"},
};

static void test_set_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof set_errors / sizeof *set_errors; i++) {
        const error_case *c = &set_errors[i];
        const rfa_config before = defaults();
        rfa_config config = before;
        check_status(rfa_config_set(&config, c->input), RFA_ERR_USAGE);
        check_said(c->input, c->said);
        check(same(&config, &before));
    }
}

static const error_case check_errors[] = {
    {"model: {width: 60}", "model.width (60) must be a multiple of 16, such as 48 or 64"},
    {"model: {feed_forward: 100}", "model.feed_forward (100) must be a multiple of 16"},
    {"model: {heads: 3}", "model.heads (3) must divide model.width (64)"},
    {"model: {heads: 64}", "model.heads (64) leaves each head 1 channel of model.width (64)"},
    {"attention: {causal: true}", "the first token of a causal model sees only itself: use "
                                  "model.pooling: mean"},
    {"attention: {direction: both}", "attention.direction needs attention.causal: true"},
    {"attention: {causal: true, kind: softmax, direction: reverse}",
     "attention.direction needs attention.causal: true and a linear kind"},
    {"attention: {causal: true, direction: both}\nmodel: {heads: 1}",
     "attention.direction both needs 2 model.heads"},
    {"attention: {gate: learned}", "attention.gate needs attention.causal: true"},
    {"attention: {kind: softmax, causal: true, gate: decay}\nmodel: {pooling: mean}",
     "attention.gate needs attention.causal: true and a linear kind"},
    {"attention: {kind: lara, causal: true}\nmodel: {pooling: mean}",
     "each landmark is an average over the whole sequence"},
    {"attention: {kind: lara, antithetic: true}", "needs an even number of attention.draws (1)"},
    {"attention: {map: positive}", "positive features are attention.kind: performer"},
    {"attention: {kind: performer, map: oprf, causal: true}\nmodel: {pooling: mean}",
     "follows from all tokens, later ones too: use attention.map: positive"},
    {"attention: {kind: performer, map: arccos}", "arccos are attention.kind: rfa"},
    {"attention: {pool: 3}",
     "attention.pool (3) is smaller than model.layers * model.heads (2 * 2)"},
    {"parallel: {segments: 12}", "parallel.segments (12) must be a power of two"},
    {"parallel: {sequence: 9}", "parallel.sequence (9) exceeds parallel.segments (8)"},
    {"parallel: {segments: 4096}\ntrain: {batch: 257}",
     "train.batch (257) * parallel.segments (4096) exceeds 349525"},
    {"train: {window: 16, batch: 350}", "parallel.segments (8) * windows (125) exceeds 349525"},
    {"attention: {causal: true}\nmodel: {pooling: mean}\n"
     "train: {window: 64, carry: stateful, micro_batch: 2}",
     "train.carry stateful keeps the states of a whole batch"},
    {"attention: {causal: true}\nmodel: {pooling: padded_mean}\n"
     "train: {window: 64, carry: stateful}",
     "model.pooling padded_mean with train.carry stateful"},
    {"train: {window: 40}", "train.window (40) must be a multiple of 16"},
    {"train: {window: 64}", "train.window needs attention.causal: true"},
    {"attention: {causal: true, direction: both}\ntrain: {window: 64}",
     "train.window needs attention.causal: true and attention.direction: forward"},
    {"model: {pooling: last}\nattention: {causal: true, direction: reverse}",
     "model.pooling last with attention.direction reverse"},
};

static void test_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof check_errors / sizeof *check_errors; i++) {
        const rfa_config config = parsed(check_errors[i].input);
        check_status(rfa_config_check(&config), RFA_ERR_USAGE);
        check_said(check_errors[i].input, check_errors[i].said);
    }
    static const char *const good[] = {
        "",
        "model: {heads: 32}\nparallel: {segments: 1}",
        ("attention: {causal: true}\nmodel: {pooling: mean}\n"
         "train: {window: 16, carry: stateful, batch: 350}"), // each window has a sum of its own
        "attention: {pool: 4}",
        "attention: {kind: softmax, features: 12, pool: 1}", // keys of rfa only
        "attention: {kind: elu, pool: 1}",
        "attention: {rows: fastfood, pool: 1}",
        "attention: {causal: true, direction: both, gate: learned}", // the first token sees all
        "parallel: {sequence: 3, segments: 1024}\ntrain: {batch: 256}",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const rfa_config config = parsed(good[i]);
        check_ok(rfa_config_check(&config));
    }
}

// Warm-up beyond the end is worth a line on stderr, and no error.
static void test_warmup_warns(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"train: {steps: 10, warmup: 11}", "train.warmup (11) exceeds train.steps (10)"},
        {"train: {steps: 10, warmup: 10}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rfa_config config = parsed(cases[i].text);
        char said[256] = "";
        FILE *file = tmpfile();
        check(file != NULL);
        fflush(stderr);
        const int stderr_copy = dup(STDERR_FILENO);
        check(dup2(fileno(file), STDERR_FILENO) >= 0);
        rfa_config_warn(&config);
        fflush(stderr);
        check(dup2(stderr_copy, STDERR_FILENO) >= 0);
        close(stderr_copy);
        rewind(file);
        const size_t n = fread(said, 1, sizeof said - 1, file);
        fclose(file);
        check_ok(rfa_config_check(&config));
        check(cases[i].said ? strstr(said, cases[i].said) != NULL : n == 0);
    }
}

static void test_long_values(void **state)
{
    (void)state;
    char text[2048], file[RFA_CONFIG_TEXT + 1] = "";
    memset(file, 'a', RFA_CONFIG_TEXT);
    rfa_config c = defaults();
    snprintf(text, sizeof text, "data:\n  file: %s", file);
    check_status(rfa_config_parse(&c, text, "run.yaml"), RFA_ERR_USAGE);
    check_said("512 bytes", "run.yaml:2: data.file: 'aaaaaaaa");
    check_said("512 bytes", "aaa...' is too long (text, up to 511 bytes)");
    file[RFA_CONFIG_TEXT - 1] = '\0';
    snprintf(text, sizeof text, "data:\n  file: %s", file);
    check_ok(rfa_config_parse(&c, text, "run.yaml"));
    check(strcmp(c.data.file, file) == 0);
    snprintf(text, sizeof text, "train.steps=%0600d", 1);
    check_status(rfa_config_set(&c, text), RFA_ERR_USAGE);
    check_said("600 digits", "...' is too long");
    // The cause survives names and values of any length.
    memset(text, 'n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    check_status(rfa_config_parse(&c, "train: {rate: 4x}", text), RFA_ERR_USAGE);
    check_said("long name", ":1: train.rate: '4x' is not a number (real, 0 to 1)");
    snprintf(text, 1000, "%0900d: 1", 0);
    check_status(rfa_config_parse(&c, text, "run.yaml"), RFA_ERR_USAGE);
    check_said("long section", "0...'; sections: data");
}

// Junk may be refused, or even be YAML; it never crashes, and an error leaves all as it was.
static void try_junk(const char *text, int *refused)
{
    const rfa_config before = defaults();
    rfa_config config = before;
    if (rfa_config_parse(&config, text, "junk") != RFA_OK) {
        if (strncmp(rfa_error_text(), "junk:", 5) != 0 || !same(&config, &before)) {
            print_error("%s\n  said: %s\n", text, rfa_error_text());
            fail();
        }
        ++*refused;
    }
}

static void test_junk(void **state)
{
    (void)state;
    enum { SIZE = 2048 };
    static const char marks[] = " \n\t:-{}[]#&*!|>'\"%@`,?~\\0123456789eE.+_rate:train";
    char text[SIZE], valid[SIZE];
    char *canonical = NULL;
    const rfa_config c = defaults();
    check_ok(rfa_config_text(&canonical, &c));
    const size_t length = strlen(canonical);
    check(length < SIZE);
    memcpy(valid, canonical, length + 1);
    rfa_free(canonical);
    int refused = 0;
    for (size_t n = 0; n <= length; n++) { // truncations
        memcpy(text, valid, n);
        text[n] = '\0';
        try_junk(text, &refused);
    }
    rfa_rng_reader random = rfa_rng_reader_at(rfa_rng_stream(11, RFA_RNG_TEST, 0, 0));
    for (int i = 0; i < 4000; i++) {
        const uint32_t kind = rfa_rng_below(&random, 3);
        const uint32_t n = kind == 2 ? (uint32_t)length : rfa_rng_below(&random, 200);
        memcpy(text, valid, length + 1);
        for (uint32_t k = 0; k < n && kind < 2; k++) { // bytes, or characters that YAML cares about
            text[k] = (char)(kind == 0 ? 1 + rfa_rng_below(&random, 255)
                                       : (uint32_t)marks[rfa_rng_below(&random, sizeof marks - 1)]);
        }
        for (uint32_t k = 0; k < 3 && kind == 2; k++) { // some changes in a valid file
            text[rfa_rng_below(&random, (uint32_t)length)] =
                marks[rfa_rng_below(&random, sizeof marks - 1)];
        }
        text[n] = '\0';
        try_junk(text, &refused);
    }
    check(refused > 3000);
    // Deep nesting ends in an error, not in the stack.
    static char deep[15000];
    static const char *const units[] = {"[", "{", "- ", "? ", "a: {", "&a [", "!a "};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t used = 0;
        while (used + 8 < sizeof deep) {
            rfa_append(deep, sizeof deep, &used, "%s", units[i]);
        }
        try_junk(deep, &refused);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_errors), cmocka_unit_test(test_set_errors),
        cmocka_unit_test(test_check),       cmocka_unit_test(test_warmup_warns),

        cmocka_unit_test(test_long_values), cmocka_unit_test(test_junk),
    };
    return test_main(tests);
}
