#include "base/log.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    int rank, size;
    bool line_open;
    double last;
} log_state = {.size = 1, .last = -1e9};

void rfa_log_init(const rfa_comm *world)
{
    log_state.rank = world->rank;
    log_state.size = world->size;
}

// One write per line, so that lines of several ranks do not mix.
static void put(FILE *stream, const char *prefix, const char *end, const char *format, va_list args)
{
    char text[2048];
    vsnprintf(text, sizeof text, format, args);
    if (log_state.line_open && stream == stderr && strcmp(end, "\n") == 0 && prefix[0] != '\r') {
        fputc('\n', stderr);
        log_state.line_open = false;
    }
    fprintf(stream, "%s%s%s", prefix, text, end);
    fflush(stream);
}

void rfa_note(const char *format, ...)
{
    if (log_state.rank == 0) {
        va_list args;
        va_start(args, format);
        put(stderr, "", "\n", format, args);
        va_end(args);
    }
}

void rfa_warn(const char *format, ...)
{
    char prefix[64] = "rfa: warning: ";
    if (log_state.size > 1) {
        snprintf(prefix, sizeof prefix, "rfa: warning: rank %d: ", log_state.rank);
    }
    va_list args;
    va_start(args, format);
    put(stderr, prefix, "\n", format, args);
    va_end(args);
}

void rfa_error_line(const char *text)
{
    if (log_state.rank == 0) {
        if (log_state.line_open) {
            fputc('\n', stderr);
            log_state.line_open = false;
        }
        fprintf(stderr, "rfa: error: %s\n", text);
        fflush(stderr);
    }
}

void rfa_print(const char *format, ...)
{
    if (log_state.rank == 0) {
        va_list args;
        va_start(args, format);
        put(stdout, "", "\n", format, args);
        va_end(args);
    }
}

void rfa_progress(bool final, const char *format, ...)
{
    if (log_state.rank != 0) {
        return;
    }
    const bool terminal = isatty(STDERR_FILENO);
    const double now = rfa_now(), gap = terminal ? 0.1 : 10.0;
    if (!final && now - log_state.last < gap) {
        return;
    }
    log_state.last = now;
    va_list args;
    va_start(args, format);
    if (terminal) {
        put(stderr, "\r\033[K", final ? "\n" : "", format, args);
        log_state.line_open = !final;
    } else {
        put(stderr, "", "\n", format, args);
    }
    va_end(args);
}

double rfa_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const char *rfa_duration(char text[32], double seconds)
{
    if (!(seconds >= 0) || seconds > 1e9) {
        snprintf(text, 32, "?");
        return text;
    }
    const long s = lround(seconds);
    if (s < 60) {
        snprintf(text, 32, "%ld s", s);
    } else if (s < 3600) {
        snprintf(text, 32, "%ld:%02ld", s / 60, s % 60);
    } else {
        snprintf(text, 32, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    }
    return text;
}
