// Being asked to stop: by a signal to any one rank or the launcher, or by the end of the job's
// time.
#ifndef RFA_BASE_STOP_H
#define RFA_BASE_STOP_H

#include <stdbool.h>

// SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 from now on only ask for a stop. A second SIGINT ends the
// process at once, for people at a terminal. Local.
void rfa_stop_on_signals(void);

// "SIGUSR1", or NULL as long as nothing has come. Local.
const char *rfa_stop_signal(void);

// Seconds until this job must have ended: the nearest of SLURM_JOB_END_TIME and RFA_END_TIME (Unix
// seconds, from the environment) and of max_minutes (> 0) after start (rfa_now); infinity without
// any. Local.
double rfa_stop_time_left(double start, double max_minutes);

#endif
