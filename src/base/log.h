/* Log and progress on stderr. Levels: quiet (errors only), normal, verbose.
 * Progress is one rewritten line on a terminal and a line every 30 s elsewhere.
 * A sink, where one is set, gets every record in place of stderr, and events too, which text does
 * not show. Thread-safe, but for setting level and sink. stdout belongs to the commands. */
#ifndef ATS_BASE_LOG_H
#define ATS_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef enum ats_log_level { ATS_LOG_QUIET, ATS_LOG_NORMAL, ATS_LOG_VERBOSE } ats_log_level;

void ats_log_set_level(ats_log_level level);
ats_log_level ats_log_get_level(void);

typedef struct ats_log_field {
    const char *key;
    const char *text; /* NULL: a number */
    double number;
} ats_log_field;

typedef struct ats_log_record {
    const char *level; /* "error", "warning", "info", "debug" */
    const char *event; /* "message", "progress", "sample", ... */
    const char *message;
    const ats_log_field *fields; /* [n_fields] */
    int64_t n_fields;
} ats_log_record;

typedef void (*ats_log_sink)(const ats_log_record *record);
void ats_log_set_sink(ats_log_sink sink); /* NULL: text */
bool ats_log_has_sink(void);

/* Something for machines alone: a step that began or ended. Nothing without a sink. */
void ats_event(const char *event, const ats_log_field *fields, int64_t n_fields, const char *fmt,
               ...) ATS_PRINTF(4, 5);
/* A failure's sentence, whatever the level; code: its symbol, NULL: none. */
void ats_log_failure(const char *code, const char *prefix, const char *sentence);
void ats_warn(const char *fmt, ...) ATS_PRINTF(1, 2); /* "warning: ..." unless quiet */
void ats_info(const char *fmt, ...) ATS_PRINTF(1, 2); /* unless quiet */
void ats_verbose(const char *fmt, ...) ATS_PRINTF(1, 2);

/* what: unit of work ("cases"); note: free text after rate and ETA. total 0 clears the line. */
void ats_progress(int64_t done, int64_t total, const char *what, const char *note);

double ats_clock(void); /* seconds, monotonic */

#endif
