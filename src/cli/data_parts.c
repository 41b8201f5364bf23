#include "cli/data_parts.h"

#include "cli/commands.h"
#include "commit.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { GENERATOR_VERSION = 1 }; // counts up when the same options give other trees

// mkdir -p of the folder that path lies in.
static rfa_status make_folders(const char *path)
{
    char folder[RFA_DATA_PATH];
    memcpy(folder, path, strlen(path) + 1);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
            return rfa_fail(RFA_ERR_IO, "%s: the folder can't be made: %s", folder,
                            strerror(errno));
        }
        *slash = '/';
    }
    return RFA_OK;
}

rfa_status rfa_data_create(rfa_dataset_writer **writer,
                           const char *out,
                           const rfa_dataset_description *description,
                           bool force)
{
    *writer = NULL;
    RFA_TRY(make_folders(out));
    return rfa_dataset_writer_create(writer, out, description, force);
}

rfa_dataset_description rfa_data_listops_description(void)
{
    return (rfa_dataset_description){
        .task = "listops",
        .title = "ListOps of the Long Range Arena: the value of a nested prefix expression",
        .vocabulary = rfa_listops_symbols,
        .symbols = RFA_LISTOPS_VOCABULARY,
        .classes = RFA_LISTOPS_CLASSES,
    };
}

rfa_status rfa_data_start(rfa_dataset_writer **writer, const rfa_data_listops *options)
{
    const rfa_dataset_description description = rfa_data_listops_description();
    return rfa_data_create(writer, options->common.out, &description, options->common.force);
}

static rfa_status write_generator(rfa_dataset_writer *w,
                                  const rfa_listops_options *tree,
                                  const rfa_data_summary *summary)
{
    RFA_TRY(rfa_dataset_writer_text(w, "source", "generated"));
    RFA_TRY(rfa_dataset_writer_text(w, "generator", "rfa data listops"));
    RFA_TRY(rfa_dataset_writer_int(w, "generator_version", GENERATOR_VERSION));
    RFA_TRY(rfa_dataset_writer_int(w, "seed", (int64_t)tree->seed));
    RFA_TRY(rfa_dataset_writer_int(w, "min_length", tree->min_length));
    RFA_TRY(rfa_dataset_writer_int(w, "max_length", tree->max_length));
    RFA_TRY(rfa_dataset_writer_int(w, "max_depth", tree->max_depth));
    RFA_TRY(rfa_dataset_writer_int(w, "max_args", tree->max_args));
    RFA_TRY(rfa_dataset_writer_double(w, "p_op", tree->p_op));
    RFA_TRY(rfa_dataset_writer_int(w, "candidates", summary->candidates));
    return rfa_dataset_writer_int(w, "candidates_in_window", summary->in_window);
}

rfa_status rfa_data_end(rfa_dataset_writer *writer, int64_t within, int64_t across, char digest[17])
{
    rfa_dataset_writer *w = writer;
    const time_t now = time(NULL);
    struct tm utc;
    char created[32];
    RFA_TRY(rfa_dataset_writer_int(w, "duplicates_within", within));
    RFA_TRY(rfa_dataset_writer_int(w, "duplicates_across", across));
    gmtime_r(&now, &utc);
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%SZ", &utc);
    RFA_TRY(rfa_dataset_writer_text(w, "created", created));
    RFA_TRY(rfa_dataset_writer_text(w, "created_by", "rfa " RFA_VERSION));
    RFA_TRY(rfa_dataset_writer_text(w, "commit", RFA_COMMIT));
    RFA_TRY(rfa_dataset_writer_bool(w, "commit_dirty", RFA_DIRTY));
    return rfa_dataset_writer_finish(w, digest);
}

rfa_status rfa_data_finish(rfa_dataset_writer *writer,
                           const rfa_data_listops *options,
                           rfa_data_summary *summary)
{
    rfa_dataset_writer *w = writer;
    if (options->common.from[0]) {
        RFA_TRY(rfa_dataset_writer_text(w, "source", options->common.from));
        RFA_TRY(rfa_dataset_writer_text(w, "generator", "released files"));
        return rfa_data_end(w, summary->repeats, summary->leaks, summary->digest);
    }
    // A generated set has no duplicates left, and says how many it dropped.
    RFA_TRY(write_generator(w, &options->tree, summary));
    RFA_TRY(rfa_dataset_writer_int(w, "duplicates_dropped", summary->repeats));
    return rfa_data_end(w, 0, 0, summary->digest);
}

void rfa_data_count(rfa_data_summary *summary, int s, ptrdiff_t length, int label)
{
    if (summary->examples[s] == 0 || length < summary->shortest[s]) {
        summary->shortest[s] = length;
    }
    if (length > summary->longest[s]) {
        summary->longest[s] = length;
    }
    summary->examples[s]++;
    summary->tokens[s] += length;
    summary->counts[s][label]++;
}
