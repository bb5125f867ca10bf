/* Two edits of one sample as one: each part does what it does alone, on the same rows.
 *
 * Hidden by one is hidden; moves add up; rows inserted by one move with the place they stand at;
 * rows that both touch otherwise are refused. Temperatures multiply, query moves add.
 * Private to perturb/. Everything lives in ctx->arena. */
#ifndef ATS_PERTURB_COMBINE_H
#define ATS_PERTURB_COMBINE_H

#include "perturb/family.h"

/* Both with side rows filled, or both laid out alone. */
ATS_MUST_CHECK ats_code ats_edits_combine(const ats_build *ctx, const ats_edit *a,
                                          const ats_edit *b, ats_edit *out, ats_err *err);

#endif
