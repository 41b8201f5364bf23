#include "train/profiling.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Seconds of all phases, then flops, so that one reduction does for both.
enum { KINDS = 2 };

static void print(const rfa_phase_record *phases, const rfa_comm *all, int threads, int64_t steps)
{
    char row[RFA_PHASE_ROW];
    rfa_note("profile of %" PRId64 " steps, ranks x threads = %d x %d", steps, all->size, threads);
    rfa_note("%s", rfa_phase_head);
    for (int p = 0; p < RFA_PHASES; p++) {
        if (rfa_phase_row(row, &phases[p])) {
            rfa_note("%s", row);
        }
    }
}

rfa_status rfa_profiling_end(rfa_run *run, const rfa_session *session, int64_t steps)
{
    const rfa_comm *all = &session->grid.all;
    const int threads = (int)session->config.parallel.threads, n = KINDS * RFA_PHASES;
    double sum[KINDS * RFA_PHASES], least[KINDS * RFA_PHASES], most[KINDS * RFA_PHASES], whole = 0;
    rfa_phase_record phases[RFA_PHASES];
    rfa_profile own;
    if (!rfa_profile_read(&own, threads)) {
        return RFA_OK;
    }
    for (int p = 0; p < RFA_PHASES; p++) {
        sum[p] = own.seconds[p];
        sum[RFA_PHASES + p] = (double)own.flops[p];
    }
    memcpy(least, sum, sizeof least);
    memcpy(most, sum, sizeof most);
    MPI_Allreduce(MPI_IN_PLACE, sum, n, MPI_DOUBLE, MPI_SUM, all->comm);
    MPI_Allreduce(MPI_IN_PLACE, least, n, MPI_DOUBLE, MPI_MIN, all->comm);
    MPI_Allreduce(MPI_IN_PLACE, most, n, MPI_DOUBLE, MPI_MAX, all->comm);
    for (int p = 0; p < RFA_PHASES; p++) {
        whole += sum[p];
    }
    for (int p = 0; p < RFA_PHASES; p++) {
        phases[p] = (rfa_phase_record){
            .order = p,
            .seconds = sum[p] / all->size,
            .seconds_least = least[p],
            .seconds_most = most[p],
            .share = whole > 0 ? sum[p] / whole : 0,
            .flops = sum[RFA_PHASES + p] / all->size,
            .flops_least = least[RFA_PHASES + p],
            .flops_most = most[RFA_PHASES + p],
        };
        snprintf(phases[p].phase, sizeof phases[p].phase, "%s", rfa_phase_name((rfa_phase)p));
    }
    print(phases, all, threads, steps);
    return run ? rfa_run_set_profile(run, phases, RFA_PHASES, steps) : RFA_OK;
}
