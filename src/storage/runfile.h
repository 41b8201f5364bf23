// The record of a run: RUN.h5, written whole by rank 0 under a temporary name, fsynced and renamed
// at each evaluation, and RUN.jsonl beside it, one line a step or evaluation since then, appended
// at once. Lines that the file holds already are skipped by the reader, and so is a torn last one.
//
//   /             attributes: schema, state (running, finished, stopped, diverged), run (when it
//                 was created, nanoseconds since 1970 in hex: lines carry it too), written,
//                 provenance
//   /config       attribute text: the resolved configuration, and one attribute per key
//   /class        [classes]: scale of the confusion matrices
//   /starts/{step,ranks,threads,sgemm_flops_per_second} [s], /starts/{started,commit,hosts} [s]
//   texts:
//                 each start of the program, by how many steps were done before it
//   /steps/{step,loss,learning_rate,gradient_norm,tokens_per_second,exchange_wait,seconds,guards}
//                 [n]; /steps/digest [n] uint64: of the parameters after the step
//   /evaluations/{step,loss,correct,examples,accuracy,accuracy_low,accuracy_high,macro_f1,majority}
//                 [m], /evaluations/split [m] strings, /evaluations/confusion
//                 [m][classes][classes]: rows true, columns predicted; base/metrics.h
//   /test         the final result, same fields with m = 1, when there is one
//   /profile/{order,seconds,seconds_least,seconds_most,share,flops,flops_least,flops_most} [p],
//   /profile/phase [p] strings: where the time of the newest profiled start's steps went
// Every array has a dimension scale (step) and units; strings are UTF-8, flags h5py booleans.
#ifndef RFA_STORAGE_RUNFILE_H
#define RFA_STORAGE_RUNFILE_H

#include "base/status.h"
#include "storage/attributes.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int64_t step;             // 1-based: after how many optimiser steps
    double loss;              // mean over the batch, nats
    double learning_rate;     // that the step used
    double gradient_norm;     // global L2, before clipping
    double tokens_per_second; // valid tokens of the step, all ranks
    double exchange_wait;     // seconds in the exchange, maximum over ranks
    double seconds;           // of the step
    int64_t guards;           // clamped denominators
    uint64_t digest;          // of the parameters after the step
} rfa_step_record;

typedef struct {
    int64_t step;
    char split[16];
    double loss;
    int64_t correct, examples;
    int classes;
    const int64_t *confusion; // [classes][classes], rows true, borrowed for the call; NULL: none,
                              // with classes 0
} rfa_evaluation_record;

// The program was started, for the first time or to go on.
typedef struct {
    int64_t step;                  // steps done before
    int64_t ranks, threads;        // threads a rank
    double sgemm_flops_per_second; // measured, of all ranks and threads together
    char started[24];              // UTC, "2025-01-31T12:00:00Z"
    char commit[64];
    char hosts[1024]; // each once: "node1 node2"
} rfa_start_record;

// A phase of all profiled steps together: mean, least and greatest over ranks.
typedef struct {
    int64_t order;                               // of the phases, from 0
    double seconds, seconds_least, seconds_most; // of all threads of a rank, other phases excluded
    double share;                                // of the time of all ranks and threads
    double flops, flops_least, flops_most;       // of matrix products, of a rank
    char phase[24];
} rfa_phase_record;

typedef struct rfa_run rfa_run; // opaque; rank 0 only. All functions are local and never throw a
                                // run away: the former file stands until the new one is complete.

// Starts a record at path (RUN.h5) and makes its folder. config_text: canonical YAML. resume_step <
// 0 starts afresh: an existing record or checkpoint is RFA_ERR_USAGE unless overwrite, and then
// stands until the first rfa_run_write, which also removes the checkpoints of the former run.
// Otherwise the file and its .jsonl are read back, rows and results after resume_step are dropped,
// and RUN.h5 is written. A second writer of the same record is RFA_ERR_USAGE.
RFA_NODISCARD rfa_status rfa_run_create(
    rfa_run **out, const char *path, const char *config_text, int64_t resume_step, bool overwrite);
// Closes the .jsonl, and removes it when it is empty. NULL-safe.
void rfa_run_destroy(rfa_run **run);

// Root attributes, kept until written; a name that is there already gets the new value. A text of
// NULL is left out. Out of memory is reported by the next rfa_run_write.
void rfa_run_set_text(rfa_run *run, const char *name, const char *text);
void rfa_run_set_number(rfa_run *run, const char *name, double number); // whole: as int64
void rfa_run_set_flag(rfa_run *run, const char *name, bool flag);
void rfa_run_set_state(rfa_run *run, const char *state);

// Adds a start, kept until written; starts must not descend in step. RFA_ERR_MEMORY.
RFA_NODISCARD rfa_status rfa_run_add_start(rfa_run *run, const rfa_start_record *record);

// Sets the profile: count phases, copied, of the given number of steps, which becomes the attribute
// profile_steps; kept until written. RFA_ERR_MEMORY.
RFA_NODISCARD rfa_status rfa_run_set_profile(rfa_run *run,
                                             const rfa_phase_record *phases,
                                             int64_t count,
                                             int64_t steps);

// How many steps are on record, over all starts; how long they took, and how many flops sgemm would
// have done in that time, at the rate of each step's own start. Cost: linear in the steps.
int64_t rfa_run_work(const rfa_run *run, double *seconds, double *sgemm_flops);

// Each appends one line to the .jsonl by one write: RFA_ERR_IO when that fails, without a torn
// line. Steps must ascend. An evaluation of the same step and split is replaced. Constant cost.
RFA_NODISCARD rfa_status rfa_run_add_step(rfa_run *run, const rfa_step_record *record);
RFA_NODISCARD rfa_status rfa_run_add_evaluation(rfa_run *run, const rfa_evaluation_record *record);
RFA_NODISCARD rfa_status rfa_run_set_test(rfa_run *run, const rfa_evaluation_record *record);

// Writes RUN.h5 whole: temporary name, flush, close, fsync, rename, fsync of the directory; then
// empties the .jsonl. On failure the former file and the .jsonl stand. Cost: linear in the rows.
RFA_NODISCARD rfa_status rfa_run_write(rfa_run *run);

// A run read back for inspect and tests: file and .jsonl merged, no step lost or doubled.
typedef struct {
    char *config_text, *state;
    int64_t starts, steps, evaluations, phases;
    rfa_start_record *start;
    rfa_step_record *step;
    rfa_phase_record *phase;
    rfa_evaluation_record *evaluation; // confusion owned here
    rfa_evaluation_record test;        // examples == 0: none
    rfa_attributes attributes;         // of the root
} rfa_run_view;
// RFA_ERR_IO when there is neither file nor line, or the file is damaged or of another kind. A file
// of an older run than the lines, or the other way, is left out with a warning. Local.
RFA_NODISCARD rfa_status rfa_run_read(rfa_run_view *view, const char *path);
void rfa_run_view_free(rfa_run_view *view); // idempotent

// A phase as a row of a table, under its head. False, and no row, for a phase that never came up.
enum { RFA_PHASE_ROW = 160 };
extern const char rfa_phase_head[];
bool rfa_phase_row(char text[RFA_PHASE_ROW], const rfa_phase_record *record);

#endif
