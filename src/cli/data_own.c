#include "base/mem.h"
#include "cli/data_run.h"
#include "tasks/own.h"
#include "tasks/token_ids.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    rfa_data_common common; // from: the table of train
    char val[RFA_DATA_PATH], test[RFA_DATA_PATH], validation[64];
    char columns[RFA_DATA_WORD], labels[RFA_DATA_WORD], task[RFA_DATA_WORD];
    int64_t max_length, shuffle;
    int classes, vocabulary; // 0: as found
    rfa_text_tables tables;
    rfa_own_reader reader;
    const char *names[RFA_TREE_CLASSES];
    char *symbol_text; // of token ids
    const char **symbols;
} own_task;

#define AT(name) offsetof(own_task, name)

static const rfa_data_option options[] = {
    RFA_OPTION_OUT(own_task, "data/own.h5"),
    {"tsv", 0, RFA_OPTION_PATH, AT(common.from), 0, 0, "FILE",
     "The table of training examples; a name with .csv is read as comma-separated, .gz is unpacked",
     1, false},
    {"val", 0, RFA_OPTION_PATH, AT(val), 0, 0, "WHAT",
     "A table for validation; or last10%, the last tenth of the first table, or another part up to "
     "last50% (last10%); or test: the test again",
     1, false},
    {"test", 0, RFA_OPTION_PATH, AT(test), 0, 0, "WHAT",
     "A table for the test, or a last part of the first table, too, behind that for validation "
     "(last10%)",
     1, false},
    {"shuffle", 0, RFA_OPTION_INT64, AT(shuffle), 0, INT64_MAX, "SEED",
     "Mix the lines of the first table before parts are taken from its end", 1, false},
    {NULL, 0, RFA_OPTION_TITLE, 0, 0, 0, NULL, "Tables:", 2, false},
    {"columns", 0, RFA_OPTION_WORD, AT(columns), 0, 0, "LIST",
     "What the columns are: label and text, or ids; for pairs text,text2 or ids,ids2; others by "
     "any "
     "name (by default what a header says, else label,text)",
     2, false},
    {"labels", 0, RFA_OPTION_WORD, AT(labels), 0, 0, "LIST",
     "Names of class 0, 1, ... in the label column (by default numbers from 0, or, when the first "
     "label is none, names in ascending order)",
     2, false},
    {"classes", 0, RFA_OPTION_INT, AT(classes), 2, RFA_TREE_CLASSES, "N",
     "Labels are the numbers below N (by default up to the highest one in the first table)", 2,
     false},
    {"vocabulary", 0, RFA_OPTION_INT, AT(vocabulary), 2, RFA_TOKEN_IDS, "N",
     "Token ids are below N (by default up to the highest one)", 2, false},
    {"max-length", 0, RFA_OPTION_INT64, AT(max_length), 1, 1 << 26, "N",
     "Bytes or ids that are kept of each document (all); a run may cut further", 2, false},
    {"task", 0, RFA_OPTION_WORD, AT(task), 0, 0, "NAME", "Attribute task of the file (own)", 2,
     false},
    RFA_OPTION_HELP(own_task),
};

static const rfa_data_parser parser = {
    .task = "import",
    .from = "tsv FILE",
    .options = options,
    .count = sizeof options / sizeof *options,
    .text = "Writes own data, classes of texts or of sequences of token ids, or of pairs of them, "
            "as one HDF5 data set.\v"
            "Examples:\n"
            "  rfa data import --tsv mails.tsv --columns label,text --out mails.h5\n"
            "  rfa data import --tsv train.csv.gz --val dev.csv.gz --test test.csv.gz\n"
            "  rfa data import --tsv genes.tsv --columns label,ids --vocabulary 6\n"
            "  rfa data import --tsv pairs.tsv --columns id,label,text,text2 --shuffle 1\n"
            "\n"
            "Tables: one example a line (LF or CR LF), UTF-8. In tab-separated ones quotes\n"
            "are characters like others; tabs in a last column of text belong to it, unless\n"
            "there are two texts. Comma-separated ones follow RFC 4180. A text is taken\n"
            "byte by byte, id = byte + 1; ids are whole numbers from 1 with spaces between;\n"
            "id 0 is padding. Documents that are empty are skipped and counted; texts that\n"
            "are not UTF-8 are taken as they are and counted; anything else ends the call\n"
            "with one line that names file and line.\n"
            "\n"
            "The file, which any program may write as well:\n"
            "  attributes of /    task, classes, digest, complete = 1 (last); for pairs\n"
            "                     documents = 2; for the record also padding_id, source,\n"
            "                     class_names, generator, duplicates_within, ...\n"
            "  /vocabulary        [V] UTF-8 strings: what id 0, 1, ... stands for\n"
            "  /SPLIT/tokens      all examples of train, val or test in a row, unsigned,\n"
            "                     8 or 16 bits; id = value + its attribute first_id (0, 1)\n"
            "  /SPLIT/offsets     [n + 1] int64: example i is tokens from offsets[i] up to,\n"
            "                     but without, offsets[i + 1]\n"
            "  /SPLIT/lengths     [n] int32    /SPLIT/labels  [n] int32, from 0\n"
            "  /SPLIT/line        [n] int64, the line in its table\n"
            "  /SPLIT/tokens2, offsets2, lengths2    the second documents of pairs\n"
            "digest: 16 hex digits, FNV-1a with 64 bits over train, val and test; of each\n"
            "example the label as little-endian 32-bit number, of each of its documents the\n"
            "length as such and the ids as little-endian 16-bit numbers.",
};

// A part of the first table, "last10%", instead of a file: its percent; 0 of "test"; -1: a file.
static int part_of(const char *what)
{
    int percent;
    return rfa_data_validation(&percent, what) == RFA_OK ? percent : -1;
}

static rfa_status list(void *task, rfa_index *index)
{
    own_task *t = task;
    const int val = part_of(t->val), test = part_of(t->test);
    const rfa_own_options own = {.train = t->common.from,
                                 .val = val < 0 ? t->val : NULL,
                                 .test = test < 0 ? t->test : NULL,
                                 .val_percent = val,
                                 .test_percent = test,
                                 .shuffle = rfa_data_given(&parser, &t->common, "shuffle"),
                                 .seed = (uint64_t)t->shuffle,
                                 .classes = t->classes,
                                 .labels = t->labels};
    if (test == 0) {
        return rfa_fail(RFA_ERR_USAGE, "--test test: name a file (./test), or last1%% to last50%%");
    }
    if (t->labels[0] && t->classes > 0) {
        return rfa_fail(RFA_ERR_USAGE, "--labels names the classes, so --classes has no meaning");
    }
    snprintf(t->validation, sizeof t->validation,
             val < 0    ? "file"
             : val == 0 ? "test"
                        : "last%d%%",
             val);
    t->tables.columns = t->columns;
    t->tables.any_kind = true;
    t->tables.vocabulary = t->vocabulary > 0 ? t->vocabulary : RFA_TOKEN_IDS;
    const rfa_status status = rfa_own_list(index, &t->tables, &own);
    t->tables.columns = NULL; // the others get this struct
    RFA_TRY(status);
    if (t->vocabulary > 0 && !t->tables.found.ids) {
        rfa_index_destroy(index);
        return rfa_fail(RFA_ERR_USAGE, "--vocabulary is for token ids, but %s holds texts",
                        t->common.from);
    }
    if (t->vocabulary == 0) {
        t->vocabulary = t->tables.highest + 1;
    }
    if (t->max_length == 0 || t->max_length > t->tables.longest) {
        t->max_length = t->tables.longest;
    }
    return RFA_OK;
}

static rfa_status write_attributes(const void *self, rfa_dataset_writer *writer)
{
    const own_task *t = self;
    RFA_TRY(rfa_dataset_writer_text(writer, "source", t->common.from));
    RFA_TRY(rfa_dataset_writer_text(writer, "generator", "rfa data import"));
    RFA_TRY(rfa_dataset_writer_text(writer, "validation", t->validation));
    return rfa_dataset_writer_int(writer, "max_length", t->max_length);
}

// "<pad>", "1", "2", ...
static rfa_status make_symbols(own_task *t)
{
    enum { SYMBOL = 16 };
    RFA_TRY(rfa_alloc(&t->symbol_text, (ptrdiff_t)t->vocabulary * SYMBOL, 1, "symbols"));
    RFA_TRY(rfa_alloc(&t->symbols, t->vocabulary, sizeof *t->symbols, "symbols"));
    for (int id = 0; id < t->vocabulary; id++) {
        char *text = t->symbol_text + (ptrdiff_t)id * SYMBOL;
        snprintf(text, SYMBOL, id > 0 ? "%d" : "<pad>", id);
        t->symbols[id] = text;
    }
    return RFA_OK;
}

static rfa_status open(void *task, const rfa_index *index, rfa_source *source, rfa_data_job *job)
{
    own_task *t = task;
    const bool ids = t->tables.found.ids;
    const int64_t text = 2 * t->max_length + 2, longest = t->tables.longest;
    t->reader = (rfa_own_reader){.index = index, .tables = &t->tables, .max_length = t->max_length};
    if (ids) {
        RFA_TRY(make_symbols(t));
    }
    rfa_data_class_names(t->names, &t->tables.labels.classes);
    *source = (rfa_source){.self = &t->reader,
                           .load = rfa_own_load,
                           .documents = t->tables.found.documents,
                           .classes = t->tables.labels.classes.count,
                           .capacity = (ptrdiff_t)t->max_length};
    *job = (rfa_data_job){
        .description = {.task = t->task,
                        .title = ids ? "Own data, sequences of token ids"
                                     : "Own data, texts byte by byte",
                        .vocabulary = ids ? t->symbols : rfa_byte_symbols(),
                        .symbols = ids ? t->vocabulary : RFA_BYTE_SYMBOLS,
                        .classes = source->classes,
                        .documents = source->documents,
                        .first_id = ids ? 0 : 1},
        .origin_name = "line",
        .class_names = t->names,
        .part = 512,
        .recipe = rfa_data_recipe(index, "own 1 %lld %d", (long long)t->max_length, (int)ids),
        .attributes = write_attributes,
    };
    return rfa_alloc(&t->reader.buffer, text > longest ? text : longest, 1, "text of a file");
}

static void close(void *task)
{
    own_task *t = task;
    rfa_bytes_close(&t->reader.bytes);
    rfa_free(t->reader.buffer);
    rfa_free(t->symbols);
    rfa_free(t->symbol_text);
    t->reader.buffer = NULL;
    t->symbols = NULL;
    t->symbol_text = NULL;
}

rfa_status rfa_data_own(const rfa_comm *world, int argc, char **argv)
{
    static const rfa_data_course course = {
        .parser = &parser, .size = sizeof(own_task), .list = list, .open = open, .close = close};
    own_task *t = NULL;
    RFA_TRY(rfa_agree(world, rfa_alloc(&t, 1, sizeof *t, "own task")));
    memcpy(t->common.out, "data/own.h5", sizeof "data/own.h5");
    memcpy(t->val, "last10%", sizeof "last10%");
    memcpy(t->test, "last10%", sizeof "last10%");
    memcpy(t->task, "own", sizeof "own");
    const rfa_status status = rfa_data_run(world, &course, t, argc, argv);
    rfa_free(t);
    return status;
}
