#include "perturb/families.h"
#include "perturb/params.h"

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    {.name = "jitter",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Cosine of a copy's keys to the originals; 1: exact copies.",
     .number = 1,
     .min = -1,
     .max = 1},
    ATS_PARAM_PAYLOAD("same"),
    ATS_PARAM_PLACES,
    {.name = "copies",
     .type = ATS_PARAM_INT,
     .unit = "1",
     .doc = "Number of copies of the whole span.",
     .required = true,
     .min = 1,
     .max = ATS_ROWS_MAX},
};

const ats_family ats_family_duplicates = {
    .kind = "duplicates",
    .summary = "Further copies of a span.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "copies",
    .has_control = true,
    .has_positions = true,
};
