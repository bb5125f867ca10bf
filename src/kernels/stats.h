/* Memory of one ats_stats: one block, laid out once, reused for every variant.
 * Ownership: the block belongs to the arena it was made in. */
#ifndef ATS_KERNELS_STATS_H
#define ATS_KERNELS_STATS_H

#include "base/arena.h"
#include "kernels/backend.h"

/* pair: also the arrays that compare with a base. */
ATS_MUST_CHECK ats_code ats_stats_new(ats_arena *arena, const ats_problem *problem, bool pair,
                                      ats_stats *out, ats_err *err);
/* Fills every array with NaN, -1 or 0: nothing an evaluation forgot can look like a result. */
void ats_stats_clear(const ats_problem *problem, ats_stats *stats);

#endif
