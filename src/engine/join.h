/* From parts to one judged result.
 * Ownership: texts live in the arena given; an outcome owns its own. */
#ifndef ATS_ENGINE_JOIN_H
#define ATS_ENGINE_JOIN_H

#include "engine/gates.h"
#include "engine/outcome.h"
#include "report/merge.h"

/* The outcome of a plan whose samples are the merge's parts, in order. */
ATS_MUST_CHECK ats_code ats_outcome_of_parts(const ats_plan *plan, ats_merge *merge,
                                             ats_outcome *out, ats_err *err);
/* Judges the gates and writes the joined result with their verdicts. */
ATS_MUST_CHECK ats_code ats_merge_judged(ats_arena *arena, const ats_plan *plan,
                                         const ats_outcome *outcome, ats_merge *merge,
                                         const char *path, ats_err *err);

typedef struct ats_join_options {
    const char *path; /* of the joined result */
    int64_t n_parts;
    const char *const *parts; /* files or folders of parts */
    bool partial, force;
} ats_join_options;

typedef struct ats_joined {
    int64_t n_parts, n_missing, n_ok, n_skipped, n_failed, bytes;
    double seconds;
    ats_suite *suite;    /* gates point into it; ats_suite_free */
    ats_verdict verdict; /* sentences live in the arena */
} ats_joined;

/* `merge`: from files alone, with the suite that they carry. */
ATS_MUST_CHECK ats_code ats_join(ats_arena *arena, const ats_join_options *options, ats_joined *out,
                                 ats_err *err);

#endif
