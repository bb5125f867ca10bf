#include "perturb/families.h"
#include "perturb/params.h"

static const char *const words_round[] = {"none", "bf16", "fp8", NULL};

static const ats_param_def params[] = {
    {.name = "sigma",
     .type = ATS_PARAM_REAL,
     .unit = "1",
     .doc = "Standard deviation of the noise vector's norm over the key's norm.",
     .number = NAN,
     .min = 0,
     .max = 1000},
    {.name = "round",
     .type = ATS_PARAM_WORD,
     .unit = "1",
     .doc = "Rounding of every key element.",
     .text = "none",
     .words = words_round},
};

const ats_family ats_family_noise = {
    .kind = "noise",
    .summary = "Keys with noise, or rounded.",
    .params = params,
    .n_params = ATS_COUNT(params),
    .dose = "sigma",
    .has_control = false,
    .has_positions = false,
};
