/* The journal of a result: one line of JSON for every process that worked on it, with times and
 * memory, which the result itself must not hold, because its bytes do not depend on them.
 * While there are parts it lies among them (OUT.h5.parts/journal.jsonl); with the result it becomes
 * OUT.h5.run.jsonl. It is a convenience: nothing reads it to continue a run.
 * Ownership: names and texts live in the arena. */
#ifndef ATS_ENGINE_JOURNAL_H
#define ATS_ENGINE_JOURNAL_H

#include <stdint.h>

#include "base/arena.h"

/* "OUT.h5.run.jsonl" */
ATS_MUST_CHECK ats_code ats_journal_path(ats_arena *arena, const char *result, const char **out,
                                         ats_err *err);
/* Adds a line to the journal among the parts of a result; nothing where there are no parts. */
ATS_MUST_CHECK ats_code ats_journal_add(ats_arena *arena, const char *result, const char *line,
                                        ats_err *err);
/* The result is complete: the journal among its parts, with one line more (NULL: none), becomes the
 * result's own, and the folder goes when it is empty. */
ATS_MUST_CHECK ats_code ats_journal_move(ats_arena *arena, const char *result, const char *line,
                                         ats_err *err);
/* The same of parts that stay, in several folders. */
ATS_MUST_CHECK ats_code ats_journal_gather(ats_arena *arena, const char *result,
                                           const char *const *folders, int64_t n_folders,
                                           const char *line, ats_err *err);
/* The lines of a result's journal, each one object; count 0: there is none. */
ATS_MUST_CHECK ats_code ats_journal_read(ats_arena *arena, const char *result,
                                         const char *const **lines, int64_t *count, ats_err *err);

#endif
