#include "perturb/families.h"
#include "perturb/params.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    ATS_PARAM_SOURCES,
    ATS_PARAM_PAYLOAD("donor"),
    ATS_PARAM_PLACES,
    {.name = "count",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "Number of distractor rows.",
     .required = true,
     .min = 1,
     .max = ATS_ROWS_MAX},
};

const ats_family ats_family_distractors = {
    .kind = "distractors",
    .summary = "Rows that compete with a span: real, similar to it, or at a chosen logit.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "count",
    .has_control = true,
    .has_positions = true,
};
