#include "perturb/families.h"
#include "perturb/params.h"

static const char *const words_direction[] = {"keep", "orthogonal", "mean_key", "sink_like", NULL};
static const char *const words_value[] = {"small", "donor", "large", NULL};

static const ats_param_def params[] = {
    ATS_PARAM_SPAN,
    {.name = "direction",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Key direction: an irrelevant row scaled in place, orthogonal to the span, the mean "
            "key, the sink's.",
     .text = "orthogonal",
     .words = words_direction},
    {.name = "quantile",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Quantile of the key norms of the head that `multiple` multiplies.",
     .number = 0.95,
     .min = 0,
     .max = 1},
    {.name = "value",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Value: scaled to the 5 % quantile of value norms, the donor's own, scaled to the 95 % "
            "quantile.",
     .text = "donor",
     .words = words_value},
    {.name = "count",
     .type = ATS_PARAM_INT,
     .unit = "rows",
     .doc = "Number of rows.",
     .number = 1,
     .min = 1,
     .max = ATS_ROWS_MAX},
    ATS_PARAM_PLACES,
    {.name = "multiple",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Key norm as a multiple of the quantile.",
     .required = true,
     .min = 0,
     .max = 1e6},
};

const ats_family ats_family_high_norm = {
    .kind = "high_norm",
    .summary = "Irrelevant rows with long keys.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "multiple",
    .has_control = true,
    .has_positions = true,
};
