// Precision: f32
// The configuration when all is well: defaults, spellings, round trips, help, shipped files.
#include "support/support.h"

#include "config/config.h"
#include "config/keys.h"
#include "rng/rng.h"

#include <fts.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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

static void test_defaults(void **state)
{
    (void)state;
    const rfa_config c = defaults();
    check(strcmp(c.data.file, "data/listops.h5") == 0 && c.data.max_length == 2000);
    check(c.model.layers == 2 && c.model.width == 64 && c.model.heads == 2);
    check(c.model.feed_forward == 128 && c.model.head == 128 && c.model.dropout == 0.1);
    check(c.model.positions == RFA_POSITIONS_LEARNED && c.model.pooling == RFA_POOLING_FIRST);
    check(c.attention.kind == RFA_ATTENTION_RFA && !c.attention.causal);
    check(c.attention.features == 64 && c.attention.pool == 200 && c.attention.bandwidth == 1.0);
    check(c.parallel.sequence == 0 && c.parallel.segments == 8 && c.parallel.threads == 1);
    check(c.parallel.exchange == 0);
    check(c.train.seed == 1 && c.train.steps == 5000 && c.train.batch == 32);
    check(c.train.micro_batch == 0 && c.train.rate == 1e-3 && c.train.warmup == 1000);
    check(c.train.weight_decay == 0 && c.train.beta1 == 0.9 && c.train.beta2 == 0.999);
    check(c.train.epsilon == 1e-6 && c.train.clip == 1.0 && c.train.evaluate_every == 500);
    check(c.train.evaluate_examples == 0 && c.train.checkpoint_every == 500);
    check_ok(rfa_config_check(&c));
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        if (key->type == RFA_KEY_INT || key->type == RFA_KEY_REAL) {
            check(key->min < key->max && key->number >= key->min && key->number <= key->max);
        }
        check(rfa_key_find(key->section, key->name) == key); // no name twice
    }
}

// Every field of the struct has its key: the bytes of all fields are those of the struct, padding
// apart.
static void test_table_is_complete(void **state)
{
    (void)state;
    static const size_t sizes[] = {[RFA_KEY_INT] = sizeof(int64_t),
                                   [RFA_KEY_REAL] = sizeof(double),
                                   [RFA_KEY_BOOL] = sizeof(bool),
                                   [RFA_KEY_TEXT] = RFA_CONFIG_TEXT,
                                   [RFA_KEY_CHOICE] = sizeof(int)};
    size_t end = 0;
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        check(key->offset >= end && key->offset - end < sizeof(int64_t));
        end = key->offset + sizes[key->type];
    }
    check(sizeof(rfa_config) - end < sizeof(int64_t));
}

// What YAML allows, and comes out the same.
static void test_accepts(void **state)
{
    (void)state;
    static const char *const same_texts[] = {
        "model:\n  width: 32\ntrain:\n  rate: 1e-2\n  clip: .5\nattention:\n  causal: true\n",
        "# note\r\nmodel:\r\n  width: 32\r\ntrain:\r\n  rate: 0.01\r\n  clip: +5E-1\r\n"
        "attention: {causal: true}\r\n",
        "{model: {width: 32}, train: {rate: 10e-3, clip: 0.50}, attention: {causal: true}}",
        "---\n\"model\": {'width': 32}\ntrain:\n    clip: 5.e-1 # note\n    rate: 1.0e-02\n"
        "attention:\n  causal: true\n...\n",
        "\xef\xbb\xbfmodel: {width: 32}\ntrain: {rate: !!str 0.01, clip: &c 0.5}\n"
        "attention: {causal: true}\ndata:\n  # file: other.h5\nparallel: ~\n",
    };
    rfa_config want = defaults();
    want.model.width = 32;
    want.train.rate = 0.01;
    want.train.clip = 0.5;
    want.attention.causal = true;
    for (size_t i = 0; i < sizeof same_texts / sizeof *same_texts; i++) {
        const rfa_config got = parsed(same_texts[i]);
        check(same(&got, &want));
    }
    static const char *const empty[] = {"", "\n", "# note\n", "---\n", "---\n...\n", "{}", "~"};
    want = defaults();
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        const rfa_config got = parsed(empty[i]);
        check(same(&got, &want));
    }
    rfa_config c =
        parsed("model: {pooling: \"mean\", positions: none}\nparallel: {exchange: exscan}\n"
               "attention: {kind: softmax}\ntrain: {seed: 9007199254740992, warmup: 0}\n"
               "data: {file: /p/a b.h5}");
    check(c.model.pooling == RFA_POOLING_MEAN && c.model.positions == RFA_POSITIONS_NONE);
    check(c.parallel.exchange == 1 && c.attention.kind == RFA_ATTENTION_SOFTMAX);
    check(c.train.seed == INT64_C(9007199254740992) && c.train.warmup == 0);
    check(strcmp(c.data.file, "/p/a b.h5") == 0);
    // A shorter text leaves nothing of the longer one; later settings win; --set knows no YAML.
    check_ok(rfa_config_set(&c, "data.file=\"x\": {#=~}"));
    check(strcmp(c.data.file, "\"x\": {#=~}") == 0);
    check_ok(rfa_config_set(&c, "data.file=y"));
    check_ok(rfa_config_set(&c, "train.rate=-0"));
    check(c.data.file[1] == '\0' && c.data.file[2] == '\0' && !signbit(c.train.rate));
}

// parse(text(c)) is c to the last bit.
static void check_round_trip(const rfa_config *config)
{
    char *text = NULL, *again = NULL;
    rfa_config back = defaults();
    check_ok(rfa_config_text(&text, config));
    check_ok(rfa_config_parse(&back, text, "text"));
    check(!strstr(text, "bench:") && !strstr(text, "fidelity:")); // no part of a run
    back.bench = config->bench;
    back.fidelity = config->fidelity;
    check(same(&back, config));
    check_ok(rfa_config_text(&again, &back));
    check(strcmp(text, again) == 0);
    rfa_free(again);
    rfa_free(text);
}

static void test_round_trip(void **state)
{
    (void)state;
    const int64_t held = rfa_mem_now();
    rfa_config c = defaults();
    check_round_trip(&c);
    static const char *const files[] = {"a",
                                        " lead and trail ",
                                        "\"q\" \\ 'x'",
                                        "~",
                                        "null",
                                        "12",
                                        "- a: b #c",
                                        "*alias",
                                        "&a !!t %",
                                        "\xc3\xa9\xe6\x97\xa5",
                                        "a  b",
                                        "{}",
                                        "@",
                                        "\\n",
                                        "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        c = defaults();
        memset(c.data.file, 0, sizeof c.data.file);
        memcpy(c.data.file, files[i], strlen(files[i]));
        check_round_trip(&c);
    }
    memset(c.data.file, '"', RFA_CONFIG_TEXT - 1); // the longest, all of it escaped
    check_round_trip(&c);
    // Random values of every key, reals with all their bits.
    rfa_rng_reader random = rfa_rng_reader_at(rfa_rng_stream(7, RFA_RNG_TEST, 0, 0));
    for (int i = 0; i < 300; i++) {
        for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
            void *field = (char *)&c + key->offset;
            const double u = rfa_rng_uniform(&random) + rfa_rng_uniform(&random) * 0x1p-32;
            const double value = fmin(key->min + u * (key->max - key->min), key->max);
            int choices = 0;
            while (key->type == RFA_KEY_CHOICE && key->choices[choices]) {
                choices++;
            }
            switch (key->type) {
            case RFA_KEY_INT: *(int64_t *)field = (int64_t)value; break;
            case RFA_KEY_REAL: *(double *)field = value; break;
            case RFA_KEY_BOOL: *(bool *)field = u < 0.5; break;
            case RFA_KEY_CHOICE:
                *(int *)field = (int)rfa_rng_below(&random, (uint32_t)choices);
                break;
            case RFA_KEY_TEXT: break;
            }
        }
        check_round_trip(&c);
    }
    check(rfa_mem_now() == held);
}

static void test_canonical_text(void **state)
{
    (void)state;
    const rfa_config c = defaults();
    char *text = NULL;
    check_ok(rfa_config_text(&text, &c));
    check(strncmp(text, "data:\n  file: \"data/listops.h5\"\n  max_length: 2000\nmodel:\n", 57) ==
          0);
    check(strstr(text, "\n  dropout: 0.1\n") && strstr(text, "\n  epsilon: 1e-06\n"));
    check(strstr(text, "\n  causal: false\n") && strstr(text, "\n  pooling: first\n"));
    rfa_free(text);
}

static void test_differences(void **state)
{
    (void)state;
    const rfa_config a = defaults();
    rfa_config b = parsed("data: {file: other.h5}\n"
                          "parallel: {sequence: 2, threads: 4, exchange: transposed}\n"
                          "train: {micro_batch: 4, evaluate_every: 7, checkpoint_every: 3}");
    char text[256];
    check(rfa_config_differences(text, sizeof text, &b, &a) == 0 && text[0] == '\0');
    b = parsed("train: {rate: 0.002}");
    check(rfa_config_differences(text, sizeof text, &a, &b) == 1);
    check(strcmp(text, "train.rate (0.001, was 0.002)") == 0);
    b = parsed("parallel: {segments: 16}\nmodel: {pooling: mean}\nattention: {causal: true}");
    check(rfa_config_differences(text, sizeof text, &b, &a) == 3);
    check(strcmp(text, "model.pooling (mean, was first), attention.causal (true, was false), "
                       "parallel.segments (16, was 8)") == 0);
    // Too small a room ends in dots, and never beyond its end.
    memset(text, 'x', sizeof text);
    check(rfa_config_differences(text, 30, &b, &a) == 3);
    check(strcmp(text, "model.pooling (mean, was f...") == 0 && text[30] == 'x');
    check(rfa_config_differences(NULL, 0, &b, &a) == 3);
    // Each key but the named ones counts.
    static const char *const neutral =
        " data.file parallel.sequence parallel.threads parallel.exchange train.micro_batch "
        "train.recompute train.evaluate_every train.checkpoint_every "
        ""
        "train.checkpoint_minutes train.check_every train.max_minutes ";
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        char name[64];
        snprintf(name, sizeof name, " %s.%s ", key->section, key->name);
        b = a;
        *((unsigned char *)&b + key->offset) ^= 1;
        const bool counts = !strstr(neutral, name) && strcmp(key->section, "bench") != 0 &&
                            strcmp(key->section, "fidelity") != 0;
        check(rfa_config_differences(text, sizeof text, &b, &a) == counts);
    }
}

static char help_text[65536];
static size_t help_used;

static void collect(const char *line)
{
    check(strlen(line) <= 80 && !strchr(line, '\n'));
    rfa_append(help_text, sizeof help_text, &help_used, "%s\n", line);
}

// The help is a configuration file of all defaults.
static void test_help(void **state)
{
    (void)state;
    help_used = 0;
    rfa_config_help(collect);
    check(help_used < sizeof help_text);
    const rfa_config want = defaults(), got = parsed(help_text);
    check(same(&got, &want));
    for (const rfa_key *key = rfa_keys; key < rfa_keys + rfa_key_count; key++) {
        char line[64];
        snprintf(line, sizeof line, "\n  %s: ", key->name);
        check(strstr(help_text, line) && strlen(key->help) > 10);
    }
    check(strstr(help_text, "  # real, 0 to 0.95\n  dropout: 0.1\n"));
    check(strstr(help_text, "  # one of auto, exscan, transposed; a resumed run may change it\n"));
}

static void test_shipped_files(void **state)
{
    (void)state;
    char root[] = TEST_SOURCE_DIR "/configs", *const roots[] = {root, NULL};
    int shipped = 0;
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    check(tree != NULL);
    for (const FTSENT *entry = fts_read(tree); entry; entry = fts_read(tree)) {
        if (entry->fts_info == FTS_F) {
            const char *dot = strrchr(entry->fts_path, '.');
            rfa_config config = defaults();
            check(dot && strcmp(dot, ".yaml") == 0);
            check_ok(rfa_config_load(&config, entry->fts_path));
            check_ok(rfa_config_check(&config));
            check(config.train.warmup <= config.train.steps);
            if (strstr(entry->fts_path, "/lra/path")) { // P17: at chance with sinusoids
                check(config.model.positions == RFA_POSITIONS_LEARNED);
            }
            check_round_trip(&config);
            shipped++;
        }
    }
    fts_close(tree);
    check(shipped >= 5);
    const rfa_config protocol = defaults();
    char text[512];
    rfa_config c = defaults();
    check_ok(rfa_config_load(&c, TEST_SOURCE_DIR "/configs/lra/listops/rfa.yaml"));
    check(rfa_config_differences(text, sizeof text, &c, &protocol) == 0);
    c = defaults();
    check_ok(rfa_config_load(&c, TEST_SOURCE_DIR "/configs/lra/listops/rfa-causal.yaml"));
    check(rfa_config_differences(text, sizeof text, &c, &protocol) == 2);
    check(strcmp(text, "model.pooling (mean, was first), attention.causal (true, was false)") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_table_is_complete),
        cmocka_unit_test(test_accepts),        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_canonical_text), cmocka_unit_test(test_differences),
        cmocka_unit_test(test_help),           cmocka_unit_test(test_shipped_files),
    };
    return test_main(tests);
}
