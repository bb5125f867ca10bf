/* JSON for machines: values, documents on stdout, and the log as one object a line on stderr.
 * Ownership: values are the caller's until they are packed or printed. */
#ifndef ATS_CLI_JSON_H
#define ATS_CLI_JSON_H

#include <jansson.h>

#include "base/status.h"

/* Prints a JSON document with a newline and releases it; value NULL: out of memory. */
ATS_MUST_CHECK ats_code ats_json_print(json_t *value, ats_err *err);
/* A number, or null where it is not finite. */
json_t *ats_json_real(double value);
/* A string; bytes that are no UTF-8, as file names may hold, become U+FFFD. NULL: null. */
json_t *ats_json_text(const char *value);
/* A copy without bytes that are no UTF-8; release with free; NULL: out of memory. */
char *ats_utf8(const char *value);

/* "text", "json" or NULL; anything else is refused. */
ATS_MUST_CHECK ats_code ats_log_format_set(const char *format, ats_err *err);
/* A line of its own with one object under a key; takes the value. Nothing in a text log. */
void ats_log_object(const char *event, const char *message, const char *key, json_t *value);

#endif
