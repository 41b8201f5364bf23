// Precision: f32
// The released ListOps files: layouts, line ends, and every kind of damage with its line.
#include "support/support.h"

#include "tasks/listops.h"
#include "tasks/listops_tsv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int make_root(void **state)
{
    (void)state;
    snprintf(root, sizeof root, "/tmp/rfa-tsv-XXXXXX");
    return mkdtemp(root) ? 0 : 1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command);
}

// Writes root/folder/basic_<split>.tsv and the folders above it.
static void put_bytes(const char *folder, const char *split, const char *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "mkdir -p '%s/%s'", root, folder);
    check(system(path) == 0);
    snprintf(path, sizeof path, "%s/%s/basic_%s.tsv", root, folder, split);
    FILE *file = fopen(path, "w");
    check(file != NULL);
    check(fwrite(bytes, 1, size, file) == size);
    check(fclose(file) == 0);
}

static void put(const char *folder, const char *split, const char *text)
{
    put_bytes(folder, split, text, strlen(text));
}

#define HEADER "Source\tTarget\n"

static void layouts_are_found(void **state)
{
    (void)state;
    char folder[256], base[256];
    static const char *const nested[] = {"", "/listops-1000", "/lra_release/listops-1000",
                                         "/lra_release/lra_release/listops-1000"};
    for (int i = 0; i < 4; i++) {
        char place[128];
        snprintf(place, sizeof place, "layout%d%s", i, nested[i]);
        for (int s = 0; s < RFA_LISTOPS_SPLITS; s++) {
            put(place, rfa_listops_splits[s], HEADER "1\t1\n");
        }
        snprintf(base, sizeof base, "%s/layout%d", root, i);
        check_ok(rfa_listops_tsv_find(folder, sizeof folder, base));
        check(strncmp(folder, base, strlen(base)) == 0);
        check(strcmp(folder + strlen(base), nested[i]) == 0);
    }
    put("partly/listops-1000", "val", HEADER "1\t1\n");
    snprintf(base, sizeof base, "%s/partly", root);
    check_status(rfa_listops_tsv_find(folder, sizeof folder, base), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "partly/listops-1000: missing basic_train.tsv, basic_test.tsv; "
                                   "found basic_val.tsv"));
    put("other", "readme", "");
    snprintf(base, sizeof base, "%s/other", root);
    check_status(rfa_listops_tsv_find(folder, sizeof folder, base), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "basic_train.tsv, basic_val.tsv, basic_test.tsv are missing"));
    snprintf(base, sizeof base, "%s/nowhere", root);
    check_status(rfa_listops_tsv_find(folder, sizeof folder, base), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "No such file"));
    snprintf(base, sizeof base, "%s/other/basic_readme.tsv", root);
    check_status(rfa_listops_tsv_find(folder, sizeof folder, base), RFA_ERR_IO);
    check(strstr(rfa_error_text(), "not a folder"));
}

// Reads a whole file; the number of examples, or -1 with the error recorded.
static int count(const char *folder, const char *split)
{
    char place[256];
    snprintf(place, sizeof place, "%s/%s", root, folder);
    rfa_listops_tsv *tsv = NULL;
    rfa_listops_row row = {0};
    int n = 0;
    rfa_status status = rfa_listops_tsv_open(&tsv, place, split);
    while (status == RFA_OK && (status = rfa_listops_tsv_next(tsv, &row)) == RFA_OK &&
           row.length > 0) {
        n++;
    }
    rfa_listops_tsv_close(&tsv);
    rfa_listops_tsv_close(&tsv);
    return status == RFA_OK ? n : status == RFA_ERR_IO ? -1 : -2;
}

static void rows_are_read(void **state)
{
    (void)state;
    char place[256];
    put("good", "train", HEADER "( ( ( [MAX 4 ) 7 ) ] )\t7\n( ( ( [SM 9 ) 9 ) X )\t8\n3\t3\n");
    snprintf(place, sizeof place, "%s/good", root);
    rfa_listops_tsv *tsv;
    rfa_listops_row row;
    static const uint16_t first[4] = {12, 5, 8, 15}, second[4] = {14, 10, 10, 15};
    check_ok(rfa_listops_tsv_open(&tsv, place, "train"));
    check_ok(rfa_listops_tsv_next(tsv, &row));
    check(row.length == 4 && memcmp(row.ids, first, sizeof first) == 0);
    check(row.label == 7 && row.line == 2);
    check_ok(rfa_listops_tsv_next(tsv, &row));
    check(row.length == 4 && memcmp(row.ids, second, sizeof second) == 0);
    check(row.label == 8 && row.line == 3);
    check_ok(rfa_listops_tsv_next(tsv, &row));
    check(row.length == 1 && row.ids[0] == 4 && row.label == 3 && row.line == 4);
    check_ok(rfa_listops_tsv_next(tsv, &row));
    check(row.length == 0);
    rfa_listops_tsv_close(&tsv);

    put("good", "val", "Source\tTarget\r\n[MIN 4 2 ]\t2\r\n[MIN 4 1 ]\t1\r\n");
    check(count("good", "val") == 2);
    put("good", "test", HEADER "[MIN 4 2 ]\t2\n[MIN 4 1 ]\t1"); // no end of the last line
    check(count("good", "test") == 2);

    // A line far beyond the first buffer.
    enum { ARGUMENTS = 100000 };
    char *text = NULL;
    check_ok(rfa_alloc(&text, 2 * ARGUMENTS + 64, 1, "test"));
    char *at = text + sprintf(text, HEADER "[MAX");
    for (int i = 0; i < ARGUMENTS; i++) {
        at += sprintf(at, " %d", i % 7);
    }
    sprintf(at, " ]\t6\n2\t2\n");
    put("good", "long", text);
    rfa_free(text);
    check(count("good", "long") == 2);
}

static void damage_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"", "basic_x.tsv: the file is empty"},
        {"[MAX 1 2 ]\t2\n", "basic_x.tsv:1: the header is '[MAX 1 2 ]\t2'"},
        {"Target\tSource\n1\t1\n", "basic_x.tsv:1: the header"},
        {HEADER, "basic_x.tsv: no examples"},
        {HEADER "1\t1\n2\n", "basic_x.tsv:3: 1 column, expected 2"},
        {HEADER "1\t1\n\n2\t2\n", "basic_x.tsv:3: 1 column, expected 2"},
        {HEADER "1\t1\t1\n", "basic_x.tsv:2: 3 columns, expected 2"},
        {HEADER "1\t1\n1\t10\n", "basic_x.tsv:3: the label is '10', not a digit"},
        {HEADER "1\t\n", "basic_x.tsv:2: the label is ''"},
        {HEADER "1\t-1\n", "basic_x.tsv:2: the label is '-1'"},
        {HEADER "1\tx\n", "basic_x.tsv:2: the label is 'x'"},
        {HEADER "[MAX 1 2 ]\t1\n",
         "basic_x.tsv:2: the label is 1, but the expression's value is 2"},
        {HEADER "[MED 0 9 ]\t5\n",
         "basic_x.tsv:2: the label is 5, but the expression's value is 4"},
        {HEADER "1\t1\n[MAX 1 2\t2\n", "basic_x.tsv:3: 1 operator is not closed"},
        {HEADER "[MAX 1 ] ]\t1\n", "basic_x.tsv:2: token 4 follows"},
        {HEADER "[MEAN 1 2 ]\t1\n", "basic_x.tsv:2: unknown token '[MEAN'"},
        {HEADER "( 1\t1\n", "basic_x.tsv:2: 1 '(' without ')'"},
        {HEADER "\t1\n", "basic_x.tsv:2: the expression is empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put("bad", "x", cases[i].text);
        const int n = count("bad", "x");
        if (n != -1 || !strstr(rfa_error_text(), cases[i].error)) {
            print_error("case %zu: %d examples: %s\n", i, n, rfa_error_text());
        }
        check(n == -1 && strstr(rfa_error_text(), cases[i].error));
    }
    put_bytes("bad", "x", HEADER "1\t1\n1\0\t1\n", 22);
    check(count("bad", "x") == -1 && strstr(rfa_error_text(), "basic_x.tsv:3: not text"));
    check(count("bad", "absent") == -1 && strstr(rfa_error_text(), "basic_absent.tsv: can't be"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layouts_are_found, make_root, remove_root),
        cmocka_unit_test_setup_teardown(rows_are_read, make_root, remove_root),
        cmocka_unit_test_setup_teardown(damage_is_named, make_root, remove_root),
    };
    return test_main(tests);
}
