#include "train/finished.h"

#include "base/log.h"
#include "storage/runfile.h"
#include "train/report.h"

#include <string.h>

static bool is_finished(const rfa_run_view *view, const rfa_session *session)
{
    const rfa_step_record *last = view->steps > 0 ? &view->step[view->steps - 1] : NULL;
    const rfa_run_attribute *early = rfa_attributes_find(&view->attributes, "stopped_early");
    const bool all =
        last && (last->step == session->config.train.steps || (early && early->integer != 0));
    return strcmp(view->state, "finished") == 0 && view->test.examples > 0 && all &&
           last->digest == rfa_session_digest(session);
}

rfa_status rfa_finished_check(bool *finished, const char *run_path, const rfa_session *session)
{
    const rfa_comm *all = &session->grid.all;
    rfa_run_view view = {0};
    int answer = 0;
    rfa_status status = all->rank == 0 ? rfa_run_read(&view, run_path) : RFA_OK;
    if (all->rank == 0 && status == RFA_OK && is_finished(&view, session)) {
        const rfa_run_attribute *free_of_ranks =
            rfa_attributes_find(&view.attributes, "rank_independent");
        answer = 1;
        rfa_note("%s is finished: nothing is left to do", run_path);
        const rfa_score score = {.correct = view.test.correct,
                                 .examples = view.test.examples,
                                 .confusion = view.test.confusion};
        rfa_report_result(session, &score, rfa_session_digest(session),
                          free_of_ranks && free_of_ranks->integer != 0);
    }
    rfa_run_view_free(&view);
    RFA_TRY(rfa_agree(all, status));
    MPI_Bcast(&answer, 1, MPI_INT, 0, all->comm);
    *finished = answer != 0;
    return RFA_OK;
}
