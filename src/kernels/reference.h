/* The reference route of one row, for `explain` and tests: everything materialised in double.
 * Ownership: arrays are the caller's. */
#ifndef ATS_KERNELS_REFERENCE_H
#define ATS_KERNELS_REFERENCE_H

#include "kernels/backend.h"

/* Number of rows of the perturbed sequence (hidden ones too); edit NULL: the base. */
int64_t ats_reference_length(const ats_problem *problem, const ats_edit *edit);
/* Per key of the perturbed sequence: base index or -2 - side row, position, logit in nats (-inf
 * illegal), weight. Any output may be NULL. */
ATS_MUST_CHECK ats_code ats_reference_row(const ats_problem *problem, const ats_edit *edit,
                                          int64_t row, int64_t *key, int64_t *position,
                                          double *logit, double *weight, double *lse,
                                          ats_err *err);

#endif
