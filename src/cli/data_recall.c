#include "base/mem.h"
#include "cli/data_run.h"
#include "tasks/recall.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 50000000, GENERATOR_VERSION = 1 }; // the latter counts up with other sequences

typedef struct {
    rfa_data_common common;
    char query[RFA_DATA_WORD];
    int64_t examples[RFA_SPLITS], seed;
    rfa_recall_options o;
    int *work;
    char *symbol_text;
    const char **symbols;
} recall_task;

#define COUNT(n) offsetof(recall_task, examples[n])
#define OPTION(name) offsetof(recall_task, o.name)

static const rfa_data_option options[] = {
    RFA_OPTION_OUT(recall_task, "data/recall.h5"),
    {"train", 0, RFA_OPTION_INT64, COUNT(0), 1, MOST, "N", "Training examples (100000)", 2, false},
    {"val", 0, RFA_OPTION_INT64, COUNT(1), 1, MOST, "N", "Validation examples (2000)", 2, false},
    {"test", 0, RFA_OPTION_INT64, COUNT(2), 1, MOST, "N", "Test examples (2000)", 2, false},
    {"seed", 0, RFA_OPTION_INT64, offsetof(recall_task, seed), 0, INT64_MAX, "S", "Seed (1)", 2,
     false},
    {"length", 0, RFA_OPTION_INT64, OPTION(length), 1, INT32_MAX, "N",
     "Tokens of a sequence, with the query (256)", 2, false},
    {"min-length", 0, RFA_OPTION_INT64, OPTION(min_length), 1, INT32_MAX, "N",
     "All lengths from this one up are as likely (that of --length)", 2, false},
    {"pairs", 0, RFA_OPTION_INT, OPTION(pairs), 0, INT32_MAX, "N",
     "Pairs of key and value in a sequence (8)", 2, false},
    {"keys", 0, RFA_OPTION_INT, OPTION(keys), 0, INT32_MAX, "N", "Different keys (32)", 2, false},
    {"values", 0, RFA_OPTION_INT, OPTION(values), 0, INT32_MAX, "N",
     "Different values, which are the classes (16)", 2, false},
    {"fillers", 0, RFA_OPTION_INT, OPTION(fillers), 0, INT32_MAX, "N",
     "Different tokens that stand between pairs and mean nothing (16)", 2, false},
    {"query", 0, RFA_OPTION_WORD, offsetof(recall_task, query), 0, 0, "WHERE",
     "first, last or both (both)", 2, false},
    RFA_OPTION_HELP(recall_task),
};

static const rfa_data_parser parser = {
    .task = "recall",
    .options = options,
    .count = sizeof options / sizeof *options,
    .text = "Writes a task of associative recall (Ba et al. 2016; Arora et al. 2024) as one HDF5 "
            "data set: pairs of a key and a value lie among fillers, the class is the value of the "
            "key that is asked for.\v"
            "Examples:\n"
            "  rfa data recall\n"
            "  rfa data recall --length 4096 --pairs 8 --out data/recall-4096.h5\n"
            "  rfa data recall --length 1024 --pairs 256 --keys 512 --query last\n"
            "\n"
            "A sequence with --query both, of 3 pairs and 4 fillers:\n"
            "  k7 ? f2 k1 v4 f0 k7 v9 k3 v4 f2 f1 ? k7     the class is 9\n"
            "The key that is asked for is the very first token with first, the very last\n"
            "with last, each with the mark ? inside; so a model that reads out at the first\n"
            "token takes first or both, a causal one that reads out at the last token last\n"
            "or both, and one that reads out the mean takes any. The keys of a sequence are\n"
            "different, each value and each place is as likely. To measure accuracy against\n"
            "length, make sets of several --length with the other options equal: they have\n"
            "the same symbols. Guessing is right 1 / values of the time, and taking any of\n"
            "the values that occur about 1 / pairs of it: only more than that is recall.\n"
            "\n"
            "No sequence is in two splits, as a hash of it says to which one it may belong;\n"
            "any that come twice in one are counted. The same bytes on any number of ranks;\n"
            "a call that was stopped goes on when it is repeated.",
};

static rfa_status list(void *task, rfa_index *index)
{
    static const char *const words[] = {"first", "last", "both"};
    recall_task *t = task;
    (void)index;
    int w = 0;
    while (strcmp(t->query, words[w]) != 0) {
        if (++w == 3) {
            return rfa_fail(RFA_ERR_USAGE, "--query '%s': first, last or both", t->query);
        }
    }
    t->o.query = (rfa_recall_query)w;
    t->o.seed = (uint64_t)t->seed;
    if (!rfa_data_given(&parser, &t->common, "min-length")) {
        t->o.min_length = t->o.length;
    }
    return rfa_recall_check(&t->o);
}

static rfa_status write_attributes(const void *self, rfa_dataset_writer *w)
{
    const recall_task *t = self;
    RFA_TRY(rfa_dataset_writer_text(w, "source", "generated"));
    RFA_TRY(rfa_dataset_writer_text(w, "generator", "rfa data recall"));
    RFA_TRY(rfa_dataset_writer_int(w, "generator_version", GENERATOR_VERSION));
    RFA_TRY(rfa_dataset_writer_int(w, "seed", t->seed));
    RFA_TRY(rfa_dataset_writer_int(w, "min_length", t->o.min_length));
    RFA_TRY(rfa_dataset_writer_int(w, "max_length", t->o.length));
    RFA_TRY(rfa_dataset_writer_int(w, "pairs", t->o.pairs));
    RFA_TRY(rfa_dataset_writer_int(w, "keys", t->o.keys));
    RFA_TRY(rfa_dataset_writer_int(w, "values", t->o.values));
    RFA_TRY(rfa_dataset_writer_int(w, "fillers", t->o.fillers));
    return rfa_dataset_writer_text(w, "query", t->query);
}

static rfa_status load(void *self, rfa_example *example, int split, int64_t index)
{
    const recall_task *t = self;
    return rfa_recall_draw(example, t->work, &t->o, split, index);
}

static rfa_status open(void *task, const rfa_index *index, rfa_source *source, rfa_data_job *job)
{
    recall_task *t = task;
    const rfa_recall_options *o = &t->o;
    const int symbols = rfa_recall_symbols(o);
    (void)index;
    RFA_TRY(rfa_alloc(&t->work, o->keys, sizeof *t->work, "keys"));
    RFA_TRY(rfa_alloc(&t->symbol_text, (ptrdiff_t)symbols * RFA_RECALL_SYMBOL, 1, "symbols"));
    RFA_TRY(rfa_alloc(&t->symbols, symbols, sizeof *t->symbols, "symbols"));
    rfa_recall_vocabulary(t->symbols, t->symbol_text, o);
    *source = (rfa_source){.self = t,
                           .load = load,
                           .documents = 1,
                           .classes = o->values,
                           .capacity = (ptrdiff_t)o->length};
    memcpy(source->examples, t->examples, sizeof source->examples);
    *job = (rfa_data_job){
        .description = {.task = "recall",
                        .title = "Associative recall: the value of a key",
                        .vocabulary = t->symbols,
                        .symbols = symbols,
                        .classes = o->values},
        .origin_name = "sequence",
        .class_names = t->symbols + symbols - o->values,
        .part = o->length > 16384 ? 64 : 1024,
        .recipe =
            rfa_data_recipe(NULL, "recall %d %lld %lld %lld %d %d %d %d %d", GENERATOR_VERSION,
                            (long long)t->seed, (long long)o->min_length, (long long)o->length,
                            o->pairs, o->keys, o->values, o->fillers, (int)o->query),
        .attributes = write_attributes,
    };
    return RFA_OK;
}

static void close(void *task)
{
    recall_task *t = task;
    rfa_free(t->work);
    rfa_free(t->symbol_text);
    rfa_free(t->symbols);
    t->work = NULL;
    t->symbol_text = NULL;
    t->symbols = NULL;
}

rfa_status rfa_data_recall(const rfa_comm *world, int argc, char **argv)
{
    static const rfa_data_course course = {.parser = &parser,
                                           .size = sizeof(recall_task),
                                           .generates = true,
                                           .list = list,
                                           .open = open,
                                           .close = close};
    recall_task *t = NULL;
    RFA_TRY(rfa_agree(world, rfa_alloc(&t, 1, sizeof *t, "recall task")));
    memcpy(t->common.out, "data/recall.h5", sizeof "data/recall.h5");
    memcpy(t->query, "both", sizeof "both");
    t->examples[0] = 100000;
    t->examples[1] = t->examples[2] = 2000;
    t->seed = 1;
    t->o = (rfa_recall_options){.length = 256, .pairs = 8, .keys = 32, .values = 16, .fillers = 16};
    const rfa_status status = rfa_data_run(world, &course, t, argc, argv);
    rfa_free(t);
    return status;
}
