/* What a run's outcome is made of, read back from its files: the same for a run that was just made,
 * one that was resumed and one that was joined. */
#ifndef ATS_ENGINE_OUTCOME_H
#define ATS_ENGINE_OUTCOME_H

#include "engine/run.h"

/* Room for every case and table of the plan; nothing ran yet. */
ATS_MUST_CHECK ats_code ats_outcome_make(const ats_plan *plan, ats_outcome *out, ats_err *err);
/* Takes samples [first, first + count) from a file that holds just these. */
ATS_MUST_CHECK ats_code ats_outcome_take(const ats_plan *plan, ats_result_file *file, int64_t first,
                                         int64_t count, ats_outcome *outcome, ats_err *err);
/* Counts and curves, once everything is taken. */
ATS_MUST_CHECK ats_code ats_outcome_settle(const ats_plan *plan, ats_outcome *outcome,
                                           ats_err *err);

/* A plan that knows only what judging the file's gates needs; no captures. suite: parsed from the
 * file's own text. Everything lives in the arena. */
ATS_MUST_CHECK ats_code ats_plan_of_result(ats_arena *arena, const ats_suite *suite,
                                           ats_result_file *file, int64_t n_samples, ats_plan *out,
                                           ats_err *err);

#endif
