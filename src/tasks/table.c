#include "tasks/table.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { PATH_SIZE = 4096, RECORD_LIMIT = 1 << 26, BUFFER = 1 << 17 };

struct rfa_table {
    gzFile file;
    char path[PATH_SIZE];
    char separator;
    bool rest;
    int most;
    int64_t line, next_line; // of the record; of the next byte
    int64_t place;           // of the next byte in the file
    char *text;              // of the record
    int64_t size, capacity;
};

static rfa_status fail_at(const rfa_table *t, const char *what)
{
    return rfa_fail(RFA_ERR_IO, "%s:%lld: %s", t->path, (long long)t->line, what);
}

// The mark that some programs put before UTF-8. Whatever is wrong with the file shows again.
static rfa_status skip_mark(rfa_table *t)
{
    char mark[3];
    int code = Z_OK;
    errno = 0;
    const int got = gzread(t->file, mark, 3), error = errno;
    if (got < 0 && (gzerror(t->file, &code), code == Z_ERRNO)) { // zlib keeps no errno
        return rfa_fail(RFA_ERR_IO, "%s: can't be read: %s", t->path, strerror(error));
    }
    if (got == 3 && memcmp(mark, "\xef\xbb\xbf", 3) == 0) {
        t->place = 3;
    } else {
        gzrewind(t->file);
    }
    return RFA_OK;
}

rfa_status rfa_table_open(rfa_table **out, const char *path, char separator, int most, bool rest)
{
    RFA_ASSERT(most >= 1 && most <= RFA_TABLE_FIELDS);
    *out = NULL;
    rfa_table *t = NULL;
    RFA_TRY(rfa_alloc(&t, 1, sizeof *t, "table"));
    *t = (rfa_table){.separator = separator, .rest = rest, .most = most, .next_line = 1};
    rfa_status status = RFA_OK;
    if (snprintf(t->path, PATH_SIZE, "%s", path) >= PATH_SIZE) {
        status = rfa_fail(RFA_ERR_IO, "%.200s...: the path is too long", path);
    }
    if (status == RFA_OK) {
        errno = 0;
        t->file = gzopen(path, "re");
        if (!t->file) {
            status = rfa_fail(RFA_ERR_IO, "%s: can't be opened: %s", path,
                              errno ? strerror(errno) : "out of memory");
        } else {
            gzbuffer(t->file, BUFFER);
            status = skip_mark(t);
        }
    }
    if (status != RFA_OK) {
        rfa_table_close(&t);
    }
    *out = t;
    return status;
}

void rfa_table_close(rfa_table **table)
{
    if (*table) {
        if ((*table)->file) {
            gzclose_r((*table)->file);
        }
        rfa_free((*table)->text);
        rfa_free(*table);
        *table = NULL;
    }
}

int64_t rfa_table_line(const rfa_table *table)
{
    return table->line;
}

// The next byte of the file into the record; *c is EOF at the end. The byte counts as read.
static rfa_status take(rfa_table *t, int *c)
{
    if (t->size + 1 >= t->capacity) {
        const int64_t wanted = t->capacity > 0 ? 2 * t->capacity : 1 << 14;
        char *larger = NULL;
        if (wanted > RECORD_LIMIT) {
            return fail_at(t, "a record of more than 32 MiB");
        }
        RFA_TRY(rfa_alloc(&larger, wanted, 1, "record"));
        if (t->size > 0) {
            memcpy(larger, t->text, (size_t)t->size);
        }
        rfa_free(t->text);
        t->text = larger;
        t->capacity = wanted;
    }
    errno = 0;
    *c = gzgetc(t->file);
    if (*c < 0) {
        int code = Z_OK;
        const char *text = gzerror(t->file, &code);
        if (code != Z_OK && code != Z_STREAM_END) {
            return fail_at(t, code == Z_ERRNO       ? strerror(errno)
                              : code == Z_BUF_ERROR ? "the compressed file is cut off"
                                                    : text);
        }
        *c = EOF;
        return RFA_OK;
    }
    t->place++;
    t->next_line += *c == '\n';
    t->text[t->size++] = (char)*c;
    return RFA_OK;
}

// A field ends; text pointers are set when the record is whole, as the block may move.
static rfa_status close_field(
    const rfa_table *t, rfa_field *fields, int *count, int64_t begin, int64_t end, bool quoted)
{
    if (*count == t->most) {
        char text[64];
        snprintf(text, sizeof text, "more than %d columns", t->most);
        return fail_at(t, text);
    }
    fields[(*count)++] = (rfa_field){.place = begin, .size = end - begin, .quoted = quoted};
    return RFA_OK;
}

// A quoted field, whose opening quote has been taken; *c is the byte behind it.
static rfa_status quoted_field(rfa_table *t, rfa_field *fields, int *count, int *c)
{
    const int64_t begin = t->size;
    for (;;) {
        RFA_TRY(take(t, c));
        if (*c == EOF) {
            return fail_at(t, "a quote is not closed");
        }
        if (*c == '"') {
            RFA_TRY(take(t, c));
            if (*c != '"') {
                break;
            }
        }
    }
    const int64_t end = t->size - (*c == EOF ? 1 : 2);
    if (*c == '\r') {
        RFA_TRY(take(t, c));
    }
    if (*c != EOF && *c != '\n' && *c != t->separator) {
        return fail_at(t, "something between a closing quote and the next comma");
    }
    return close_field(t, fields, count, begin, end, true);
}

// A field without quotes, up to its separator or the end of the line.
static rfa_status plain_field(rfa_table *t, rfa_field *fields, int *count, int *c, int64_t begin)
{
    const bool last = t->rest && *count == t->most - 1;
    while (*c != EOF && *c != '\n' && (*c != t->separator || last)) {
        RFA_TRY(take(t, c));
    }
    int64_t end = t->size - (*c != EOF);
    if (*c != t->separator && end > begin && t->text[end - 1] == '\r') {
        end--;
    }
    return close_field(t, fields, count, begin, end, false);
}

rfa_status rfa_table_next(rfa_table *table, rfa_field *fields, int *count)
{
    rfa_table *t = table;
    int c = 0;
    int64_t start;
    do { // empty lines
        *count = 0;
        t->size = 0;
        t->line = t->next_line;
        start = t->place;
        RFA_TRY(take(t, &c));
        if (c == '\r') {
            RFA_TRY(take(t, &c));
        }
    } while (c == '\n');
    if (c == EOF && t->size == 0) {
        return RFA_OK;
    }
    for (int64_t begin = 0;; begin = t->size) {
        if (begin > 0) {
            RFA_TRY(take(t, &c));
        }
        if (t->separator == ',' && c == '"') {
            RFA_TRY(quoted_field(t, fields, count, &c));
        } else {
            RFA_TRY(plain_field(t, fields, count, &c, begin));
        }
        if (c == EOF || c == '\n') {
            break;
        }
    }
    for (int f = 0; f < *count; f++) { // from places in the record to text
        char *text = t->text + fields[f].place;
        fields[f].text = text;
        fields[f].place += start;
    }
    for (int f = 0; f < *count; f++) {
        const int64_t size =
            fields[f].quoted ? rfa_unquote(fields[f].text, fields[f].size) : fields[f].size;
        fields[f].text[size] = 0;
        fields[f].length = size;
    }
    return RFA_OK;
}

bool rfa_field_is_word(const rfa_field *field)
{
    enum { LONGEST = 1024 };
    return field->length < LONGEST && (int64_t)strlen(field->text) == field->length;
}

int64_t rfa_unquote(char *text, int64_t size)
{
    int64_t to = 0;
    for (int64_t from = 0; from < size; from++) {
        text[to++] = text[from];
        from += text[from] == '"' && from + 1 < size && text[from + 1] == '"';
    }
    return to;
}

bool rfa_is_utf8(const char *text, int64_t size)
{
    const unsigned char *at = (const unsigned char *)text;
    for (int64_t i = 0; i < size;) {
        const unsigned char c = at[i++];
        if (c < 0x80) {
            continue;
        }
        const int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        static const uint32_t least[4] = {0, 0x80, 0x800, 0x10000};
        if (c < 0xc2 || c > 0xf4 || i + more > size) {
            return false;
        }
        uint32_t value = c & (0x3fu >> more);
        for (int k = 0; k < more; k++, i++) {
            if ((at[i] & 0xc0) != 0x80) {
                return false;
            }
            value = value << 6 | (at[i] & 0x3fu);
        }
        if (value < least[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
            return false;
        }
    }
    return true;
}
