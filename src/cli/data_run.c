#include "cli/data_run.h"

static rfa_status
prepare(const rfa_data_course *course, void *task, rfa_index *index, int argc, char **argv)
{
    rfa_data_common *common = task;
    RFA_TRY(rfa_data_parse(course->parser, common, argc, argv));
    if (common->help) {
        return RFA_OK;
    }
    if (!common->from[0] && !course->generates) {
        return rfa_fail(RFA_ERR_USAGE, "rfa data %s: --%s says what to import; see --help",
                        course->parser->task,
                        course->parser->from ? course->parser->from : "from DIR");
    }
    return course->list(task, index);
}

static rfa_status
make(const rfa_comm *world, const rfa_data_course *course, void *task, const rfa_index *index)
{
    rfa_source source = {.documents = 1};
    rfa_data_job job = {0};
    RFA_TRY(rfa_agree(world, course->open(task, index, &source, &job)));
    job.options = task;
    job.self = task;
    if (job.options->from[0]) {
        job.index = index;
        for (int s = 0; s < RFA_SPLITS; s++) {
            source.examples[s] = rfa_index_examples(index, s);
        }
    }
    return rfa_data_make(world, &job, &source);
}

rfa_status rfa_data_run(
    const rfa_comm *world, const rfa_data_course *course, void *task, int argc, char **argv)
{
    const rfa_data_common *common = task;
    rfa_index index = {0};
    rfa_status status =
        rfa_agree(world, world->rank == 0 ? prepare(course, task, &index, argc, argv) : RFA_OK);
    MPI_Bcast(task, rfa_int(course->size), MPI_BYTE, 0, world->comm);
    if (status == RFA_OK && !common->help) {
        status = common->from[0] ? rfa_data_share_index(world, &index) : RFA_OK;
        if (status == RFA_OK) {
            status = make(world, course, task, &index);
        }
        course->close(task);
    }
    rfa_index_destroy(&index);
    return status;
}

void rfa_data_class_names(const char **names, const rfa_classes *classes)
{
    for (int c = 0; c < classes->count; c++) {
        names[c] = classes->name[c];
    }
}
