/* From a finished run to the numbers of the morning summary.
 * Ownership: everything lives in the arena, or belongs to plan, outcome and verdict. */
#ifndef ATS_ENGINE_DIGEST_H
#define ATS_ENGINE_DIGEST_H

#include "engine/gates.h"
#include "report/summary.h"

/* program: as it was called. path: where the result is. The next command explains the weakest cell
 * of a treatment case. */
ATS_MUST_CHECK ats_code ats_digest(ats_arena *arena, const ats_plan *plan,
                                   const ats_outcome *outcome, const ats_verdict *verdict,
                                   const char *program, const char *path, ats_summary *out,
                                   ats_err *err);

#endif
