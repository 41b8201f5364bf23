#include "cli/data_make.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/stop.h"
#include "cli/data_assemble.h"
#include "cli/data_parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER = RFA_DATA_PATH + 16 };

static void folder_of(char path[FOLDER], const rfa_data_job *job)
{
    snprintf(path, FOLDER, "%s.parts", job->options->out);
}

// Removes the files of parts in the folder, and the folder. On rank 0.
static void remove_parts(const rfa_data_job *job)
{
    char folder[FOLDER], path[FOLDER + 256];
    folder_of(folder, job);
    DIR *list = opendir(folder);
    // cppcheck-suppress readdirCalled
    for (const struct dirent *e; list && (e = readdir(list));) {
        if (strncmp(e->d_name, "part-", 5) == 0) {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            unlink(path);
        }
    }
    if (list) {
        closedir(list);
        rmdir(folder);
    }
}

// A folder without parts is nothing to go on from.
static void remove_empty(const rfa_data_job *job)
{
    char folder[FOLDER];
    folder_of(folder, job);
    rmdir(folder);
}

static rfa_status make_folder(const rfa_data_job *job)
{
    char folder[FOLDER];
    folder_of(folder, job);
    return mkdir(folder, 0777) == 0 || errno == EEXIST
               ? RFA_OK
               : rfa_fail(RFA_ERR_IO, "%s: the folder can't be made: %s", folder, strerror(errno));
}

// A rank on another file system would write its parts where rank 0 doesn't find them. Local.
static rfa_status see_folder(const rfa_data_job *job)
{
    char folder[FOLDER];
    folder_of(folder, job);
    return rfa_is_folder(folder)
               ? RFA_OK
               : rfa_fail(RFA_ERR_IO, "%s: this rank doesn't see the folder that rank 0 made",
                          folder);
}

static rfa_status alloc_example(rfa_example *example, const rfa_source *source)
{
    for (int d = 0; d < source->documents; d++) {
        RFA_TRY(rfa_alloc(&example->ids[d], source->capacity, sizeof **example->ids, "example"));
    }
    return RFA_OK;
}

// Loads the examples of a part. Local.
static rfa_status load_part(rfa_part *part, rfa_example *example, const rfa_source *source)
{
    for (int i = 0; i < part->key.examples; i++) {
        RFA_TRY(source->load(source->self, example, part->key.split, part->key.first + i));
        RFA_ASSERT(example->label >= 0 && example->label < source->classes);
        for (int d = 0; d < source->documents; d++) {
            RFA_ASSERT(example->length[d] > 0 && example->length[d] <= source->capacity);
        }
        RFA_TRY(rfa_part_add(part, example));
    }
    return RFA_OK;
}

// What a rank keeps while parts are made.
typedef struct {
    rfa_part part;
    rfa_example example;
    int64_t tokens[RFA_SPLITS][RFA_DOCUMENTS];
    int64_t taken;     // parts that were there already
    bool source_fails; // not the disk
} worker;

static rfa_status make_part(worker *w, const rfa_data_plan *plan, int64_t number)
{
    char path[RFA_DATA_PATH + 64];
    const rfa_part_key key = rfa_data_part_key(plan, number);
    rfa_data_part_path(path, plan, number);
    rfa_status status = rfa_part_read(&w->part, path, &key);
    if (status == RFA_OK) {
        w->taken++;
    } else if (status == RFA_ERR_IO) {
        rfa_part_start(&w->part, &key);
        RFA_TRY(rfa_fault("data.part", plan->world, RFA_ERR_IO));
        status = load_part(&w->part, &w->example, plan->source);
        w->source_fails = status != RFA_OK;
        if (status == RFA_OK) {
            status = rfa_part_write(&w->part, path);
        }
    }
    for (int d = 0; d < RFA_DOCUMENTS && status == RFA_OK; d++) {
        w->tokens[key.split][d] += w->part.tokens[d];
    }
    return status;
}

static rfa_status check_signal(const rfa_data_plan *plan, int64_t done)
{
    const char *signal = rfa_stop_signal();
    return signal ? rfa_fail(RFA_STOPPED,
                             "stopped by %s after %lld of %lld examples; the same command goes on "
                             "from there",
                             signal, (long long)done, (long long)plan->total)
                  : RFA_OK;
}

// All parts, one a rank at a time. Collective.
static rfa_status make_parts(worker *w, const rfa_data_plan *plan)
{
    const int size = plan->world->size;
    const double started = rfa_now();
    for (int64_t base = 0; base < plan->parts; base += size) {
        const int64_t number = base + plan->world->rank;
        const int64_t done = rfa_data_examples_before(plan, base + size);
        rfa_status status = number < plan->parts ? make_part(w, plan, number) : RFA_OK;
        if (status == RFA_OK && base + size < plan->parts) {
            status = check_signal(plan, done);
        }
        RFA_TRY(rfa_agree(plan->world, status));
        const double rate = (double)done / (rfa_now() - started + 1e-9);
        char left[32];
        rfa_progress(done == plan->total,
                     "loading: %lld of %lld examples, %.0f %%, %.0f/s, %s left", (long long)done,
                     (long long)plan->total, 100.0 * (double)done / (double)plan->total, rate,
                     rfa_duration(left, (double)(plan->total - done) / rate));
    }
    MPI_Allreduce(MPI_IN_PLACE, &w->tokens[0][0], RFA_SPLITS * RFA_DOCUMENTS, MPI_INT64_T, MPI_SUM,
                  plan->world->comm);
    MPI_Allreduce(MPI_IN_PLACE, &w->taken, 1, MPI_INT64_T, MPI_SUM, plan->world->comm);
    if (w->taken > 0) {
        rfa_note("rfa: %lld of %lld parts were there already", (long long)w->taken,
                 (long long)plan->parts);
    }
    return RFA_OK;
}

// Parts stay when there is something to go on from. Collective.
static void clean_up(const worker *w, const rfa_data_plan *plan, rfa_status status)
{
    int gone = status == RFA_OK || w->source_fails;
    MPI_Allreduce(MPI_IN_PLACE, &gone, 1, MPI_INT, MPI_MAX, plan->world->comm);
    if (plan->world->rank == 0 && gone) {
        remove_parts(plan->job);
    } else if (plan->world->rank == 0 && status != RFA_STOPPED) {
        remove_empty(plan->job);
    }
}

rfa_status rfa_data_make(const rfa_comm *world, const rfa_data_job *job, const rfa_source *source)
{
    worker w = {0};
    rfa_data_plan plan = {0};
    rfa_dataset_writer *writer = NULL;
    rfa_stop_on_signals();
    rfa_data_plan_create(&plan, world, job, source);
    rfa_status status = world->rank == 0 ? rfa_data_create(&writer, job->options->out,
                                                           &job->description, job->options->force)
                                         : RFA_OK;
    if (status == RFA_OK && world->rank == 0) {
        status = make_folder(job);
    }
    status = rfa_agree(world, status);
    if (status != RFA_OK) {
        rfa_dataset_writer_destroy(&writer);
        return status; // what is in the folder of parts is another's
    }
    status = see_folder(job);
    if (status == RFA_OK) {
        status = alloc_example(&w.example, source);
    }
    status = rfa_agree(world, status);
    if (status == RFA_OK) {
        status = make_parts(&w, &plan);
    }
    if (status == RFA_OK) {
        memcpy(plan.tokens, w.tokens, sizeof plan.tokens);
        status =
            rfa_agree(world, world->rank == 0 ? rfa_data_assemble(&plan, writer, &w.part) : RFA_OK);
    }
    clean_up(&w, &plan, status);
    rfa_dataset_writer_destroy(&writer);
    rfa_part_destroy(&w.part);
    for (int d = 0; d < RFA_DOCUMENTS; d++) {
        rfa_free(w.example.ids[d]);
    }
    return status;
}

// Bytes of rank 0 to all. Collective.
static void broadcast(void *bytes, int64_t size, const rfa_comm *world)
{
    enum { PIECE = 1 << 30 };
    for (int64_t at = 0; at < size; at += PIECE) {
        const int64_t left = size - at;
        MPI_Bcast((char *)bytes + at, (int)(left < PIECE ? left : PIECE), MPI_BYTE, 0, world->comm);
    }
}

rfa_status rfa_data_share_index(const rfa_comm *world, rfa_index *index)
{
    rfa_index shared = *index;
    rfa_status status = RFA_OK;
    MPI_Bcast(&shared, (int)sizeof shared, MPI_BYTE, 0, world->comm);
    if (world->rank > 0) {
        *index = shared;
        index->entries = NULL;
        index->names = NULL;
        index->capacity = index->count;
        index->names_capacity = index->names_size;
        status = rfa_alloc(&index->entries, index->count, sizeof *index->entries, "examples");
        if (status == RFA_OK) {
            status = rfa_alloc(&index->names, index->names_size, 1, "names of files");
        }
    }
    RFA_TRY(rfa_agree(world, status));
    broadcast(index->entries, index->count * (int64_t)sizeof *index->entries, world);
    broadcast(index->names, index->names_size, world);
    return RFA_OK;
}

rfa_fingerprint rfa_data_recipe(const rfa_index *index, const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    rfa_fingerprint recipe = {rfa_hash(1, text, strlen(text)), rfa_hash(2, text, strlen(text))};
    if (index) {
        const size_t size = (size_t)index->count * sizeof *index->entries;
        recipe.high = rfa_hash(recipe.high, index->entries, size) ^ index->stamp;
        recipe.low = rfa_hash(recipe.low, index->names, (size_t)index->names_size);
        recipe.low = rfa_hash(recipe.low, index->first, sizeof index->first);
        recipe.low = rfa_hash(recipe.low, index->last, sizeof index->last);
    }
    return recipe;
}

rfa_status rfa_data_validation(int *percent, const char *word)
{
    if (strcmp(word, "test") == 0) {
        *percent = 0;
        return RFA_OK;
    }
    if (strncmp(word, "last", 4) == 0 && word[4] >= '1' && word[4] <= '9') {
        char *end;
        const long number = strtol(word + 4, &end, 10);
        if (strcmp(end, "%") == 0 && number <= 50) {
            *percent = (int)number;
            return RFA_OK;
        }
    }
    return rfa_fail(RFA_ERR_USAGE, "--validation '%s': last1%% to last50%%, or test", word);
}
