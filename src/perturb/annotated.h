/* Edits of two spans that the sample already holds: a stale and a current fact exchanged, hidden
 * or put elsewhere. Positions move, content and identity stay. Private to perturb/. */
#ifndef ATS_PERTURB_ANNOTATED_H
#define ATS_PERTURB_ANNOTATED_H

#include "perturb/family.h"

ATS_MUST_CHECK ats_code ats_annotated_layout(const ats_build *ctx, ats_built *out, ats_err *err);

#endif
