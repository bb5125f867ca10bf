/* Log and progress on stderr. Levels: quiet (errors only), normal, verbose.
 * Progress is one rewritten line on a terminal and a line every 30 s elsewhere.
 * Thread-safe. stdout belongs to the commands. */
#ifndef ATS_BASE_LOG_H
#define ATS_BASE_LOG_H

#include <stdint.h>

#include "base/status.h"

typedef enum ats_log_level { ATS_LOG_QUIET, ATS_LOG_NORMAL, ATS_LOG_VERBOSE } ats_log_level;

void ats_log_set_level(ats_log_level level);
ats_log_level ats_log_get_level(void);
void ats_warn(const char *fmt, ...) ATS_PRINTF(1, 2); /* "warning: ..." unless quiet */
void ats_info(const char *fmt, ...) ATS_PRINTF(1, 2); /* unless quiet */
void ats_verbose(const char *fmt, ...) ATS_PRINTF(1, 2);

/* what: unit of work ("cases"); note: free text after rate and ETA. total 0 clears the line. */
void ats_progress(int64_t done, int64_t total, const char *what, const char *note);

double ats_clock(void); /* seconds, monotonic */

#endif
