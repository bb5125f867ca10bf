#include "perturb/families.h"
#include "perturb/params.h"

static const ats_param_def params[] = {
    {.name = "tau",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Temperature on top of the suite's.",
     .required = true,
     .min = 1e-6,
     .max = 1e6},
};

const ats_family ats_family_temperature = {
    .kind = "temperature",
    .summary = "Every logit, the sink's too, divided by tau.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "tau",
    .has_control = false,
    .has_positions = false,
};
