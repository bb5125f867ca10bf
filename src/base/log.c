#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static ats_log_level log_level = ATS_LOG_NORMAL;

void ats_log_set_level(ats_log_level level) { log_level = level; }
ats_log_level ats_log_get_level(void) { return log_level; }

static ats_log_sink log_sink;

void ats_log_set_sink(ats_log_sink sink) { log_sink = sink; }
bool ats_log_has_sink(void) { return log_sink != NULL; }

static void tell(const char *level, const char *prefix, const char *fmt, va_list args)
{
    char line[ATS_ERR_TEXT];
    vsnprintf(line, sizeof line, fmt, args);
    if (log_sink != NULL)
        log_sink(&(ats_log_record){.level = level, .event = "message", .message = line});
    else
        fprintf(stderr, "%s%s\n", prefix, line);
}

#define TELL_AT(wanted, level, prefix)                                                             \
    do {                                                                                           \
        if (log_level < (wanted)) return;                                                          \
        va_list args;                                                                              \
        va_start(args, fmt);                                                                       \
        tell(level, prefix, fmt, args);                                                            \
        va_end(args);                                                                              \
    } while (0)

void ats_warn(const char *fmt, ...) { TELL_AT(ATS_LOG_NORMAL, "warning", "warning: "); }
void ats_info(const char *fmt, ...) { TELL_AT(ATS_LOG_NORMAL, "info", ""); }
void ats_verbose(const char *fmt, ...) { TELL_AT(ATS_LOG_VERBOSE, "debug", ""); }

void ats_event(const char *event, const ats_log_field *fields, int64_t n_fields, const char *fmt,
               ...)
{
    char line[ATS_ERR_TEXT];
    va_list args;
    if (log_sink == NULL || log_level < ATS_LOG_NORMAL) return;
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    log_sink(&(ats_log_record){"info", event, line, fields, n_fields});
}

void ats_log_failure(const char *code, const char *prefix, const char *sentence)
{
    const ats_log_field field = {.key = "code", .text = code};
    if (log_sink != NULL)
        log_sink(&(ats_log_record){"error", "error", sentence, &field, code != NULL});
    else
        fprintf(stderr, "%s%s\n", prefix, sentence);
}

double ats_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void tell_progress(int64_t done, int64_t total, const char *what, double rate, double left)
{
    char line[160];
    const ats_log_field fields[] = {{.key = "done", .number = (double)done},
                                    {.key = "total", .number = (double)total},
                                    {.key = "unit", .text = what},
                                    {.key = "per_second", .number = rate},
                                    {.key = "seconds_left", .number = left}};
    snprintf(line, sizeof line, "%lld of %lld %s", (long long)done, (long long)total, what);
    log_sink(&(ats_log_record){"info", "progress", line, fields, sizeof fields / sizeof *fields});
}

void ats_progress(int64_t done, int64_t total, const char *what, const char *note)
{
    static double started, printed;
    static bool open_line;
    if (log_level < ATS_LOG_NORMAL) return;
    const bool terminal = log_sink == NULL && isatty(STDERR_FILENO) != 0;
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
    if (log_sink != NULL) {
        tell_progress(done, total, what, rate, left);
        return;
    }
    fprintf(stderr, "%s%lld of %lld %s, %.0f/s, %.0f s left%s%s%s", terminal ? "\r" : "",
            (long long)done, (long long)total, what, rate, left, note[0] ? ", " : "", note,
            terminal ? "\033[K" : "\n");
    fflush(stderr);
    open_line = true;
}
