#include "base/log.h"
#include "cli/data_parts.h"
#include "tasks/fingerprint.h"

#include <string.h>

enum { STRIDE = 256 }; // examples between looks at the clock

static void show(const char *what, const char *split, int64_t done, double started, bool final)
{
    rfa_progress(final, "%s %s: %lld examples, %.0f/s", what, split, (long long)done,
                 (double)done / (rfa_now() - started + 1e-9));
}

// First pass over one file: every check, lengths and equal examples.
static rfa_status
check_split(rfa_data_summary *summary, rfa_fingerprints *seen, const char *folder, int s)
{
    rfa_listops_tsv *tsv;
    rfa_listops_row row;
    RFA_TRY(rfa_listops_tsv_open(&tsv, folder, rfa_listops_splits[s]));
    const double started = rfa_now();
    rfa_status status;
    while ((status = rfa_listops_tsv_next(tsv, &row)) == RFA_OK && row.length > 0) {
        int64_t former;
        status = rfa_fingerprints_add(seen, rfa_fingerprint_ids(row.ids, row.length), s, &former);
        if (status != RFA_OK) {
            break;
        }
        summary->repeats += former == s;
        summary->leaks += former >= 0 && former != s;
        rfa_data_count(summary, s, row.length, row.label);
        if (summary->examples[s] % STRIDE == 0) {
            show("checking", rfa_listops_splits[s], summary->examples[s], started, false);
        }
    }
    rfa_listops_tsv_close(&tsv);
    if (status == RFA_OK) {
        show("checking", rfa_listops_splits[s], summary->examples[s], started, true);
    }
    return status;
}

// Second pass: into the file. A file that changed meanwhile has another number of tokens.
static rfa_status
write_split(rfa_dataset_writer *writer, const rfa_data_summary *summary, const char *folder, int s)
{
    rfa_listops_tsv *tsv;
    rfa_listops_row row;
    RFA_TRY(rfa_dataset_writer_begin(writer, rfa_listops_splits[s], summary->examples[s],
                                     summary->tokens[s], "line"));
    RFA_TRY(rfa_listops_tsv_open(&tsv, folder, rfa_listops_splits[s]));
    const double started = rfa_now();
    int64_t done = 0;
    rfa_status status;
    while ((status = rfa_listops_tsv_next(tsv, &row)) == RFA_OK && row.length > 0) {
        status = rfa_dataset_writer_add(writer, row.ids, row.length, row.label, row.line);
        if (status != RFA_OK) {
            break;
        }
        if (++done % STRIDE == 0) {
            show("writing", rfa_listops_splits[s], done, started, false);
        }
    }
    rfa_listops_tsv_close(&tsv);
    if (status == RFA_OK) {
        status = rfa_dataset_writer_end(writer);
    }
    if (status == RFA_OK) {
        show("writing", rfa_listops_splits[s], done, started, true);
    }
    return status;
}

static rfa_status import(const rfa_data_listops *options, rfa_data_summary *summary)
{
    char folder[RFA_DATA_PATH + 64];
    rfa_dataset_writer *writer = NULL;
    rfa_fingerprints *seen = NULL;
    RFA_TRY(rfa_listops_tsv_find(folder, sizeof folder, options->common.from));
    rfa_status status = rfa_fingerprints_create(&seen);
    if (status == RFA_OK) {
        status = rfa_data_start(&writer, options);
    }
    for (int s = 0; s < RFA_LISTOPS_SPLITS && status == RFA_OK; s++) {
        status = check_split(summary, seen, folder, s);
    }
    for (int s = 0; s < RFA_LISTOPS_SPLITS && status == RFA_OK; s++) {
        status = write_split(writer, summary, folder, s);
    }
    if (status == RFA_OK) {
        status = rfa_data_finish(writer, options, summary);
    }
    rfa_dataset_writer_destroy(&writer);
    rfa_fingerprints_destroy(&seen);
    return status;
}

rfa_status rfa_data_listops_import(const rfa_comm *world,
                                   const rfa_data_listops *options,
                                   rfa_data_summary *summary)
{
    memset(summary, 0, sizeof *summary);
    return rfa_agree(world, world->rank == 0 ? import(options, summary) : RFA_OK);
}
