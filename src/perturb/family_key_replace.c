#include "perturb/families.h"
#include "perturb/params.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    ATS_PARAM_SOURCES,
};

const ats_family ats_family_key_replace = {
    .kind = "key_replace",
    .summary = "Keys of a span replaced; values stay.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "cosine",
    .has_control = false,
    .has_positions = false,
};
