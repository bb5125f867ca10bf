/* Parts of the plan that have their own file. Internal to the engine. */
#ifndef ATS_ENGINE_PLAN_PRIVATE_H
#define ATS_ENGINE_PLAN_PRIVATE_H

#include "engine/plan.h"

/* Lays out every variant on every sample and layer; fills cases, rows, distinct_shifts. */
ATS_MUST_CHECK ats_code ats_plan_layouts(ats_plan *plan, ats_err *err);
/* Chooses the metrics that the suite keeps and the captures can give. */
ATS_MUST_CHECK ats_code ats_plan_metrics(ats_plan *plan, ats_err *err);
/* Result shape, bytes at both details, the decision between them, batch, peak, seconds. */
ATS_MUST_CHECK ats_code ats_plan_sizes(ats_plan *plan, const ats_plan_options *options, ats_err *err);
/* How long the run takes, at ats_threads(). */
ATS_MUST_CHECK ats_code ats_plan_seconds(ats_plan *plan, ats_err *err);
/* Fits the run into memory: batch, key heads at a time or through a file, what the backend and the
 * tensors get, the peak. options NULL: none given. */
ATS_MUST_CHECK ats_code ats_plan_memory(ats_plan *plan, const ats_plan_options *options,
                                        ats_err *err);
/* Edits and recorders of the largest batch of so many variants (the last may be smaller). */
int64_t ats_plan_batch_bytes(const ats_plan *plan, int64_t batch);
/* Gates against metrics, spans and cases. */
ATS_MUST_CHECK ats_code ats_plan_gates(const ats_plan *plan, ats_err *err);

#endif
