#include "cli/trained.h"

#include "train/provenance.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rfa_status run_config(rfa_config *config, const rfa_trained *trained)
{
    rfa_checkpoint_header header;
    const size_t length = strlen(trained->run);
    if (length < 3 || strcmp(trained->run + length - 3, ".h5") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "%s: name the run, RUN.h5", trained->run);
    }
    const rfa_status found = rfa_checkpoint_read_header(trained->path, &header);
    if (found == RFA_ERR_IO && access(trained->run, F_OK) != 0) {
        return rfa_fail(found, "%s: %s", trained->run, strerror(errno));
    }
    RFA_TRY(found);
    rfa_config_defaults(config);
    const rfa_status status = rfa_config_parse(config, header.config_text, "checkpoint");
    rfa_checkpoint_header_free(&header);
    RFA_TRY(status);
    config->parallel.sequence = 0;
    if (trained->data && snprintf(config->data.file, sizeof config->data.file, "%s",
                                  trained->data) >= (int)sizeof config->data.file) {
        return rfa_fail(RFA_ERR_USAGE, "--data: the path is too long");
    }
    return RFA_OK;
}

static rfa_status check_same_model(const rfa_config *config, const rfa_config *trained)
{
    rfa_config same = *trained;
    char text[256];
    same.train.batch = config->train.batch;
    if (rfa_config_differences(text, sizeof text, config, &same) > 0) {
        return rfa_fail(RFA_ERR_USAGE, "--set can't change the trained model: %s", text);
    }
    return RFA_OK;
}

static rfa_status check_names(rfa_trained *trained)
{
    const char *split = trained->split;
    if (strcmp(split, "train") != 0 && strcmp(split, "val") != 0 && strcmp(split, "test") != 0) {
        return rfa_fail(RFA_ERR_USAGE, "--split %s: must be train, val or test", split);
    }
    if (trained->best) {
        return rfa_state_best_path(trained->path, trained->run);
    }
    return snprintf(trained->path, sizeof trained->path, "%s", trained->run) <
                   (int)sizeof trained->path
               ? RFA_OK
               : rfa_fail(RFA_ERR_USAGE, "%s: the path is too long", trained->run);
}

rfa_status rfa_trained_open(rfa_trained *trained, const rfa_comm *world)
{
    rfa_config config = {0};
    RFA_TRY(check_names(trained)); // the same on all ranks
    RFA_TRY(rfa_agree(world, world->rank == 0 ? run_config(&config, trained) : RFA_OK));
    const rfa_config former = config;
    RFA_TRY(rfa_settings_load(&config, &trained->settings, world));
    RFA_TRY(rfa_agree(world, world->rank == 0 ? check_same_model(&config, &former) : RFA_OK));
    if (trained->whole) {
        config.train.window = 0;
        config.train.recompute = false;
    }
    return rfa_session_create(&trained->session, &config, world, trained->split);
}

// Rank 0: whether the run was trained on other data than are open. Local.
static int is_of_other_data(const rfa_trained *trained)
{
    rfa_checkpoint_header header;
    if (rfa_checkpoint_read_header(trained->path, &header) != RFA_OK) {
        return 0;
    }
    const int other = strcmp(header.data_digest, rfa_dataset_digest(trained->session.data)) != 0;
    rfa_checkpoint_header_free(&header);
    return other;
}

rfa_status rfa_trained_load(rfa_trained *trained)
{
    const rfa_comm *all = &trained->session.grid.all;
    rfa_checkpoint_header header;
    const rfa_status status = rfa_state_load(trained->path, &trained->session, NULL, &header);
    char why[512];
    snprintf(why, sizeof why, "%s", rfa_error_text());
    int other = status == RFA_ERR_IO && all->rank == 0 && is_of_other_data(trained);
    MPI_Bcast(&other, 1, MPI_INT, 0, all->comm);
    if (other) {
        return rfa_fail(RFA_ERR_USAGE,
                        "%s was trained on other data than %s, which may not fit it: %s",
                        trained->run, rfa_dataset_path(trained->session.data), why);
    }
    return status == RFA_OK ? status : rfa_fail(status, "%s", why);
}

void rfa_trained_close(rfa_trained *trained)
{
    rfa_session_destroy(&trained->session);
}

static rfa_status describe(rfa_attributes *list, const rfa_trained *trained, const char *hosts)
{
    const rfa_session *session = &trained->session;
    char digest[17];
    snprintf(digest, sizeof digest, "%016" PRIx64, rfa_session_digest(session));
    RFA_TRY(rfa_provenance_set(list, &session->grid.all, hosts));
    RFA_TRY(rfa_attributes_set_text(list, "run", trained->run));
    RFA_TRY(rfa_attributes_set_flag(list, "best", trained->best));
    RFA_TRY(rfa_attributes_set_int(list, "step", session->step));
    RFA_TRY(rfa_attributes_set_text(list, "digest", digest));
    RFA_TRY(rfa_attributes_set_text(list, "task", rfa_dataset_task(session->data)));
    RFA_TRY(rfa_attributes_set_text(list, "split", trained->split));
    RFA_TRY(rfa_attributes_set_text(list, "data", rfa_dataset_path(session->data)));
    return rfa_attributes_set_text(list, "data_digest", rfa_dataset_digest(session->data));
}

rfa_status rfa_trained_describe(rfa_attributes *list, const rfa_trained *trained)
{
    const rfa_comm *all = &trained->session.grid.all;
    char hosts[4096] = "";
    rfa_provenance_hosts(hosts, sizeof hosts, all);
    return rfa_agree(all, all->rank == 0 ? describe(list, trained, hosts) : RFA_OK);
}
