#include "train/provenance.h"

#include "base/log.h"
#include "storage/version.h"
#include "tensor/gemm.h"

#include "commit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void rfa_provenance_hosts(char *text, size_t size, const rfa_comm *all)
{
    char mine[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(mine, &length);
    char *names = NULL;
    if (all->rank == 0 && rfa_alloc(&names, all->size, sizeof mine, "host names") != RFA_OK) {
        MPI_Abort(all->comm, RFA_ERR_MEMORY);
    }
    MPI_Gather(mine, (int)sizeof mine, MPI_CHAR, names, (int)sizeof mine, MPI_CHAR, 0, all->comm);
    text[0] = '\0';
    for (int r = 0; names && r < all->size; r++) {
        const char *name = names + (size_t)r * sizeof mine;
        bool known = false;
        for (int other = 0; other < r; other++) {
            known = known || strcmp(name, names + (size_t)other * sizeof mine) == 0;
        }
        const size_t used = strlen(text);
        if (!known && used + strlen(name) + 6 < size) {
            snprintf(text + used, size - used, "%s%s", used ? " " : "", name);
        } else if (!known) {
            snprintf(text + used, size - used, " ...");
            break;
        }
    }
    rfa_free(names);
}

rfa_status rfa_provenance_set(rfa_attributes *list, const rfa_comm *all, const char *hosts)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "", hdf5[64];
    int length = 0;
    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, ",\n")] = '\0';
    rfa_hdf5_version(hdf5);
    const char *const facts[][2] = {
        {"program", "rfa " RFA_VERSION},
        {"commit", RFA_COMMIT},
        {"compiler", RFA_COMPILER},
        {"cpu_level", RFA_CPU_LEVEL},
        {"mpi", mpi},
        {"hdf5", hdf5},
        {"blas", rfa_gemm_library()},
        {"blas_forced", getenv("OPENBLAS_CORETYPE")},
        {"hosts", hosts},
        {"slurm_job_id", getenv("SLURM_JOB_ID")},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        RFA_TRY(rfa_attributes_set_text(list, facts[i][0], facts[i][1]));
    }
    RFA_TRY(rfa_attributes_set_flag(list, "modified", RFA_DIRTY));
    return rfa_attributes_set_int(list, "ranks", all->size);
}

static const char *exchange_name(rfa_exchange_algorithm algorithm)
{
    return algorithm == RFA_EXCHANGE_EXSCAN ? "exscan" : "transposed";
}

rfa_status rfa_provenance_describe(rfa_run *run, const rfa_session *session, int64_t step)
{
    const rfa_comm *all = &session->grid.all;
    rfa_start_record start = {
        .step = step,
        .ranks = all->size,
        .threads = session->config.parallel.threads,
        .sgemm_flops_per_second = session->ceiling,
        .commit = RFA_COMMIT,
    };
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "", hdf5[64];
    int length = 0;
    rfa_provenance_hosts(start.hosts, sizeof start.hosts, all);
    if (!run) {
        return RFA_OK;
    }
    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, ",\n")] = '\0';
    rfa_hdf5_version(hdf5);
    const time_t now = time(NULL);
    struct tm utc;
    strftime(start.started, sizeof start.started, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    if (step == 0) {
        rfa_run_set_text(run, "started", start.started);
    }
    rfa_run_set_text(run, "program", "rfa " RFA_VERSION);
    rfa_run_set_text(run, "commit", RFA_COMMIT);
    rfa_run_set_flag(run, "modified", RFA_DIRTY);
    rfa_run_set_text(run, "compiler", RFA_COMPILER);
    rfa_run_set_text(run, "cpu_level", RFA_CPU_LEVEL);
    rfa_run_set_text(run, "mpi", mpi);
    rfa_run_set_text(run, "hdf5", hdf5);
    rfa_run_set_text(run, "blas", rfa_gemm_library());
    rfa_run_set_text(run, "hosts", start.hosts);
    rfa_run_set_number(run, "ranks", all->size);
    rfa_run_set_number(run, "ranks_sequence", session->grid.sequence.size);
    rfa_run_set_number(run, "ranks_data", session->grid.data.size);
    rfa_run_set_number(run, "threads", (double)session->config.parallel.threads);
    rfa_run_set_text(run, "exchange_prefix",
                     exchange_name(rfa_exchange_choice(session->exchange, RFA_PREFIX)));
    rfa_run_set_text(run, "exchange_total",
                     exchange_name(rfa_exchange_choice(session->exchange, RFA_TOTAL)));
    rfa_run_set_flag(run, "rank_independent", session->reproducible);
    rfa_run_set_text(run, "slurm_job_id", getenv("SLURM_JOB_ID"));
    rfa_run_set_text(run, "task", rfa_dataset_task(session->data));
    rfa_run_set_text(run, "data_file", session->config.data.file);
    rfa_run_set_text(run, "data_digest", rfa_dataset_digest(session->data));
    rfa_run_set_number(run, "parameters", (double)rfa_classifier_table(session->model)->learned);
    rfa_run_set_number(run, "sgemm_flops_per_second", session->ceiling);
    return rfa_run_add_start(run, &start);
}

void rfa_provenance_peaks(rfa_run *run, const rfa_comm *all)
{
    int64_t most[2] = {rfa_mem_peak(), rfa_gemm_flops()}, flops = most[1];
    MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT64_T, MPI_MAX, all->comm);
    MPI_Allreduce(MPI_IN_PLACE, &flops, 1, MPI_INT64_T, MPI_SUM, all->comm);
    if (run) {
        rfa_run_set_number(run, "peak_bytes_of_a_rank", (double)most[0]);
        rfa_run_set_number(run, "gemm_flops_of_a_rank", (double)most[1]);
        rfa_run_set_number(run, "gemm_flops", (double)flops);
    }
}

void rfa_provenance_measure(rfa_run *run, int64_t steps, double flops)
{
    double seconds = 0, sgemm_flops = 0;
    if (run && rfa_run_work(run, &seconds, &sgemm_flops) == steps && seconds > 0) {
        rfa_run_set_number(run, "training_seconds", seconds);
        rfa_run_set_number(run, "model_flops_per_second", flops / seconds);
        if (sgemm_flops > 0) {
            rfa_run_set_number(run, "share_of_sgemm", flops / sgemm_flops);
        }
    }
}
