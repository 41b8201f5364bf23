#include "base/status.h"

#include "base/profile.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_SIZE = 1024 };

static _Thread_local char error_text[TEXT_SIZE];
static int world_rank = -1; // unknown: the communicator's rank will do

void rfa_status_init(const rfa_comm *world)
{
    world_rank = world->rank;
}

static int named_rank(const rfa_comm *comm)
{
    return world_rank >= 0 ? world_rank : comm->rank;
}

// One error is one line, whatever a library's message holds.
static void flatten(char *text)
{
    for (; *text; text++) {
        if (*text == '\n' || *text == '\r') {
            *text = ' ';
        }
    }
}

rfa_status rfa_fail(rfa_status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error_text, sizeof error_text, format, args);
    va_end(args);
    flatten(error_text);
    return code;
}

rfa_status rfa_fail_within(rfa_status code, const char *format, ...)
{
    char before[TEXT_SIZE], inner[TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(before, sizeof before, format, args);
    va_end(args);
    memcpy(inner, error_text, sizeof inner);
    // The frame must not push the cause out of the line.
    snprintf(error_text, sizeof error_text, "%.400s: %.600s", before, inner);
    flatten(error_text);
    return code;
}

const char *rfa_error_text(void)
{
    return error_text;
}

rfa_status rfa_agree(const rfa_comm *comm, rfa_status local)
{
    RFA_PROFILE(RFA_PHASE_AGREE);
    int failing = local == RFA_OK ? INT_MAX : comm->rank;
    MPI_Allreduce(MPI_IN_PLACE, &failing, 1, MPI_INT, MPI_MIN, comm->comm);
    if (failing == INT_MAX) {
        return RFA_OK;
    }
    int code = (int)local;
    // A wrong key or option is nobody's fault in particular.
    if (failing == comm->rank && comm->size > 1 && local != RFA_ERR_USAGE &&
        strncmp(error_text, "rank ", 5) != 0) {
        char inner[TEXT_SIZE];
        memcpy(inner, error_text, sizeof inner);
        snprintf(error_text, sizeof error_text, "rank %d: %.1000s", named_rank(comm), inner);
    }
    MPI_Bcast(&code, 1, MPI_INT, failing, comm->comm);
    MPI_Bcast(error_text, TEXT_SIZE, MPI_CHAR, failing, comm->comm);
    return (rfa_status)code;
}

void rfa_contract_broken(const char *text, const char *file, int line)
{
    int rank = 0, initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    fprintf(stderr, "rfa: bug: rank %d: %s:%d: %s does not hold\n", rank, file, line, text);
    fflush(stderr);
    if (initialized) {
        MPI_Abort(MPI_COMM_WORLD, RFA_ERR_INTERNAL);
    }
    abort();
}

rfa_status rfa_fault(const char *point, const rfa_comm *comm, rfa_status code)
{
    const char *wanted = getenv("RFA_FAULT");
    if (!wanted) {
        return RFA_OK;
    }
    const char *at = strchr(wanted, '@');
    const size_t length = at ? (size_t)(at - wanted) : strlen(wanted);
    const long rank = at ? strtol(at + 1, NULL, 10) : 0;
    if (length != strlen(point) || strncmp(point, wanted, length) != 0 ||
        rank != named_rank(comm)) {
        return RFA_OK;
    }
    return rfa_fail(code, "injected fault at %s", point);
}
