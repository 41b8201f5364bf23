#include "storage/runfile_parts.h"

#include "base/mem.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PHASE(member, units, long_name, kind)                                                      \
    {                                                                                              \
#member, units, long_name, offsetof(rfa_phase_record, member), kind                        \
    }
const rfa_column rfa_phase_columns[RFA_PHASE_COLUMNS] = {
    PHASE(order, "1", "order of the phases", RFA_COLUMN_INT),
    PHASE(seconds, "s", "time of a rank's threads, mean over ranks", RFA_COLUMN_DOUBLE),
    PHASE(seconds_least, "s", "the same, least of a rank", RFA_COLUMN_DOUBLE),
    PHASE(seconds_most, "s", "the same, greatest of a rank", RFA_COLUMN_DOUBLE),
    PHASE(share, "1", "share of the time of all ranks and threads", RFA_COLUMN_DOUBLE),
    PHASE(flops, "1", "flops of matrix products of a rank, mean over ranks", RFA_COLUMN_DOUBLE),
    PHASE(flops_least, "1", "the same, least of a rank", RFA_COLUMN_DOUBLE),
    PHASE(flops_most, "1", "the same, greatest of a rank", RFA_COLUMN_DOUBLE),
};

const rfa_text_column rfa_phase_texts[RFA_PHASE_TEXTS] = {
    {"phase", "what the time went to", offsetof(rfa_phase_record, phase),
     sizeof((rfa_phase_record){0}.phase)},
};

rfa_status
rfa_run_set_profile(rfa_run *run, const rfa_phase_record *phases, int64_t count, int64_t steps)
{
    rfa_run_view *view = &run->view;
    rfa_free(view->phase);
    view->phase = NULL;
    view->phases = 0;
    RFA_TRY(rfa_rows_alloc(&view->phase, count, sizeof *view->phase));
    memcpy(view->phase, phases, (size_t)count * sizeof *phases);
    view->phases = count;
    rfa_run_set_number(run, "profile_steps", (double)steps);
    return RFA_OK;
}

const char rfa_phase_head[] =
    "phase         share    seconds of a rank, least, most          GFLOP   GFLOP/s";

bool rfa_phase_row(char text[RFA_PHASE_ROW], const rfa_phase_record *record)
{
    if (record->seconds_most <= 0 && record->flops_most <= 0) {
        return false;
    }
    const int used =
        snprintf(text, RFA_PHASE_ROW, "%-10s %6.1f %%  %12.4g %9.4g %9.4g", record->phase,
                 100 * record->share, record->seconds, record->seconds_least, record->seconds_most);
    if (record->flops > 0 && record->seconds > 0 && used > 0 && used < RFA_PHASE_ROW) {
        snprintf(text + used, (size_t)(RFA_PHASE_ROW - used), "   %12.4g %9.4g",
                 record->flops / 1e9, record->flops / record->seconds / 1e9);
    }
    return true;
}
