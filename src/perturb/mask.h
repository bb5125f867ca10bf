/* Masks over base rows as bytes: drawing them, checking that nobody is left blind, and the script
 * that hides them. hidden: [n_keys], 1: hidden; only rows before ats_row_cap may be set.
 * Private to perturb/. */
#ifndef ATS_PERTURB_MASK_H
#define ATS_PERTURB_MASK_H

#include "perturb/family.h"

/* Sets `count` random rows before the cap. */
ATS_MUST_CHECK ats_code ats_mask_random(const ats_build *ctx, int64_t count, const char *purpose,
                                        uint8_t *hidden, ats_err *err);
/* Every evaluated probe still sees a key, or every head has a sink; `what` names the pattern. */
ATS_MUST_CHECK ats_code ats_mask_check(const ats_build *ctx, const uint8_t *hidden,
                                       const char *what, ats_err *err);
ATS_MUST_CHECK ats_code ats_mask_emit(const ats_build *ctx, const uint8_t *hidden, ats_built *out,
                                      ats_err *err);

#endif
