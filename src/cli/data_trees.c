#include "base/mem.h"
#include "cli/data_listops.h"
#include "cli/data_make.h"
#include "tasks/listops_trees.h"

static rfa_status write_attributes(const void *self, rfa_dataset_writer *writer)
{
    const rfa_data_listops *o = self;
    RFA_TRY(rfa_dataset_writer_text(writer, "source", o->common.from));
    RFA_TRY(rfa_dataset_writer_text(writer, "generator", "labelled trees"));
    return rfa_dataset_writer_text(writer, "validation", o->validation);
}

static rfa_status make(const rfa_comm *world,
                       const rfa_data_listops *options,
                       const rfa_index *index,
                       rfa_listops_trees_reader *reader)
{
    rfa_source source = {.self = reader,
                         .load = rfa_listops_trees_load,
                         .documents = 1,
                         .classes = RFA_LISTOPS_CLASSES,
                         .capacity = rfa_listops_trees_symbols(reader->longest)};
    for (int s = 0; s < RFA_SPLITS; s++) {
        source.examples[s] = rfa_index_examples(index, s);
    }
    const rfa_data_job job = {
        .options = &options->common,
        .description = rfa_data_listops_description(),
        .origin_name = "line",
        .part = 1024,
        .recipe = rfa_data_recipe(index, "listops trees 1"),
        .index = index,
        .attributes = write_attributes,
        .self = options,
    };
    return rfa_data_make(world, &job, &source);
}

rfa_status rfa_data_listops_trees(const rfa_comm *world, const rfa_data_listops *options)
{
    rfa_index index = {0};
    rfa_listops_trees_reader reader = {.index = &index};
    int percent = 0;
    rfa_status status = rfa_data_validation(&percent, options->validation);
    if (status == RFA_OK && world->rank == 0) {
        status = rfa_listops_trees_list(&index, &reader.longest, options->common.from, percent);
    }
    status = rfa_agree(world, status);
    if (status == RFA_OK) {
        MPI_Bcast(&reader.longest, 1, MPI_INT64_T, 0, world->comm);
        status = rfa_data_share_index(world, &index);
    }
    if (status == RFA_OK) {
        status = rfa_agree(world, rfa_alloc(&reader.text, reader.longest + 1, 1, "tree"));
    }
    if (status == RFA_OK) {
        status = make(world, options, &index, &reader);
    }
    rfa_bytes_close(&reader.bytes);
    rfa_free(reader.text);
    rfa_index_destroy(&index);
    return status;
}
