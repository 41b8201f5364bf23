// What the files of the run's record share; nothing for other rooms.
#ifndef RFA_STORAGE_RUNFILE_PARTS_H
#define RFA_STORAGE_RUNFILE_PARTS_H

#include "storage/columns.h"
#include "storage/runfile.h"

#include <hdf5.h>
#include <sys/types.h>

#define RFA_RUN_SCHEMA "rfa run 1"

enum { RFA_RUN_ID = 17 }; // 16 hex digits: the nanosecond at which the record was created

struct rfa_run {
    rfa_run_view view;       // all that is known; arrays have room as rfa_rows_reserve says
    char *path, *lines_path; // RUN.h5, RUN.jsonl
    char id[RFA_RUN_ID];
    int lines;         // descriptor of RUN.jsonl, locked; -1: none
    off_t length;      // of RUN.jsonl: whole lines
    bool stale;        // the first write removes the checkpoints of the run that it replaces
    rfa_status broken; // what a set function could not do
};

// *out = path without ".h5", then suffix; rfa_free(*out).
RFA_NODISCARD rfa_status rfa_run_beside(char **out, const char *path, const char *suffix);

// Copies text, of rfa_alloc.
RFA_NODISCARD rfa_status rfa_text_copy(char **out, const char *text);

// Makes room for one more row in *rows, an array of count elements whose capacity is the next power
// of two from 16. *(void **)rows may be NULL when count is 0.
RFA_NODISCARD rfa_status rfa_rows_reserve(void *rows, int64_t count, size_t size);
// Allocates rows with that capacity.
RFA_NODISCARD rfa_status rfa_rows_alloc(void *rows, int64_t count, size_t size);

// Views in the making: each row once. Steps must come in order: a step that is there is skipped; an
// evaluation of the same step and split, and the test, are replaced. Confusions are copied.
RFA_NODISCARD rfa_status rfa_view_add_start(rfa_run_view *view, const rfa_start_record *record);
RFA_NODISCARD rfa_status rfa_view_add_step(rfa_run_view *view, const rfa_step_record *record);
RFA_NODISCARD rfa_status rfa_view_add_evaluation(rfa_run_view *view,
                                                 const rfa_evaluation_record *record);
RFA_NODISCARD rfa_status rfa_view_set_test(rfa_run_view *view, const rfa_evaluation_record *record);
// Drops what comes after step.
void rfa_view_trim(rfa_run_view *view, int64_t step);

// Lines of RUN.jsonl. Each is written into *line (rfa_free), newline included.
typedef enum { RFA_LINE_STEP, RFA_LINE_EVALUATION, RFA_LINE_TEST } rfa_line_kind;
RFA_NODISCARD rfa_status rfa_line_evaluation(char **line,
                                             const rfa_evaluation_record *record,
                                             rfa_line_kind kind,
                                             const char *id);
enum { RFA_LINE_STEP_SIZE = 1024 };
int rfa_line_step(char line[RFA_LINE_STEP_SIZE], const rfa_step_record *record, const char *id);

// Adds the lines of the newest run in the file at path (which may be missing) to view, when that
// run is the one of id or newer; newer than a given id, the view is emptied first. id ("" when
// there is no file) becomes that of the view. Local.
RFA_NODISCARD rfa_status rfa_lines_merge(rfa_run_view *view,
                                         char id[RFA_RUN_ID],
                                         const char *path,
                                         const char *file);

// RUN.h5 into an empty view.
RFA_NODISCARD rfa_status rfa_run_read_file(rfa_run_view *view,
                                           char id[RFA_RUN_ID],
                                           const char *path);

// RUN.h5 and its lines, as rfa_run_read, with the id of the run.
RFA_NODISCARD rfa_status rfa_run_load(rfa_run_view *view, char id[RFA_RUN_ID], const char *path);

// Attributes of an object; DIMENSION_LIST and the like included, as text.
RFA_NODISCARD rfa_status rfa_h5_read_attributes(rfa_attributes *list,
                                                hid_t object,
                                                const char *path);
RFA_NODISCARD rfa_status rfa_h5_write_attributes(hid_t object,
                                                 const char *path,
                                                 const rfa_attributes *list);

// Group config of a file: attribute text, and one attribute a key.
RFA_NODISCARD rfa_status rfa_h5_write_config(hid_t file, const char *path, const char *text);

#endif
