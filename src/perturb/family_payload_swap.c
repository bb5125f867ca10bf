#include "perturb/families.h"
#include "perturb/params.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    {.name = "other",
     .type = ATS_PARAM_TEXT,
     .unit = "1",
     .doc = "Name or role of the span to exchange values with; absent: donor rows."},
};

const ats_family ats_family_payload_swap = {
    .kind = "payload_swap",
    .summary = "Values exchanged between two spans, or replaced by donors; keys stay.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = NULL,
    .has_control = false,
    .has_positions = false,
};
