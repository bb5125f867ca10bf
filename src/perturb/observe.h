/* What queries of the sample itself attend to in the base: the numbers a cache policy collects.
 * Private to perturb/; no backend. */
#ifndef ATS_PERTURB_OBSERVE_H
#define ATS_PERTURB_OBSERVE_H

#include "perturb/family.h"

/* mass[i] += weight of row i, over every query head of the key head and every captured probe
 * (earlier: only probes that stand before the first evaluated one; there must be one).
 * mass: [n_keys], zeroed by the caller. */
ATS_MUST_CHECK ats_code ats_observe_mass(const ats_build *ctx, bool earlier, double *mass,
                                         ats_err *err);

#endif
