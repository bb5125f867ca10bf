/* Errors of one document, collected so that a user sees all of them in one run.
 *
 * Each has a place in a source, a stable code and a sentence; the report prints
 * `file:line:col: error: sentence [code]`, the source line and a caret, sorted by place.
 * Ownership: sources live in the arena of whoever read them; issues are a plain value. */
#ifndef ATS_YAML_ISSUE_H
#define ATS_YAML_ISSUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct ats_source {
    const char *name; /* path, or what the text is ("--set seed") */
    const char *text; /* [size], byte-order mark already taken off */
    int64_t size;     /* bytes */
    int64_t n_lines;
    const int64_t *line_start; /* [n_lines + 1] byte offsets */
    bool is_file;              /* name is a path: what is written in it is relative to it */
} ats_source;

/* Makes a source of text [size] (not copied); a byte-order mark is skipped. */
ATS_MUST_CHECK ats_code ats_source_new(ats_arena *arena, const char *name, const char *text,
                                       int64_t size, bool is_file, ats_source **out, ats_err *err);
/* Line and column (characters), both from 1, of a byte offset. */
void ats_source_place(const ats_source *source, int64_t offset, int64_t *line, int64_t *column);

enum { ATS_ISSUES_CAP = 20, ATS_ISSUE_TEXT = 480 };

typedef struct ats_issue {
    const ats_source *source;
    int64_t line, column; /* from 1 */
    const char *code;     /* "E-unknown-key": a static string */
    char text[ATS_ISSUE_TEXT];
} ats_issue;

typedef struct ats_issues {
    int64_t count; /* all that were found, also those past the cap */
    ats_issue items[ATS_ISSUES_CAP];
} ats_issues;

void ats_issue_add(ats_issues *issues, const ats_source *source, int64_t line, int64_t column,
                   const char *code, const char *fmt, ...) ATS_PRINTF(6, 7);
/* ATS_OK when there are none; else fills err with the whole report and returns code. Where the
 * report does not fit, source lines go first, then the last issues (with their count). */
ATS_MUST_CHECK ats_code ats_issues_report(ats_issues *issues, ats_code code, ats_err *err);

#endif
