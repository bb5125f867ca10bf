/* The families by name; families.c lists them. Private to perturb/. */
#ifndef ATS_PERTURB_FAMILIES_H
#define ATS_PERTURB_FAMILIES_H

#include "perturb/family.h"

extern const ats_family ats_family_distractors, ats_family_duplicates, ats_family_superseded,
    ats_family_high_norm, ats_family_mask_window, ats_family_payload_swap, ats_family_key_replace,
    ats_family_query_rotate, ats_family_temperature, ats_family_normalise, ats_family_noise,
    ats_family_kv_evict, ats_family_combine;

#endif
