#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static ats_log_level log_level = ATS_LOG_NORMAL;

void ats_log_set_level(ats_log_level level) { log_level = level; }
ats_log_level ats_log_get_level(void) { return log_level; }

static void print_line(const char *prefix, const char *fmt, va_list args)
{
    char line[ATS_ERR_TEXT];
    vsnprintf(line, sizeof line, fmt, args);
    fprintf(stderr, "%s%s\n", prefix, line);
}

#define PRINT_AT(wanted, prefix)                                                       \
    do {                                                                               \
        if (log_level < (wanted)) return;                                              \
        va_list args;                                                                  \
        va_start(args, fmt);                                                           \
        print_line(prefix, fmt, args);                                                 \
        va_end(args);                                                                  \
    } while (0)

void ats_warn(const char *fmt, ...) { PRINT_AT(ATS_LOG_NORMAL, "warning: "); }
void ats_info(const char *fmt, ...) { PRINT_AT(ATS_LOG_NORMAL, ""); }
void ats_verbose(const char *fmt, ...) { PRINT_AT(ATS_LOG_VERBOSE, ""); }

double ats_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ats_progress(int64_t done, int64_t total, const char *what, const char *note)
{
    static double started, printed;
    static bool open_line;
    if (log_level < ATS_LOG_NORMAL) return;
    const bool terminal = isatty(STDERR_FILENO) != 0;
    const double now = ats_clock();
    if (total == 0) {
        if (open_line && terminal) fputs("\r\033[K", stderr);
        open_line = false;
        started = printed = 0;
        return;
    }
    if (started == 0) started = printed = now;
    if (now - printed < (terminal ? 0.1 : 30.0)) return;
    printed = now;
    const double rate = (double)done / (now - started + 1e-9);
    const double left = rate > 0 ? (double)(total - done) / rate : 0;
    fprintf(stderr, "%s%lld of %lld %s, %.0f/s, %.0f s left%s%s%s", terminal ? "\r" : "",
            (long long)done, (long long)total, what, rate, left, note[0] ? ", " : "", note,
            terminal ? "\033[K" : "\n");
    fflush(stderr);
    open_line = true;
}
