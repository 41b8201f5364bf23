// Precision: f32
// Tables: fields, quotes, line ends, places in the file, and what is refused.
#include "support/support.h"

#include "tasks/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

static void put(const char *bytes, size_t size)
{
    snprintf(path, sizeof path, "/tmp/rfa-table-XXXXXX");
    const int file = mkstemp(path);
    check(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    close(file);
}

// Records as "a|b/c|d/": fields between bars, records before slashes; or the error.
static rfa_status
read_all(char out[512], const char *bytes, size_t size, char separator, int most, bool rest)
{
    rfa_table *table = NULL;
    rfa_field fields[RFA_TABLE_FIELDS];
    int count = 0;
    put(bytes, size);
    out[0] = 0;
    rfa_status status = rfa_table_open(&table, path, separator, most, rest);
    while (status == RFA_OK && (status = rfa_table_next(table, fields, &count)) == RFA_OK &&
           count > 0) {
        for (int f = 0; f < count; f++) {
            const size_t used = strlen(out);
            snprintf(out + used, 512 - used, "%s%s", f ? "|" : "", fields[f].text);
            // The place leads to the same bytes of the file.
            char raw[256];
            const int64_t end = fields[f].place + fields[f].size;
            check(end <= (int64_t)size && fields[f].size < 256);
            memcpy(raw, bytes + fields[f].place, (size_t)fields[f].size);
            const int64_t length =
                fields[f].quoted ? rfa_unquote(raw, fields[f].size) : fields[f].size;
            raw[length] = 0;
            check(strcmp(raw, fields[f].text) == 0);
        }
        const size_t end = strlen(out);
        snprintf(out + end, 512 - end, "/");
    }
    rfa_table_close(&table);
    unlink(path);
    return status;
}

static void expect(const char *bytes, char separator, int most, bool rest, const char *records)
{
    char out[512];
    check_ok(read_all(out, bytes, strlen(bytes), separator, most, rest));
    check(strcmp(out, records) == 0);
}

static void expect_error(const char *bytes, size_t size, char separator, int most, const char *what)
{
    char out[512];
    check_status(read_all(out, bytes, size, separator, most, false), RFA_ERR_IO);
    check(strncmp(rfa_error_text(), path, strlen(path)) == 0);
    check(strstr(rfa_error_text(), what) != NULL);
}

static void tabs(void **state)
{
    (void)state;
    expect("1\tone\n0\ttwo\n", '\t', 2, false, "1|one/0|two/");
    expect("1\tone\r\n\n\r\n0\ttwo", '\t', 2, false,
           "1|one/0|two/");                                 // Windows, empty lines, no end
    expect("1\ta\tb\tc\n", '\t', 2, true, "1|a\tb\tc/");    // tabs in a last column
    expect("1\t\"a\"\"b\n", '\t', 2, false, "1|\"a\"\"b/"); // quotes are characters
    expect("\t\n", '\t', 2, false, "|/");
    expect("\xef\xbb\xbf"
           "1\tx\n",
           '\t', 2, false, "1|x/"); // byte order mark
    expect("\xef\xbb\tx\n", '\t', 2, false, "\xef\xbb|x/");
    expect("\xef\xbb\xbf", '\t', 2, false, "");
    expect("1,2\tx\ry\n", '\t', 3, false, "1,2|x\ry/");
    expect("", '\t', 2, false, "");
    expect("\n\n", '\t', 2, false, "");
}

static void commas(void **state)
{
    (void)state;
    expect("\xef\xbb\xbf\"a,b\",1\n", ',', 2, false, "a,b|1/");
    expect("1,one\n0,\"t,w\"\"o\"\n", ',', 2, false, "1|one/0|t,w\"o/");
    expect("\"a\nb\",1\r\n\"\",\"\"\r\n", ',', 2, false, "a\nb|1/|/");
    expect("\"a\",\"b\"", ',', 2, false, "a|b/");
    expect("a\"b,c\n", ',', 2, false, "a\"b|c/"); // a quote inside
    expect("x\ty,z\n", ',', 2, false, "x\ty|z/");
}

static void refusals(void **state)
{
    (void)state;
    expect_error("1\ta\n1\tb\tc\n", 10, '\t', 2, ":2: more than 2 columns");
    expect_error("1,\"a\nb\n\nc", 9, ',', 2, ":1: a quote is not closed");
    expect_error("x,y\n\"a\nb\"c,1\n", 13, ',', 2, ":2: something between");
    rfa_table *table;
    check_status(rfa_table_open(&table, "/tmp/rfa-not-there", '\t', 2, false), RFA_ERR_IO);
    check_status(rfa_table_open(&table, "/tmp", '\t', 2, false), RFA_ERR_IO);
}

// Zero bytes are bytes of a text, but not of a word.
static void zero_bytes(void **state)
{
    (void)state;
    rfa_table *table = NULL;
    rfa_field fields[2];
    int count = 0;
    put("1\ta\0b\n", 6);
    check_ok(rfa_table_open(&table, path, '\t', 2, false));
    check_ok(rfa_table_next(table, fields, &count));
    check(count == 2 && fields[1].length == 3 && memcmp(fields[1].text, "a\0b", 3) == 0);
    check(rfa_field_is_word(&fields[0]) && !rfa_field_is_word(&fields[1]));
    rfa_table_close(&table);
    unlink(path);
}

static void lines_are_counted(void **state)
{
    (void)state;
    rfa_table *table = NULL;
    rfa_field fields[2];
    int count = 0;
    put("\n1,\"a\n\nb\"\n\n2,c\n", 15);
    check_ok(rfa_table_open(&table, path, ',', 2, false));
    check_ok(rfa_table_next(table, fields, &count));
    check(rfa_table_line(table) == 2 && count == 2);
    check_ok(rfa_table_next(table, fields, &count));
    check(rfa_table_line(table) == 6 && strcmp(fields[1].text, "c") == 0);
    rfa_table_close(&table);
    unlink(path);
}

// A gzip file that is cut off is told from one that ends.
static void compressed(void **state)
{
    (void)state;
    char command[256], bytes[512];
    put("", 0);
    snprintf(command, sizeof command, "printf '1\\tone\\n0\\ttwo\\n' | gzip >%s", path);
    check(system(command) == 0);
    FILE *file = fopen(path, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    unlink(path);
    rfa_table *table = NULL;
    rfa_field fields[2];
    int count = 0;
    for (int cut = 0; cut < 2; cut++) {
        put(bytes, size - (size_t)cut * 9);
        check_ok(rfa_table_open(&table, path, '\t', 2, false));
        rfa_status status = RFA_OK;
        int records = 0;
        while ((status = rfa_table_next(table, fields, &count)) == RFA_OK && count > 0) {
            check(fields[1].place == (records ? 8 : 2)); // of the unpacked file
            records++;
        }
        check(cut ? status == RFA_ERR_IO : (status == RFA_OK && records == 2));
        check(!cut || strstr(rfa_error_text(), "the compressed file is cut off") != NULL);
        rfa_table_close(&table);
        unlink(path);
    }
}

static void utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "a",
                                       "\xc3\xa4",
                                       "\xe2\x82\xac",
                                       "\xf0\x9f\x98\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "\xed\x9f\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc3",
                                      "\xc3(",
                                      "\xc0\xaf",
                                      "\xe0\x80\x80",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xff",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xe2\x82"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        check(rfa_is_utf8(good[i], (int64_t)strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        check(!rfa_is_utf8(bad[i], (int64_t)strlen(bad[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tabs),       cmocka_unit_test(commas),
        cmocka_unit_test(refusals),   cmocka_unit_test(lines_are_counted),
        cmocka_unit_test(zero_bytes), cmocka_unit_test(compressed),
        cmocka_unit_test(utf8),
    };
    return test_main(tests);
}
