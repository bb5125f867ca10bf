/* The reference backend: attention.md and metrics.md computed from their definitions in double, one
 * row of one variant at a time, sharing no arithmetic with any other backend. Also the route of one
 * row, materialised, for `explain` and tests.
 * Ownership: arrays are the caller's. */
#ifndef ATS_KERNELS_REFERENCE_H
#define ATS_KERNELS_REFERENCE_H

#include "kernels/backend.h"

extern const ats_backend ats_backend_reference;

/* Largest rows x keys the backend accepts: it is a definition, not a tool for long contexts. */
#define ATS_REFERENCE_MAX_CELLS ((int64_t)1 << 28)

/* Number of rows of the perturbed sequence (hidden ones too); edit NULL: the base. */
int64_t ats_reference_length(const ats_problem *problem, const ats_edit *edit);
/* Per key of the perturbed sequence: base index or -2 - side row, position, logit in nats (-inf
 * illegal), weight. Any output may be NULL. */
ATS_MUST_CHECK ats_code ats_reference_row(const ats_problem *problem, const ats_edit *edit,
                                          int64_t row, int64_t *key, int64_t *position,
                                          double *logit, double *weight, double *lse,
                                          ats_err *err);

#endif
