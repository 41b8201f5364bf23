#include "base/log.h"
#include "base/mem.h"
#include "cli/data_parts.h"
#include "tasks/fingerprint.h"

#include <string.h>

// Candidates of one rank in one round: some 8 % are kept. PATIENCE: candidates without a new tree
// after which there are taken to be no more.
enum { BLOCK = 4096, PATIENCE = 10000000 };

// A tree of the right length, as ranks tell rank 0. Plain bytes, no padding.
typedef struct {
    int64_t candidate;
    rfa_fingerprint fingerprint;
    int32_t length, label;
} found;

// A tree that is kept.
typedef struct {
    int64_t candidate;
    int32_t length, label;
} kept;

typedef struct {
    const rfa_comm *world;
    const rfa_data_listops *options;
    rfa_data_summary *summary;
    uint16_t *ids; // [max_length]
    found *mine;   // [BLOCK]
    int mine_count;
    int64_t first; // candidate of the round
    int64_t total; // trees wanted
    double started;

    // On rank 0.
    found *all; // [BLOCK * size]
    int *counts, *places;
    kept *trees; // [total]
    int64_t tree_count;
    int64_t last_new; // candidate after the newest tree
    rfa_fingerprints *seen;
} search;

static rfa_status prepare(search *s)
{
    const ptrdiff_t size = s->world->size;
    RFA_TRY(rfa_alloc(&s->ids, s->options->tree.max_length, sizeof *s->ids, "a tree"));
    RFA_TRY(rfa_alloc(&s->mine, BLOCK, sizeof *s->mine, "trees of a round"));
    if (s->world->rank == 0) {
        RFA_TRY(rfa_alloc(&s->all, BLOCK * size, sizeof *s->all, "trees of a round"));
        RFA_TRY(rfa_alloc(&s->counts, size, sizeof *s->counts, "trees of a round"));
        RFA_TRY(rfa_alloc(&s->places, size, sizeof *s->places, "trees of a round"));
        RFA_TRY(rfa_alloc(&s->trees, s->total, sizeof *s->trees, "kept trees"));
        RFA_TRY(rfa_fingerprints_create(&s->seen));
    }
    return RFA_OK;
}

static void release(search *s)
{
    rfa_fingerprints_destroy(&s->seen);
    rfa_free(s->trees);
    rfa_free(s->places);
    rfa_free(s->counts);
    rfa_free(s->all);
    rfa_free(s->mine);
    rfa_free(s->ids);
}

// This rank's block of the round. Local.
static void draw(search *s)
{
    const int64_t first = s->first + (int64_t)s->world->rank * BLOCK;
    s->mine_count = 0;
    for (int64_t c = first; c < first + BLOCK; c++) {
        int label;
        const ptrdiff_t length = rfa_listops_tree(s->ids, &label, &s->options->tree, (uint64_t)c);
        if (length > 0) {
            s->mine[s->mine_count++] = (found){.candidate = c,
                                               .fingerprint = rfa_fingerprint_ids(s->ids, length),
                                               .length = (int32_t)length,
                                               .label = (int32_t)label};
        }
    }
}

// All blocks to rank 0, in the order of candidates. Collective.
static void collect(search *s)
{
    const rfa_comm *world = s->world;
    MPI_Gather(&s->mine_count, 1, MPI_INT, s->counts, 1, MPI_INT, 0, world->comm);
    const int bytes = (int)sizeof(found);
    int total = 0;
    for (int r = 0; r < world->size && world->rank == 0; r++) {
        s->counts[r] *= bytes;
        s->places[r] = total;
        total += s->counts[r];
    }
    MPI_Gatherv(s->mine, s->mine_count * bytes, MPI_BYTE, s->all, s->counts, s->places, MPI_BYTE, 0,
                world->comm);
}

static rfa_status exhausted(const search *s)
{
    return rfa_fail(RFA_ERR_USAGE,
                    "only %lld of %lld different trees were found, none in the last %d candidates: "
                    "ask for fewer, or widen --min-length, --max-length, --max-depth or --max-args",
                    (long long)s->tree_count, (long long)s->total, PATIENCE);
}

// Keeps what is new, up to the total. On rank 0.
static rfa_status keep(search *s)
{
    const int last = s->world->size - 1;
    const int n = (s->places[last] + s->counts[last]) / (int)sizeof(found);
    for (int i = 0; i < n && s->tree_count < s->total; i++) {
        const found *f = &s->all[i];
        int64_t former;
        if (f->candidate - s->last_new >= PATIENCE) {
            return exhausted(s);
        }
        RFA_TRY(rfa_fingerprints_add(s->seen, f->fingerprint, s->tree_count, &former));
        s->summary->in_window++;
        s->summary->candidates = f->candidate + 1;
        if (former < 0) {
            s->trees[s->tree_count++] = (kept){f->candidate, f->length, f->label};
            s->last_new = f->candidate + 1;
        } else {
            s->summary->repeats++;
        }
    }
    if (s->tree_count < s->total &&
        s->first + (int64_t)s->world->size * BLOCK - s->last_new >= PATIENCE) {
        return exhausted(s);
    }
    return RFA_OK;
}

static void show(const search *s, const char *what, int64_t done, bool final)
{
    const double seconds = rfa_now() - s->started, rate = (double)done / (seconds + 1e-9);
    char left[32];
    rfa_progress(final, "%s: %lld of %lld trees, %.0f %%, %.0f/s, %s left", what, (long long)done,
                 (long long)s->total, 100.0 * (double)done / (double)s->total, rate,
                 rfa_duration(left, done > 0 ? (double)(s->total - done) / rate : -1));
}

// First pass: which candidates are kept. Collective.
static rfa_status find_trees(search *s)
{
    int done = 0;
    s->started = rfa_now();
    while (!done) {
        draw(s);
        collect(s);
        rfa_status status = RFA_OK;
        if (s->world->rank == 0) {
            status = keep(s);
            done = s->tree_count == s->total;
            show(s, "finding", s->tree_count, done);
        }
        RFA_TRY(rfa_agree(s->world, status));
        MPI_Bcast(&done, 1, MPI_INT, 0, s->world->comm);
        s->first += (int64_t)s->world->size * BLOCK;
    }
    return RFA_OK;
}

// Second pass: the kept trees once more, into the file. On rank 0.
static rfa_status write_trees(search *s, rfa_dataset_writer *writer)
{
    int64_t next = 0;
    s->started = rfa_now();
    for (int split = 0; split < RFA_LISTOPS_SPLITS; split++) {
        const int64_t end = next + s->options->examples[split];
        int64_t tokens = 0;
        for (int64_t i = next; i < end; i++) {
            tokens += s->trees[i].length;
        }
        RFA_TRY(rfa_dataset_writer_begin(writer, rfa_listops_splits[split], end - next, tokens,
                                         "candidate"));
        for (; next < end; next++) {
            int label;
            const int64_t candidate = s->trees[next].candidate;
            const ptrdiff_t length =
                rfa_listops_tree(s->ids, &label, &s->options->tree, (uint64_t)candidate);
            RFA_ASSERT(length == s->trees[next].length && label == s->trees[next].label);
            RFA_TRY(rfa_dataset_writer_add(writer, s->ids, length, label, candidate));
            rfa_data_count(s->summary, split, length, label);
            if (next % 256 == 0) {
                show(s, "writing", next + 1, false);
            }
        }
        RFA_TRY(rfa_dataset_writer_end(writer));
    }
    show(s, "writing", next, true);
    return rfa_data_finish(writer, s->options, s->summary);
}

rfa_status rfa_data_listops_generate(const rfa_comm *world,
                                     const rfa_data_listops *options,
                                     rfa_data_summary *summary)
{
    memset(summary, 0, sizeof *summary);
    search s = {.world = world, .options = options, .summary = summary};
    for (int split = 0; split < RFA_LISTOPS_SPLITS; split++) {
        s.total += options->examples[split];
    }
    rfa_dataset_writer *writer = NULL;
    rfa_status status = prepare(&s);
    if (status == RFA_OK && world->rank == 0) {
        status = rfa_data_start(&writer, options); // a file that can't be written is found first
    }
    status = rfa_agree(world, status);
    if (status == RFA_OK) {
        status = find_trees(&s);
    }
    if (status == RFA_OK) {
        status = rfa_agree(world, world->rank == 0 ? write_trees(&s, writer) : RFA_OK);
    }
    rfa_dataset_writer_destroy(&writer);
    release(&s);
    return status;
}
