// The results of rfa bench as HDF5, written once, whole, under a temporary name.
//
//   /             attributes: schema, written, and those of the caller
//   /config       attribute text: the resolved configuration, and one attribute per key
//   /row          [n] scale of all columns
//   /results/...  [n] numbers and texts: what was measured
//   /parameters/... [n] integers: what it was measured of, -1 where a case has no such parameter
// Every column has units and long_name; strings are UTF-8.
#ifndef RFA_STORAGE_BENCHFILE_H
#define RFA_STORAGE_BENCHFILE_H

#include "storage/attributes.h"

typedef struct {
    const char *name, *units, *long_name;
    const double *numbers;    // [rows]; NULL: texts
    const char *const *texts; // [rows]
    bool parameter;           // of group parameters, whole numbers
    bool whole;               // stored as int64
} rfa_bench_column;

// RFA_ERR_USAGE when path does not end in .h5 or is there already, RFA_ERR_IO when nothing can be
// written beside it. To be asked before anything is measured. Local.
RFA_NODISCARD rfa_status rfa_benchfile_check(const char *path);

// RFA_ERR_IO. Local.
RFA_NODISCARD rfa_status rfa_benchfile_write(const char *path,
                                             const rfa_attributes *attributes,
                                             const char *config_text,
                                             const rfa_bench_column *columns,
                                             int count,
                                             int64_t rows);

// What a file says of each case, in its order.
typedef struct {
    int64_t rows;
    char **cases, **variants, **phases; // [rows]
    double *median;                     // [rows] seconds
} rfa_bench_view;

// RFA_ERR_IO; nothing is held then. Local.
RFA_NODISCARD rfa_status rfa_benchfile_read(rfa_bench_view *view, const char *path);
void rfa_bench_view_free(rfa_bench_view *view); // idempotent

#endif
