#include "perturb/families.h"
#include "perturb/params.h"

static const char *const words_to[] = {"unit", "equal_norm", "unscaled", NULL};

static const ats_param_def params[] = {
    {.name = "to",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc =
         "unit: queries and keys to norm 1; equal_norm: keys to their RMS norm; unscaled: scale 1.",
     .required = true,
     .words = words_to},
};

const ats_family ats_family_normalise = {
    .kind = "normalise",
    .summary = "Norms or scale taken out of the logits.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = NULL,
    .has_control = false,
    .has_positions = false,
};
