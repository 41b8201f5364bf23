#include "base/mem.h"
#include "cli/data_make.h"
#include "tasks/retrieval.h"

#include <string.h>

typedef struct {
    rfa_data_common common;
    int64_t max_length;
    char format[64];
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

// On rank 0.
static rfa_status prepare(pair_task *t, rfa_index *index, int argc, char **argv)
{
    RFA_TRY(rfa_data_parse(&parser, &t->common, argc, argv));
    if (t->common.help) {
        return RFA_OK;
    }
    if (!t->common.from[0]) {
        return rfa_fail(RFA_ERR_USAGE,
                        "rfa data retrieval: --from DIR says what to import; see --help");
    }
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

static rfa_status
make(const rfa_comm *world, pair_task *t, const rfa_index *index, rfa_retrieval_reader *reader)
{
    static const char *const names[2] = {"does not cite", "cites"};
    rfa_source source = {.self = reader,
                         .load = rfa_retrieval_load,
                         .documents = 2,
                         .classes = 2,
                         .capacity = t->max_length};
    for (int s = 0; s < RFA_SPLITS; s++) {
        source.examples[s] = rfa_index_examples(index, s);
    }
    const rfa_data_job job = {
        .options = &t->common,
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
        .index = index,
        .attributes = write_attributes,
        .self = t,
    };
    return rfa_data_make(world, &job, &source);
}

static rfa_status run(const rfa_comm *world, pair_task *t, int argc, char **argv)
{
    rfa_index index = {0};
    rfa_retrieval_reader reader = {.index = &index};
    rfa_status status =
        rfa_agree(world, world->rank == 0 ? prepare(t, &index, argc, argv) : RFA_OK);
    MPI_Bcast(t, (int)sizeof *t, MPI_BYTE, 0, world->comm);
    if (status == RFA_OK && !t->common.help) {
        status = rfa_data_share_index(world, &index);
        reader.max_length = t->max_length;
        if (status == RFA_OK) {
            status = rfa_agree(
                world, rfa_alloc(&reader.buffer, 2 * t->max_length + 2, 1, "text of a file"));
        }
        if (status == RFA_OK) {
            status = make(world, t, &index, &reader);
        }
    }
    rfa_bytes_close(&reader.bytes);
    rfa_free(reader.buffer);
    rfa_index_destroy(&index);
    return status;
}

rfa_status rfa_data_retrieval(const rfa_comm *world, int argc, char **argv)
{
    pair_task *t = NULL;
    RFA_TRY(rfa_agree(world, rfa_alloc(&t, 1, sizeof *t, "retrieval task")));
    t->max_length = 4000;
    memcpy(t->common.out, "data/retrieval.h5", sizeof "data/retrieval.h5");
    const rfa_status status = run(world, t, argc, argv);
    rfa_free(t);
    return status;
}
