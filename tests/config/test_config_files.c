// Precision: f32
// Configuration files: reading them, and files that include another.
#include "support/support.h"

#include "base/mem.h"
#include "config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rfa_config defaults(void)
{
    rfa_config config;
    rfa_config_defaults(&config);
    return config;
}

static void check_said(const char *input, const char *want)
{
    if (!strstr(rfa_error_text(), want)) {
        print_error("%s\n  said:     %s\n  expected: %s\n", input, rfa_error_text(), want);
    }
    check(strstr(rfa_error_text(), want));
}

static void write_file(const char *path, const char *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    check(file != NULL);
    check(fwrite(bytes, 1, length, file) == length);
    check(fclose(file) == 0);
}

static void test_load(void **state)
{
    (void)state;
    const int64_t held = rfa_mem_now();
    char folder[] = "/tmp/rfa-config-XXXXXX", path[64], want[160];
    check(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/run.yaml", folder);
    rfa_config c = defaults();
    check_status(rfa_config_load(&c, path), RFA_ERR_IO);
    snprintf(want, sizeof want, "%s: No such file or directory", path);
    check_said("missing file", want);
    check_status(rfa_config_load(&c, folder), RFA_ERR_IO);
    check_said("folder", "Is a directory");
    write_file(path, "train:\n  seed: 5\n", 17);
    check_ok(rfa_config_load(&c, path));
    check(c.train.seed == 5);
    write_file(path, "train:\n  seed: x\n", 17);
    check_status(rfa_config_load(&c, path), RFA_ERR_USAGE);
    snprintf(want, sizeof want, "%s:2: train.seed: 'x' is not a whole number", path);
    check_said("wrong value", want);
    write_file(path, "train:\n  seed: 6\0\n", 18);
    check_status(rfa_config_load(&c, path), RFA_ERR_USAGE);
    snprintf(want, sizeof want, "%s:2: holds a NUL character", path);
    check_said("NUL", want);
    write_file(path, "", 0);
    check_status(rfa_config_load(&c, path), RFA_ERR_USAGE);
    snprintf(want, sizeof want, "%s is empty", path);
    check_said("empty", want);
    write_file(path, "{}", 2);
    check_ok(rfa_config_load(&c, path));
    check(c.train.seed == 5);
    check_status(rfa_config_load(&c, "/dev/zero"), RFA_ERR_USAGE);
    check_said("/dev/zero", "longer than 32768 bytes");
    unlink(path);
    rmdir(folder);
    check(rfa_mem_now() == held);
}

// An included file is read from the folder of the one that names it, and what follows counts.
static void test_include(void **state)
{
    (void)state;
    char folder[] = "/tmp/rfa-config-XXXXXX", base[64], path[64], want[200];
    check(mkdtemp(folder) != NULL);
    snprintf(base, sizeof base, "%s/base.yaml", folder);
    snprintf(path, sizeof path, "%s/run.yaml", folder);
    static const char top[] = "train:\n  seed: 5\n  steps: 7\n";
    write_file(base, top, sizeof top - 1);
    static const char run[] = "include: base.yaml\ntrain: {seed: 6}\n";
    write_file(path, run, sizeof run - 1);
    rfa_config c = defaults();
    check_ok(rfa_config_load(&c, path));
    check(c.train.seed == 6 && c.train.steps == 7);
    static const struct {
        const char *text, *said;
        rfa_status status;
    } bad[] = {
        {"train: {seed: 6}\ninclude: base.yaml\n", ":2: include must stand first", RFA_ERR_USAGE},
        {"include: \"\"\n", ":1: include takes the path of one file", RFA_ERR_USAGE},
        {"include: \"base.yaml\\0\"\n", ":1: include: a path with a zero byte", RFA_ERR_USAGE},
        {"include: run.yaml\n", "run.yaml:1: include goes in circles", RFA_ERR_USAGE},
        {"include: [base.yaml]\n", ":1: include takes the path", RFA_ERR_USAGE},
        {"include:\n", ":1: include takes the path", RFA_ERR_USAGE},
        {"include: none.yaml\n", "run.yaml:1: include: ", RFA_ERR_IO},
        {"include: none.yaml\n", "none.yaml: No such file", RFA_ERR_IO},
        {"include: base.yaml\ninclude: base.yaml\n", "given twice", RFA_ERR_USAGE},
        {"include: base.yaml\ntrain: {sed: 6}\n", ":2: unknown key 'train.sed'", RFA_ERR_USAGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file(path, bad[i].text, strlen(bad[i].text));
        check_status(rfa_config_load(&c, path), bad[i].status);
        check_said(bad[i].text, bad[i].said);
        check(c.train.seed == 6);
    }
    // A pipe nobody writes to would wait for ever.
    unlink(base);
    check(mkfifo(base, 0600) == 0);
    write_file(path, run, sizeof run - 1);
    check_status(rfa_config_load(&c, path), RFA_ERR_USAGE);
    check_said("pipe", "base.yaml: a pipe can't be included");
    unlink(base);
    // An error in the included file names it.
    write_file(base, "train: {seed: x}\n", 17);
    write_file(path, run, sizeof run - 1);
    check_status(rfa_config_load(&c, path), RFA_ERR_USAGE);
    snprintf(want, sizeof want, "%s:1: train.seed: 'x'", base);
    check_said("included", want);
    check_status(rfa_config_parse(&c, "include: base.yaml\n", "text"), RFA_ERR_USAGE);
    check_said("text", "text:1: include works in files only");
    unlink(path);
    unlink(base);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_include),
    };
    return test_main(tests);
}
