/* Text that grows: for schema, reference and canonical documents.
 * Ownership: the characters live in the arena. The first failure stays in `rc`. */
#ifndef ATS_BASE_TEXT_H
#define ATS_BASE_TEXT_H

#include "base/arena.h"

typedef struct ats_text {
    ats_arena *arena;
    ats_err *err;
    ats_code rc;
    char *data; /* NUL-terminated once something was added */
    int64_t length, room;
} ats_text;

void ats_text_add(ats_text *text, const char *fmt, ...) ATS_PRINTF(2, 3);
/* A JSON string with its quotes; also a YAML double-quoted scalar. */
void ats_text_json(ats_text *text, const char *value);
/* A YAML scalar: plain where that is safe for every reader, else double-quoted. */
void ats_text_scalar(ats_text *text, const char *value);
/* A word of a POSIX shell: plain where that is safe, else in single quotes. */
void ats_text_shell(ats_text *text, const char *word);
/* The finished text, "" when nothing was added. */
ATS_MUST_CHECK ats_code ats_text_done(ats_text *text, const char **out);

#endif
