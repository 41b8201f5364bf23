#include "train/state.h"

#include <stdio.h>
#include <string.h>

enum { GROUPS = 3, NAME_SIZE = 96 };
static const char *const group_names[GROUPS] = {"parameters", "moment1", "moment2"};

// The arrays of a checkpoint: [GROUPS][table->count], or parameters alone without an optimiser.
typedef struct {
    rfa_checkpoint_array *array;
    char (*name)[NAME_SIZE];
    int count;
} rfa_state_list;

static void list_free(rfa_state_list *list)
{
    rfa_free(list->name);
    rfa_free(list->array);
}

static rfa_status
list_create(rfa_state_list *list, const rfa_session *session, const rfa_adamw *optimiser)
{
    const rfa_parameters *table = rfa_classifier_table(session->model);
    rfa_real *const values[GROUPS] = {rfa_classifier_values(session->model),
                                      optimiser ? optimiser->moment1 : NULL,
                                      optimiser ? optimiser->moment2 : NULL};
    const int groups = optimiser ? GROUPS : 1;
    *list = (rfa_state_list){.count = groups * table->count};
    RFA_TRY(rfa_alloc(&list->array, list->count, sizeof *list->array, "checkpoint"));
    RFA_TRY(rfa_alloc(&list->name, list->count, sizeof *list->name, "checkpoint"));
    for (int g = 0; g < groups; g++) {
        for (int p = 0; p < table->count; p++) {
            const rfa_parameter *entry = &table->list[p];
            const int i = g * table->count + p;
            snprintf(list->name[i], NAME_SIZE, "%s/%s", group_names[g], entry->name);
            list->array[i] = (rfa_checkpoint_array){
                .name = list->name[i],
                .dimensions = entry->shape[1] > 0 ? 2 : 1,
                .shape = {entry->shape[0], entry->shape[1]},
                .values = values[g] + entry->offset,
            };
        }
    }
    return RFA_OK;
}

rfa_status rfa_state_save(const char *run_path,
                          const rfa_session *session,
                          const rfa_adamw *optimiser,
                          const rfa_checkpoint_header *header)
{
    rfa_checkpoint_header full = *header;
    rfa_state_list list = {0};
    char digest[32];
    snprintf(digest, sizeof digest, "%s", rfa_dataset_digest(session->data));
    full.data_digest = digest;
    rfa_status status = rfa_config_text(&full.config_text, &session->config);
    if (status == RFA_OK) {
        status = list_create(&list, session, optimiser);
    }
    if (status == RFA_OK) {
        status = rfa_checkpoint_write(run_path, &full, list.array, list.count);
    }
    list_free(&list);
    rfa_free(full.config_text);
    return status;
}

rfa_status rfa_state_best_path(char best[RFA_STATE_PATH], const char *run_path)
{
    const size_t length = strlen(run_path);
    const bool ending = length > 3 && strcmp(run_path + length - 3, ".h5") == 0;
    const int used = snprintf(best, RFA_STATE_PATH, "%.*s.best.h5",
                              (int)(ending ? length - 3 : length), run_path);
    return used < RFA_STATE_PATH ? RFA_OK
                                 : rfa_fail(RFA_ERR_USAGE, "%s: the path is too long", run_path);
}

rfa_status rfa_state_save_best(const char *run_path,
                               const rfa_session *session,
                               const rfa_adamw *optimiser,
                               const rfa_checkpoint_header *header)
{
    char best[RFA_STATE_PATH];
    RFA_TRY(rfa_state_best_path(best, run_path));
    return rfa_state_save(best, session, optimiser, header);
}

static rfa_status check_same_run(const rfa_checkpoint_header *header,
                                 const rfa_session *session,
                                 const char *run_path)
{
    rfa_config former;
    char text[512];
    rfa_config_defaults(&former);
    RFA_TRY(rfa_config_parse(&former, header->config_text, "checkpoint"));
    if (rfa_config_differences(text, sizeof text, &session->config, &former) > 0) {
        return rfa_fail(RFA_ERR_USAGE,
                        "%s was started with another configuration: %s; drop the change, or start "
                        "another run with --out",
                        run_path, text);
    }
    if (strcmp(header->data_digest, rfa_dataset_digest(session->data)) != 0) {
        return rfa_fail(RFA_ERR_USAGE, "%s was started on data with digest %s, %s has %s", run_path,
                        header->data_digest, session->config.data.file,
                        rfa_dataset_digest(session->data));
    }
    return RFA_OK;
}

static rfa_status read_and_check(const char *run_path,
                                 const rfa_session *session,
                                 const rfa_adamw *optimiser,
                                 rfa_checkpoint_header *header)
{
    rfa_state_list list = {0};
    if (optimiser) { // the configuration first: it explains other shapes
        RFA_TRY(rfa_checkpoint_read_header(run_path, header));
        const rfa_status same = check_same_run(header, session, run_path);
        rfa_checkpoint_header_free(header);
        RFA_TRY(same);
    }
    rfa_status status = list_create(&list, session, optimiser);
    if (status == RFA_OK) {
        status = rfa_checkpoint_read(run_path, header, list.array, list.count);
    }
    if (status == RFA_OK && header->digest != rfa_session_digest(session)) {
        status =
            rfa_fail(RFA_ERR_IO, "%s: the checkpoint's parameters don't have its digest", run_path);
    }
    rfa_checkpoint_header_free(header);
    list_free(&list);
    return status;
}

// From rank 0, in pieces that MPI can count.
static void broadcast(rfa_real *values, ptrdiff_t size, const rfa_comm *all)
{
    const ptrdiff_t piece = (ptrdiff_t)1 << 27;
    for (ptrdiff_t at = 0; at < size; at += piece) {
        const ptrdiff_t n = size - at < piece ? size - at : piece;
        MPI_Bcast(values + at, rfa_int(n * (ptrdiff_t)sizeof *values), MPI_BYTE, 0, all->comm);
    }
}

rfa_status rfa_state_load(const char *run_path,
                          rfa_session *session,
                          rfa_adamw *optimiser,
                          rfa_checkpoint_header *header)
{
    const rfa_comm *all = &session->grid.all;
    *header = (rfa_checkpoint_header){0};
    RFA_TRY(rfa_agree(all, all->rank == 0 ? read_and_check(run_path, session, optimiser, header)
                                          : RFA_OK));
    const ptrdiff_t size = rfa_classifier_table(session->model)->size;
    broadcast(rfa_classifier_values(session->model), size, all);
    if (optimiser) {
        broadcast(optimiser->moment1, size, all);
        broadcast(optimiser->moment2, size, all);
    }
    MPI_Bcast(header, (int)sizeof *header, MPI_BYTE, 0, all->comm); // numbers; its texts are freed
    session->step = header->step;
    return RFA_OK;
}
