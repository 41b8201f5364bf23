// Status codes, the text of the last error, and agreement of all ranks on one outcome.
//
// The one rule: between two collectives a rank may fail only into a local status; the next thing
// that all ranks do is rfa_agree. Nobody waits for a rank that has left.
#ifndef RFA_BASE_STATUS_H
#define RFA_BASE_STATUS_H

#include "base/comm.h"

#define RFA_NODISCARD __attribute__((warn_unused_result))

// Also the exit codes of the program.
typedef enum {
    RFA_OK = 0,
    RFA_ERR_INTERNAL = 1,
    RFA_ERR_USAGE = 2,   // wrong key, option, configuration or combination
    RFA_ERR_IO = 3,      // file missing, damaged, of the wrong kind, or disk full
    RFA_ERR_MEMORY = 4,  // out of memory
    RFA_ERR_NUMERIC = 5, // diverged: NaN, Inf, or a gradient beyond the range of the exact sums
    RFA_STOPPED = 85,    // stopped before the end, and resumable
} rfa_status;

// Records one line of text as this thread's error and returns the code. Local.
RFA_NODISCARD rfa_status rfa_fail(rfa_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Puts "text: " before the recorded error, and returns the code. Local.
RFA_NODISCARD rfa_status rfa_fail_within(rfa_status code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

const char *rfa_error_text(void);

// Tells which rank of the whole program this is, for texts and faults; called once after MPI_Init.
void rfa_status_init(const rfa_comm *world);

// All ranks return the status of the lowest rank that failed, RFA_OK when none did; its text
// becomes the text of all, with "rank R: " in front when there are several. Collective; one 4-byte
// reduction, and a broadcast only after a failure.
RFA_NODISCARD rfa_status rfa_agree(const rfa_comm *comm, rfa_status local);

// Returns from the calling function on failure. Only where nothing is held.
#define RFA_TRY(call)                                                                              \
    do {                                                                                           \
        const rfa_status try_status_ = (call);                                                     \
        if (try_status_ != RFA_OK) {                                                               \
            return try_status_;                                                                    \
        }                                                                                          \
    } while (0)

// A broken contract is our bug: prints rank, file and line, and aborts all ranks.
void rfa_contract_broken(const char *text, const char *file, int line) __attribute__((noreturn));
#define RFA_ASSERT(condition)                                                                      \
    ((condition) ? (void)0 : rfa_contract_broken(#condition, __FILE__, __LINE__))

// Fault injection for tests: fails with code when the environment holds RFA_FAULT=point@rank.
RFA_NODISCARD rfa_status rfa_fault(const char *point, const rfa_comm *comm, rfa_status code);

#endif
