#include "cli/blas.h"
#include "cli/doctor.h"
#include "storage/digest.h"
#include "storage/version.h"
#include "tensor/gemm.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Whether a text is the same on all ranks. Collective.
static bool same_everywhere(const rfa_comm *world, const char *text)
{
    const uint64_t digest = rfa_digest(0, text, strlen(text));
    uint64_t ends[2] = {digest, ~digest};
    MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_UINT64_T, MPI_MIN, world->comm);
    return ends[0] == ~ends[1];
}

static void check_mpi(rfa_doctor *doctor)
{
    static const struct {
        int level;
        const char *name;
    } levels[] = {{MPI_THREAD_SINGLE, "single"},
                  {MPI_THREAD_FUNNELED, "funneled"},
                  {MPI_THREAD_SERIALIZED, "serialized"},
                  {MPI_THREAD_MULTIPLE, "multiple"}};
    char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    const char *thread = "?";
    int length = 0, version = 0, minor = 0, provided = 0;
    rfa_doctor_begin(doctor, "mpi");
    MPI_Get_library_version(library, &length);
    library[strcspn(library, ",\n")] = '\0';
    MPI_Get_version(&version, &minor);
    MPI_Query_thread(&provided);
    for (int i = 0; i < 4; i++) {
        thread = levels[i].level == provided ? levels[i].name : thread;
    }
    if (!same_everywhere(doctor->world, library)) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "mpi",
                        "ranks use different MPI libraries; rank 0: %s", library);
    } else {
        const bool good = provided >= MPI_THREAD_FUNNELED;
        rfa_doctor_line(doctor, good ? RFA_DOCTOR_OK : RFA_DOCTOR_FAIL, "mpi",
                        "%s, MPI %d.%d, thread level %s%s", library, version, minor, thread,
                        good ? "" : ": funneled is needed");
    }
}

static void check_hdf5(rfa_doctor *doctor)
{
    char version[64];
    rfa_doctor_begin(doctor, "hdf5");
    rfa_hdf5_version(version);
    const bool same = same_everywhere(doctor->world, version);
    rfa_doctor_line(doctor, same ? RFA_DOCTOR_OK : RFA_DOCTOR_FAIL, "hdf5", "%s%s", version,
                    same ? ", parallel" : " on rank 0, others elsewhere");
}

static void check_blas(rfa_doctor *doctor)
{
    const char *library = rfa_gemm_library(), *forced = getenv("OPENBLAS_CORETYPE");
    rfa_doctor_begin(doctor, "blas");
    int below = rfa_blas_is_below();
    MPI_Allreduce(MPI_IN_PLACE, &below, 1, MPI_INT, MPI_SUM, doctor->world->comm);
    char facts[256];
    snprintf(facts, sizeof facts, "%s, processor with %s", library, rfa_blas_processor());
    if (forced) {
        rfa_doctor_append(facts, sizeof facts, ", OPENBLAS_CORETYPE=%s", forced);
    }
    if (!same_everywhere(doctor->world, library)) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "blas",
                        "ranks have different libraries or kernels, so different bits: set "
                        "OPENBLAS_CORETYPE=Haswell on all; rank 0: %s",
                        facts);
    } else if (below > 0) {
        rfa_doctor_line(doctor, RFA_DOCTOR_WARN, "blas",
                        "%s: the kernel is not the best of %s (%s)", facts,
                        below == doctor->world->size ? "the processor" : "all processors",
                        forced ? "unset OPENBLAS_CORETYPE, unless old digests are to be met"
                               : "a newer OpenBLAS may know the processor");
    } else {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "blas", "%s", facts);
    }
}

static void check_products(rfa_doctor *doctor)
{
    enum { SIDE = 512 };
    const rfa_comm *world = doctor->world;
    rfa_doctor_begin(doctor, "gemm");
    rfa_status status = rfa_gemm_start() ? RFA_OK
                                         : rfa_fail(RFA_ERR_INTERNAL,
                                                    "%s computes wrong products: try "
                                                    "OPENBLAS_CORETYPE=Haswell",
                                                    rfa_gemm_library());
    if (status == RFA_OK) {
        status = rfa_fault("doctor.gemm", world, RFA_ERR_INTERNAL);
    }
    status = rfa_agree(world, status);
    if (status != RFA_OK) {
        rfa_doctor_line(doctor, RFA_DOCTOR_FAIL, "gemm", "%s", rfa_error_text());
        return;
    }
    MPI_Barrier(world->comm);
    const double rate = rfa_gemm_ceiling(SIDE);
    double most = rate;
    struct {
        double value;
        int rank;
    } least = {rate, world->rank};
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, world->comm);
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, world->comm);
    char rates[96];
    snprintf(rates, sizeof rates, "%.1f", most / 1e9);
    if (world->size > 1) {
        snprintf(rates, sizeof rates, "%.1f to %.1f", least.value / 1e9, most / 1e9);
    }
    if (least.value < most / 2) {
        rfa_doctor_line(doctor, RFA_DOCTOR_WARN, "gemm",
                        "products are right; sgemm %s GFLOP/s a rank: rank %d is slow, is its "
                        "machine shared?",
                        rates, least.rank);
    } else {
        rfa_doctor_line(doctor, RFA_DOCTOR_OK, "gemm",
                        "products are right; sgemm %s GFLOP/s a rank at best", rates);
    }
}

void rfa_doctor_compute(rfa_doctor *doctor)
{
    check_mpi(doctor);
    check_hdf5(doctor);
    check_blas(doctor);
    check_products(doctor);
}
