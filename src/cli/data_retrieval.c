#include "base/mem.h"
#include "cli/data_run.h"
#include "tasks/retrieval.h"

#include <string.h>

typedef struct {
    rfa_data_common common;
    int64_t max_length;
    char format[64];
    rfa_retrieval_reader reader;
} pair_task;

static const rfa_data_option options[] = {
    RFA_OPTION_OUT(pair_task, "data/retrieval.h5"),
    RFA_OPTION_FROM(
        pair_task,
        "What to import: a folder with new_aan_pairs.train.tsv, .eval.tsv and .test.tsv "
        "(the archive's tsv_data), or with papers.tsv and pairs.train.tsv, "
        "pairs.eval.tsv and pairs.test.tsv"),
    {"max-length", 0, RFA_OPTION_INT64, offsetof(pair_task, max_length), 1, 1 << 24, "N",
     "Bytes that are kept of each text (4000); a run may cut further", 2, false},
    RFA_OPTION_HELP(pair_task),
};

static const rfa_data_parser parser = {
    .task = "retrieval",
    .options = options,
    .count = sizeof options / sizeof *options,
    .text = "Writes a task of pairs of texts, the Retrieval task of the Long Range Arena in which "
            "the label tells whether one paper cites the other, as one HDF5 data set.\v"
            "Examples:\n"
            "  rfa data retrieval --from lra_release\n"
            "  mpirun -n 8 rfa data retrieval --from papers --max-length 8000\n"
            "\n"
            "Lines of new_aan_pairs: label, two ids, two texts, with tabs between; of\n"
            "papers.tsv: id, text; of pairs: label, two ids. Quotes are characters like\n"
            "others. A token is a byte, its id is the byte plus 1, and 0 is padding. Each\n"
            "example has two documents: tokens, offsets and lengths, and tokens2, offsets2\n"
            "and lengths2. The same bytes on any number of ranks; a call that was stopped\n"
            "goes on when it is repeated.",
};

static rfa_status list(void *task, rfa_index *index)
{
    pair_task *t = task;
    return rfa_retrieval_list(index, t->format, t->common.from);
}

static rfa_status write_attributes(const void *self, rfa_dataset_writer *writer)
{
    const pair_task *t = self;
    RFA_TRY(rfa_dataset_writer_text(writer, "source", t->common.from));
    RFA_TRY(rfa_dataset_writer_text(writer, "generator", t->format));
    RFA_TRY(rfa_dataset_writer_text(writer, "validation", "file"));
    return rfa_dataset_writer_int(writer, "max_length", t->max_length);
}

static rfa_status open(void *task, const rfa_index *index, rfa_source *source, rfa_data_job *job)
{
    static const char *const names[2] = {"does not cite", "cites"};
    pair_task *t = task;
    t->reader = (rfa_retrieval_reader){.index = index, .max_length = t->max_length};
    *source = (rfa_source){.self = &t->reader,
                           .load = rfa_retrieval_load,
                           .documents = 2,
                           .classes = 2,
                           .capacity = t->max_length};
    *job = (rfa_data_job){
        .description = {.task = "retrieval",
                        .title = "Pairs of texts, byte by byte: does the one cite the other?",
                        .vocabulary = rfa_byte_symbols(),
                        .symbols = RFA_BYTE_SYMBOLS,
                        .classes = 2,
                        .documents = 2,
                        .first_id = 1},
        .origin_name = "line",
        .class_names = names,
        .part = 512,
        .recipe = rfa_data_recipe(index, "retrieval 1 %lld", (long long)t->max_length),
        .attributes = write_attributes,
    };
    return rfa_alloc(&t->reader.buffer, 2 * t->max_length + 2, 1, "text of a file");
}

static void close(void *task)
{
    pair_task *t = task;
    rfa_bytes_close(&t->reader.bytes);
    rfa_free(t->reader.buffer);
    t->reader.buffer = NULL;
}

rfa_status rfa_data_retrieval(const rfa_comm *world, int argc, char **argv)
{
    static const rfa_data_course course = {
        .parser = &parser, .size = sizeof(pair_task), .list = list, .open = open, .close = close};
    pair_task *t = NULL;
    RFA_TRY(rfa_agree(world, rfa_alloc(&t, 1, sizeof *t, "retrieval task")));
    t->max_length = 4000;
    memcpy(t->common.out, "data/retrieval.h5", sizeof "data/retrieval.h5");
    const rfa_status status = rfa_data_run(world, &course, t, argc, argv);
    rfa_free(t);
    return status;
}
