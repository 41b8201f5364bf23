// What people read on stderr: notes from rank 0, warnings from any rank, one progress line.
#ifndef RFA_BASE_LOG_H
#define RFA_BASE_LOG_H

#include "base/comm.h"

#include <stdbool.h>

// Says who speaks; called once after MPI_Init. Before it, this process is rank 0 of 1.
void rfa_log_init(const rfa_comm *world);

void rfa_note(const char *format, ...) __attribute__((format(printf, 1, 2))); // rank 0 only
void rfa_warn(const char *format, ...) __attribute__((format(printf, 1, 2))); // any rank
void rfa_error_line(const char *text); // rank 0: "rfa: error: text"

// Result lines on stdout, rank 0 only, flushed at once.
void rfa_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

// A status that replaces itself on a terminal; elsewhere a plain line at most every 10 seconds.
// final always prints and ends the line. Rank 0 only.
void rfa_progress(bool final, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Seconds since an arbitrary start, monotonic.
double rfa_now(void);

// Writes seconds as "42 s", "12:07" or "3:04:05" into text and returns it.
const char *rfa_duration(char text[32], double seconds);

#endif
