#include "cli/data_assemble.h"

#include "base/log.h"
#include "base/mem.h"
#include "cli/data_parts.h"

#include <stdio.h>
#include <string.h>

enum { FIRST = 1000, SHOWN = 20 }; // examples that should have all classes; classes that are shown

void rfa_data_plan_create(rfa_data_plan *plan,
                          const rfa_comm *world,
                          const rfa_data_job *job,
                          const rfa_source *source)
{
    *plan = (rfa_data_plan){.world = world, .job = job, .source = source};
    for (int s = 0; s < RFA_SPLITS; s++) {
        plan->first_part[s] = plan->parts;
        plan->parts += (source->examples[s] + job->part - 1) / job->part;
        plan->total += source->examples[s];
    }
    plan->first_part[RFA_SPLITS] = plan->parts;
}

static int split_of(const rfa_data_plan *plan, int64_t number)
{
    int split = 0;
    while (number >= plan->first_part[split + 1]) {
        split++;
    }
    return split;
}

rfa_part_key rfa_data_part_key(const rfa_data_plan *plan, int64_t number)
{
    const int split = split_of(plan, number);
    const int64_t first = (number - plan->first_part[split]) * plan->job->part;
    const int64_t left = plan->source->examples[split] - first;
    return (rfa_part_key){.recipe = plan->job->recipe,
                          .split = split,
                          .examples = (int)(left < plan->job->part ? left : plan->job->part),
                          .documents = plan->source->documents,
                          .first = first};
}

void rfa_data_part_path(char path[RFA_DATA_PATH + 64], const rfa_data_plan *plan, int64_t number)
{
    snprintf(path, RFA_DATA_PATH + 64, "%s.parts/part-%06lld", plan->job->options->out,
             (long long)number);
}

int64_t rfa_data_examples_before(const rfa_data_plan *plan, int64_t number)
{
    int64_t examples = 0;
    for (int s = 0; s < RFA_SPLITS; s++) {
        const int64_t parts = number - plan->first_part[s];
        const int64_t some = parts * plan->job->part;
        examples += parts <= 0                         ? 0
                    : some < plan->source->examples[s] ? some
                                                       : plan->source->examples[s];
    }
    return examples;
}

// What is counted on the way.
typedef struct {
    int64_t *counts[RFA_SPLITS]; // [classes]
    int64_t shortest[RFA_SPLITS], longest[RFA_SPLITS], within, across;
    int64_t early; // examples of train when the last of its classes came up
    rfa_fingerprints *seen;
} tally;

static rfa_status count(tally *t, const rfa_part_example *e, int split, int documents, int64_t n)
{
    int64_t former;
    RFA_TRY(rfa_fingerprints_add(t->seen, e->fingerprint, split, &former));
    t->within += former == split;
    t->across += former >= 0 && former != split;
    for (int d = 0; d < documents; d++) {
        if ((n == 0 && d == 0) || e->length[d] < t->shortest[split]) {
            t->shortest[split] = e->length[d];
        }
        t->longest[split] = e->length[d] > t->longest[split] ? e->length[d] : t->longest[split];
    }
    if (t->counts[split][e->label]++ == 0 && split == 0) {
        t->early = n;
    }
    return RFA_OK;
}

static rfa_status
write_split(const rfa_data_plan *plan, rfa_dataset_writer *writer, rfa_part *part, tally *t, int s)
{
    char path[RFA_DATA_PATH + 64];
    rfa_part_example example;
    int64_t n = 0;
    RFA_TRY(rfa_dataset_writer_begin_pairs(writer, rfa_splits[s], plan->source->examples[s],
                                           plan->tokens[s], plan->job->origin_name));
    for (int64_t p = plan->first_part[s]; p < plan->first_part[s + 1]; p++) {
        const rfa_part_key key = rfa_data_part_key(plan, p);
        rfa_data_part_path(path, plan, p);
        RFA_TRY(rfa_part_read(part, path, &key));
        for (; rfa_part_next(part, &example); n++) {
            RFA_TRY(count(t, &example, s, plan->source->documents, n));
            RFA_TRY(rfa_dataset_writer_add_pair(writer, example.ids, example.length, example.label,
                                                example.origin));
        }
        rfa_progress(p + 1 == plan->first_part[s + 1], "writing %s: %lld of %lld examples",
                     rfa_splits[s], (long long)n, (long long)plan->source->examples[s]);
    }
    return rfa_dataset_writer_end(writer);
}

static void print_split(const rfa_data_plan *plan, const tally *t, int s)
{
    char shares[16 * SHOWN] = "";
    const double n = (double)plan->source->examples[s];
    const int64_t tokens = plan->tokens[s][0] + plan->tokens[s][1];
    const int classes = plan->source->classes;
    for (int c = 0; c < classes && c < SHOWN; c++) {
        const size_t used = strlen(shares);
        snprintf(shares + used, sizeof shares - used, " %.1f", 100.0 * (double)t->counts[s][c] / n);
    }
    rfa_print("%s %lld examples, %lld tokens, lengths %lld to %lld, mean %.0f; labels 0 to %d in "
              "%%:%s%s",
              rfa_splits[s], (long long)plan->source->examples[s], (long long)tokens,
              (long long)t->shortest[s], (long long)t->longest[s],
              (double)tokens / n / plan->source->documents, classes - 1, shares,
              classes > SHOWN ? " ..." : "");
}

static void warn(const rfa_data_plan *plan, const tally *t)
{
    const rfa_index *index = plan->job->index;
    for (int s = 0; s < RFA_SPLITS; s++) {
        for (int c = 0; c < plan->source->classes; c++) {
            if (t->counts[s][c] == 0) {
                rfa_warn("split %s has no example of class %d", rfa_splits[s], c);
                break;
            }
        }
    }
    if (t->early >= FIRST && plan->source->classes <= 100) {
        rfa_warn("the examples seem to be sorted: the first %d of train lack a class", FIRST);
    }
    if (index && index->not_text > 0) {
        rfa_warn("%lld texts are not valid UTF-8 and are taken as they are; the first is %s",
                 (long long)index->not_text, index->not_text_first);
    }
    if (index && index->skipped > 0) {
        rfa_warn("%lld skipped; the first: %s", (long long)index->skipped, index->skipped_first);
    }
    if (index && index->first[1] == index->first[2]) {
        rfa_warn("validation is test: what is chosen by it is chosen by the test");
    }
}

static rfa_status
finish(const rfa_data_plan *plan, rfa_dataset_writer *writer, const tally *t, char digest[17])
{
    const rfa_data_job *job = plan->job;
    if (job->class_names) {
        RFA_TRY(rfa_dataset_writer_texts(writer, "class_names", job->class_names,
                                         plan->source->classes));
    }
    if (job->index) {
        RFA_TRY(rfa_dataset_writer_int(writer, "skipped", job->index->skipped));
    }
    RFA_TRY(job->attributes(job->self, writer));
    return rfa_data_end(writer, t->within, t->across, digest);
}

rfa_status rfa_data_assemble(const rfa_data_plan *plan, rfa_dataset_writer *writer, rfa_part *part)
{
    tally t = {0};
    char digest[17];
    rfa_status status = rfa_fingerprints_create(&t.seen);
    for (int s = 0; s < RFA_SPLITS && status == RFA_OK; s++) {
        status = rfa_alloc(&t.counts[s], plan->source->classes, sizeof **t.counts, "class counts");
    }
    for (int s = 0; s < RFA_SPLITS && status == RFA_OK; s++) {
        status = write_split(plan, writer, part, &t, s);
    }
    if (status == RFA_OK) {
        status = finish(plan, writer, &t, digest);
    }
    if (status == RFA_OK) {
        rfa_print("file %s", plan->job->options->out);
        rfa_print("digest %s", digest);
        for (int s = 0; s < RFA_SPLITS; s++) {
            print_split(plan, &t, s);
        }
        rfa_print("duplicates %lld within splits, %lld across splits", (long long)t.within,
                  (long long)t.across);
        warn(plan, &t);
    }
    for (int s = 0; s < RFA_SPLITS; s++) {
        rfa_free(t.counts[s]);
    }
    rfa_fingerprints_destroy(&t.seen);
    return status;
}
