#include "base/mem.h"
#include "cli/data_run.h"
#include "tasks/text.h"

#include <string.h>

typedef struct {
    rfa_data_common common;
    char validation[RFA_DATA_WORD], columns[RFA_DATA_WORD], labels[RFA_DATA_WORD];
    rfa_text_options text;
    rfa_text_facts facts;
    rfa_text_reader reader;
    const char *names[RFA_TREE_CLASSES];
} text_task;

static const rfa_data_option options[] = {
    RFA_OPTION_OUT(text_task, "data/text.h5"),
    RFA_OPTION_FROM(text_task,
                    "What to import: a folder with train/CLASS/*.txt and test/CLASS/*.txt, or with "
                    "train.tsv and test.tsv"),
    {"max-length", 0, RFA_OPTION_INT64, offsetof(text_task, text.max_length), 1, 1 << 24, "N",
     "Bytes that are kept of each text (4000); a run may cut further", 2, false},
    {"validation", 0, RFA_OPTION_WORD, offsetof(text_task, validation), 0, 0, "WHAT",
     "last10%: the last tenth of train, or another part up to last50% (last10%); test: the test "
     "again, as in the first papers. Has no meaning when there is a val.tsv",
     2, false},
    {NULL, 0, RFA_OPTION_TITLE, 0, 0, 0, NULL, "Tables (.tsv, .csv, .tsv.gz, .csv.gz):", 3, false},
    {"columns", 0, RFA_OPTION_WORD, offsetof(text_task, columns), 0, 0, "LIST",
     "What the columns are: label and text, others by any name: label,id,text (by default what a "
     "header says, else label,text)",
     3, false},
    {"labels", 0, RFA_OPTION_WORD, offsetof(text_task, labels), 0, 0, "LIST",
     "Names of class 0, 1, ... in the label column: negative,positive (by default labels are "
     "numbers from 0)",
     3, false},
    RFA_OPTION_HELP(text_task),
};

static const rfa_data_parser parser = {
    .task = "text",
    .options = options,
    .count = sizeof options / sizeof *options,
    .text = "Writes a task of classifying texts, the Text task of the Long Range Arena with IMDb's "
            "reviews, as one HDF5 data set.\v"
            "Examples:\n"
            "  rfa data text --from aclImdb\n"
            "  mpirun -n 8 rfa data text --from aclImdb --max-length 1000 --out imdb1k.h5\n"
            "  rfa data text --from mails --columns label,id,text --labels ham,spam\n"
            "\n"
            "A token is a byte, its id is the byte plus 1, and 0 is padding. Folders are\n"
            "classes in the order of their names; IMDb's files come in the order of their\n"
            "numbers, so that classes alternate and the reviews of one film stay in one\n"
            "split. In tab-separated tables quotes are characters like others, and tabs in a\n"
            "last column of text belong to it; comma-separated ones follow RFC 4180. Empty\n"
            "texts are skipped and counted. The same bytes on any number of ranks; a call\n"
            "that was stopped goes on when it is repeated.",
};

static rfa_status list(void *task, rfa_index *index)
{
    text_task *t = task;
    RFA_TRY(rfa_data_validation(&t->text.percent, t->validation));
    t->text.percent_given = rfa_data_given(&parser, &t->common, "validation");
    if (strlen(t->columns) >= sizeof t->text.columns) {
        return rfa_fail(RFA_ERR_USAGE, "--columns: a word of %zu bytes", strlen(t->columns));
    }
    memcpy(t->text.columns, t->columns, strlen(t->columns) + 1);
    memcpy(t->text.labels, t->labels, strlen(t->labels) + 1);
    return rfa_text_list(index, &t->facts, t->common.from, &t->text);
}

static rfa_status write_attributes(const void *self, rfa_dataset_writer *writer)
{
    const text_task *t = self;
    RFA_TRY(rfa_dataset_writer_text(writer, "source", t->common.from));
    RFA_TRY(rfa_dataset_writer_text(writer, "generator", t->facts.format));
    RFA_TRY(rfa_dataset_writer_text(writer, "validation", t->facts.validation));
    return rfa_dataset_writer_int(writer, "max_length", t->text.max_length);
}

static rfa_status open(void *task, const rfa_index *index, rfa_source *source, rfa_data_job *job)
{
    text_task *t = task;
    t->reader = (rfa_text_reader){.index = index, .max_length = t->text.max_length};
    rfa_data_class_names(t->names, &t->facts.classes);
    *source = (rfa_source){.self = &t->reader,
                           .load = rfa_text_load,
                           .documents = 1,
                           .classes = t->facts.classes.count,
                           .capacity = t->text.max_length};
    *job = (rfa_data_job){
        .description = {.task = "text",
                        .title = "Classification of texts, byte by byte",
                        .vocabulary = rfa_byte_symbols(),
                        .symbols = RFA_BYTE_SYMBOLS,
                        .classes = t->facts.classes.count,
                        .first_id = 1},
        .origin_name = strcmp(t->facts.format, "folder tree") == 0 ? "file_number" : "line",
        .class_names = t->names,
        .part = 1024,
        .recipe = rfa_data_recipe(index, "text 1 %lld", (long long)t->text.max_length),
        .attributes = write_attributes,
    };
    return rfa_alloc(&t->reader.buffer, 2 * t->text.max_length + 2, 1, "text of a file");
}

static void close(void *task)
{
    text_task *t = task;
    rfa_bytes_close(&t->reader.bytes);
    rfa_free(t->reader.buffer);
    t->reader.buffer = NULL;
}

rfa_status rfa_data_text(const rfa_comm *world, int argc, char **argv)
{
    static const rfa_data_course course = {
        .parser = &parser, .size = sizeof(text_task), .list = list, .open = open, .close = close};
    text_task *t = NULL;
    RFA_TRY(rfa_agree(world, rfa_alloc(&t, 1, sizeof *t, "text task")));
    t->text.max_length = 4000;
    memcpy(t->common.out, "data/text.h5", sizeof "data/text.h5");
    memcpy(t->validation, "last10%", sizeof "last10%");
    const rfa_status status = rfa_data_run(world, &course, t, argc, argv);
    rfa_free(t);
    return status;
}
