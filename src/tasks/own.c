#include "tasks/own.h"

#include "tasks/token_ids.h"

static rfa_status load_ids(rfa_own_reader *r, rfa_example *example, const rfa_entry *e, int d)
{
    const char *path = rfa_index_file(r->index, e, d);
    int highest = 0;
    RFA_ASSERT(e->size[d] <= r->tables->longest);
    RFA_TRY(rfa_bytes_read(&r->bytes, path, e->place[d], r->buffer, e->size[d]));
    const rfa_status status =
        rfa_token_ids(example->ids[d], &example->length[d], (ptrdiff_t)r->max_length, &highest,
                      (const char *)r->buffer, e->size[d], r->tables->vocabulary);
    return status == RFA_OK ? RFA_OK
                            : rfa_fail_within(status, "%s:%lld", path, (long long)e->origin);
}

rfa_status rfa_own_load(void *self, rfa_example *example, int split, int64_t index)
{
    rfa_own_reader *r = self;
    const rfa_entry *e = &r->index->entries[r->index->first[split] + index];
    example->label = e->label;
    example->origin = e->origin;
    for (int d = 0; d < r->tables->found.documents; d++) {
        RFA_TRY(r->tables->found.ids ? load_ids(r, example, e, d)
                                     : rfa_text_document(&r->bytes, r->index, e, example, d,
                                                         r->max_length, r->buffer));
    }
    return RFA_OK;
}

// In the order of a hash of line and seed.
static void shuffle(rfa_index *index, uint64_t seed)
{
    for (int64_t i = 0; i < index->count; i++) {
        rfa_entry *e = &index->entries[i];
        e->key = rfa_hash(seed, &e->origin, sizeof e->origin);
    }
    rfa_index_sort(index, 0, index->count);
}

static rfa_status list_file(
    rfa_index *index, rfa_text_tables *tables, const char *path, int64_t *first, int64_t *last)
{
    *first = index->count;
    RFA_TRY(rfa_text_table(index, tables, path));
    *last = index->count;
    return RFA_OK;
}

static rfa_status list(rfa_index *index, rfa_text_tables *tables, const rfa_own_options *o)
{
    int64_t *first = index->first, *last = index->last;
    tables->labels.any_names = o->classes == 0;
    if (o->labels[0]) {
        RFA_TRY(rfa_labels_list(&tables->labels, o->labels));
    } else if (o->classes > 0) {
        rfa_labels_count(&tables->labels, o->classes);
    }
    RFA_TRY(list_file(index, tables, o->train, &first[0], &last[0]));
    rfa_labels_close(&tables->labels, index);
    if (o->shuffle) {
        shuffle(index, o->seed);
    }
    const int64_t count = index->count;
    // From the end of train: the test, before it what is for validation.
    last[2] = last[0];
    first[2] = last[2] - (o->test ? 0 : count * o->test_percent / 100);
    last[1] = first[2];
    first[1] = last[1] - (o->val ? 0 : count * o->val_percent / 100);
    last[0] = first[1];
    if (o->val) {
        RFA_TRY(list_file(index, tables, o->val, &first[1], &last[1]));
    }
    if (o->test) {
        RFA_TRY(list_file(index, tables, o->test, &first[2], &last[2]));
    }
    if (!o->val && o->val_percent == 0) {
        first[1] = first[2];
        last[1] = last[2];
    }
    for (int s = 0; s < RFA_SPLITS; s++) {
        if (rfa_index_examples(index, s) < 1) {
            return rfa_fail(RFA_ERR_USAGE, "split %s is left without examples: %s has %lld",
                            rfa_splits[s], o->train, (long long)count);
        }
    }
    return tables->labels.classes.count >= 2
               ? RFA_OK
               : rfa_fail(RFA_ERR_IO, "%s: all labels are the same", o->train);
}

rfa_status rfa_own_list(rfa_index *index, rfa_text_tables *tables, const rfa_own_options *options)
{
    *index = (rfa_index){0};
    const rfa_status status = list(index, tables, options);
    if (status != RFA_OK) {
        rfa_index_destroy(index);
    }
    return status;
}
