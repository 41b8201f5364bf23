#include "base/stop.h"

#include "base/log.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static volatile sig_atomic_t last_signal;

static void note_signal(int number)
{
    if (number == SIGINT && last_signal == SIGINT) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    last_signal = number;
}

void rfa_stop_on_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

const char *rfa_stop_signal(void)
{
    switch (last_signal) {
    case 0: return NULL;
    case SIGTERM: return "SIGTERM";
    case SIGINT: return "SIGINT";
    case SIGUSR1: return "SIGUSR1";
    default: return "SIGUSR2";
    }
}

// Unix seconds in an environment variable as seconds from now; infinity when it is unset or no
// number.
static double until(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    const double at = text ? strtod(text, &end) : 0;
    return text && end != text && *end == '\0' && at > 0 ? at - (double)time(NULL) : INFINITY;
}

double rfa_stop_time_left(double start, double max_minutes)
{
    const double own = max_minutes > 0 ? start + 60 * max_minutes - rfa_now() : INFINITY;
    return fmin(own, fmin(until("SLURM_JOB_END_TIME"), until("RFA_END_TIME")));
}
