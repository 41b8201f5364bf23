#include "storage/benchfile.h"
#include "storage/h5.h"

#include "base/mem.h"

static rfa_status
read_texts(char ***out, hid_t results, const char *path, const char *name, int64_t rows)
{
    int64_t count = 0;
    RFA_TRY(rfa_h5_read_texts(results, path, name, out, &count));
    return count == rows ? RFA_OK
                         : rfa_fail(RFA_ERR_IO, "%s: damaged: columns of other lengths", path);
}

static rfa_status
read_numbers(double **out, hid_t results, const char *path, const char *name, int64_t *rows)
{
    hsize_t shape[1] = {0};
    hid_t dataset = H5I_INVALID_HID;
    RFA_TRY(rfa_h5_open_array(&dataset, results, path, name, H5T_FLOAT, 1, shape));
    rfa_status status = RFA_OK;
    if (*rows >= 0 && *rows != (int64_t)shape[0]) {
        status = rfa_fail(RFA_ERR_IO, "%s: damaged: columns of other lengths", path);
    }
    *rows = (int64_t)shape[0];
    if (status == RFA_OK) {
        status = rfa_alloc(out, (ptrdiff_t)shape[0], sizeof **out, "results");
    }
    if (status == RFA_OK) {
        status = rfa_h5_read_array(dataset, path, H5T_NATIVE_DOUBLE, *out);
    }
    rfa_h5_close(&dataset);
    return status;
}

rfa_status rfa_benchfile_read(rfa_bench_view *view, const char *path)
{
    hid_t file = H5I_INVALID_HID, results = H5I_INVALID_HID;
    *view = (rfa_bench_view){.rows = -1};
    rfa_status status = rfa_h5_open(&file, path);
    if (status == RFA_OK) {
        status = rfa_h5_open_group(&results, file, path, "results");
    }
    if (status == RFA_OK) {
        status = read_numbers(&view->median, results, path, "median_seconds", &view->rows);
    }
    if (status == RFA_OK) {
        status = read_texts(&view->cases, results, path, "case", view->rows);
    }
    if (status == RFA_OK) {
        status = read_texts(&view->variants, results, path, "variant", view->rows);
    }
    if (status == RFA_OK) {
        status = read_texts(&view->phases, results, path, "phase", view->rows);
    }
    rfa_h5_close(&results);
    rfa_h5_close(&file);
    if (status != RFA_OK) {
        rfa_bench_view_free(view);
    }
    return status;
}

void rfa_bench_view_free(rfa_bench_view *view)
{
    rfa_free(view->cases);
    rfa_free(view->variants);
    rfa_free(view->phases);
    rfa_free(view->median);
    *view = (rfa_bench_view){0};
}
