#include "tasks/papers.h"

#include "base/mem.h"
#include "tasks/bytes.h"
#include "tasks/table.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 1 << 28 };

void rfa_papers_free(rfa_papers *papers)
{
    rfa_free(papers->papers);
    rfa_free(papers->names);
    rfa_free(papers->slots);
    *papers = (rfa_papers){0};
}

// The slot of an id, or the empty one where it belongs.
static int32_t *find_slot(const rfa_papers *p, const char *id)
{
    int64_t at = (int64_t)(rfa_hash(0, id, strlen(id)) & (uint64_t)(p->slot_count - 1));
    while (p->slots[at] != 0 && strcmp(p->names + p->papers[p->slots[at] - 1].id, id) != 0) {
        at = (at + 1) & (p->slot_count - 1);
    }
    return &p->slots[at];
}

const rfa_paper *rfa_papers_find(const rfa_papers *papers, const char *id)
{
    const int32_t number = papers->slot_count > 0 ? *find_slot(papers, id) : 0;
    return number > 0 ? &papers->papers[number - 1] : NULL;
}

// Twice the slots when they are half full.
static rfa_status grow_slots(rfa_papers *p)
{
    if (2 * (p->count + 1) <= p->slot_count) {
        return RFA_OK;
    }
    const int64_t count = p->slot_count > 0 ? 2 * p->slot_count : 1024;
    int32_t *slots = NULL;
    RFA_TRY(rfa_alloc(&slots, count, sizeof *slots, "ids of papers"));
    rfa_free(p->slots);
    p->slots = slots;
    p->slot_count = count;
    for (int64_t i = 0; i < p->count; i++) {
        *find_slot(p, p->names + p->papers[i].id) = (int32_t)i + 1;
    }
    return RFA_OK;
}

// Room for more elements behind the count that there are.
static rfa_status reserve(void *memory, int64_t *capacity, int64_t count, int64_t more, size_t size)
{
    void **block = memory, *larger = NULL;
    if (count + more > *capacity) {
        RFA_TRY(rfa_alloc(&larger, 2 * (count + more), size, "papers"));
        if (count > 0) {
            memcpy(larger, *block, (size_t)count * size);
        }
        rfa_free(*block);
        *block = larger;
        *capacity = 2 * (count + more);
    }
    return RFA_OK;
}

static rfa_status add(rfa_papers *p, const rfa_field *fields, int count, int64_t file, int64_t line)
{
    if (count != 2) {
        return rfa_fail(RFA_ERR_IO, "%d column%s, not 2 (id and text)", count,
                        count == 1 ? "" : "s");
    }
    const char *id = fields[0].text;
    const int64_t size = (int64_t)strlen(id) + 1;
    if (size == 1 || !rfa_field_is_word(&fields[0])) {
        return rfa_fail(RFA_ERR_IO, "the id is empty, too long or holds a zero byte");
    }
    if (p->count == MOST) {
        return rfa_fail(RFA_ERR_IO, "more than %d papers", MOST);
    }
    RFA_TRY(grow_slots(p));
    int32_t *slot = find_slot(p, id);
    if (*slot != 0) {
        return rfa_fail(RFA_ERR_IO, "the id '%.60s' is that of line %lld, too", id,
                        (long long)p->papers[*slot - 1].line);
    }
    RFA_TRY(reserve(&p->papers, &p->capacity, p->count, 1, sizeof *p->papers));
    RFA_TRY(reserve(&p->names, &p->names_capacity, p->names_size, size, 1));
    memcpy(p->names + p->names_size, id, (size_t)size);
    p->papers[p->count] = (rfa_paper){.id = p->names_size,
                                      .file = file,
                                      .place = fields[1].place,
                                      .size = fields[1].size,
                                      .line = line};
    p->names_size += size;
    *slot = (int32_t)++p->count;
    return RFA_OK;
}

static rfa_status refuse_compressed(const char *path)
{
    rfa_bytes bytes = {0};
    unsigned char head[2] = {0};
    int64_t got = 0;
    const rfa_status status = rfa_bytes_read_some(&bytes, path, 0, head, 1, &got);
    const bool compressed = bytes.file != NULL;
    rfa_bytes_close(&bytes);
    if (status == RFA_OK && compressed) {
        return rfa_fail(RFA_ERR_IO,
                        "%s: is compressed, but its texts are read in any order: unpack "
                        "it first",
                        path);
    }
    return status;
}

rfa_status rfa_papers_read(rfa_papers *papers, rfa_index *index, const char *path)
{
    rfa_table *table = NULL;
    rfa_field fields[RFA_TABLE_FIELDS];
    int64_t file;
    int count = 0;
    RFA_TRY(refuse_compressed(path));
    RFA_TRY(rfa_index_stamp(index, path));
    RFA_TRY(rfa_index_name(index, &file, path));
    RFA_TRY(rfa_table_open(&table, path, '\t', 2, true));
    rfa_status status;
    while ((status = rfa_table_next(table, fields, &count)) == RFA_OK && count > 0) {
        const int64_t line = rfa_table_line(table);
        if (count == 2 && !rfa_is_utf8(fields[1].text, fields[1].length) &&
            index->not_text++ == 0) {
            snprintf(index->not_text_first, sizeof index->not_text_first, "%.400s:%lld", path,
                     (long long)line);
        }
        status = add(papers, fields, count, file, line);
        if (status != RFA_OK) {
            status = rfa_fail_within(status, "%s:%lld", path, (long long)line);
            break;
        }
    }
    rfa_table_close(&table);
    return status;
}
