/* What a plan's samples and layers need loaded: the sample's own tensors and its donor's. Indices
 * are those of the selection. Internal to the engine. */
#ifndef ATS_ENGINE_TENSORS_PLAN_H
#define ATS_ENGINE_TENSORS_PLAN_H

#include "engine/plan.h"
#include "engine/tensors.h"

/* Key heads [first, first + count) of the sample, and of its donor; returns how many of the two. */
int ats_tensors_wanted(const ats_plan *plan, int64_t sample, int64_t layer, int64_t first,
                       int64_t count, ats_tensor_want out[2]);
/* Has them loaded; valid until the next call. */
ATS_MUST_CHECK ats_code ats_tensors_donors(ats_tensors *tensors, const ats_plan *plan,
                                           int64_t sample, int64_t layer, int64_t first,
                                           int64_t count, ats_donor out[2], int64_t *n,
                                           ats_err *err);

#endif
