#include "base/log.h"
#include "cli/commands.h"
#include "cli/inspect.h"
#include "cli/settings.h"
#include "storage/benchfile.h"
#include "storage/checkpoint.h"
#include "storage/dataset.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const help[] = {
    "usage: rfa inspect FILE [--json]",
    "",
    "Shows a run (RUN.h5, with the lines of RUN.jsonl since it was written), a checkpoint, a data "
    "set or results of rfa bench.",
    "--json: everything in it, the arrays too, as one JSON object; NaN and infinities are null.",
    "",
    "  rfa inspect runs/rfa.h5",
    "  rfa inspect runs/rfa.h5 --json | python3 -c 'import json, sys; print(json.load(sys.stdin)"
    "[\"test\"])'",
    NULL,
};

static rfa_status inspect_run(const char *path, bool json)
{
    rfa_run_view view;
    RFA_TRY(rfa_run_read(&view, path));
    const rfa_status status =
        json ? rfa_inspect_run_json(path, &view) : rfa_inspect_run(path, &view);
    rfa_run_view_free(&view);
    return status;
}

static rfa_status show_checkpoint(const char *path,
                                  const rfa_attributes *all,
                                  const rfa_checkpoint_header *header,
                                  int64_t arrays,
                                  int64_t values)
{
    static const char *const skip[] = {"config", "schema", "crc32", "complete", "arrays", NULL};
    printf("%s: checkpoint after step %" PRId64 ", complete, %" PRId64 " arrays of %" PRId64
           " values\n",
           path, header->step, arrays, values);
    RFA_TRY(rfa_inspect_config(header->config_text));
    RFA_TRY(rfa_inspect_list("checkpoint", all, "", skip));
    printf("\ndigest %016" PRIx64 "\n", header->digest);
    return RFA_OK;
}

static rfa_status
put_checkpoint(const char *path, const rfa_attributes *all, int64_t arrays, int64_t values)
{
    printf("{\"file\":");
    RFA_TRY(rfa_inspect_quoted(path));
    printf(",\"kind\":\"checkpoint\",\"arrays\":%" PRId64 ",\"values\":%" PRId64 ",\"attributes\":",
           arrays, values);
    RFA_TRY(rfa_inspect_object(all));
    printf("}\n");
    return RFA_OK;
}

static rfa_status inspect_checkpoint(const char *path, const rfa_attributes *all, bool json)
{
    rfa_checkpoint_header header;
    int64_t arrays = 0, values = 0;
    RFA_TRY(rfa_checkpoint_check(path, &header, &arrays, &values));
    const rfa_status status = json ? put_checkpoint(path, all, arrays, values)
                                   : show_checkpoint(path, all, &header, arrays, values);
    rfa_checkpoint_header_free(&header);
    return status;
}

// What a split holds.
typedef struct {
    const char *name;
    int64_t examples, tokens;
    ptrdiff_t shortest, longest;
    int classes, vocabulary, documents, document;
} split;

// Opened by rank 0 alone.
static rfa_status measure(split *s, const char *path)
{
    const rfa_comm self = {.comm = MPI_COMM_SELF, .rank = 0, .size = 1};
    rfa_dataset *data = NULL;
    RFA_TRY(rfa_dataset_open_document(&data, &self, path, s->name, s->document));
    s->documents = rfa_dataset_documents(data);
    s->examples = rfa_dataset_examples(data);
    s->longest = rfa_dataset_longest(data);
    s->classes = rfa_dataset_classes(data);
    s->vocabulary = rfa_dataset_vocabulary(data);
    s->shortest = s->longest;
    for (int64_t i = 0; i < s->examples; i++) {
        const ptrdiff_t length = rfa_dataset_length(data, i);
        s->tokens += length;
        s->shortest = length < s->shortest ? length : s->shortest;
    }
    rfa_dataset_close(&data);
    return RFA_OK;
}

// Tokens of a split on a line, those of second documents on another.
static rfa_status show_split(const split *s, const char *path)
{
    for (int d = 0; d < s->documents; d++) {
        split one = *s;
        if (d > 0) {
            one = (split){.name = s->name, .document = d};
            RFA_TRY(measure(&one, path));
        }
        const char *what = s->documents < 2 ? "tokens"
                           : d == 0         ? "tokens in first documents"
                                            : "in second documents";
        if (d == 0) {
            printf("%-12s %" PRId64 " examples of", s->name, s->examples);
        } else {
            printf("%-12s", "");
        }
        printf(" %td to %td %s, %.1f on average\n", one.shortest, one.longest, what,
               (double)one.tokens / (double)(one.examples > 0 ? one.examples : 1));
    }
    return RFA_OK;
}

static rfa_status inspect_data(const char *path, const rfa_attributes *all, bool json)
{
    split splits[] = {{.name = "train"}, {.name = "val"}, {.name = "test"}};
    enum { SPLITS = sizeof splits / sizeof *splits };
    for (int i = 0; i < SPLITS; i++) {
        RFA_TRY(measure(&splits[i], path));
    }
    if (json) {
        printf("{\"file\":");
        RFA_TRY(rfa_inspect_quoted(path));
        printf(",\"kind\":\"data\",\"classes\":%d,\"vocabulary\":%d,\"documents\":%d,"
               "\"attributes\":",
               splits[0].classes, splits[0].vocabulary, splits[0].documents);
        RFA_TRY(rfa_inspect_object(all));
        printf(",\"splits\":{");
    } else {
        static const char *const skip[] = {"digest", "complete", NULL};
        const char *task = rfa_attributes_text(all, "task");
        printf("%s: data set of %s, %d classes, %d symbols\n", path, task, splits[0].classes,
               splits[0].vocabulary);
        RFA_TRY(rfa_inspect_list("made", all, "", skip));
    }
    for (int i = 0; i < SPLITS; i++) {
        const split *s = &splits[i];
        if (json) {
            printf("%s\"%s\":{\"examples\":%" PRId64 ",\"tokens\":%" PRId64
                   ",\"shortest\":%td,\"longest\":%td}",
                   i ? "," : "", s->name, s->examples, s->tokens, s->shortest, s->longest);
        } else {
            RFA_TRY(show_split(s, path));
        }
    }
    if (json) {
        printf("}}\n");
    } else {
        const char *digest = rfa_attributes_text(all, "digest");
        printf("digest %s\n", digest ? digest : "?");
    }
    return RFA_OK;
}

static rfa_status inspect_bench(const char *path, const rfa_attributes *all, bool json)
{
    static const char *const skip[] = {"schema", NULL};
    rfa_bench_view view;
    RFA_TRY(rfa_benchfile_read(&view, path));
    rfa_status status = RFA_OK;
    if (json) {
        printf("{\"file\":");
        status = rfa_inspect_quoted(path);
        printf(",\"kind\":\"bench\",\"attributes\":");
        status = status == RFA_OK ? rfa_inspect_object(all) : status;
        printf(",\"results\":[");
    } else {
        printf("%s: %" PRId64 " results of rfa bench\n", path, view.rows);
        status = rfa_inspect_list("measured", all, "", skip);
        printf("\n%-12s %-28s %-12s %12s\n", "case", "variant", "phase", "median ms");
    }
    for (int64_t i = 0; i < view.rows && status == RFA_OK; i++) {
        if (json) {
            printf("%s{\"case\":\"%s\",\"variant\":\"%s\",\"phase\":\"%s\","
                   "\"median_seconds\":%.17g}",
                   i ? "," : "", view.cases[i], view.variants[i], view.phases[i], view.median[i]);
        } else {
            printf("%-12s %-28s %-12s %12.4g\n", view.cases[i], view.variants[i], view.phases[i],
                   1e3 * view.median[i]);
        }
    }
    printf("%s", json ? "]}\n" : "");
    rfa_bench_view_free(&view);
    return status;
}

// The kind of a file stands in its attributes; a run may be lines alone.
static rfa_status inspect(const char *path, bool json)
{
    struct stat info;
    rfa_attributes all = {0};
    if (stat(path, &info) != 0 && errno == ENOENT) {
        return inspect_run(path, json);
    }
    RFA_TRY(rfa_attributes_read(&all, path));
    const char *schema = rfa_attributes_text(&all, "schema");
    rfa_status status = RFA_OK;
    if (schema && strncmp(schema, "rfa run ", 8) == 0) {
        status = inspect_run(path, json);
    } else if (schema && strncmp(schema, "rfa checkpoint ", 15) == 0) {
        status = inspect_checkpoint(path, &all, json);
    } else if (schema && strncmp(schema, "rfa bench ", 10) == 0) {
        status = inspect_bench(path, &all, json);
    } else if (schema) {
        status = rfa_fail(
            RFA_ERR_IO, "%s: '%s' is nothing that inspect shows: h5dump, h5py and rfa-analysis do",
            path, schema);
    } else if (rfa_attributes_text(&all, "task")) {
        status = inspect_data(path, &all, json);
    } else {
        status = rfa_fail(RFA_ERR_IO,
                          "%s: neither a run, a checkpoint, a data set nor results of rfa", path);
    }
    rfa_attributes_free(&all);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == RFA_OK) {
        status = rfa_fail(RFA_ERR_IO, "standard output can't be written: %s", strerror(errno));
    }
    return status;
}

rfa_status rfa_cmd_inspect(const rfa_comm *world, int argc, char **argv)
{
    enum { JSON = 256, HELP = 'h' };
    static const struct option options[] = {
        {"json", no_argument, NULL, JSON},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    bool json = false;
    for (int option; (option = rfa_next_option(argc, argv, options)) != -1;) {
        switch (option) {
        case JSON: json = true; break;
        case HELP: rfa_print_lines(help); return RFA_OK;
        default: return rfa_bad_option(argv);
        }
    }
    if (optind + 1 != argc) {
        return rfa_fail(RFA_ERR_USAGE, "inspect needs one file: rfa inspect --help");
    }
    return rfa_agree(world, world->rank == 0 ? inspect(argv[optind], json) : RFA_OK);
}
